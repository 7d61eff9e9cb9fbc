"""What nobody waits for is durable soon, whatever else there is to do."""

import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreFailed, StoreFull
from ibb.storage.log_syncer import LogSyncer
from ibb.storage.position import Position

from ..faults.sim_disk import Fault, SimDisk
from .events import transaction

WAIT_SECONDS = 15.0
INTERVAL = 0.02
MODES = pytest.mark.parametrize("mode", [0, 2])


def options(**more):
    return StoreOptions(
        **{
            "page_size": 512,
            "max_binlog_size": 512 * 16,
            "redo_segment_size": 256 << 10,
            "format_description": "upstream",
            "flush_log_interval": INTERVAL,
            **more,
        }
    )


def publish(store, seq=1, size=100):
    """Publish a group and return its end; in mode 2 the operating system has it."""
    with store.begin() as group:
        group.write(transaction("x" * size))
        position = group.commit(Gtid(0, 1, seq))
    return Position(position.file_no, position.offset)


def wait_until_durable(store, end):
    moved = threading.Event()
    store.subscribe(moved.set)
    while store.end() < end:
        assert moved.wait(WAIT_SECONDS), "nobody has synced it"
        moved.clear()


def threads():
    return [one for one in threading.enumerate() if one.name == "ibb-log-syncer"]


@MODES
def test_a_commit_that_nobody_waits_for_is_durable_soon(mode):
    with Store.open("/s", options(flush_log_at_commit=mode), disk=SimDisk()) as store:
        wait_until_durable(store, publish(store))
        assert str(store.state()) == "0-1-1"
        wait_until_durable(store, publish(store, 2))


class BusyDisk(SimDisk):
    """
    Takes its time over something that the housekeeper does to a binlog file.

    Attributes:
        busy_with: kind of the operation; None: with nothing.
        begun: it has come.
        go_on: it may end.
    """

    busy_with = None

    def __init__(self):
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def step(self, kind, path):
        is_housekeeper = threading.current_thread().name == "ibb-housekeeper"
        if is_housekeeper and kind == self.busy_with and path.endswith(".ibb"):
            self.begun.set()
            assert self.go_on.wait(2 * WAIT_SECONDS)
        super().step(kind, path)


@MODES
@pytest.mark.parametrize("work", ["sync", "allocate", "unlink"])
def test_nor_does_it_wait_for_files_that_are_closed_made_or_purged(mode, work):
    """A power loss takes no more than the last interval, though a file's sync takes seconds."""
    disk = BusyDisk()
    purges = options(
        flush_log_at_commit=mode, max_binlog_total_size=1, slave_connections_needed_for_purge=0,
        max_binlog_size=512 * 64,
    )  # fmt: skip
    with Store.open("/s", purges, disk=disk) as store:
        store.sync()
        disk.busy_with = work
        seq = 0
        while not disk.begun.is_set():  # at the next file, or the one behind it
            seq += 1
            wait_until_durable(store, publish(store, seq, 1500))
            store._engine._housekeeper.wake()
        try:
            for _ in range(2):
                seq += 1
                wait_until_durable(store, publish(store, seq))
            assert disk.begun.is_set()
            assert not disk.go_on.is_set()
        finally:
            disk.go_on.set()
        assert store.state().seq(0, 1) == seq


class FakeClock:
    """A clock that stands still; it knows how often it was looked at."""

    time, looks = 1.0, 0

    def now(self):
        return self.time

    def monotonic(self):
        self.looks += 1
        return self.time


def test_the_log_is_synced_when_it_is_time_and_not_before():
    clock = FakeClock()
    asked = options(flush_log_at_commit=0, flush_log_interval=0.01)
    with Store.open("/s", asked, disk=SimDisk(), clock=clock) as store:
        end, durable = publish(store), store.end()
        before, waiting = clock.looks, threading.Event()
        while clock.looks < before + 10:
            assert not waiting.wait(0.01)
        assert store.end() == durable
        clock.time += 0.01
        wait_until_durable(store, end)


def find_no_room():
    raise StoreFull("no room for the next file")


def test_without_a_thread_it_does_not_wait_for_room_either(monkeypatch):
    clock = FakeClock()
    alone = options(background=False, flush_log_at_commit=0, flush_log_interval=5.0)
    with Store.open("/s", alone, disk=SimDisk(), clock=clock) as store:
        monkeypatch.setattr(store._engine._housekeeper, "work", find_no_room)
        clock.time += 5.0
        assert publish(store) == store.end()


def test_a_log_that_cannot_be_synced_stops_the_store():
    disk = SimDisk()
    with (
        pytest.raises(StoreFailed),
        Store.open("/s", options(flush_log_at_commit=0), disk=disk) as store,
    ):
        disk.faults.append(Fault(lambda op: op.kind == "sync" and "redo" in op.path))
        (thread,) = threads()
        publish(store)
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
        publish(store, 2)


def test_a_log_syncer_that_breaks_is_no_secret(monkeypatch):
    """Commits would go on, and a power loss could take hours of them."""
    broken, told = threading.Event(), []

    def note(args):
        told.append(args.exc_value)
        broken.set()

    monkeypatch.setattr(threading, "excepthook", note)
    monkeypatch.setattr(LogSyncer, "sync_if_due", lambda _: {}["a bug"])
    with (
        pytest.raises(StoreFailed),
        Store.open("/s", options(flush_log_at_commit=2), disk=SimDisk()) as store,
    ):
        assert broken.wait(WAIT_SECONDS)
        publish(store)
    assert [type(error) for error in told] == [KeyError]


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_there_is_one_thread_where_it_is_needed_until_the_store_is_closed(mode):
    needed = int(mode != 1)
    with Store.open("/s", options(flush_log_at_commit=mode), disk=SimDisk()) as store:
        assert len(threads()) == needed
        store.reset()
        assert len(threads()) == needed
        if needed:
            wait_until_durable(store, publish(store))
    assert not threads()


def test_a_log_with_nothing_new_is_not_synced_again():
    disk, clock = SimDisk(), FakeClock()
    alone = options(background=False, flush_log_at_commit=0)
    with Store.open("/s", alone, disk=disk, clock=clock) as store:
        publish(store)
        store.sync()
        disk.log.clear()
        for _ in range(3):
            clock.time += 1.0
            store._engine._log_syncer.sync_if_due()
        assert disk.log == []
