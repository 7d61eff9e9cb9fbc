"""A disk that lies once while a store is opened: nothing is lost, and nothing is refused."""

import random

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import RecoveryError
from ibb.storage.file_header import FileHeader
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.record import Xid
from ibb.storage.redo_segment import SEGMENT_NAMES

from ..faults.one_lie import WAYS, OneLie, flipped
from ..faults.sim_disk import SimDisk
from .events import transaction

DIRECTORY = "/s"
OPTIONS = StoreOptions(
    page_size=512,
    max_binlog_size=16 * 512,
    state_interval=2 * 512,
    redo_segment_size=256 << 10,
    format_description="upstream",
    background=False,
)
PREPARED = Xid(1, b"prepared", b"")
PLACES = (0.0, 0.3, 0.95)  # of what was read, where it is wrong: all of a sector, or part of it


def publish(store, seqs):
    for seq in seqs:
        with store.begin() as group:
            group.write(transaction(f"insert {seq}", 1500 if seq % 7 == 0 else 200))
            group.commit(Gtid(0, 1, seq))


def killed_behind(*, before, after):
    """Return a disk on which a store was closed, opened again and killed; all is durable."""
    disk = SimDisk()
    with Store.open(DIRECTORY, OPTIONS, disk=disk) as store:
        group = store.begin()
        group.write(transaction("prepared"))
        group.prepare(PREPARED)
        publish(store, range(1, before))
        store.leases.renew("a lease", "0-1-1")
    store = Store.open(DIRECTORY, OPTIONS, disk=disk)
    publish(store, range(before, before + after))
    disk.end_process()
    return disk, [f"0-1-{seq}" for seq in range(1, before + after)]


def of_another_program():
    disk, groups = killed_behind(before=30, after=1)
    Store.open(DIRECTORY, OPTIONS, disk=disk).close()
    for name in SEGMENT_NAMES:
        disk.remove(f"{DIRECTORY}/{name}")
    return disk, groups


LIVES = {
    "one group in the log": lambda: killed_behind(before=30, after=1),
    "no group in the log": lambda: killed_behind(before=30, after=0),
    "several": lambda: killed_behind(before=3, after=9),
    "files": lambda: killed_behind(before=3, after=25),
    "another program's": of_another_program,
}


def lied_to(made, wrong):
    """Yield a disk for each read that can be wrong, as long as somebody reads from it so often."""
    for place in PLACES:
        lie, nth = OneLie(0, place, wrong), 1
        while nth == 1 or lie.reads >= lie.nth:
            lie = OneLie(nth, place, wrong)
            disk = made.crashed(random.Random(1), keep=1.0)
            disk.lies.append(lie)
            yield disk, (nth, place)
            nth += 1
        assert nth > 5


def opened(disk):
    """Open a store, lied to until then; return its groups, and what else must have outlived."""
    with Store.open(DIRECTORY, OPTIONS, disk=disk) as store:
        disk.lies.clear()
        groups = [str(group.gtid) for group in store.reader() if group.gtid is not None]
        prepared = [found.xid for found in store.prepared()]
        leases = [lease.name for lease in store.leases.all()]
        return groups, prepared, leases, str(store.state())


def seen_by_a_tool(disk):
    history = ReadOnlyHistory(recovered_view(disk, DIRECTORY), DIRECTORY)
    try:
        groups = [str(group.gtid) for group in groups_between(history) if group.gtid is not None]
        return groups, str(history.state())
    finally:
        history.close()


@pytest.mark.parametrize("wrong", WAYS, ids=lambda wrong: wrong.__name__)
@pytest.mark.parametrize("life", LIVES)
def test_each_read_of_an_opening_can_be_wrong_once(life, wrong):
    made, groups = LIVES[life]()
    wanted = groups, [PREPARED], ["a lease"], groups[-1]
    for disk, where in lied_to(made, wrong):
        assert opened(disk) == wanted, where
        assert opened(disk) == wanted, where


@pytest.mark.parametrize("wrong", WAYS, ids=lambda wrong: wrong.__name__)
def test_so_can_each_read_of_a_tool(wrong):
    made, groups = killed_behind(before=30, after=3)
    for disk, where in lied_to(made, wrong):
        assert seen_by_a_tool(disk) == (groups, groups[-1]), where


def test_it_is_told_of(caplog):
    disk, groups = killed_behind(before=30, after=1)
    groups_read = OneLie(1, 0.5, flipped)

    def lie(path, offset, data):
        return groups_read(path, offset, data) if "redo" in path and offset else data

    disk.lies.append(lie)
    assert opened(disk)[0] == groups
    (told,) = [record for record in caplog.records if "read again" in record.message]
    assert groups_read.path in told.message
    assert "seemed to end before LSN" in told.message


def test_a_log_that_has_grown_since_the_first_look_is_no_misread(caplog):
    """A tool looks at it while a store writes: the group is there at the second look."""
    disk, groups = killed_behind(before=30, after=1)
    grown = OneLie(1, 0.0, lambda data, _: bytes(len(data)))
    disk.lies.append(
        lambda path, offset, data: grown(path, offset, data) if "redo" in path and offset else data
    )
    assert seen_by_a_tool(disk)[0] == groups
    assert grown.path
    assert [record for record in caplog.records if "read again" in record.message] == []


def test_what_is_wrong_twice_is_refused():
    """The second read is no way around a check."""
    disk, _ = killed_behind(before=30, after=0)
    name = disk.list(DIRECTORY)[0]
    disk.lies.append(
        lambda path, _, data: flipped(data, 40) if path.endswith(name) and data else data
    )
    with pytest.raises(FormatError, match=name):
        Store.open(DIRECTORY, OPTIONS, disk=disk)


def test_a_log_that_is_older_than_its_file_is_not_applied():
    """Files of a later time were put beside it: what it tells of their pages is not theirs."""
    disk, _ = killed_behind(before=3, after=3)
    path = f"{DIRECTORY}/binlog-000000.ibb"
    header = FileHeader.parse(disk.contents(path), 0)
    later = FileHeader(
        file_no=0,
        page_size=header.page_size,
        page_count=header.page_count,
        lsn=1 << 40,
        state_interval=header.state_interval,
        oob_reference=header.oob_reference,
    )
    disk.damage(path, 0, later.encode())
    before = disk.contents(path)
    with pytest.raises(RecoveryError, match=r"binlog-000000.*begun at LSN 1099511627776"):
        Store.open(DIRECTORY, OPTIONS, disk=disk)
    assert disk.contents(path) == before
