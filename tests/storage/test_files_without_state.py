"""Files that are too small for the GTID state: an earlier one tells it, and is kept."""

import errno
import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import NoSecondFile, StateTooLarge, StoreFailed
from ibb.storage.file_header import FileHeader
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.record import Xid

from ..faults.sim_disk import Fault, SimDisk
from ..simulation.reading import oracle_problems
from .events import transaction

LARGE = StoreOptions(
    page_size=512, max_binlog_size=64 * 512, state_interval=1024, redo_segment_size=256 << 10,
    format_description="upstream", background=False, flush_log_at_commit=0,
)  # fmt: skip
SMALL = replace(LARGE, max_binlog_size=4 * 512)
PAIRS = [Gtid(1000 + number, 1, (1 << 50) + number) for number in range(200)]
LAST = 100


@pytest.fixture
def disk():
    """Return a disk with a store that was begun with large files and went on in small ones."""
    disk = SimDisk()
    with Store.open("/s", LARGE, disk=disk) as store:
        store.set_binlog_state(BinlogState(PAIRS))
        publish(store, 1)
    with Store.open("/s", SMALL, disk=disk) as store:
        for number in range(2, LAST + 1):
            publish(store, number)
    return disk


def after_power_loss(disk):
    return disk.crashed(random.Random(1), keep=0.0)


def ended(store, disk, ends):
    """Return the disk that a store leaves behind that is closed, killed, or loses its power."""
    if ends == "closed":
        store.close()
        return disk
    return disk.crashed(random.Random(1), keep=1.0 if ends == "killed" else 0.0)


def publish(store, number):
    with store.begin() as group:
        group.write(transaction("x", 300))
        group.commit(Gtid(0, 1, number))


def test_a_purge_leaves_the_file_that_tells_the_state(disk):
    with Store.open("/s", SMALL, disk=disk) as store:
        state, files = store.state(), store.files()
        result = store.purge_to(files[-2].name)
        assert (result.removed, result.kept) == ([], files[0].name)
        (reason,) = result.lasting
        assert "begins without a GTID state: it was too large" in reason
    with Store.open("/s", SMALL, disk=after_power_loss(disk)) as store:
        assert store.state() == state
        assert len(list(store.reader(",".join(map(str, PAIRS))))) == LAST


def test_once_a_file_tells_the_state_again_all_before_it_go(disk):
    with Store.open("/s", LARGE, disk=disk) as store:
        store.switch_file()
        state, active = store.state(), f"binlog-{store.end().file_no:06}.ibb"
        assert store.purge_to(active).kept is None
        assert store.files()[0].name == active
    with Store.open("/s", LARGE, disk=after_power_loss(disk)) as store:
        assert store.state() == state


@pytest.mark.parametrize("ends", ["closed", "killed", "without power"])
def test_what_the_last_state_says_of_prepared_transactions_can_be_looked_up(ends):
    """It still names one that was ended since, behind which no file had room for a state."""
    disk, xid = SimDisk(), Xid(1, b"x", b"y")
    with Store.open("/s", LARGE, disk=disk) as store:
        store.set_binlog_state(BinlogState(PAIRS))
        group = store.begin()
        group.write(transaction("x", 300))
        group.prepare(xid)
        store.switch_file()  # the last one with a state
        publish(store, 1)
    store = Store.open("/s", SMALL, disk=disk)
    store.switch_file()
    store.rollback_prepared(xid)
    for number in range(2, 20):
        publish(store, number)
    store.sync()
    files = store.files()
    result = store.purge_to(files[-2].name)
    assert (result.removed, result.kept) == ([], files[0].name)
    disk = ended(store, disk, ends)
    with Store.open("/s", SMALL, disk=disk) as store:
        assert store.prepared() == []
        assert len(list(store.reader(",".join(map(str, PAIRS))))) == 19
    with Store.open("/s", LARGE, disk=disk) as store:
        store.switch_file()
        assert store.purge_to(store.files()[-2].name).removed[0] == files[0].name


def test_a_domain_is_not_deleted_where_a_restart_would_find_it_again(disk):
    with Store.open("/s", SMALL, disk=disk) as store:
        end = store.end()
        with pytest.raises(StateTooLarge, match="200"):
            store.switch_file(delete_domains=[1000])
        assert store.end() == end
        assert store.state().newest(1000) == PAIRS[0]
    with Store.open("/s", LARGE, disk=disk) as store:
        assert store.switch_file(delete_domains=[1000]) == []
    with Store.open("/s", SMALL, disk=after_power_loss(disk)) as store:
        assert store.state().newest(1000) is None
        assert len(store.state()) == 200


@pytest.mark.parametrize("ends", ["closed", "killed", "without power"])
@pytest.mark.parametrize("switches", [1, 2])
def test_a_file_that_nothing_was_written_to_is_gone_on_with(disk, ends, switches):
    store = Store.open("/s", SMALL, disk=disk)
    for _ in range(switches):
        store.switch_file()
    state, end, files = store.state(), store.end(), store.files()
    disk = ended(store, disk, ends)
    with Store.open("/s", SMALL, disk=disk) as again:
        assert (again.state(), again.end(), again.files()) == (state, end, files)
        assert again.copies_set_aside == []
        publish(again, LAST + 1)
        again.sync()
        assert len(list(again.reader(",".join(map(str, PAIRS))))) == LAST + 1


@pytest.mark.parametrize("ends", ["closed", "killed", "without power"])
def test_a_record_that_passes_a_whole_file_is_there_as_a_whole(ends):
    """The state leaves less of a file than a piece takes: two headers are built with one record."""
    small, pairs = (
        replace(LARGE, max_binlog_size=8 * 512),
        [Gtid(1000 + n, 1, 1 << 50) for n in range(296)],
    )
    disk, data = SimDisk(), transaction("x", 6 * small.piece_size)
    with Store.open("/s", LARGE, disk=disk) as store:
        store.set_binlog_state(BinlogState(pairs))
    store = Store.open("/s", small, disk=disk)
    store.switch_file()
    with store.begin() as group:
        group.write(data)
        group.commit(Gtid(0, 1, 1))
    store.sync()
    disk = ended(store, disk, ends)
    with Store.open("/s", small, disk=disk) as again:
        assert again.copies_set_aside == []
        (group,) = again.reader(",".join(map(str, pairs)))
        assert b"".join(group.pieces()).endswith(data)
        lsns = [header_of(disk, file.name).lsn for file in again.files()]
    assert lsns == sorted(lsns)
    assert len(set(lsns)) < len(lsns)
    assert oracle_problems(disk, "/s", states=True) == []


def header_of(disk, name):
    return FileHeader.parse(disk.contents(f"/s/{name}"), parse_binlog_name(name))


def test_a_record_that_no_second_file_can_be_made_for_says_so_and_is_not_there_later():
    """GTID states leave room for half of it in the file that it enters first."""
    options = replace(LARGE, max_binlog_size=8 * 512, flush_log_at_commit=1)
    disk = SimDisk()
    with Store.open("/s", options, disk=disk) as store:
        store.set_binlog_state(
            BinlogState([Gtid(1000 + number, 1, (1 << 50) + number) for number in range(300)])
        )
        publish(store, 1)
        disk.faults = [
            Fault(lambda op: op.kind == "open" and op.path.endswith(".ibb"), errno.EMFILE, times=99)
        ]
        with (
            pytest.raises(NoSecondFile, match="GTID states fill the file before: make room"),
            store.begin() as group,
        ):
            group.write(transaction("x", 1500))
        with pytest.raises(StoreFailed, match=r"no room for /s/binlog-000002\.ibb"):
            publish(store, 2)
        disk.faults = []
    with Store.open("/s", options, disk=disk) as store:
        assert store.state().seq(0, 1) == 1
        publish(store, 2)
        assert store.state().seq(0, 1) == 2
    assert oracle_problems(disk, "/s", states=False) == []
