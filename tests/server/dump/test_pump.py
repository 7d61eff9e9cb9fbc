"""Pages from a ring, and packets that are sent where they are made: as if all lay ready."""

import errno
import os
import random
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.gtid import Gtid
from ibb.server.dump.event_packets import FULL, NEED, ODD
from ibb.server.dump.run_encoder import BEYOND_BYTES, RunEncoder
from ibb.storage import Store, StoreOptions
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_ring import PageRing
from ibb.storage.position import Position
from ibb.storage.record_walker import count_good

from ...storage.events import transaction

HOUR = 3600 * 10**9
PAGE_SIZE = 4096
LARGEST = 40_000  # bytes of a group's rows
OUT = memoryview(bytearray(BEYOND_BYTES + (1 << 17)))


class File:
    """A file of some hundred pages: where its first group begins, and its packets."""

    def __init__(self, folder):
        rng = random.Random(1)
        options = StoreOptions(
            page_size=PAGE_SIZE,
            max_binlog_size=2 << 20,
            oob_piece_size=3000,
            format_description="upstream",
        )
        with Store.open(folder, options) as store:
            for number in range(1, 150):
                with store.begin() as group:
                    group.write(transaction(f"{number}", rng.choice((20, 400, 9000, LARGEST))))
                    group.commit(Gtid(number % 3, 1, number), wait=False)
            store.sync()
            reader = GroupReader(store.pages, Position(0, PAGE_SIZE))
            first = reader.next()
            self.begin = first.position.offset
            if first.gtid is not None:
                self.begin = PAGE_SIZE
        self.descriptor = os.open(folder / "binlog-000000.ibb", os.O_RDONLY)
        self.image = os.pread(self.descriptor, os.fstat(self.descriptor).st_size, PAGE_SIZE)
        self.pages = count_good(self.image, PAGE_SIZE)
        encoder = self.encoder()
        self.data, self.groups = bytearray(), {}
        self.load(encoder)
        seq = 1
        while (code := encoder.run(OUT, 1 << 16, seq)) == FULL:
            self.take(encoder)
            seq = encoder.packets.seq
        self.take(encoder)
        assert code == NEED
        self.border, self.seq = encoder.border, encoder.packets.seq
        assert len(self.data) > self.pages * PAGE_SIZE * 3 // 4 > 64 * PAGE_SIZE

    def take(self, encoder):
        self.data += OUT[: encoder.packets.used]
        self.groups.update((domain, number) for domain, _, number in encoder.take())

    def encoder(self):
        encoder = RunEncoder(checksum=True, fates=bytes(256), marked=0)
        encoder.seek(0, self.begin)
        return encoder

    def load(self, encoder, first=1, pages=None):
        data = memoryview(self.image)[(first - 1) * PAGE_SIZE :]
        return encoder.walker.load(data, PAGE_SIZE, first, pages or self.pages, PAGE_SIZE - 4)

    @property
    def stop(self):
        return self.pages + 1


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = File(tmp_path_factory.mktemp("ring"))
    yield file
    os.close(file.descriptor)


def ring_of(pages, at_a_time=2):
    return PageRing(memoryview(bytearray(pages * PAGE_SIZE)), at_a_time * PAGE_SIZE)


def opened(ring, encoder, file, stop=None):
    return ring.open(encoder.walker, 0, PAGE_SIZE, file.descriptor, stop or file.stop)


def pumped(file, ring, wanted, descriptor=-1, most=0):
    """Return all packets, and how the encoder is behind them; it is opened again for each turn."""
    encoder, data, groups, seq = file.encoder(), bytearray(), {}, 1
    while True:
        if not opened(ring, encoder, file):
            return data, groups, encoder
        code = encoder.pump(OUT, wanted, seq, ring, descriptor, most, HOUR)
        data += OUT[encoder.kept : encoder.packets.used]
        seq = encoder.packets.seq
        groups.update((domain, number) for domain, _, number in encoder.take())
        if code != FULL:
            assert code == NEED
            return data, groups, encoder


@given(
    st.integers(4, 64), st.integers(1, 9), st.sampled_from((1, 100, 5000, 1 << 16)), st.booleans()
)
def test_with_a_ring_of_any_size_the_same_is_made(file, pages, at_a_time, wanted, goes_on):
    data, groups, encoder = pumped(file, ring_of(pages, at_a_time), wanted)
    assert data == file.data
    assert groups == file.groups
    assert (encoder.border, encoder.packets.seq) == (file.border, file.seq)
    if goes_on:  # what follows comes from elsewhere
        assert not file.load(encoder)


def test_a_record_that_is_larger_than_the_ring_is_not_for_here(file):
    data, _, encoder = pumped(file, ring_of(1), 1 << 16)
    assert len(data) < len(file.data) // 2
    assert bytes(file.data[: len(data)]) == data
    assert file.load(encoder, encoder.walker.wanted_page(PAGE_SIZE), 20)
    assert encoder.run(OUT, 1, 1) in (FULL, NEED)


@pytest.mark.parametrize("pages", [6, 40])
@pytest.mark.parametrize("wanted", [700, 1 << 14])
def test_inside_a_group_the_pages_may_come_from_a_ring_or_not_in_turns(file, pages, wanted):
    encoder, ring, data, seq, turn = file.encoder(), ring_of(pages), bytearray(), 1, 0
    inside = set()
    while True:
        turn += 1
        if turn % 3:
            assert opened(ring, encoder, file)
            code = encoder.pump(OUT, wanted, seq, ring, -1, 0, 0)
        else:
            while (code := encoder.run(OUT, wanted, seq)) == NEED and file.load(
                encoder, page := encoder.walker.wanted_page(PAGE_SIZE), min(9, file.stop - page)
            ):
                pass
        inside.add((turn % 3 > 0, encoder.walker.left > 0))
        data += OUT[: encoder.packets.used]
        seq = encoder.packets.seq
        encoder.take()
        if code == NEED:
            break
    assert data == file.data
    assert {(True, True), (False, True)} <= inside


def test_no_page_is_taken_that_is_damaged_or_not_to_be_read(file, tmp_path):
    whole = os.pread(file.descriptor, file.stop * PAGE_SIZE, 0)
    for page in (3, 17, 60):
        damaged = bytearray(whole)
        damaged[page * PAGE_SIZE + 100] ^= 1
        (tmp_path / "file").write_bytes(damaged)
        descriptor = os.open(tmp_path / "file", os.O_RDONLY)
        for end, stop in ((page - 1, file.stop), (page, page), (page - 2, page - 2)):
            encoder, ring = file.encoder(), ring_of(8, 4)
            assert ring.open(encoder.walker, 0, PAGE_SIZE, descriptor, stop) == (end > 1)
            if end > 1:
                assert encoder.pump(OUT, 1 << 17, 1, ring, -1, 0, 0) in (NEED, FULL)
                assert encoder.border <= end * PAGE_SIZE
                assert bytes(OUT[: encoder.packets.used]) == file.data[: encoder.packets.used]
        os.close(descriptor)


def test_where_there_is_nothing_to_read_a_walker_is_left_alone(file):
    encoder, ring = file.encoder(), ring_of(8)
    for descriptor, stop in ((-1, file.stop), (file.descriptor, 0), (file.descriptor, 1)):
        assert not ring.open(encoder.walker, 0, PAGE_SIZE, descriptor, stop)
    assert file.load(encoder, 1, 30)
    assert encoder.run(OUT, 700, 1) == FULL
    assert encoder.walker.left
    size = encoder.packets.used
    encoder.take()
    assert not ring.open(encoder.walker, 0, PAGE_SIZE, -1, file.stop)
    assert encoder.run(OUT, 5000, encoder.packets.seq) == FULL
    assert bytes(OUT[: encoder.packets.used]) == file.data[size : size + encoder.packets.used]


def test_a_ring_goes_over_to_another_file(file, tmp_path):
    ring, encoder = ring_of(40, 40), file.encoder()
    assert opened(ring, encoder, file)
    (tmp_path / "other").write_bytes(bytes(file.stop * PAGE_SIZE))
    descriptor = os.open(tmp_path / "other", os.O_RDONLY)
    assert not ring.open(file.encoder().walker, 1, PAGE_SIZE, descriptor, file.stop)
    os.close(descriptor)
    with pytest.raises(ValueError, match="100 bytes for pages of 4096"):
        opened(PageRing(memoryview(bytearray(100)), 1), encoder, file)


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
    for one in (ours, theirs):
        one.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


def received(socket):
    found = bytearray()
    while True:
        try:
            data = socket.recv(1 << 20)
        except BlockingIOError:
            return bytes(found)
        found += data


@pytest.mark.parametrize("wanted", [300, 9000, 1 << 17])
def test_what_a_client_takes_and_what_it_leaves_are_everything_together(file, ends, wanted):
    encoder, ring, data, groups, seq = file.encoder(), ring_of(30, 8), bytearray(), {}, 1
    left, event_bytes = 0, 0
    while True:
        assert opened(ring, encoder, file)
        code = encoder.pump(OUT, wanted, seq, ring, ends[0].fileno(), 1 << 18, HOUR)
        came = received(ends[1])
        assert len(came) == encoder.sent
        rest = OUT[encoder.kept : encoder.packets.used]
        left += encoder.kept > 0
        data += came + rest
        event_bytes += encoder.sent_bytes + encoder.packets.event_bytes
        seq = encoder.packets.seq
        groups.update((domain, number) for domain, _, number in encoder.take())
        assert (encoder.sent, encoder.sent_bytes, encoder.kept, encoder.error) == (0, 0, 0, 0)
        if code == NEED:
            break
        assert code == FULL
    assert data == file.data
    assert groups == file.groups
    assert left > 1
    assert event_bytes == len(data) - 5 * count_packets(data)


def count_packets(data):
    packets = at = 0
    while at < len(data):
        at += 4 + int.from_bytes(data[at : at + 3], "little")
        packets += 1
    return packets


@pytest.mark.parametrize(("most", "pieces"), [(1, 1), (2000, 2), (2001, 3)])
def test_no_more_is_sent_than_at_most_and_a_piece(file, ends, most, pieces):
    encoder, ring = file.encoder(), ring_of(30, 8)
    assert opened(ring, encoder, file)
    assert encoder.pump(OUT, 1000, 1, ring, ends[0].fileno(), most, HOUR) == FULL
    data = received(ends[1])
    assert data == file.data[: len(data)]
    assert pieces * 1000 <= len(data) == encoder.sent < pieces * 1000 + 10_000
    assert encoder.packets.used == 0


def test_no_piece_is_begun_when_the_time_is_over(file, ends):
    encoder, ring = file.encoder(), ring_of(30, 8)
    assert opened(ring, encoder, file)
    assert encoder.pump(OUT, 1000, 1, ring, ends[0].fileno(), 1 << 18, 0) == FULL
    assert 1000 <= len(received(ends[1])) == encoder.sent < 11_000


def test_why_a_client_takes_no_more_is_said(file, ends):
    ends[1].close()
    encoder, ring = file.encoder(), ring_of(30, 8)
    assert opened(ring, encoder, file)
    assert encoder.pump(OUT, 1000, 1, ring, ends[0].fileno(), 5000, HOUR) == FULL
    assert encoder.error == errno.EPIPE
    assert encoder.sent == 0


def test_what_is_odd_is_left_behind_what_was_sent(file, ends, tmp_path):
    """An odd group is not begun, or is told with how much of it has gone."""
    options = StoreOptions(page_size=PAGE_SIZE, oob_piece_size=3000, format_description="upstream")
    with Store.open(tmp_path / "s", options) as store:
        for number, size in ((1, 20), (2, 30_000)):
            with store.begin() as group:
                group.write(transaction("a", size))
                group.commit(Gtid(0, 1, number))
        for number, size in ((3, 200_000), (4, 30_000)):  # an event that is too large
            with store.begin() as group:
                group.write(transaction("b", size))
                group.commit(Gtid(0, 1, number))
    descriptor = os.open(tmp_path / "s" / "binlog-000000.ibb", os.O_RDONLY)
    encoder, ring = file.encoder(), ring_of(80, 8)
    encoder.seek(0, file.begin)
    assert ring.open(encoder.walker, 0, PAGE_SIZE, descriptor, 200)
    code = encoder.pump(OUT, 100, 1, ring, ends[0].fileno(), 1 << 20, HOUR)
    os.close(descriptor)
    assert code == ODD
    assert encoder.sent > 30_000
    assert encoder.packets.used + encoder.packets.skip > 0
    assert encoder.take() == [(0, 1, 2)]
