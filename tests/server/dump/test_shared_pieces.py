"""Readers that are sent by themselves what others have made: each gets what it would get alone."""

import random
import threading
from contextlib import ExitStack, contextmanager

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import run_stream, shared_pieces
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.packet_buffers import SENT_SECONDS
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.server.work_permits import WorkPermits
from ibb.storage import Store, StoreOptions
from ibb.storage.page_runs import PageRuns

from ...integration.waiting import wait_until
from ...storage.events import transaction
from .crowd import publish
from .made_streams import Alone, Client, by_descriptor, request, stream

pytestmark = pytest.mark.kernel
PIECE_BYTES = 50_000
SECONDS = 20.0


@contextmanager
def some_groups(folder, rng, groups=500):
    options = StoreOptions(
        max_binlog_size=rng.choice((1 << 20, 8 << 20)),
        oob_piece_size=rng.choice((400, 8192)),
        page_size=rng.choice((4096, 16384)),
        format_description="upstream",
        fifo_pages_max=16,
    )
    with Store.open(folder / "store", options) as store, by_descriptor():
        for number in range(1, groups + 1):
            publish(store, rng, number)
        store.sync()
        yield store


class SentReader:
    """One of them, with its connection."""

    def __init__(self, store, asked, shared, stack, shift, room):
        self.asked, self.shift = asked, shift
        self.stream = stream(RunStream, store, asked, **shared)
        self.client = stack.enter_context(Client(room))
        first = self.stream.start()
        self.preamble, self.sent = bytes(first.data), dict(first.sent)
        self.stream.seq = (self.stream.seq + shift) & 255
        self.data, self.outcome, self.found = bytearray(), first.outcome, 0

    def turn(self, batches, seconds=SENT_SECONDS):
        """Send so many batches; note how many pieces others had made."""
        for _ in range(batches):
            batch = self.stream.next_batch(self.client, seconds)
            self.data += self.client.received() + batch.data
            self.sent.update(batch.sent)
            if self.stream._sharing is not None:
                self.found += self.stream._sharing.pump.found
            self.outcome = batch.outcome
            if batch.outcome is not Outcome.MORE:
                break
        self.stream.forget_batch()

    def check(self, alone):
        expected = alone.get(self.asked)
        ids = bytearray(expected.data)
        at = len(self.preamble)
        assert ids[:at] == self.preamble
        while at < len(ids):
            ids[at + 3] = (ids[at + 3] + self.shift) & 255
            at += 4 + int.from_bytes(ids[at : at + 3], "little")
        assert self.data == ids[len(self.preamble) :]
        assert self.sent == expected.sent
        assert self.stream._here() == expected.at


@pytest.mark.parametrize("seed", range(10))
def test_each_is_sent_what_it_would_get_alone(seed, tmp_path, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(run_stream, "PIECE_BYTES", rng.choice((5_000, PIECE_BYTES)))
    monkeypatch.setattr(run_stream, "SENT_BYTES", rng.choice((100_000, 400_000)))
    monkeypatch.setattr(shared_pieces, "GRID_BYTES", rng.choice((4_000, 45_000)))
    monkeypatch.setattr(shared_pieces, "PIECE_BUFFER_BYTES", 128 << 10)
    blocks = SharedBlocks(rng.choice((2 << 20, 8 << 20)))
    with some_groups(tmp_path, rng) as store, ExitStack() as stack:
        shared = {"runs": PageRuns(store), "blocks": blocks}
        readers = []
        for _ in range(5):
            start = GtidPosition()
            if rng.random() < 0.3:
                start = GtidPosition([Gtid(0, 1, rng.randrange(1, 100))])
            checksum = rng.random() < 0.8
            asked = request(connect_state=start, checksum=checksum, ignore_duplicates=True)
            shift, room = rng.choice((0, 0, 1, 200)), rng.choice((1 << 14, 1 << 18, 1 << 20))
            readers.append(SentReader(store, asked, shared, stack, shift, room))
        left = list(readers)
        while left:
            last = min(left, key=lambda one: len(one.data))
            reader = rng.choice((last, rng.choice(left)))
            reader.turn(rng.randrange(1, 5), rng.choice((SENT_SECONDS, SENT_SECONDS / 2)))
            if reader.outcome is not Outcome.MORE:
                left.remove(reader)
        alone = Alone(store)
        for reader in readers:
            reader.check(alone)
        assert sum(reader.found for reader in readers) > 10
        for reader in readers:
            reader.stream.close()
        assert blocks.pieces._shelf is None
        assert not blocks.pieces._places


@pytest.mark.parametrize("seed", range(4))
def test_threads_disturb_one_another_in_nothing(seed, tmp_path, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(run_stream, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(run_stream, "SENT_BYTES", 200_000)
    monkeypatch.setattr(shared_pieces, "GRID_BYTES", 45_000)
    monkeypatch.setattr(shared_pieces, "PIECE_BUFFER_BYTES", 128 << 10)
    blocks = SharedBlocks(3 << 20)  # few pieces: they are used again and again
    with some_groups(tmp_path, rng, 1500) as store, ExitStack() as stack:
        shared = {"runs": PageRuns(store), "blocks": blocks}
        readers = [
            SentReader(store, request(), shared, stack, rng.choice((0, 0, 3)), 1 << 20)
            for _ in range(8)
        ]

        def run(mine):
            while left := [one for one in mine if one.outcome is Outcome.MORE]:
                for one in left:
                    one.turn(2)

        threads = [threading.Thread(target=run, args=(readers[at::4],)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone = Alone(store)
        for reader in readers:
            reader.check(alone)
            reader.stream.close()
        assert sum(reader.found for reader in readers) > 10


def test_numbers_of_any_size_and_many_domains_come_through(tmp_path, monkeypatch):
    monkeypatch.setattr(run_stream, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(run_stream, "SENT_BYTES", 100_000)
    monkeypatch.setattr(shared_pieces, "GRID_BYTES", 45_000)
    monkeypatch.setattr(shared_pieces, "PIECE_BUFFER_BYTES", 200_000)
    options = StoreOptions(format_description="upstream", fifo_pages_max=16)
    blocks, domains = SharedBlocks(40 << 20), 70
    with Store.open(tmp_path / "store", options) as store, ExitStack() as stack, by_descriptor():
        for number in range(12 * domains):
            with store.begin() as group:
                group.write(transaction("a", 2000))
                gtid = Gtid(number % domains, 2**32 - 1, 2**64 - 12 * domains + number)
                group.commit(gtid, wait=False)
        store.sync()
        shared = {"runs": PageRuns(store), "blocks": blocks}
        readers = [SentReader(store, request(), shared, stack, 0, 1 << 22) for _ in range(2)]
        while left := [one for one in readers if one.outcome is Outcome.MORE]:
            for reader in left:
                reader.turn(1)
        alone = Alone(store)
        for reader in readers:
            assert len(reader.sent) == domains
            reader.check(alone)
            reader.stream.close()
        assert readers[1].found > 3


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Return two readers that share, and what."""
    monkeypatch.setattr(run_stream, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(run_stream, "SENT_BYTES", 100_000)
    rng, blocks = random.Random(7), SharedBlocks()  # files of 8 MiB
    with some_groups(tmp_path, rng) as store, ExitStack() as stack:
        shared = {"runs": PageRuns(store), "blocks": blocks, "permits": WorkPermits(1, 1)}
        both = [SentReader(store, request(), shared, stack, 0, 1 << 20) for _ in range(2)]
        while blocks.pieces._shelf is None:
            for reader in both:
                reader.turn(1)
                assert reader.outcome is Outcome.MORE
        yield *both, blocks.pieces
        for reader in both:
            reader.stream.close()
        assert not pieces_of(blocks.pieces)


def pieces_of(pieces):
    return [seat for places in pieces._places.values() for seat in places]


def test_one_that_is_let_go_while_a_thread_sends_to_it_shares_no_more(two, monkeypatch):
    one, other, pieces = two
    while one.stream._sharing is None:
        one.turn(1)
    place, begin, begun = one.stream._block_place, pieces.begin, []

    def let_go(header):
        one.stream.close_at_once()
        return place(header)

    def note(seat, *terms, **more):
        begun.append(seat)
        return begin(seat, *terms, **more)

    monkeypatch.setattr(one.stream, "_block_place", let_go)
    monkeypatch.setattr(pieces, "begin", note)
    one.stream.next_batch(one.client)
    assert not begun
    assert one.stream._sharing is None
    assert pieces_of(pieces) == [other.stream._seat]
    assert pieces._shelf is None


def test_one_whose_rate_is_limited_shares_no_more(two):
    one, other, pieces = two
    one.stream._pace._pacing.rate = 1 << 20
    one.turn(1)
    assert one.outcome is Outcome.MORE
    assert pieces_of(pieces) == [other.stream._seat]
    assert pieces._shelf is None


def test_one_that_waits_for_its_delay_shares_no_more(two):
    one, other, pieces = two
    one.stream._pace._pacing.delay = 1 << 31
    while one.stream._seat in pieces_of(pieces):
        one.turn(1)
    assert pieces_of(pieces) == [other.stream._seat]
    assert pieces._shelf is None


def test_who_has_everything_shares_no_more(two):
    one, other, pieces = two
    while one.outcome is Outcome.MORE:
        one.turn(1)
    assert one.outcome is Outcome.IDLE
    assert pieces_of(pieces) == [other.stream._seat]
    assert pieces._shelf is None


def test_those_behind_come_up_where_many_wait_for_a_thread(two):
    one, other, _ = two
    for reader in (other, one, one):
        reader.turn(1)
        assert reader.outcome is Outcome.MORE
    ahead, behind = one, other
    batch = ahead.stream.next_batch(ahead.client, SENT_SECONDS / 2)
    assert batch.gives_way
    assert ahead.stream._sharing.made_max == shared_pieces.CROWD_PIECES
    assert not behind.stream.next_batch(behind.client, SENT_SECONDS / 2).gives_way  # none behind it
    assert not ahead.stream.next_batch(ahead.client, SENT_SECONDS).gives_way  # nobody waits


def test_damage_behind_what_others_have_made_is_told_in_its_place(two, tmp_path):
    one, other, _ = two
    path = tmp_path / "store" / "binlog-000000.ibb"
    page_size, at = 16384, other.stream._kernel.border
    while len(one.data) < len(other.data) + 8 * PIECE_BYTES:
        one.turn(1)
        assert one.outcome is Outcome.MORE
    first = at // page_size + 1  # behind the page that it is in
    image = path.read_bytes()
    with path.open("r+b") as file:
        for page in range(first, len(image) // page_size):
            file.seek(page * page_size + 100)
            file.write(bytes([image[page * page_size + 100] ^ 1]))
    batch = other.stream.next_batch(other.client)
    other.data += other.client.received() + batch.data
    assert other.stream._sharing.pump.found > 0
    assert not other.stream._feed.has_pages  # that it is inside of, by what was found
    other.turn(100)
    assert other.outcome is Outcome.END
    assert bytes(other.data) == bytes(one.data[: len(other.data)])


@pytest.mark.parametrize("seconds", [SENT_SECONDS, SENT_SECONDS / 2])
def test_nobody_keeps_a_permit_to_wait_for_a_client(two, seconds):
    """Whether others wait for a thread or not."""
    _, other, _ = two
    permits = other.stream._permits
    permits.take()
    with Client(1 << 14) as other.client:
        sending = threading.Thread(target=other.turn, args=(1, seconds))
        sending.start()
        wait_until(lambda: permits.resting, SECONDS)
        assert permits.free == 1
        while sending.is_alive():
            other.client.received()
            sending.join(0.001)
    assert (permits.free, permits.resting) == (0, 0)
    assert other.stream._sharing is not None
