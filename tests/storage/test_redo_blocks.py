"""Much that is logged at once is written in whole blocks, and nothing else becomes of it."""

import errno
import random
from contextlib import suppress

import pytest

from ibb.storage.disk import BLOCK_BYTES
from ibb.storage.errors import StoreFailed
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.redo import RedoLog
from ibb.storage.redo_record import encode_group, group_size
from ibb.storage.redo_segment import FIRST_LSN, SEGMENT_DATA_OFFSET

from ..faults.sim_disk import Fault, SimDisk, SimFile
from .test_redo import PATH, SEGMENT_SIZE, change, log, read

SIZES = (0, 1, 100, 3000, 30_000, 60_000)
LARGE = [change(number, 60_000) for number in range(6)]
LARGE_BYTES = 256 << 10


@pytest.fixture
def writes(monkeypatch):
    """Return offset and size of each write to a simulated disk."""
    seen, write_at = [], SimFile.write_at

    def noted(self, offset, data):
        write_at(self, offset, data)
        parts = [data] if isinstance(data, bytes | bytearray | memoryview) else data
        seen.append((offset, sum(len(part) for part in parts)))

    monkeypatch.setattr(SimFile, "write_at", noted)
    return seen


def some_changes(rng):
    """Return the changes of a group, a few bytes or several hundred thousand."""
    count = rng.choice((1, 1, 1, 6, 12))
    return [change(rng.randrange(1000), rng.choice(SIZES)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_synced", [True, False])
def test_whatever_comes_lies_side_by_side(seed, is_synced, writes):
    rng, disk, groups = random.Random(seed), SimDisk(), []
    redo, due, written = log(disk), b"", 0
    while redo.fits(group_size(changes := some_changes(rng))):
        due += bytes(encode_group(redo.next_lsn, redo.synced_lsn, changes))
        lsn = redo.append(changes)
        groups += changes
        if rng.random() < 0.6:
            writes.clear()
            (redo.sync_to if is_synced else redo.write_to)(lsn)
            ((offset, size),) = writes
            start, end = SEGMENT_DATA_OFFSET + written, SEGMENT_DATA_OFFSET + len(due)
            if is_synced and end - start >= LARGE_BYTES:
                assert offset == start - start % BLOCK_BYTES
                assert offset + size == end + -end % BLOCK_BYTES
            else:
                assert offset == start
            written = len(due)
    redo.sync_to(redo.next_lsn)
    contents = disk.contents(PATH)
    assert contents[SEGMENT_DATA_OFFSET : SEGMENT_DATA_OFFSET + len(due)] == due
    assert not any(contents[SEGMENT_DATA_OFFSET + len(due) :])
    assert len(contents) == SEGMENT_SIZE
    assert read(disk) == groups


def test_a_block_that_would_not_fit_is_not_written():
    disk, size = SimDisk(), SEGMENT_DATA_OFFSET + 4 * group_size(LARGE) + 10
    redo = RedoLog(disk, "/s", size, lambda _: None)
    redo.prepare()
    redo.begin_segment(1, FIRST_LSN, Position(0, 0))
    for _ in range(4):
        redo.sync_to(redo.append(LARGE))
    assert len(disk.contents(PATH)) == size
    assert read(disk) == LARGE * 4


def test_a_segment_that_is_used_again_is_written_from_its_beginning():
    disk = SimDisk()
    redo = log(disk)
    for turn in range(5):
        redo.sync_to(redo.append(LARGE))
        redo.sync_to(redo.append(LARGE[: turn + 1]))
        redo.sync_to(redo.append([change(turn)]))
        redo.sync_to(redo.append(LARGE))
        assert read(disk) == [*LARGE, *LARGE[: turn + 1], change(turn), *LARGE]
        redo.begin_next_segment(Position(0, 0))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_write_may_end_where_a_block_does(more):
    disk = SimDisk()
    redo = log(disk)
    space = -group_size([*LARGE, change(1, 0)]) % BLOCK_BYTES + BLOCK_BYTES + more
    changes = [*LARGE, change(1, space)]
    for _ in range(3):
        redo.sync_to(redo.append(changes))
    assert read(disk) == changes * 3


def test_zeros_are_written_once_for_what_comes_behind(writes):
    redo = log(SimDisk())
    redo.sync_to(redo.append([change(1)]))
    redo.sync_to(redo.append(LARGE))
    redo.sync_to(redo.append([change(2, 5000)]))  # behind the large one are zeros of the first
    assert [size < 6000 for _, size in writes[-3:]] == [False, False, True]
    redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append(LARGE))
    redo.sync_to(redo.append([change(3, 10)]))  # in the block that the large one has filled up
    assert writes[-1][1] < 200


def test_the_block_that_it_begins_in_is_read_only_where_it_is_not_known(monkeypatch):
    disk, reads, read_at = SimDisk(), [], SimFile.read_at

    def noted(self, offset, size):
        reads.append((offset, size))
        return read_at(self, offset, size)

    redo = log(disk)
    monkeypatch.setattr(SimFile, "read_at", noted)
    for _ in range(3):
        redo.sync_to(redo.append(LARGE))
    assert not reads
    small = redo.append([change(1)])
    redo.sync_to(small)
    redo.sync_to(redo.append(LARGE))
    inside = (small - FIRST_LSN) % BLOCK_BYTES
    assert reads == [(SEGMENT_DATA_OFFSET + small - FIRST_LSN - inside, inside)]
    assert read(disk) == [*LARGE * 3, change(1), *LARGE]


def test_a_block_that_cannot_be_read_is_no_reason_to_stop():
    disk = SimDisk()
    redo = log(disk)
    redo.sync_to(redo.append([change(1)]))
    disk.faults.append(Fault(lambda op: op.kind == "read"))
    redo.sync_to(redo.append(LARGE))
    assert disk.struck == 1
    assert read(disk) == [change(1), *LARGE]


@pytest.mark.parametrize("seed", range(40))
def test_a_power_loss_takes_nothing_that_was_synced(seed):
    """The block that was synced with its first half full is written once more with the second."""
    disk, rng = SimDisk(), random.Random(seed)
    redo, synced = log(disk), []
    for number in range(rng.randrange(1, 4)):
        changes = [change(number, rng.randrange(5000)), *(LARGE if rng.random() < 0.5 else [])]
        redo.sync_to(redo.append(changes))
        synced += changes
    redo.append(LARGE)
    disk.faults.append(Fault(lambda op: op.kind == rng.choice(("sync", "write"))))
    with suppress(StoreFailed):
        redo.sync_to(redo.next_lsn)
    found = read(disk.crashed(rng, keep=0.5))
    assert found[: len(synced)] == synced
    assert found[len(synced) :] in ([], LARGE)


def test_a_real_log_is_the_same(tmp_path):
    rng, disk = random.Random(1), OsDisk()
    redo = RedoLog(disk, str(tmp_path), SEGMENT_SIZE, lambda _: None)
    redo.prepare()
    redo.begin_segment(1, FIRST_LSN, Position(0, 0))
    due = b""
    while redo.fits(group_size(changes := some_changes(rng))):
        due += bytes(encode_group(redo.next_lsn, redo.synced_lsn, changes))
        redo.sync_to(redo.append(changes))
    redo.close()
    contents = (tmp_path / "ibb-redo-1.log").read_bytes()
    assert contents[SEGMENT_DATA_OFFSET:].rstrip(b"\0") == due.rstrip(b"\0")
    assert len(contents) == SEGMENT_SIZE


def test_a_large_write_that_fails_is_final():
    disk = SimDisk()
    redo = log(disk)
    disk.faults.append(Fault(lambda op: op.kind == "write", errno.ENOSPC))
    lsn = redo.append(LARGE)
    for _ in range(2):
        with pytest.raises(StoreFailed, match="cannot write"):
            redo.sync_to(lsn)
