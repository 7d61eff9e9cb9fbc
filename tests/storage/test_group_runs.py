"""Groups come the same many at a time as one by one, and so do errors."""

import random

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store, StoreOptions, page_runs
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_copier import GROUP_BYTES_MAX, GROUPS_MAX
from ibb.storage.group_reader import GroupReader, StoredGroup
from ibb.storage.group_runs import GroupBlock, GroupRuns, places_from
from ibb.storage.position import Position

from ..faults.sim_disk import SimDisk
from .events import transaction
from .random_history import DIRECTORY, RandomHistory

BEGINNING = Position(0, 0)
LOG = 4 << 20  # bytes of a segment


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


def opened(disk, *, max_binlog_size=16 << 20, **options):
    """Return a store on a disk."""
    options = StoreOptions(max_binlog_size=max_binlog_size, redo_segment_size=LOG, **options)
    return Store.open(DIRECTORY, options, disk=disk)


def written(sizes, **options):
    """Return a disk with a group of each of the sizes in bytes."""
    disk = SimDisk()
    with opened(disk, **options) as store:
        for number, size in enumerate(sizes, 1):
            with store.begin() as group:
                group.write(transaction(f"{number:05}", size))
                group.commit(Gtid(0, 1, number), wait=False)
    return disk


SMALL = GtidEvent(Gtid(0, 1, 1), 7, 0).encode() + transaction("x", 30)


def committed(payloads):
    """Return a disk with commit records of these contents, whatever they are."""
    disk = SimDisk()
    with opened(disk, max_binlog_size=1 << 20) as store:
        for number, payload in enumerate(payloads, 1):
            store.commits.commit_group(object(), Gtid(0, 1, number), [], payload)
        store.sync()
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
    around = len(assert_same(written([5000]))[0][-1][-1]) - 5000
    near = [GROUP_BYTES_MAX - around + more for more in (-1, 0, 1, 2)]
    rest = [size for large in (*near, 3 << 20) for size in (large, 30, 30)]
    groups, copied = assert_same(written([30] * (GROUPS_MAX + 1000) + rest))
    large = sum(len(data) > GROUP_BYTES_MAX for *_, data in groups)
    assert large == 3
    assert copied == len(groups) - large - 1  # which is the format description record


BAD = {
    "no event": b"\1\2\3",
    "cut": SMALL[:31],
    "no GTID event": SMALL[:4] + b"\xa3" + SMALL[5:],
    "longer than the group": SMALL[:9] + b"\xff\1" + SMALL[11:],
    "shorter than its contents": SMALL[:9] + b"\x1f" + SMALL[10:],
    "number 0": SMALL[:19] + bytes(8) + SMALL[27:],
    "number of 64 bits": SMALL[:26] + b"\x80" + SMALL[27:],
}


@pytest.mark.kernel
@pytest.mark.parametrize("bad", BAD)
def test_a_group_with_a_damaged_head_ends_it_as_ever(bad):
    assert_same(committed([SMALL, SMALL, BAD[bad], SMALL]))


@pytest.mark.kernel
@pytest.mark.usefixtures("run_bytes")
def test_groups_that_were_written_in_turns_come_one_by_one():
    disk = SimDisk()
    with opened(disk) as store:
        for number in range(1, 101, 10):
            with store.begin() as one, store.begin() as other, store.begin() as given_up:
                events = [transaction(f"{number + more}", 200_000) for more in range(3)]
                for at in range(0, 201_000, 40_000):
                    for writer, data in zip((one, given_up, other), events, strict=True):
                        writer.write(data[at : at + 40_000])
                one.commit(Gtid(0, 1, number), wait=False)
                other.commit(Gtid(0, 1, number + 1), wait=False)
            for more in range(2, 10):
                with store.begin() as alone:
                    alone.write(transaction("alone", 50_000))
                    alone.commit(Gtid(0, 1, number + more), wait=False)
    groups, copied = assert_same(disk)
    assert len(groups) == 101
    assert 50 <= copied <= 80  # of those alone


@pytest.mark.kernel
def test_the_page_where_it_begins_may_begin_inside_a_record():
    disk = written([30, 12_000, 30, 30], page_size=4096)
    pages = BinlogDirectory(disk, DIRECTORY)
    for page in range(1, 5):
        start = Position(0, 4096 * page)
        runs = GroupRuns(pages, start)
        runs._turns = 0  # as where a reader has found nothing yet
        found = []
        while (one := runs.next()) is not None:
            alone = isinstance(one, StoredGroup)
            groups = [one] if alone else map(one.group, range(one.first, one.stop))
            found += map(told, groups)
        assert found == one_by_one(pages, start)[0]
    pages.close()


def test_places_are_those_of_the_groups():
    life = RandomHistory(1)
    life.run()
    pages = BinlogDirectory(life.disk, DIRECTORY)
    groups, _ = one_by_one(pages, BEGINNING)
    with_gtid = [group[:3] for group in groups if group[0] is not None]
    assert len(with_gtid) < len(groups)
    assert list(places_from(pages, BEGINNING)) == with_gtid
    pages.close()


def test_a_block_may_be_cut():
    disk = written([30] * 50)
    pages = BinlogDirectory(disk, DIRECTORY)
    runs = GroupRuns(pages, BEGINNING)
    found = [runs.next() for _ in range(3)]
    (block,) = [one for one in found if isinstance(one, GroupBlock)]
    part = block.part(block.first + 3, block.first + 5)
    groups, _ = one_by_one(pages, part.position(part.first))
    assert [told(part.group(number)) for number in range(part.first, part.stop)] == groups[:2]
    second = part.position(part.first + 1)
    sizes = [len(part.before(end)) for end in (second, second._replace(offset=second.offset + 1))]
    assert sizes == [1, 2]
    assert len(part.before(Position(1, 0))) == 2
    later = GroupBlock(1, part.copied, part.first, part.stop)
    assert [len(later.before(end)) for end in (Position(0, 1 << 40), Position(1, 0))] == [0, 0]
    pages.close()
