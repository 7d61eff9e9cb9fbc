"""What is kept for readers that follow one another: for whom, how much, and how long."""

import threading
from collections import deque

import pytest

from ibb.server.dump import packet_buffers, shared_blocks
from ibb.server.dump.packet_buffers import BUFFER_BYTES
from ibb.server.dump.shared_blocks import BLOCK_COST, Block, BlockPlace, Seat, SharedBlocks

from ...storage.preemption import Meeting, meet_everywhere
from ..waiting import SECONDS_MAX

SIZE = 1000
COST = SIZE + BLOCK_COST


@pytest.fixture(autouse=True)
def buffers(monkeypatch):
    """The buffers that were given back."""
    found = deque(maxlen=packet_buffers.BUFFERS_MAX)
    monkeypatch.setitem(packet_buffers._buffers, BUFFER_BYTES, found)
    return found


def place(offset, sent=-1, file_no=0, generation=0):
    return BlockPlace(generation, file_no, offset, sent)


def block(size=SIZE, buffer=None):
    return Block(
        bytes(size) if buffer is None else memoryview(buffer), 0, 1, 0, [], 0, None, buffer
    )


def seats(blocks, *offsets, kind=""):
    """Let readers take their places."""
    found = [Seat(kind, None if offset is None else place(offset)) for offset in offsets]
    for seat in found:
        blocks.join(seat)
    return found


def make(blocks, seat, at, what=None):
    """Find nothing and keep a block; return it."""
    assert blocks.find(seat, place(at)) is None
    made = what or block()
    blocks.keep(seat, made)
    return made


def test_a_block_is_found_by_all_who_are_behind_and_is_gone_then():
    blocks = SharedBlocks()
    first, second, third = seats(blocks, 0, 0, 5)
    made = make(blocks, first, 10)
    assert made.awaited == 2
    assert blocks.find(second, place(10)) is made
    assert blocks._bytes == COST
    assert blocks.find(third, place(10)) is made
    assert (blocks._bytes, len(blocks._kept), made.is_kept) == (0, 0, False)


def test_nothing_is_kept_for_who_is_alone_of_its_kind_or_before_all_others():
    blocks = SharedBlocks()
    (alone,) = seats(blocks, 0)
    assert blocks.find(alone, place(0)) is None
    assert alone.making is None
    other, not_begun, last = seats(blocks, 0, None, 500, kind="other")
    for at in (0, 7, 400):
        assert blocks.find(other, place(at)) is None
        assert other.making is None
    assert blocks.find(last, place(600)) is None
    assert last.making is not None
    blocks.keep(last, None)
    assert not_begun.place is None
    assert not blocks._kept


@pytest.mark.parametrize(
    "elsewhere",
    [
        place(shared_blocks.REACH_BYTES + 11, -1),
        place(9, 0, file_no=1),
        place(9, 0, generation=1),
        place(9, shared_blocks.REACH_BYTES + 11),
    ],
)
def test_nothing_is_kept_for_who_is_far_behind(elsewhere):
    blocks = SharedBlocks()
    first, second = seats(blocks, 0, 9)
    assert blocks.find(first, elsewhere) is None
    assert first.making is None
    assert second.place == place(9)


def test_no_more_is_kept_than_is_allowed_and_what_was_used_last_stays():
    blocks = SharedBlocks(3 * COST)
    first, second, _ = seats(blocks, 0, 0, 0)
    made = [make(blocks, first, at) for at in (1, 2, 3)]
    assert blocks.find(second, place(1)) is made[0]
    made.append(make(blocks, first, 4))
    assert [one.is_kept for one in made] == [True, False, True, True]
    assert blocks._bytes == 3 * COST
    large = make(blocks, first, 5, block(9 * COST))
    assert not large.is_kept
    assert (blocks._bytes, len(blocks._kept)) == (0, 0)


def test_a_buffer_counts_as_a_whole_and_goes_back_when_nobody_has_it(buffers):
    blocks = SharedBlocks()
    first, second, _ = seats(blocks, 0, 0, 0)
    buffer = bytearray(BUFFER_BYTES)
    made = make(blocks, first, 1, Block(memoryview(buffer)[:9], 0, 1, 0, [], 0, None, buffer))
    assert blocks._bytes == BUFFER_BYTES + BLOCK_COST
    blocks.release(made)
    assert not buffers
    assert blocks.find(second, place(1)) is made
    blocks.leave(first)
    blocks.leave(second)
    assert not blocks._kept
    assert not buffers  # the second is still sending it
    blocks.release(made)
    assert list(buffers) == [buffer]


def test_a_buffer_that_is_no_more_kept_stays_with_who_sends_it(buffers):
    blocks = SharedBlocks(BUFFER_BYTES + BLOCK_COST)
    first, _ = seats(blocks, 0, 0)
    made = [make(blocks, first, at, block(buffer=bytearray(BUFFER_BYTES))) for at in (1, 2)]
    assert [one.is_kept for one in made] == [False, True]
    assert not buffers
    blocks.release(made[0])
    assert list(buffers) == [made[0].buffer]


def test_what_one_kind_has_is_not_found_by_another_and_goes_with_its_readers():
    blocks = SharedBlocks()
    first, second = seats(blocks, 0, 0)
    third, _ = seats(blocks, 0, 0, kind="other")
    make(blocks, first, 1)
    assert blocks.find(third, place(1)) is None
    blocks.keep(third, block())
    blocks.leave(second)
    assert [key[0] for key in blocks._kept] == ["other"]
    assert blocks._bytes == COST


def test_who_comes_while_a_block_is_made_waits_for_it():
    blocks, found = SharedBlocks(), []
    first, second, third = seats(blocks, 0, 0, 0)
    assert blocks.find(first, place(1)) is None
    waiting = [
        threading.Thread(target=lambda seat=seat: found.append(blocks.find(seat, place(1))))
        for seat in (second, third)
    ]
    for thread in waiting:
        thread.start()
    made = block()
    while len(blocks._made._waiters) < 2:
        assert all(thread.is_alive() for thread in waiting)
    blocks.keep(first, made)
    for thread in waiting:
        thread.join(SECONDS_MAX)
    assert found == [made, made]


def test_who_waits_makes_it_if_the_other_could_not():
    blocks, found = SharedBlocks(), []
    first, second = seats(blocks, 0, 0)
    assert blocks.find(first, place(1)) is None
    thread = threading.Thread(target=lambda: found.append(blocks.find(second, place(1))))
    thread.start()
    while not blocks._made._waiters:
        assert thread.is_alive()
    blocks.keep(first, None)
    thread.join(SECONDS_MAX)
    assert found == [None]
    assert second.making == ("", place(1))


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(shared_blocks, "WAIT_SECONDS_MAX", 0.001)
    blocks = SharedBlocks()
    first, second = seats(blocks, 0, 0)
    assert blocks.find(first, place(1)) is None
    assert blocks.find(second, place(1)) is None
    assert second.making is None  # the other may still keep it
    blocks.keep(second, block())
    assert not blocks._kept


class Shared:
    """Two readers at one place, and one who waits behind them."""

    def __init__(self, bytes_max=1 << 20):
        self.blocks = SharedBlocks(bytes_max)
        self.first, self.second, self.last = seats(self.blocks, 0, 0, 0)

    def step(self, seat, at=1):
        found = self.blocks.find(seat, place(at))
        if found is None:
            found = block()
            self.blocks.keep(seat, found)
        self.blocks.release(found)
        return found

    def check(self):
        kept = list(self.blocks._kept.values())
        assert self.blocks._bytes == sum(one.cost for one in kept) <= self.blocks._bytes_max
        assert all(one.is_kept and one.awaited > 0 and not one.users for one in kept)
        assert not self.blocks._making


def two_who_come_to_the_same_place():
    shared, found = Shared(), []

    def check():
        shared.check()
        assert found[0] is found[1]

    return Meeting(
        lambda: found.append(shared.step(shared.first)),
        lambda: found.append(shared.step(shared.second)),
        check,
    )


def two_who_make_more_than_is_allowed():
    shared = Shared(COST)
    return Meeting(
        lambda: shared.step(shared.first, 1), lambda: shared.step(shared.second, 2), shared.check
    )


def one_who_finds_and_one_who_leaves():
    shared = Shared()
    shared.step(shared.first)
    return Meeting(
        lambda: shared.step(shared.second), lambda: shared.blocks.leave(shared.first), shared.check
    )


def one_who_makes_and_others_who_leave():
    shared = Shared()

    def leave():
        shared.blocks.leave(shared.second)
        shared.blocks.leave(shared.last)

    def check():
        shared.check()
        assert not shared.blocks._kept

    return Meeting(lambda: shared.step(shared.first), leave, check)


SCENES = [two_who_come_to_the_same_place, two_who_make_more_than_is_allowed,
          one_who_finds_and_one_who_leaves, one_who_makes_and_others_who_leave]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_blocks_are_shared_whoever_comes_in_between(scene):
    assert meet_everywhere(scene, stops=200, within=("/shared_blocks.py",)) > 0
