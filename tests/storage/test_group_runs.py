"""Groups come the same many at a time as one by one, and so do errors."""

import random

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions, page_runs
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_copier import GROUP_BYTES_MAX, GROUPS_MAX
from ibb.storage.group_reader import GroupReader
from ibb.storage.group_runs import GroupBlock, GroupRuns
from ibb.storage.position import Position

from ..faults.sim_disk import SimDisk
from .events import transaction
from .random_history import DIRECTORY, RandomHistory

BEGINNING = Position(0, 0)


def told(group):
    """Return all that there is to know of a group."""
    data = b"".join(group.pieces())
    return group.gtid, group.position, group.timestamp, group.head, data


def one_by_one(pages, start):
    """Return the groups, and how reading ended."""
    reader, found = GroupReader(pages, start), []
    try:
        while (group := reader.next()) is not None:
            found.append(told(group))
    except FormatError as error:
        return found, str(error)
    return found, str(reader.position)


def by_runs(pages, start):
    """Return the same, and how many of the groups came in blocks."""
    runs, found, copied = GroupRuns(pages, start), [], 0
    try:
        while (one := runs.next()) is not None:
            if isinstance(one, GroupBlock):
                assert len(one) == one.stop - one.first > 0
                copied += len(one)
                found += [told(one.group(number)) for number in range(one.first, one.stop)]
            else:
                found.append(told(one))
    except FormatError as error:
        return found, str(error), copied
    return found, str(runs.position), copied


def assert_same(disk, start=BEGINNING):
    """Read both ways; return the groups, and how many of them came in blocks."""
    pages = BinlogDirectory(disk, DIRECTORY)
    groups, end = one_by_one(pages, start)
    found, found_end, copied = by_runs(pages, start)
    pages.close()
    assert found == groups
    assert found_end == end
    return groups, copied


@pytest.fixture(params=[4096, 1 << 18])
def run_bytes(request, monkeypatch):
    monkeypatch.setattr(page_runs, "RUN_BYTES", request.param)


@pytest.mark.kernel
@pytest.mark.usefixtures("run_bytes")
@pytest.mark.parametrize("seed", range(12))
def test_any_history_is_read_as_ever(seed):
    life, rng = RandomHistory(seed), random.Random(seed)
    life.run()
    groups, copied = assert_same(life.disk)
    assert copied > len(groups) // 3
    for position in rng.sample([position for _, position, *_ in groups], 3):
        assert_same(life.disk, position)
        assert_same(life.disk, Position(position.file_no, position.offset // 4096 * 4096))


def written(sizes, **options):
    """Return a disk with a group of each of the sizes in bytes."""
    disk = SimDisk()
    with Store.open(DIRECTORY, StoreOptions(**options), disk=disk) as store:
        for number, size in enumerate(sizes, 1):
            with store.begin() as group:
                group.write(transaction(f"{number}", size))
                group.commit(Gtid(0, 1, number), wait=False)
    return disk


@pytest.mark.kernel
@pytest.mark.usefixtures("run_bytes")
@pytest.mark.parametrize("seed", range(24))
def test_damage_ends_it_as_ever(seed):
    rng = random.Random(seed)
    sizes = [rng.choice((30, 300, 20_000, 90_000)) for _ in range(40)]
    disk = written(sizes, page_size=rng.choice((512, 4096, 16384)), max_binlog_size=1 << 20)
    name = rng.choice([one for one in disk.list(DIRECTORY) if one.endswith(".ibb")])
    path, data = f"{DIRECTORY}/{name}", disk.contents(f"{DIRECTORY}/{name}")
    at = rng.randrange(4096, len(data))
    if rng.random() < 0.3:
        disk.open(path).truncate(at)
    else:
        disk.damage(path, at, bytes((data[at] ^ 1 << rng.randrange(8),)))
    assert_same(disk)


@pytest.mark.kernel
@pytest.mark.roomy
def test_groups_that_are_too_large_or_too_many_for_a_block():
    head = 400  # about, of what is around the statement
    near = [GROUP_BYTES_MAX + more for more in range(-2 * head, 2, head // 4)]
    disk = written([30] * (GROUPS_MAX + 1000) + [*near, 3 << 20, 30, 30])
    groups, copied = assert_same(disk)
    large = sum(len(data) > GROUP_BYTES_MAX for *_, data in groups)
    assert 2 <= large < len(near)
    assert len(groups) - copied < large + 12


def test_a_block_may_be_cut():
    disk = written([30] * 50)
    pages = BinlogDirectory(disk, DIRECTORY)
    runs = GroupRuns(pages, BEGINNING)
    found = [runs.next() for _ in range(3)]
    (block,) = [one for one in found if isinstance(one, GroupBlock)]
    part = block.part(block.first + 3, block.first + 5)
    groups, _ = one_by_one(pages, part.position(part.first))
    assert [told(part.group(number)) for number in range(part.first, part.stop)] == groups[:2]
    pages.close()
