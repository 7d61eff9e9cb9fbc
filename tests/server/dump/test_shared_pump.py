"""Pieces on a shelf: found by who is where they begin, whatever it has sent before."""

import os
import random

import pytest

from ibb.server.dump.event_packets import FULL, NEED
from ibb.server.dump.piece_shelf import PieceShelf
from ibb.server.dump.run_encoder import BEYOND_BYTES
from ibb.server.dump.sequence_ids import renumber
from ibb.server.dump.shared_pump import SharedPump

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
    """What one was sent of a file, from beginning to end."""

    def __init__(self, file, shelf, *, key=(0, 0), seq=1, followed=True, made_max=0, room=1 << 22):
        encoder, ring = file.encoder(), ring_of(64)
        pump = SharedPump(shelf, *key, PIECE_BYTES, GRID_BYTES)
        self.data, self.groups, self.found, self.most, self.runs = bytearray(), {}, 0, 0, 0
        with Client(room) as client:
            while opened(ring, encoder, file):
                before = len(self.data)
                code = client.lend(
                    lambda it, seq=seq: pump.run(
                        encoder, OUT, seq, ring, it, 1 << 30, HOUR, followed, made_max
                    )
                )
                assert not encoder.error
                self.found += pump.found
                self.runs += 1
                self.data += client.received() + OUT[encoder.kept : encoder.packets.used]
                self.most = max(self.most, len(self.data) - before)
                seq = encoder.packets.seq
                for groups in (pump.take(), encoder.take()):
                    self.groups.update((domain, number) for domain, _, number in groups)
                if code != FULL:
                    assert code == NEED
                    break
        self.border, self.seq = encoder.border, encoder.packets.seq

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
    first = Sent(file, shelf)
    first.check(file)
    assert not first.found
    second = Sent(file, shelf, seq=1 + more & 255, room=room)
    second.check(file, more)
    assert second.found > len(file.data) // PIECE_BYTES


@pytest.mark.parametrize("key", [(1, 0), (0, 1)])
def test_pieces_of_another_kind_or_history_are_not_found(file, key):
    shelf = shelf_of(200)
    Sent(file, shelf)
    other = Sent(file, shelf, key=key)
    other.check(file)
    assert not other.found
    assert Sent(file, shelf, key=key).found
    assert Sent(file, shelf).found


def test_who_is_followed_by_nobody_keeps_nothing(file):
    shelf = shelf_of(200)
    Sent(file, shelf, followed=False)
    assert not Sent(file, shelf).found


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_where_there_is_little_room_the_newest_are_kept(file, pieces):
    shelf = shelf_of(pieces)
    Sent(file, shelf)
    for _ in range(3):  # the last are there, but not for who begins at the first
        other = Sent(file, shelf)
        other.check(file)
        assert other.found <= pieces


def test_what_has_no_room_is_not_kept(file):
    shelf = shelf_of(100, PIECE_BYTES // 2)
    Sent(file, shelf)
    other = Sent(file, shelf)
    other.check(file)
    assert other.found < len(file.data) // PIECE_BYTES // 2


def test_in_a_crowd_one_makes_a_few_and_none_behind_those_that_it_found(file):
    shelf = shelf_of(200)
    first = Sent(file, shelf, made_max=2)
    first.check(file)
    assert first.runs > len(file.data) // (2 * PIECE_BYTES)
    assert first.most <= 2 * (PIECE_BYTES + BEYOND_BYTES)
    rng = random.Random(2)
    other = Sent(file, shelf, made_max=rng.choice((1, 3)))
    other.check(file)
    assert other.runs <= 2


def test_a_shelf_has_room_for_something():
    with pytest.raises(ValueError, match="pieces of 100"):
        PieceShelf(memoryview(bytearray(99)), 100)
