"""RESET MASTER, setting the state, forgetting domains, and what a commit waits for."""

import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DomainInUse, StateTooLarge, StoreBusy, StoreNotEmpty
from ibb.storage.group_reader import GroupReader
from ibb.storage.holds import HoldKind
from ibb.storage.housekeeper import Housekeeper
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position

from ..faults.sim_disk import PowerLost, SimDisk
from .events import transaction

OPTIONS = StoreOptions(
    page_size=512,
    max_binlog_size=16 * 512,
    state_interval=1024,
    redo_segment_size=256 << 10,
    oob_piece_size=1000,
    format_description="upstream",
    background=False,
)

SECONDS = 20
KEPT_OUT_SECONDS = 0.2


class FakeClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def publish(store: Store, gtid: str, size: int = 0, *, wait: bool = True) -> None:
    with store.begin() as group:
        group.write(transaction(f"group {gtid}", size))
        group.commit(Gtid.parse(gtid), wait=wait)


def gtids(store: Store) -> list[str]:
    return [str(group.gtid) for group in store.reader() if group.gtid is not None]


def test_reset_begins_anew_at_file_0(tmp_path: Path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        for number in range(1, 40):
            publish(store, f"0-1-{number}", 500)
        assert len(store.files()) > 3
        store.reset()
        assert (gtids(store), str(store.state())) == ([], "")
        assert next(file.file_no for file in store.files()) == 0
        publish(store, "0-2-1")
        assert gtids(store) == ["0-2-1"]
    with Store.open(tmp_path, OPTIONS) as store:
        assert gtids(store) == ["0-2-1"]


def test_reset_is_refused_while_somebody_reads(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", OPTIONS) as store:
        for number in range(1, 20):
            publish(store, f"0-1-{number}", 500)
        groups = store.reader()
        next(groups)
        with pytest.raises(StoreBusy, match="in use by a reader of this program"):
            store.reset()
        rest = [str(group.gtid) for group in groups if group.gtid is not None]
        assert rest[-1] == "0-1-19"
        with (
            store.hold(HoldKind.BACKUP, "copy"),
            pytest.raises(StoreBusy, match="in use by a backup: copy"),
        ):
            store.reset()
        store.reset()
        assert gtids(store) == []


@pytest.mark.parametrize("stop_at", ["modified_at", "unlink"])
def test_reset_waits_for_a_purge_that_runs(tmp_path: Path, stop_at: str) -> None:
    """Or the purge would go on with the files of the new history."""
    disk = StoppingDisk()
    with Store.open(tmp_path, OPTIONS, disk=disk) as store:
        for number in range(1, 60):
            publish(store, f"0-1-{number}", 500)
        disk.stop_at = stop_at
        purge = threading.Thread(target=store.purge_before, args=(time.time() + 1e6,))
        purge.start()
        assert disk.stopped.wait(SECONDS)
        disk.stop_at = ""
        reset = threading.Thread(target=store.reset)
        reset.start()
        reset.join(0.05)
        assert reset.is_alive()  # nothing is deleted for it yet
        disk.go_on.set()
        purge.join(SECONDS)
        reset.join(SECONDS)
        for number in range(1, 60):
            publish(store, f"0-2-{number}", 500)
    with Store.open(tmp_path, OPTIONS) as store:
        assert gtids(store) == [f"0-2-{number}" for number in range(1, 60)]


class StoppingDisk(OsDisk):
    """Stops in the calls of one name until told to go on."""

    def __init__(self) -> None:
        self.stop_at = ""
        self.stopped, self.go_on = threading.Event(), threading.Event()

    def unlink(self, path: str) -> None:
        self._stop("unlink")
        super().unlink(path)

    def modified_at(self, path: str) -> float:
        self._stop("modified_at")
        return super().modified_at(path)

    def _stop(self, name: str) -> None:
        if name == self.stop_at:
            self.stopped.set()
            assert self.go_on.wait(SECONDS)


def test_an_automatic_purge_waits_for_nobody(tmp_path: Path) -> None:
    """RESET MASTER waits for the thread that would wait for it."""
    settings = replace(OPTIONS, max_binlog_total_size=1, slave_connections_needed_for_purge=0)
    with Store.open(tmp_path, settings) as store:
        for number in range(1, 30):
            publish(store, f"0-1-{number}", 500)
        done = store.purger.last_automatic
        with store.purger.kept_out():
            purge = threading.Thread(target=store.purger.purge_automatically)
            purge.start()
            purge.join(SECONDS)
            assert not purge.is_alive()
            assert store.purger.last_automatic is done
        store.purger.purge_automatically()
        assert store.purger.last_automatic is not done


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_commit_that_waits_across_a_reset_is_done(mode: int) -> None:
    """Its group was durable before it was deleted, whenever in between it asks."""
    answers: list[BaseException | None] = []

    def wait() -> None:
        try:
            store.wait_for(position)
            store.sync()
        except BaseException as error:  # noqa: BLE001 - a failed assertion must be told, too
            answers.append(error)
        else:
            answers.append(None)

    class AskingDisk(SimDisk):
        """Has another thread wait for the commit at each step of the reset."""

        armed = False

        def step(self, kind: str, path: str) -> None:
            if self.armed:
                self.armed = False  # not for the steps of the other one
                thread = threading.Thread(target=wait)
                thread.start()
                thread.join(KEPT_OUT_SECONDS)  # it may have to wait for a sync that runs
                waiting.append(thread)
                self.armed = True
            super().step(kind, path)

    waiting: list[threading.Thread] = []
    disk = AskingDisk()
    with Store.open("/s", replace(OPTIONS, flush_log_at_commit=mode), disk=disk) as store:
        publish(store, "0-1-1")
        with store.begin() as group:
            group.write(transaction("waits"))
            position = group.commit(Gtid(0, 1, 2), wait=False)
        disk.armed = True
        store.reset()
        disk.armed = False
        for thread in waiting:
            thread.join(SECONDS)
        publish(store, "0-1-1")
        assert gtids(store) == ["0-1-1"]
    assert len(answers) > 10
    assert set(answers) == {None}


def test_reset_is_refused_while_a_transaction_has_pieces_out(tmp_path: Path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        with store.begin() as group:
            group.write(transaction("x", 3000))
            with pytest.raises(StoreBusy):
                store.reset()
            group.commit(Gtid(0, 1, 1))
        store.reset()
        assert gtids(store) == []


def test_a_crash_in_reset_leaves_all_or_nothing() -> None:
    """Lose power at every operation of RESET MASTER."""
    first = SimDisk()
    store = Store.open("/s", OPTIONS, disk=first)
    for number in range(1, 30):
        publish(store, f"0-1-{number}", 500)
    old = gtids(store)
    store.close()
    outcomes = set()
    operation = 0
    while True:
        operation += 1
        disk = first.crashed(random.Random(0), keep=1.0)
        store = Store.open("/s", OPTIONS, disk=disk)
        disk.crash_at = disk.operations + operation
        try:
            store.reset(BinlogState.parse("5-5-5"))
        except PowerLost:
            disk = disk.crashed(random.Random(operation), keep=0.5)
            store = Store.open("/s", OPTIONS, disk=disk)
            found = (gtids(store), str(store.state()))
            assert found in ((old, "0-1-29"), ([], "5-5-5"))
            outcomes.add(found[1])
            publish(store, "0-1-1000")
            store.close()
        else:
            break
    assert outcomes == {"0-1-29", "5-5-5"}


def test_the_state_can_be_set_while_nothing_was_logged(tmp_path: Path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        store.set_binlog_state(BinlogState.parse("0-1-100,1-3-7"))
        publish(store, "0-1-101")
        with pytest.raises(StoreNotEmpty, match="RESET MASTER first"):
            store.set_binlog_state(BinlogState())
        assert str(store.state()) == "0-1-101,1-3-7"
    with Store.open(tmp_path, OPTIONS) as store:
        assert str(store.state()) == "0-1-101,1-3-7"
        assert [str(group.gtid) for group in store.reader("0-1-100,1-3-7")] == ["0-1-101"]


def test_a_state_that_a_restart_would_not_find_is_refused(tmp_path: Path) -> None:
    small = replace(OPTIONS, max_binlog_size=4 * 512)
    pairs = [Gtid(domain, 1, 1 << 60) for domain in range(200)]
    with Store.open(tmp_path, small) as store:
        publish(store, "0-1-1")
        with pytest.raises(StateTooLarge, match="200"):
            store.reset(BinlogState(pairs))
        assert gtids(store) == ["0-1-1"]
        store.reset(BinlogState(pairs[:80]))
    with Store.open(tmp_path, small) as store:
        assert list(store.state().entries()) == pairs[:80]


def test_a_domain_is_forgotten_once_no_file_holds_its_groups(tmp_path: Path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, "7-1-1")
        publish(store, "0-1-1")
        with pytest.raises(DomainInUse, match=r"\('7'\) being deleted"):
            store.switch_file(delete_domains=[7])
        assert store.switch_file(delete_domains=[99]) == [99]
        store.switch_file()
        last = store.end().file_no
    for path in tmp_path.glob("binlog-*.ibb"):
        if int(path.stem.split("-")[1]) < last:
            path.unlink()
    with Store.open(tmp_path, OPTIONS) as store:
        assert store.switch_file(delete_domains=[7, 8]) == [8]
        assert str(store.state()) == "0-1-1"
        publish(store, "0-1-2")
    with Store.open(tmp_path, OPTIONS) as store:
        assert str(store.state()) == "0-1-2"


def syncs(disk: SimDisk) -> int:
    """Return how often the redo log was synced."""
    return sum(op.kind == "sync" and "redo" in op.path for op in disk.log)


def test_mode_0_syncs_for_readers_and_by_the_clock_but_not_for_commits() -> None:
    disk, clock = SimDisk(), FakeClock()
    options = StoreOptions(
        flush_log_at_commit=0, background=False, format_description="upstream",
        max_binlog_size=4 << 20, redo_segment_size=8 << 20,
    )  # fmt: skip
    store = Store.open("/s", options, disk=disk, clock=clock)
    before = syncs(disk)
    for number in range(1, 3001):
        publish(store, f"0-1-{number}")
    assert syncs(disk) == before
    assert str(store.state()) == ""
    reader = GroupReader(store.pages, Position(0, 16384))
    assert reader.next() is None
    store.refresh()  # what a reader does that reaches the durable end
    assert syncs(disk) == before + 1
    assert str(store.state()) == "0-1-3000"
    store.refresh()
    assert syncs(disk) == before + 1
    publish(store, "0-1-3001")
    assert str(store.state()) == "0-1-3000"
    clock.time += options.flush_log_interval
    publish(store, "0-1-3002")
    assert syncs(disk) == before + 2
    assert str(store.state()) == "0-1-3002"


@pytest.mark.parametrize(("mode", "survives"), [(0, 0), (2, 20), (1, 20)])
def test_what_a_killed_process_leaves(mode: int, survives: int) -> None:
    """What the operating system has survives the process, not the machine."""
    disk = SimDisk()
    options = StoreOptions(
        flush_log_at_commit=mode, background=False, format_description="upstream",
        max_binlog_size=4 << 20, redo_segment_size=8 << 20,
    )  # fmt: skip
    store = Store.open("/s", options, disk=disk, clock=FakeClock())
    for number in range(1, 21):
        publish(store, f"0-1-{number}")
    killed = disk.crashed(random.Random(1), keep=1.0)
    assert len(gtids(Store.open("/s", options, disk=killed))) == survives
    lost_power = disk.crashed(random.Random(1), keep=0.0)
    expected = survives if mode == 1 else 0
    assert len(gtids(Store.open("/s", options, disk=lost_power))) == expected


def test_a_state_is_not_set_over_groups_that_nobody_has_synced() -> None:
    settings = replace(OPTIONS, flush_log_at_commit=0, flush_log_interval=1e6)
    with Store.open("/s", settings, disk=SimDisk()) as store:
        with store.begin() as group:
            group.write(transaction("first"))
            group.commit(Gtid(0, 1, 1))
        with pytest.raises(StoreNotEmpty):
            store.set_binlog_state(BinlogState.parse("5-5-5"))
        assert str(store.state()) == "0-1-1"


def test_a_reset_is_not_done_again_when_the_power_goes_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even if the background has done nothing yet that would make the marker's end certain."""
    monkeypatch.setattr(Housekeeper, "work", lambda _: None)
    disk = SimDisk()
    store = Store.open("/s", OPTIONS, disk=disk)
    publish(store, "0-1-1")
    store.reset(BinlogState.parse("5-5-5"))
    publish(store, "0-1-2")
    with Store.open("/s", OPTIONS, disk=disk.crashed(random.Random(0), 0.0)) as again:
        assert str(again.state()) == "5-5-5,0-1-2"
