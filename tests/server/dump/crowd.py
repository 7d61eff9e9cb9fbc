"""Readers of one history who share what is made for them."""

import itertools

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import dump_stream, page_feed, run_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.server.dump.tail_stream import TailStream
from ibb.storage import page_runs
from ibb.storage.options import REDO_SEGMENT_SIZE_MIN, StoreOptions
from ibb.storage.page_runs import PageRuns
from ibb.storage.store import Store

from ...storage.events import query, rows_event, xid
from .made_streams import Alone, packets_of, request, stream

BATCHES_MAX = 100_000


class Reader:
    """One reader of a history beside others, whose packets count from any number on."""

    def __init__(self, history, asked, blocks, runs, shift):
        self.asked, self._shift, self.outcome, self.error = asked, shift, Outcome.MORE, None
        self.stream = stream(TailStream, history, asked, runs=runs, blocks=blocks)
        self.data, self.sent = [], {}
        batch = self.stream.start()
        self._note(batch)
        self.stream.seq = (self.stream.seq + shift) & 255
        self._preamble = len(packets_of(batch.data))

    def _note(self, batch):
        self.data.append(bytes(batch.data))
        self.sent.update(batch.sent)
        self.outcome, self.error, self.at = batch.outcome, batch.error, batch.end

    def step(self):
        self._note(self.stream.next_batch())

    def run(self):
        """Read to the end, or to the end of what is there."""
        for _ in range(BATCHES_MAX):
            if self.outcome is not Outcome.MORE:
                return
            self.step()

    def packets(self):
        """Return its packets, as if they had been counted as ever."""
        found = packets_of(b"".join(self.data))
        first, rest = found[: self._preamble], found[self._preamble :]
        return first + [((seq - self._shift) & 255, payload) for seq, payload in rest]

    def check(self, alone):
        """Compare with what it gets alone, as ever."""
        plain = alone.get(self.asked)
        found = first_difference(self.packets(), packets_of(plain.data))
        assert found is None, found
        assert (self.outcome, self.sent) == (plain.outcome, plain.sent)
        assert (self.error and f"{self.error.code} {self.error}") == plain.error
        assert self.at == plain.at
        return plain


def first_difference(packets, expected):
    """Return where packets differ first, how many there are, and those there; None: nowhere."""
    for place, (one, other) in enumerate(itertools.zip_longest(packets, expected)):
        if one != other:
            return place, len(packets), len(expected), one, other
    return None


class Crowd:
    """
    Readers of a history who share blocks.

    Args:
        history: what they read.
        rng: places, kinds and speeds of them.
        bytes_max: of the blocks.
    """

    def __init__(self, history, rng, monkeypatch, bytes_max=1 << 20, grid=None, batch=None):
        self.history, self.rng = history, rng
        self.blocks, self.runs = SharedBlocks(bytes_max), PageRuns(history)
        self.found, find = [], SharedBlocks.find

        def note(blocks, seat, place):
            block = find(blocks, seat, place)
            self.found += [block] if block is not None else []
            return block

        monkeypatch.setattr(SharedBlocks, "find", note)
        monkeypatch.setattr(run_stream, "GRID_BYTES", grid or rng.choice((2048, 16384, 1 << 18)))
        size = batch or rng.choice((700, 5000, 60_000, 1 << 18))
        monkeypatch.setattr(dump_stream, "BATCH_BYTES", size)
        run = rng.choice((4096, 1 << 18))
        monkeypatch.setattr(page_runs, "RUN_BYTES", run)
        monkeypatch.setattr(page_feed, "FIRST_BYTES", run // 4)
        self.readers = []

    def add(self, *, start=None, **changes):
        asked = request(connect_state=start or GtidPosition(), **changes)
        shift = self.rng.choice((0, 0, 1, 100, 255))
        self.readers.append(Reader(self.history, asked, self.blocks, self.runs, shift))
        return self.readers[-1]

    def run(self):
        """Let readers take steps in any order, some more often than others."""
        weights = [self.rng.choice((1, 1, 3, 10)) for _ in self.readers]
        for reader in self.readers:
            if reader.outcome is not Outcome.END:
                reader.outcome = Outcome.MORE
        while left := [one for one in self.readers if one.outcome is Outcome.MORE]:
            chances = [weights[self.readers.index(one)] for one in left]
            for one in self.rng.choices(left, chances, k=20):
                if one.outcome is Outcome.MORE:
                    one.step()

    def check(self):
        alone = Alone(self.history)
        return [one.check(alone) for one in self.readers]

    def close(self):
        for one in self.readers:
            one.stream.close()
        assert not self.blocks._kept
        assert not self.blocks._bytes
        assert not self.blocks._making
        assert not self.blocks._seats


def publish(store, rng, number):
    """Publish a group: small, in several pieces, or with a part that was rolled back."""
    with store.begin() as group:
        group.write(query("a"))
        for size in rng.choices((60, 300, 3000, 9000), k=rng.choice((0, 1, 2, 12))):
            group.write(rows_event(size))
        if rng.random() < 0.1:
            savepoint = group.savepoint()
            group.write(b"".join(rows_event(2000) for _ in range(rng.choice((1, 9)))))
            group.rollback_to(savepoint)
            group.write(query("b"))
        group.write(xid(number))
        group.commit(Gtid(rng.choice((0, 0, 0, 7)), rng.choice((1, 2)), number), wait=False)


def opened(folder, rng, **options):
    page_size = rng.choice((512, 4096, 16384))
    chosen = {
        "page_size": page_size,
        "max_binlog_size": max(64 * page_size, 1 << 19),
        "redo_segment_size": max(REDO_SEGMENT_SIZE_MIN, 16 * page_size),
        "oob_piece_size": rng.choice((400, 8192)),
        "server_id": 5,
    } | options
    return Store.open(folder / "store", StoreOptions(**chosen))


def filled(store, rng, groups):
    for number in range(1, groups + 1):
        publish(store, rng, number)
    store.sync()


def any_reader(crowd, rng, gtids):
    start = GtidPosition([Gtid(*rng.choice(gtids))]) if gtids and rng.random() < 0.4 else None
    return crowd.add(start=start, checksum=rng.random() < 0.7, annotate=rng.random() < 0.8)
