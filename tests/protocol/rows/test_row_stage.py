"""Where staged rows lie: in room that was there before, whatever is in it, and no more of it."""

import random

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.rows.row_stage import (
    EXPECTED_BYTES_MAX,
    INSERT,
    KEPT_BYTES,
    PLAIN_OFFSET,
    RowStage,
    zeros,
)

pytestmark = pytest.mark.kernel
SKIPS = (4, -1, -4)  # an integer, and values behind lengths of one and four bytes
ROWS_MAX = 50


class Room:
    """Gives room full of what was there before, and remembers how much."""

    def __init__(self):
        self.asked = []

    def __call__(self, size):
        self.asked.append(size)
        return memoryview(bytearray(b"\xff" * size))


def event(chance, rows, long=30):
    """Return an INSERT of rows, some of whose values are NULL."""
    body = bytearray([len(SKIPS), 0b111])
    for _ in range(rows):
        nulls = chance.randrange(8)
        body.append(nulls)
        if not nulls & 1:
            body += chance.randbytes(4)
        if not nulls & 2:
            value = chance.randbytes(chance.randrange(200))
            body += bytes([len(value)]) + value
        if not nulls & 4:
            value = chance.randbytes(chance.randrange(long))
            body += len(value).to_bytes(4, "little") + value
    return bytes(PLAIN_OFFSET) + bytes(body)


def seen(stage):
    """Return all that a stage shows of its rows."""
    places = bytes(stage.after[: stage.rows * stage.width].cast("B"))
    return stage.rows, stage.used, stage.pending, bytes(stage.data[: stage.used]), places


def answer(ask, *values):
    """Return what a stage answers, or how it refuses."""
    try:
        return ask(*values)
    except FormatError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_in_the_room_before_is_never_seen(seed):
    chance, room = random.Random(seed), Room()
    stages = RowStage(SKIPS, ROWS_MAX, room), RowStage(SKIPS, ROWS_MAX, zeros)
    for tag in range(150):
        one = event(chance, chance.randrange(2 * ROWS_MAX), chance.choice((30, 30, 3000)))
        if chance.random() < 0.1:
            one = one[: -chance.randrange(1, 9)]  # damaged, mostly
        told = [answer(stage.add, one, PLAIN_OFFSET, INSERT, tag) for stage in stages]
        assert told[0] == told[1]
        assert seen(stages[0]) == seen(stages[1])
        while stages[0].pending or stages[0].rows >= ROWS_MAX:
            for stage in stages:
                stage.clear()
            if stages[0].pending:
                assert answer(stages[0].read_rows) == answer(stages[1].read_rows)
            assert seen(stages[0]) == seen(stages[1])
    assert len(room.asked) > 2


def test_a_batch_takes_the_room_of_the_one_before_at_once():
    chance, room = random.Random(7), Room()
    stage = RowStage(SKIPS, 1 << 16, room)
    one = event(chance, 500)
    for _ in range(3):
        room.asked.clear()
        while stage.used <= KEPT_BYTES:
            stage.add(one, PLAIN_OFFSET, INSERT, 0)
        used, rooms = stage.used, list(room.asked)
        stage.clear()
        assert len(stage.data) < KEPT_BYTES
    assert rooms == [used + used // 8]


def test_one_huge_event_is_not_expected_again():
    room = Room()
    stage = RowStage((-4,), 10, room)
    value = bytes(2 * EXPECTED_BYTES_MAX)
    row = bytes(PLAIN_OFFSET) + b"\1\1\0" + len(value).to_bytes(4, "little") + value
    stage.add(row, PLAIN_OFFSET, INSERT, 0)
    stage.clear()
    small = bytes(PLAIN_OFFSET) + b"\1\1\0" + (1 << 15).to_bytes(4, "little") + bytes(1 << 15)
    stage.add(small, PLAIN_OFFSET, INSERT, 1)
    assert room.asked[-1] == EXPECTED_BYTES_MAX
