"""Buffers for packets: large enough, kept, and no more of them than that."""

import mmap
import weakref
from collections import deque

import pytest

from ibb.server.dump import packet_buffers
from ibb.server.dump.packet_buffers import (
    BLOCK_BYTES,
    LONG_BYTES,
    PIECE_BUFFERS,
    PIECE_BUFFERS_MAX,
    PIECE_BYTES,
    forget_buffers,
    give_buffer,
    take_buffer,
)
from ibb.server.dump.run_encoder import BEYOND_BYTES
from ibb.storage.large_memory import LARGE_PAGE_BYTES


@pytest.fixture(autouse=True)
def none_kept(monkeypatch):
    empty = {size: deque(maxlen=free.maxlen) for size, free in packet_buffers._buffers.items()}
    monkeypatch.setattr(packet_buffers, "_buffers", empty)


def kept():
    """Return how many there are of each size."""
    return [len(free) for free in packet_buffers._buffers.values()]


@pytest.mark.parametrize(
    ("wanted", "enough"),
    [
        (1, BLOCK_BYTES),
        (BLOCK_BYTES, BLOCK_BYTES),
        (BLOCK_BYTES + 1, PIECE_BYTES),
        (PIECE_BYTES, PIECE_BYTES),
        (PIECE_BYTES + 1, LONG_BYTES),
        (LONG_BYTES, LONG_BYTES),
    ],
)
def test_a_buffer_is_the_smallest_with_room_for_what_is_wanted_and_beyond(wanted, enough):
    buffer = take_buffer(wanted)
    assert len(buffer) == enough + BEYOND_BYTES
    give_buffer(buffer)
    assert take_buffer(wanted) is buffer


def test_buffers_for_pieces_share_a_page_and_nothing_of_it():
    taken = [take_buffer(PIECE_BYTES) for _ in range(PIECE_BUFFERS)]
    assert PIECE_BUFFERS > 1
    assert sum(map(len, taken)) <= LARGE_PAGE_BYTES
    assert len({id(buffer.obj) for buffer in taken}) == 1
    for number, buffer in enumerate(taken):
        buffer[:] = bytes([number]) * len(buffer)
    for number, buffer in enumerate(taken):
        assert buffer == bytes([number]) * len(buffer)


def test_no_more_are_kept_than_there_is_work_for():
    taken = [take_buffer(PIECE_BYTES) for _ in range(PIECE_BUFFERS_MAX + PIECE_BUFFERS)]
    for buffer in taken:
        give_buffer(buffer)
    assert kept() == [0, PIECE_BUFFERS_MAX, 0]


def test_what_is_forgotten_is_given_back_and_what_is_used_is_not():
    sizes = (BLOCK_BYTES, PIECE_BYTES, LONG_BYTES)
    used, free = ([take_buffer(size) for size in sizes] for _ in range(2))
    memory = [weakref.ref(one.obj) for one in free if isinstance(one.obj, mmap.mmap)]
    assert len(memory) > 1
    for buffer in free:
        give_buffer(buffer)
    del buffer, free
    assert kept() == [1, 1, 1]
    used[1] = None  # which shares its page with the free one
    forget_buffers()
    assert kept() == [0, 0, 0]
    assert [one() for one in memory] == [None] * len(memory)
    used[0][:] = used[2][: len(used[0])]
    forget_buffers()
    assert len(take_buffer(PIECE_BYTES)) == PIECE_BYTES + BEYOND_BYTES
