"""What the simulation found: states, prepared transactions and pages across resets and openings."""

import random

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DiskError, StoreFailed
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position
from ibb.storage.record import Xid
from ibb.storage.redo_segment import SEGMENT_NAMES

from ..faults.sim_disk import Fault, PowerLost, SimDisk
from .events import transaction
from .state_of_size import entries_of_size

NAME = Xid(1, b"gtrid", b"bqual")


def options(**more) -> StoreOptions:
    return StoreOptions(
        page_size=512, max_binlog_size=16 * 512, state_interval=1024, oob_piece_size=1000,
        redo_segment_size=256 << 10, format_description="upstream", background=False, **more,
    )  # fmt: skip


def publish(store: Store, gtid: str, size: int = 0, *, wait: bool = True) -> None:
    with store.begin() as group:
        group.write(transaction(f"group {gtid}", size))
        group.commit(Gtid.parse(gtid), wait=wait)


def test_a_state_of_one_first_group_survives_a_restart() -> None:
    disk = SimDisk()
    with Store.open("/s", options(), disk=disk) as store:
        store.set_binlog_state(BinlogState.parse("5-5-1"))
        publish(store, "0-1-1")
    with Store.open("/s", options(), disk=disk) as store:
        assert str(store.state()) == "5-5-1,0-1-1"


def test_a_reset_that_failed_half_way_is_finished_at_the_next_opening() -> None:
    disk = SimDisk()
    store = Store.open("/s", options(), disk=disk)
    publish(store, "0-1-1")
    disk.faults.append(Fault(lambda op: op.kind == "unlink"))
    with pytest.raises(DiskError):
        store.reset(BinlogState.parse("0-1-9"))
    with pytest.raises(StoreFailed):
        store.begin()
    store.close()
    with Store.open("/s", options(), disk=disk) as store:
        assert str(store.state()) == "0-1-9"
        assert list(store.reader("0-1-9")) == []


def test_a_group_begun_before_a_reset_can_be_prepared_after_it() -> None:
    with Store.open("/s", options(), disk=SimDisk()) as store:
        with store.begin() as group:
            store.reset()
            group.write(transaction("early"))
            group.prepare(NAME)
        assert [prepared.xid for prepared in store.prepared()] == [NAME]
        store.commit_prepared(NAME, Gtid(0, 1, 1))
        assert [str(group.gtid) for group in store.reader()] == ["0-1-1"]


def test_a_group_with_purged_pieces_is_told_as_damage_with_both_places() -> None:
    with Store.open("/s", options(), disk=SimDisk()) as store:
        with store.begin() as purged, store.begin() as kept:
            purged.write(transaction("large", 3000))
            store.switch_file()
            purged.commit(Gtid(0, 1, 1))
            kept.write(transaction("large", 3000))
            store.switch_file()
            kept.commit(Gtid(0, 1, 2))
        store.switch_file()
        store.switch_file()
        assert store.purge_to("binlog-000002.ibb").removed == ["binlog-000000.ibb"]
        large = GroupReader(store.pages, Position(1, 0)).next()
        assert large is not None
        places = r"binlog-000000.*of commit record binlog-000001.*file is missing"
        with pytest.raises(FormatError, match=places):
            list(large.pieces())


def test_the_last_bytes_of_a_page_are_filled_after_a_restart() -> None:
    """One to three bytes are left, in which no chunk fits; the log that knew of them is empty."""
    for size in range(330, 380):
        disk = SimDisk()
        with Store.open("/s", options(), disk=disk) as store:
            publish(store, "0-1-1", size)
            end = store.end()
        room = 512 - 4 - end.offset % 512
        if not 1 <= room <= 3:
            continue
        for number in (2, 3):
            with Store.open("/s", options(), disk=disk) as store:
                if number == 2:
                    assert store.end() == end
                else:
                    publish(store, "0-1-2")
        page = disk.contents("/s/binlog-000000.ibb")[end.offset : end.offset + room]
        assert page == b"\xff" * room
        return
    raise AssertionError


def damage_last_group(disk: SimDisk) -> None:
    log = [op.path for op in disk.log if op.kind == "write" and "redo" in op.path][-1]
    if b"RdG1" not in disk.contents(log):
        log = log.replace("-0.log", "-1.log")
    disk.damage(log, disk.contents(log).rindex(b"RdG1") + 40, b"damage")


@pytest.mark.parametrize("pages", [1, 2])
def test_a_page_behind_a_state_that_fills_its_own_is_not_begun_for_nothing(pages: int) -> None:
    """It was flushed without contents, and recovery took it for something unknown."""
    disk = SimDisk()
    store = Store.open("/s", options(), disk=disk)
    store.reset(BinlogState(entries_of_size(pages * (512 - 7), Gtid(0, 1, 1))))
    disk.end_process()
    with Store.open("/s", options(), disk=disk) as store:
        assert store.copies_set_aside == []
        assert store.end() == Position(0, (1 + pages) * 512)
        publish(store, "0-1-2")
    with Store.open("/s", options(), disk=disk) as store:
        assert str(store.state().newest(0)) == "0-1-2"


def test_a_log_that_has_lost_what_the_last_page_holds_is_not_believed_in_silence() -> None:
    disk = SimDisk()
    store = Store.open("/s", options(), disk=disk)
    publish(store, "0-1-1")
    publish(store, "0-1-2")
    store._engine.checkpoint()
    disk.end_process()
    damage_last_group(disk)
    with Store.open("/s", options(), disk=disk) as store:
        (copy,) = store.copies_set_aside
        assert b"group 0-1-2" in disk.contents(copy)


@pytest.mark.parametrize("what", ["last group", *SEGMENT_NAMES])
def test_damage_to_a_log_that_nobody_needs_any_more_does_no_harm(what: str) -> None:
    """A store that was closed has everything in its files."""
    disk = SimDisk()
    for number in (1, 2):
        with Store.open("/s", options(), disk=disk) as store:
            publish(store, f"0-1-{number}")
    if what == "last group":
        damage_last_group(disk)
    else:
        disk.damage(f"/s/{what}", 20, b"damage")
    before = disk.contents("/s/binlog-000000.ibb")
    with Store.open("/s", options(), disk=disk) as store:
        assert store.copies_set_aside == []
        assert [str(group.gtid) for group in store.reader()] == ["0-1-1", "0-1-2"]
    assert disk.contents("/s/binlog-000000.ibb") == before


def test_recovery_writes_no_page_before_the_log_is_certain() -> None:
    """A killed process leaves redo that only the operating system has."""
    disk = SimDisk()
    store = Store.open("/s", options(flush_log_at_commit=2), disk=disk)
    publish(store, "0-1-1")
    disk.end_process()
    disk.log.clear()
    Store.open("/s", options(), disk=disk)
    kinds = [(op.kind, op.path.rpartition("/")[2][:9]) for op in disk.log]
    assert kinds.index(("sync", "ibb-redo-")) < kinds.index(("write", "binlog-00"))


def test_a_failed_write_of_the_log_leaves_nothing_of_the_group_after_power_loss() -> None:
    disk = SimDisk()
    store = Store.open("/s", options(), disk=disk)
    publish(store, "0-1-1")
    disk.faults.append(Fault(lambda op: op.kind == "write" and "redo" in op.path))
    with pytest.raises(StoreFailed):
        publish(store, "0-1-2")
    after = disk.crashed(random.Random(1), keep=0.9)
    with Store.open("/s", options(), disk=after) as store:
        assert [str(group.gtid) for group in store.reader()] == ["0-1-1"]


def test_pages_that_vanished_from_the_end_are_told() -> None:
    """The log is empty after an opening; only its header knows how far the files went."""
    disk = SimDisk()
    with Store.open("/s", options(), disk=disk) as store:
        publish(store, "0-1-1", 3000)
        end = store.end()
    Store.open("/s", options(), disk=disk).close()
    page = end.offset // 512 * 512
    disk.damage("/s/binlog-000000.ibb", page, bytes(512))
    with pytest.raises(FormatError, match=rf"durable up to {end} by the word of the redo log"):
        Store.open("/s", options(), disk=disk)


def test_files_that_vanished_altogether_are_told() -> None:
    disk = SimDisk()
    with Store.open("/s", options(), disk=disk) as store:
        publish(store, "0-1-1")
    Store.open("/s", options(), disk=disk).close()
    for name in disk.list("/s"):
        if name.endswith(".ibb"):
            disk.unlink(f"/s/{name}")
    with pytest.raises(FormatError, match="no file holds anything"):
        Store.open("/s", options(), disk=disk)


def killed_disk():
    """Return the disk of a process that was killed before it had synced its last groups."""
    disk = SimDisk()
    settings = StoreOptions(
        page_size=512, max_binlog_size=512 * 32, redo_segment_size=256 << 10,
        flush_log_at_commit=2, format_description="upstream", background=False,
    )  # fmt: skip
    store = Store.open("/s", settings, disk=disk)
    for seq in range(1, 9):
        with store.begin() as group:
            group.write(transaction("x" * 700))
            group.commit(Gtid(0, 1, seq))
        if seq == 3:
            store.sync()
    disk.end_process()
    return disk, settings


@pytest.mark.parametrize("seed", range(2))
def test_no_page_gets_ahead_of_a_log_that_only_a_kill_has_left(seed):
    """Opening brings it back; if the power goes meanwhile, pages must not know more than it."""
    for at in range(1, 200):
        disk, settings = killed_disk()
        disk.crash_at = disk.operations + at
        try:
            Store.open("/s", settings, disk=disk).close()
        except PowerLost:
            pass
        else:
            return
        after = disk.crashed(random.Random(seed * 1000 + at), 0.5)
        with Store.open("/s", settings, disk=after) as store:
            found = [group.gtid.seq for group in store.reader()]
            assert not store.copies_set_aside, f"power lost at operation {at}"
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= 3
    raise AssertionError("the store never opens")


def fill_log(disk):
    """Commit until the redo log goes over to its other segment; return what was acknowledged."""
    acknowledged = 0
    store = Store.open("/s", options(), disk=disk)
    sequence = store._engine._redo._sequence
    try:
        while store._engine._redo._sequence == sequence:
            began = disk.operations
            publish(store, f"0-1-{acknowledged + 1}", 2500)
            acknowledged += 1
    except PowerLost:
        pass
    return acknowledged, began


def test_a_log_that_goes_over_needs_nothing_of_its_older_segment() -> None:
    undisturbed = SimDisk()
    _, began = fill_log(undisturbed)
    for at in range(began + 1, undisturbed.operations + 1):
        disk = SimDisk()
        disk.crash_at = at
        acknowledged, _ = fill_log(disk)
        for seed in range(6):
            after = disk.crashed(random.Random(seed), 0.5)
            with Store.open("/s", options(), disk=after) as store:
                assert (store.state().seq(0, 1) or 0) >= acknowledged, f"power lost at {at}"


@pytest.mark.parametrize("kind", ["open", "read"])
@pytest.mark.parametrize("times", [1, 1 << 30])
@pytest.mark.parametrize("was_closed", [False, True])
def test_an_opening_that_cannot_read_does_not_say_that_files_end_early(
    kind: str, times: int, *, was_closed: bool
) -> None:
    """What cannot be read for a moment would be taken for lost."""
    disk = SimDisk()
    store = Store.open("/s", options(), disk=disk)
    for number in range(1, 20):
        publish(store, f"0-1-{number}", 300)
    if was_closed:
        store.close()
    else:
        disk.end_process()
    refused = 0
    for nth in range(1, 400):
        copy = disk.crashed(random.Random(nth), 1.0)
        fault = Fault(lambda op: op.kind == kind and ".ibb" in op.path, nth=nth, times=times)
        copy.faults.append(fault)
        try:
            Store.open("/s", options(), disk=copy).close()
        except (DiskError, StoreFailed):
            refused += 1
        if fault.seen < nth:
            break
        copy.faults.clear()
        copy.end_process()
        with Store.open("/s", options(), disk=copy) as store:
            assert store.state().seq(0, 1) == 19
    assert refused > 3
    assert fault.seen < nth
