"""No file goes that somebody needs, and the answer says who; what is not needed goes."""

import contextlib
import errno
import random
import threading
from pathlib import Path

import pytest

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import LeaseError, UnknownFile
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import TooOld
from ibb.storage.holds import HoldKind
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import Xid
from ibb.storage.verify import Kind, Severity, verify_directory

from ..faults.sim_disk import Fault, PowerLost, SimDisk
from .events import query, transaction, xid


def options(**more) -> StoreOptions:
    return StoreOptions(
        page_size=512, max_binlog_size=16 * 512, state_interval=1024, oob_piece_size=1000,
        redo_segment_size=256 << 10, format_description="upstream", background=False, **more,
    )  # fmt: skip


class FakeClock:
    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock):
    with Store.open("/s", options(), disk=SimDisk(), clock=clock) as store:
        yield store


def fill_to(store: Store, file_no: int) -> None:
    while store.end().file_no < file_no:
        publish(store)


def publish(store: Store, size: int = 300) -> str:
    newest = store.state().newest(0)
    gtid = Gtid(0, 1, newest.seq + 1 if newest else 1)
    with store.begin() as group:
        group.write(transaction(f"group {gtid}", size))
        group.commit(gtid)
    return str(gtid)


def publish_across(store: Store, file_no: int) -> None:
    """Publish 9-1-1 with its first pieces in the active file, and its end in a later one."""
    with store.begin() as large:
        large.write(query("x" * 3000))
        fill_to(store, file_no)
        large.write(xid(1))
        large.commit(Gtid(9, 1, 1))


def names(store: Store) -> list[int]:
    return [file.file_no for file in store.files()]


def test_files_before_the_named_one_go(store: Store) -> None:
    fill_to(store, 6)
    result = store.purge_to("binlog-000003.ibb")
    assert result.removed == [f"binlog-00000{number}.ibb" for number in range(3)]
    assert (result.kept, result.reasons) == (None, [])
    assert names(store)[0] == 3
    with pytest.raises(TooOld):
        list(store.reader(""))
    assert list(store.reader())  # from the oldest there is


def test_an_unknown_name_is_an_error(store: Store) -> None:
    fill_to(store, 2)
    for name in ("binlog-000009.ibb", "binlog-7.ibb", "mysql-bin.000001"):
        with pytest.raises(UnknownFile):
            store.purge_to(name)
    assert names(store)[0] == 0


def test_the_file_in_use_stays_and_what_could_go_is_gone(store: Store) -> None:
    fill_to(store, 3)
    result = store.purge_to("binlog-000004.ibb")
    assert result.removed == [f"binlog-00000{number}.ibb" for number in range(3)]
    assert result.kept == "binlog-000003.ibb"
    assert "the binlog file is in active use" in result.reasons
    assert publish(store) in [str(group.gtid) for group in store.reader()]


def test_a_reader_keeps_its_files(store: Store) -> None:
    fill_to(store, 4)
    groups = store.reader()
    first = next(groups)
    result = store.purge_to("binlog-000004.ibb")
    assert result.removed == []
    assert result.reasons == ["it is in use by a reader of this program: Store.reader"]
    assert b"".join(first.pieces())
    for _ in groups:
        pass
    assert store.purge_to("binlog-000004.ibb").kept is None


def test_a_reader_of_a_later_file_keeps_what_its_file_refers_to(store: Store) -> None:
    """The header's oob reference of the reader's file counts, not that of the file to go."""
    publish_across(store, 2)
    header = store.pages.header(2)
    assert header is not None
    assert header.oob_reference == 0
    fill_to(store, 5)
    hold = store.hold(HoldKind.REPLICA, "server id 7")
    hold.move(2)
    result = store.purge_to("binlog-000005.ibb")
    assert result.removed == []
    assert result.reasons == ["it is in use by a binlog dump thread (connected slave): server id 7"]
    hold.move(3)
    assert store.purge_to("binlog-000005.ibb").removed[-1] == "binlog-000002.ibb"
    hold.release()
    assert store.purge_to("binlog-000005.ibb").removed == [
        "binlog-000003.ibb", "binlog-000004.ibb",
    ]  # fmt: skip


def test_the_active_file_keeps_what_its_groups_refer_to(store: Store) -> None:
    publish_across(store, 2)
    result = store.purge_to("binlog-000002.ibb")
    assert result.removed == []
    assert result.reasons == ["the active file may refer to it"]
    fill_to(store, 3)
    assert store.purge_to("binlog-000003.ibb").kept is None


def test_open_and_prepared_transactions_keep_their_files(store: Store) -> None:
    fill_to(store, 1)
    group = store.begin()
    group.write(transaction("open", 3000))
    fill_to(store, 4)
    result = store.purge_to("binlog-000003.ibb")
    assert result.removed == ["binlog-000000.ibb"]
    assert "an open transaction refers to it" in result.reasons
    group.prepare(Xid(1, b"g", b"b"))
    fill_to(store, 6)
    assert (
        "the prepared XA transaction X'67',X'62',1 refers to it"
        in store.purge_to("binlog-000005.ibb").reasons
    )
    store.rollback_prepared(Xid(1, b"g", b"b"))
    fill_to(store, 9)
    assert store.purge_to("binlog-000007.ibb").kept is None


def test_what_is_not_to_go_is_left_whole(store: Store) -> None:
    """An earlier file stays if a group behind the border has its first pieces there."""
    fill_to(store, 2)
    with store.begin() as large:
        large.write(query("x" * 3000))
        fill_to(store, 3)
        small = publish(store)
        fill_to(store, 4)
        large.write(xid(1))
        large.commit(Gtid(9, 1, 1))
    fill_to(store, 6)
    result = store.purge_to("binlog-000004.ibb")
    assert result.removed == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert result.kept == "binlog-000002.ibb"
    assert result.reasons == ["groups in binlog-000004.ibb may have pieces in it"]
    whole = [str(group.gtid) for group in store.reader() if b"".join(group.pieces())]
    assert "9-1-1" in whole
    assert small in whole


def test_groups_that_lost_their_beginning_are_not_where_readers_begin(tmp_path: Path) -> None:
    with Store.open(tmp_path, options()) as store:
        with store.begin() as first:
            first.write(query("x" * 3000))
            fill_to(store, 1)
            first.write(xid(1))
            first.commit(Gtid(8, 1, 1))
            with store.begin() as second:
                second.write(query("y" * 3000))
                fill_to(store, 2)
                second.write(xid(2))
                second.commit(Gtid(9, 1, 1))
        fill_to(store, 4)
        assert store.purge_to("binlog-000002.ibb").removed == ["binlog-000000.ibb"]
        found = [(group.gtid, b"".join(group.pieces())) for group in store.reader()]
        assert Gtid(9, 1, 1) in [gtid for gtid, _ in found]
        assert Gtid(8, 1, 1) not in [gtid for gtid, _ in found]
    findings = list(verify_directory(OsDisk(), str(tmp_path)))
    assert [(finding.kind, finding.severity, finding.lost) for finding in findings] == [
        (Kind.OOB_PURGED, Severity.NOTE, "8-1-1")
    ]


def test_a_lease_keeps_what_lies_behind_its_position(store: Store, clock: FakeClock) -> None:
    fill_to(store, 2)
    position = store.state().position()
    store.leases.renew("spark", position, age_limit=60)
    fill_to(store, 6)
    result = store.purge_to("binlog-000006.ibb")
    assert result.removed == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert result.reasons == ["lease 'spark' needs it"]
    expected = [str(group.gtid) for group in store.reader(str(position))]
    assert expected[0] == f"0-1-{next(iter(position)).seq + 1}"
    clock.time += 61
    result = store.purge_to("binlog-000005.ibb")
    assert [lease.name for lease in result.lapsed] == ["spark"]
    assert result.removed == ["binlog-000002.ibb", "binlog-000003.ibb", "binlog-000004.ibb"]
    assert [lease.lapsed for lease in store.leases.all()] == [True]  # until somebody takes note
    assert store.purge_to("binlog-000005.ibb").lapsed == []
    store.leases.remove("spark")
    assert store.leases.all() == []


def test_no_lease_is_given_for_what_is_gone(store: Store) -> None:
    """It would hold up every purge, and its holder could not go on all the same."""
    fill_to(store, 4)
    store.purge_to("binlog-000003.ibb")
    with pytest.raises(LeaseError, match="groups behind position '0-1-1' have been purged"):
        store.leases.renew("late", "0-1-1")
    with pytest.raises(SqlError):
        store.leases.renew("spark", "nonsense")
    assert store.leases.all() == []
    assert store.leases.renew("spark", str(store.state())).position == str(store.state())


def test_leases_survive_a_restart_and_are_refused_when_damaged(tmp_path: Path) -> None:
    with Store.open(tmp_path, options()) as store:
        store.leases.renew("a", GtidPosition.parse("0-1-5"), age_limit=None)
    with Store.open(tmp_path, options()) as store:
        (lease,) = store.leases.all()
        assert (lease.name, lease.position, lease.age_limit) == ("a", "0-1-5", None)
        for name in ("", "x" * 201, "a\nb"):
            with pytest.raises(LeaseError):
                store.leases.renew(name, GtidPosition.parse(""))
        with pytest.raises(LeaseError):
            store.leases.remove("b")
    (tmp_path / "leases.json").write_text('{"version": 1, "leases": [{"name": 1}]}')
    with pytest.raises(FormatError, match="not a file of leases"):
        Store.open(tmp_path, options())


def test_old_files_go_by_their_age(store: Store) -> None:
    fill_to(store, 5)
    disk_time = store._disk.modified_at("/s/binlog-000003.ibb")
    result = store.purge_before(disk_time)
    assert result.removed == [f"binlog-00000{number}.ibb" for number in range(3)]
    assert result.kept is None


def test_the_total_size_is_kept_automatically() -> None:
    settings = options(max_binlog_total_size=6 * 16 * 512, slave_connections_needed_for_purge=0)
    with Store.open("/s", settings, disk=SimDisk()) as store:
        fill_to(store, 20)
        assert len(names(store)) <= 6
        assert store.purger.last_automatic is not None
        assert store.purger.last_automatic.removed


def test_old_files_go_automatically(clock: FakeClock) -> None:
    settings = options(binlog_expire_logs_seconds=60, slave_connections_needed_for_purge=0)
    with Store.open("/s", settings, disk=SimDisk(now=clock.now), clock=clock) as store:
        fill_to(store, 4)
        assert names(store)[0] == 0
        clock.time += 60
        fill_to(store, 5)
        assert names(store)[0] == 0, "they are just as old as they may be"
        clock.time += 1
        fill_to(store, 6)
        assert names(store)[0] == 3, "later ones were changed since"


@pytest.mark.parametrize("trouble", ["lease behind damage", "unlink", "full disk"])
def test_trouble_of_an_automatic_purge_is_no_reason_to_stop(trouble: str, clock: FakeClock) -> None:
    disk = SimDisk()
    settings = options(max_binlog_total_size=4 * 16 * 512, slave_connections_needed_for_purge=0)
    with Store.open("/s", options(), disk=disk, clock=clock) as store:
        fill_to(store, 6)
        store.leases.renew("late", GtidPosition.parse("0-1-1"), age_limit=60)
    if trouble == "lease behind damage":
        for number in range(5):
            disk.damage(f"/s/binlog-{number:06d}.ibb", 512 + 20, b"\xee")
    else:
        clock.time += 100
    with Store.open("/s", settings, disk=disk, clock=clock) as store:
        if trouble == "unlink":
            matches = Fault(lambda op: op.kind == "unlink" and op.path.endswith(".ibb"), times=99)
            disk.faults.append(matches)
        if trouble == "full disk":
            full = Fault(lambda op: "leases" in op.path, code=errno.ENOSPC, times=99)
            disk.faults.append(full)
        fill_to(store, 9)
        purge = store.purger.last_automatic
        assert purge is not None
        if trouble == "lease behind damage":
            assert purge.reasons[-1] == "lease 'late' needs it"
        elif trouble == "full disk":
            assert names(store)[0] > 3  # else the disk would stay full
        else:
            assert "cannot unlink" in str(purge.failure)
        newest = publish(store)
        assert newest == str(store.state())


def test_automatic_purge_waits_for_enough_replicas() -> None:
    settings = options(max_binlog_total_size=4 * 16 * 512, slave_connections_needed_for_purge=2)
    with Store.open("/s", settings, disk=SimDisk()) as store:
        fill_to(store, 6)
        assert names(store)[0] == 0
        assert store.purger.last_automatic is not None
        assert store.purger.last_automatic.reasons == [
            "less than 'slave_connections_needed_for_purge' slaves have processed it"
        ]
        holds = [store.hold(HoldKind.REPLICA, f"server id {number}") for number in (1, 2)]
        for hold in holds:
            hold.move(5)
        fill_to(store, 8)
        assert names(store)[0] == 5
        assert store.purge_to("binlog-000005.ibb").kept is None  # a purge by hand does not wait


def test_purge_races_with_readers_and_writers(tmp_path: Path) -> None:
    """Readers that begin while files go either get everything they need or are told."""
    settings = StoreOptions(
        page_size=512, max_binlog_size=16 * 512, state_interval=1024, oob_piece_size=1000,
        redo_segment_size=256 << 10, format_description="upstream",
    )  # fmt: skip
    with Store.open(tmp_path, settings) as store:
        fill_to(store, 3)
        done = threading.Event()
        failures: list[BaseException] = []

        def read() -> None:
            while not done.is_set():
                try:
                    for group in store.reader():
                        for _ in group.pieces():
                            pass
                except (TooOld, SqlError):
                    pass
                except BaseException as error:
                    failures.append(error)
                    raise

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        removed = 0
        for _ in range(400):
            publish(store, 700)
            removed += len(store.purge_to(store.files()[-1].name).removed)
        done.set()
        for thread in threads:
            thread.join(30)
        assert not failures
        assert removed > 5


def test_removing_is_durable_oldest_first() -> None:
    """After a crash in the middle of a purge no file is missing between two others."""
    for seed in range(20):
        disk = SimDisk()
        store = Store.open("/s", options(), disk=disk)
        fill_to(store, 8)
        disk.crash_at = disk.operations + 1 + seed
        with contextlib.suppress(PowerLost):
            store.purge_to("binlog-000007.ibb")
        after = disk.crashed(random.Random(seed), keep=0.5)
        numbers = sorted(int(name[7:13]) for name in after.list("/s") if name.endswith(".ibb"))
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        with Store.open("/s", options(), disk=after) as again:
            reader = GroupReader(again.pages, Position(numbers[0], 0))
            while (group := reader.next()) is not None:
                assert b"".join(group.pieces())
