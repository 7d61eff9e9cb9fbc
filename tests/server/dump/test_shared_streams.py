"""Readers that share what is made for them get, byte for byte, what each of them gets alone."""

import random
import threading

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import dump_stream, run_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.storage import page_runs
from ibb.storage.options import REDO_SEGMENT_SIZE_MIN, StoreOptions
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_runs import PageRuns
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ...storage.events import query, rows_event, xid
from ...storage.random_history import DIRECTORY, RandomHistory
from .made_streams import made_by, packets_of, request, stream

pytestmark = pytest.mark.kernel

BATCHES_MAX = 100_000


class Reader:
    """One reader of a history beside others, whose packets count from any number on."""

    def __init__(self, history, asked, blocks, runs, shift):
        self.asked, self._shift, self.outcome, self.error = asked, shift, Outcome.MORE, None
        self.stream = stream(RunStream, history, asked, runs=runs, blocks=blocks)
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

    def check(self, history):
        """Compare with what it gets alone, as ever."""
        plain = made_by(DumpStream, history, self.asked)
        assert self.packets() == packets_of(plain.data)
        assert (self.outcome, self.sent) == (plain.outcome, plain.sent)
        assert (self.error and f"{self.error.code} {self.error}") == plain.error
        assert self.at == plain.at
        return plain


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
        monkeypatch.setattr(page_runs, "RUN_BYTES", rng.choice((4096, 1 << 18)))
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
        return [one.check(self.history) for one in self.readers]

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


@pytest.mark.parametrize("seed", range(16))
def test_any_history_is_sent_to_many_as_to_one(seed, monkeypatch):
    life = RandomHistory(seed)
    life.run()
    rng, history = random.Random(seed), ReadOnlyHistory(life.disk, DIRECTORY)
    gtids = [gtid for gtid, _, _ in life.diary.published]
    crowd = Crowd(history, rng, monkeypatch, rng.choice((1, 20_000, 1 << 20)))
    for _ in range(6):
        any_reader(crowd, rng, gtids)
    crowd.run()
    crowd.check()
    crowd.close()
    history.close()


@pytest.mark.parametrize("seed", range(8))
def test_readers_at_the_tail_share_what_comes(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 120)
        crowd = Crowd(store, rng, monkeypatch, rng.choice((30_000, 1 << 20)))
        for _ in range(6):
            any_reader(crowd, rng, [])
        for number in range(1000, 1000 + 8 * 10, 10):
            crowd.run()
            for more in range(rng.choice((1, 1, 2, 9))):
                publish(store, rng, number + more)
            if rng.random() < 0.7:
                store.sync()
        crowd.run()
        crowd.check()
        crowd.close()
    assert len(crowd.found) > 20


def test_nothing_that_is_not_durable_is_in_a_block(monkeypatch, tmp_path):
    rng = random.Random(1)
    with opened(tmp_path, rng, flush_log_at_commit=0) as store:
        filled(store, rng, 50)
        crowd = Crowd(store, rng, monkeypatch)
        for _ in range(3):
            crowd.add()
        for number in range(100, 130):
            publish(store, rng, number)
            for one in crowd.readers:
                end = store.end()
                one.step()
                assert one.at is None or one.at.position <= store.end()
            assert all(
                (block.after.walker.file_no, block.after.behind) <= store.end()
                for block in crowd.blocks._kept.values()
            ), end
        crowd.run()
        crowd.check()
        crowd.close()


@pytest.mark.parametrize("seed", range(2))
def test_threads_share_blocks(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 300)
        crowd = Crowd(store, rng, monkeypatch, rng.choice((100_000, 1 << 24)), 1 << 14, 1 << 14)
        for _ in range(8):
            any_reader(crowd, rng, [])
        threads = [threading.Thread(target=one.run) for one in crowd.readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        crowd.check()
        assert crowd.found
        crowd.close()


def test_readers_who_begin_at_different_places_meet(monkeypatch, tmp_path):
    rng = random.Random(5)
    with opened(tmp_path, rng, page_size=4096) as store:
        for number in range(1, 1200):
            with store.begin() as group:
                group.write(query("a") + rows_event(100) + xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 14, 1 << 14)
        crowd.add()
        for number in (3, 50, 77):
            crowd.add(start=GtidPosition([Gtid(0, 1, number)]))
        crowd.run()
        made = crowd.check()
        crowd.close()
    assert sum(len(block.data) for block in crowd.found) > 2 * len(made[0].data)


def test_groups_that_one_reader_has_are_not_missed_by_another(monkeypatch, tmp_path):
    rng = random.Random(7)
    with opened(tmp_path, rng, page_size=4096) as store:
        for number in range(1, 300):
            with store.begin() as group:
                group.write(query("a") + rows_event(100) + xid(number))
                group.commit(Gtid(number % 2 * 7, 1, number), wait=False)
        store.sync()
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 18, 1 << 16)
        monkeypatch.setattr(SharedBlocks, "_behind", lambda *_: 9)  # as if all came at once
        for number in (200, 100, 150):
            crowd.add(start=GtidPosition([Gtid(0, 1, number)]))
        crowd.run()
        crowd.check()
        crowd.close()


def test_who_is_left_behind_goes_on_alone_inside_a_group(monkeypatch, tmp_path):
    rng = random.Random(6)
    with opened(tmp_path, rng, page_size=4096, max_binlog_size=4 << 20) as store:
        for number in range(1, 4):
            with store.begin() as group:
                for _ in range(60):
                    group.write(rows_event(9000))
                group.write(xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 18, 1 << 16)
        fast, slow = crowd.add(), crowd.add()
        for _ in range(4):
            fast.step()
            slow.step()
        assert slow.stream._kernel.in_group
        assert crowd.found
        assert slow.stream._known is None  # what it got was made by the other
        fast.run()
        found = len(crowd.found)
        assert crowd.blocks._bytes <= 1 << 20
        crowd.blocks._kept.clear()
        crowd.blocks._bytes = 0
        slow.step()
        assert len(crowd.found) == found
        assert slow.stream._known is not None  # nor has it begun the group again
        slow.run()
        crowd.check()
        crowd.close()


@pytest.mark.parametrize("seed", range(10))
def test_damage_is_told_to_each_reader_as_ever(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 150)
    file = rng.choice(sorted((tmp_path / "store").glob("*.ibb")))
    image = bytearray(file.read_bytes())
    image[rng.randrange(512, max(len(image.rstrip(b"\0")), 513))] ^= 1 << rng.randrange(8)
    file.write_bytes(image)
    history = ReadOnlyHistory(OsDisk(), str(tmp_path / "store"))
    crowd = Crowd(history, rng, monkeypatch)
    for _ in range(4):
        any_reader(crowd, rng, [])
    crowd.run()
    crowd.check()
    crowd.close()
    history.close()


def test_a_history_that_is_begun_anew_has_no_block_of_the_old_one(monkeypatch, tmp_path):
    rng = random.Random(9)
    with opened(tmp_path, rng) as store:
        for _ in range(2):
            filled(store, rng, 100)
            crowd = Crowd(store, rng, monkeypatch, batch=5000)
            waiting = [
                stream(RunStream, store, request(), runs=crowd.runs, blocks=crowd.blocks)
                for _ in range(2)
            ]
            for _ in range(3):
                crowd.add()
            for one in crowd.readers * 2:
                one.step()
            while not crowd.blocks._kept:
                assert crowd.readers[0].outcome is Outcome.MORE
                crowd.readers[0].step()
            crowd.close()  # though others are about to begin
            assert not crowd.runs._kept
            store.reset()
            publish(store, rng, 1)
            store.sync()
            crowd.readers = []
            for one in waiting:
                one.close()
            for _ in range(2):
                crowd.add()
            crowd.run()
            crowd.check()
            crowd.close()
            store.reset()


def test_files_before_the_readers_can_be_purged(monkeypatch, tmp_path):
    rng = random.Random(11)
    with opened(tmp_path, rng, page_size=4096, max_binlog_size=1 << 19) as store:
        filled(store, rng, 500)
        assert len(store.files()) > 2
        crowd = Crowd(store, rng, monkeypatch)
        first, second = crowd.add(), crowd.add()
        plain = made_by(DumpStream, store, first.asked)
        first.run()
        while second.at.position.file_no < 1:
            second.step()
        store.purge_to(store.files()[1].name)
        assert len(store.files()) > 1
        second.run()
        for one in (first, second):
            assert one.packets() == packets_of(plain.data)
        crowd.close()


def test_one_who_is_alone_keeps_nothing(monkeypatch, tmp_path):
    rng = random.Random(12)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 100)
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, batch=5000)
        crowd.add()
        crowd.add(checksum=False)  # another kind
        kept = []
        monkeypatch.setattr(SharedBlocks, "_behind", lambda *a: kept.append(a) or 0)
        crowd.run()
        crowd.check()
        crowd.close()
    assert not kept
