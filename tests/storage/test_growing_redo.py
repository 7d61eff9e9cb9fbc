"""A redo log that somebody else is writing while it is read."""

import pytest

from ibb.protocol.errors import FormatError
from ibb.storage.position import Position
from ibb.storage.redo import RedoLog
from ibb.storage.redo_record import GROUP_HEADER_SIZE, Change, group_size
from ibb.storage.redo_segment import (
    SEGMENT_DATA_OFFSET,
    SEGMENT_NAMES,
    Segment,
    find_newest_segment,
    read_groups,
)

from ..faults.sim_disk import SimDisk

FIRST_LSN = 1000
PATH = f"/s/{SEGMENT_NAMES[1]}"


def change(number: int) -> Change:
    return Change(0, number, 0, bytes([number]) * 100)


SIZE = group_size([change(0)])


def log_of_five() -> tuple[SimDisk, Segment]:
    """Return a disk with a log of five groups, each synced before the next."""
    disk = SimDisk()
    redo = RedoLog(disk, "/s", 64 << 10, lambda _: None)
    redo.prepare()
    redo.begin_segment(1, FIRST_LSN, Position(0, 0))
    for number in range(5):
        redo.sync_to(redo.append([change(number)]))
    segment = find_newest_segment(disk, "/s")
    assert segment is not None
    return disk, segment


@pytest.mark.parametrize("hidden", range(1, 4))
def test_groups_written_while_the_log_is_read_are_no_damage(hidden: int) -> None:
    disk, segment = log_of_five()
    third = SEGMENT_DATA_OFFSET + 2 * SIZE
    looks = 0

    def not_yet(path: str, offset: int, data: bytes) -> bytes:
        nonlocal looks
        looks += path == PATH
        return data if looks > hidden else data[: max(third - offset, 0)].ljust(len(data), b"\0")

    disk.lies.append(not_yet)
    groups = list(read_groups(disk, "/s", segment, grows=True))
    assert [item for group in groups for item in group.changes()] == [change(n) for n in range(5)]
    assert looks > hidden


def test_what_is_not_certain_is_not_looked_at() -> None:
    disk, segment = log_of_five()
    disk.damage(PATH, SEGMENT_DATA_OFFSET + 3 * SIZE + GROUP_HEADER_SIZE + 20, b"\xee")
    for until in range(FIRST_LSN, FIRST_LSN + 3 * SIZE + 1):
        found = list(read_groups(disk, "/s", segment, until=until))
        assert len(found) == (until - FIRST_LSN) // SIZE
    with pytest.raises(FormatError, match="damaged although it had been synced"):
        list(read_groups(disk, "/s", segment, until=FIRST_LSN + 3 * SIZE + 1))
