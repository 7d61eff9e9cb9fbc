"""Pieces on a shelf: found by who is where they begin, whatever it has sent before."""

import os
import select
import socket
import threading
from contextlib import contextmanager

import pytest

from ibb.server.dump.event_packets import DROP, FULL, NEED
from ibb.server.dump.piece_shelf import PieceShelf
from ibb.server.dump.run_encoder import BEYOND_BYTES, RunEncoder
from ibb.server.dump.sequence_ids import renumber
from ibb.server.dump.shared_pump import SharedPump
from ibb.server.work_permits import WorkPermits

from .made_streams import Client
from .test_pump import HOUR, File, opened, ring_of

pytestmark = pytest.mark.kernel
PIECE_BYTES, GRID_BYTES = 50_000, 40_000
ROOM = PIECE_BYTES + BEYOND_BYTES
OUT = memoryview(bytearray(ROOM))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = File(tmp_path_factory.mktemp("shelf"))
    yield file
    os.close(file.descriptor)


def shelf_of(pieces, room=ROOM):
    return PieceShelf(memoryview(bytearray(pieces * room)), room)


class Sent:
    """What one is sent of a file, from the beginning on."""

    def __init__(
        self,
        file,
        shelf,
        *,
        key=(0, 0),
        seq=1,
        followed=True,
        made_max=0,
        sizes=(PIECE_BYTES, GRID_BYTES),
    ):
        self._file, self.encoder, self._ring = file, file.encoder(), ring_of(64)
        self._pump = SharedPump(shelf, *key, *sizes)
        self.seq, self._terms = seq, (followed, made_max)
        self.data, self.groups = bytearray(), {}
        self.found = self.most = self.runs = self.border = 0

    def turn(self, client, most=1 << 30):
        """Be sent more; return whether there may be still more."""
        encoder, pump, before = self.encoder, self._pump, len(self.data)
        if not opened(self._ring, encoder, self._file):
            return False
        terms = most, HOUR, *self._terms
        code = client.lend(lambda it: pump.run(encoder, OUT, self.seq, self._ring, it, *terms))
        assert not encoder.error
        self.found += pump.found
        self.runs += 1
        self.data += client.received() + OUT[encoder.kept : encoder.packets.used]
        self.most = max(self.most, len(self.data) - before)
        self.seq, self.border = encoder.packets.seq, encoder.border
        for groups in (pump.take(), encoder.take()):
            self.groups.update((domain, number) for domain, _, number in groups)
        assert code in {FULL, NEED}
        return code == FULL

    def run(self, room=1 << 22):
        """Be sent everything."""
        with Client(room) as client:
            while self.turn(client):
                pass
        return self

    def check(self, file, more=0):
        expected = memoryview(bytearray(len(file.data)))
        renumber(file.data, more, expected)
        assert self.data == expected
        assert self.groups == file.groups
        assert (self.border, self.seq) == (file.border, (file.seq + more) & 255)


@pytest.mark.parametrize("room", [1 << 13, 1 << 15, 1 << 22])
@pytest.mark.parametrize("more", [0, 1, 200])
def test_what_one_has_made_another_is_sent(file, more, room):
    shelf = shelf_of(200)
    first = Sent(file, shelf).run()
    first.check(file)
    assert not first.found
    second = Sent(file, shelf, seq=1 + more & 255).run(room)
    second.check(file, more)
    assert second.found > len(file.data) // PIECE_BYTES


@pytest.mark.parametrize("key", [(1, 0), (0, 1)])
def test_pieces_of_another_kind_or_history_are_not_found(file, key):
    shelf = shelf_of(200)
    Sent(file, shelf).run()
    other = Sent(file, shelf, key=key).run()
    other.check(file)
    assert not other.found
    assert Sent(file, shelf, key=key).run().found
    assert Sent(file, shelf).run().found


def test_who_is_followed_by_nobody_keeps_nothing(file):
    shelf = shelf_of(200)
    Sent(file, shelf, followed=False).run()
    assert not Sent(file, shelf).run().found


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_the_newest_are_kept_for_who_is_that_little_behind(file, pieces):
    shelf = shelf_of(pieces)
    one, near, far = (Sent(file, shelf) for _ in range(3))
    with Client(1 << 22) as client:
        for _ in range(pieces - 1):
            one.turn(client, 1)
        while one.turn(client, 1):
            assert near.turn(client, 1)
        assert near.runs == near.found == one.runs - pieces > 10
        far.turn(client, 1)
        assert not far.found
        while near.turn(client) or far.turn(client):
            pass
    for reader in (one, near, far):
        reader.check(file)


def test_what_somebody_sends_just_then_keeps_its_room(file):
    shelf = shelf_of(1)
    with Client(1 << 22) as client:
        one, late = Sent(file, shelf), Sent(file, shelf)
        one.turn(client, 1)
        found = late.encoder
        found.packets.lend(OUT, PIECE_BYTES, 1)
        assert shelf.find(found, 0, 0) == 0  # it is to be sent now
        found.packets.give_back()
        while one.turn(client, 1):
            pass
        first = Sent(file, shelf)
        first.turn(client, 1)
        assert first.found == 1
        while first.turn(client):
            pass
    first.check(file)


def test_the_last_group_stays_known_behind_pieces_of_who_began_later(file):
    shelf, checked, sizes = shelf_of(200), 0, (5000, 1)  # a piece ends with its group, or inside
    one = Sent(file, shelf, followed=False, sizes=sizes)
    with Client(1 << 22) as client:
        while one.turn(client, 1):
            behind, border = one.encoder.behind, one.encoder.border
            if one.encoder.in_group or not behind:
                continue
            later = Sent(file, shelf, sizes=sizes)
            later.encoder.seek(0, border)
            later.turn(client, 1)
            if later.encoder.behind == 0:  # it is inside of a large group
                found = one.found
                goes_on = one.turn(client, 1)
                if not goes_on and one.found == found:
                    break  # at the end of the file
                assert one.found == found + 1
                assert one.encoder.behind == behind
                checked += 1
    assert checked > 5
    one.check(file)


def test_groups_of_a_piece_are_those_that_end_in_it(file):
    """Who began behind other groups has not been sent those."""
    shelf, sizes, checked = shelf_of(600), (5000, 1), 0  # a piece of one group, or a few
    Sent(file, shelf, sizes=sizes).run()
    one = Sent(file, shelf, sizes=sizes)
    with Client(1 << 22) as client:
        while one.turn(client, 1):
            if one.encoder.in_group:
                continue
            later = Sent(file, shelf, sizes=sizes)
            later.encoder.seek(0, one.border)
            if later.turn(client, 1) and later.groups:
                assert later.found == 1
                assert min(later.groups.values()) > max(one.groups.values())
                checked += 1
    assert checked > 20


@contextmanager
def read_slowly(link, size):
    """Have a thread read *link*, so many bytes at a time, until what comes ends; yield all."""
    found = bytearray()

    def read():
        while True:
            select.select([link], [], [])
            if not (data := link.recv(size)):
                return
            found.extend(data)

    thread = threading.Thread(target=read)
    thread.start()
    yield found
    thread.join()


@pytest.mark.parametrize("more", [0, 1])
def test_what_others_have_made_is_sent_to_the_end_by_who_waits(file, more):
    shelf = shelf_of(200)
    Sent(file, shelf).run()
    encoder, ring, pump = (
        file.encoder(),
        ring_of(64),
        SharedPump(shelf, 0, 0, PIECE_BYTES, GRID_BYTES),
    )
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    assert opened(ring, encoder, file)
    permits = WorkPermits(1, 1)
    permits.take()
    terms = 1 << 30, HOUR, True, 0, permits
    with theirs, read_slowly(theirs, 5000) as data:
        with ours:
            assert pump.run(encoder, OUT, 1 + more, ring, ours.fileno(), *terms) == NEED
        rest = bytes(OUT[encoder.kept : encoder.packets.used])
    assert pump.found > len(file.data) // PIECE_BYTES
    assert (permits.free, permits.resting) == (0, 0)
    expected = memoryview(bytearray(len(file.data)))
    renumber(file.data, more, expected)
    assert bytes(data) + rest == expected


def test_who_is_sent_nothing_passes_all_of_it_at_once(file):
    one = Sent(file, shelf_of(200))
    one.encoder = RunEncoder(checksum=True, fates=bytes([DROP] * 256), marked=0)
    one.encoder.seek(0, file.begin)
    with Client(1 << 22) as client:
        assert not one.turn(client)
    assert (one.data, one.border) == (b"", file.border)
    assert one.border > 10 * GRID_BYTES
    assert one.groups == file.groups


def test_what_has_no_room_is_not_kept(file):
    shelf = shelf_of(100, PIECE_BYTES // 2)
    Sent(file, shelf).run()
    other = Sent(file, shelf).run()
    other.check(file)
    assert other.found < len(file.data) // PIECE_BYTES // 2


@pytest.mark.parametrize("made_max", [1, 3])
def test_in_a_crowd_one_makes_a_few_and_none_behind_those_that_it_found(file, made_max):
    shelf = shelf_of(200)
    first, other = Sent(file, shelf, made_max=made_max), Sent(file, shelf, made_max=made_max)
    with Client(1 << 22) as client:
        assert first.turn(client)
        assert other.turn(client)
        assert (other.data, other.found) == (first.data, made_max)
        assert other.turn(client)
        assert first.turn(client)
        assert (other.data, first.found) == (first.data, made_max)
    assert first.most <= made_max * (PIECE_BYTES + BEYOND_BYTES)
    for reader in (first, other):
        reader.run().check(file)


def test_a_shelf_has_room_for_something():
    with pytest.raises(ValueError, match="pieces of 100"):
        PieceShelf(memoryview(bytearray(99)), 100)
