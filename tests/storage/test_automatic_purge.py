"""Files that go by themselves: by settings that change, and with word of what happened."""

import pytest

from ibb.storage import Store, StoreOptions
from ibb.storage.holds import HoldKind
from ibb.storage.purge import TOO_FEW_REPLICAS, PurgeResult, PurgeSettings

from ..faults.sim_disk import Fault, SimDisk
from .test_purge import FakeClock, fill_to, names, options

FILE = 16 * 512  # bytes


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


@pytest.fixture
def store(disk: SimDisk):
    with Store.open("/s", options(), disk=disk) as opened:
        yield opened


@pytest.fixture
def told(store: Store) -> list[PurgeResult]:
    results: list[PurgeResult] = []
    store.purger.tell = results.append
    return results


def test_settings_of_an_open_store_count_from_the_next_purge_on(
    store: Store, told: list[PurgeResult]
) -> None:
    fill_to(store, 8)
    assert (names(store)[0], told) == (0, [])
    store.purger.settings = PurgeSettings(0, 5 * FILE, 0)
    store.purger.purge_automatically()
    (result,) = told
    assert result is store.purger.last_automatic
    removed = [f"binlog-00000{number}.ibb" for number in range(4)]
    assert result == PurgeResult(removed, None, [], [], [], 4 * FILE)
    store.purger.settings = PurgeSettings(0, 0, 0)
    fill_to(store, 12)
    assert (names(store)[0], len(told)) == (4, 1)


def test_who_is_told_hears_what_holds_a_file_back(store: Store, told: list[PurgeResult]) -> None:
    fill_to(store, 4)
    store.purger.settings = PurgeSettings(0, 2 * FILE, 1)
    store.purger.purge_automatically()
    assert (told[-1].kept, told[-1].reasons) == ("binlog-000000.ibb", [TOO_FEW_REPLICAS])
    assert told[-1].lasting == [TOO_FEW_REPLICAS]
    with store.hold(HoldKind.REPLICA, "server id 7") as hold:
        hold.move(3)
        store.purger.purge_automatically()
    assert told[-1].removed == [f"binlog-00000{number}.ibb" for number in range(3)]
    assert told[-1].kept is None
    store.purger.settings = PurgeSettings(0, 1, 0)
    store.purger.purge_automatically()
    assert told[-1].kept == "binlog-000003.ibb"
    assert (told[-1].reasons != [], told[-1].lasting) == (True, [])


def test_what_went_before_trouble_is_told_with_it(
    store: Store, disk: SimDisk, told: list[PurgeResult]
) -> None:
    fill_to(store, 6)
    disk.faults.append(Fault(lambda op: op.kind == "unlink" and "000002" in op.path))
    store.purger.settings = PurgeSettings(0, 2 * FILE, 0)
    store.purger.purge_automatically()
    (result,) = told
    assert result.removed == ["binlog-000000.ibb", "binlog-000001.ibb"]
    assert result.freed == 2 * FILE
    assert "cannot unlink" in str(result.failure)


def test_who_cannot_be_told_ends_no_work(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: PurgeResult) -> None:
        raise OSError("as if")

    store.purger.tell = fail
    store.purger.settings = PurgeSettings(0, 2 * FILE, 0)
    fill_to(store, 8)
    store.purger.purge_automatically()
    assert names(store)[0] > 0
    assert store.purger.last_automatic is not None
    assert "could not be told" in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        "binlog_expire_logs_seconds",
        "max_binlog_total_size",
        "slave_connections_needed_for_purge",
    ],
)
def test_settings_below_zero_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 0 to"):
        StoreOptions(**{name: -1})


def test_a_lease_that_an_automatic_purge_lets_lapse_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a program that has no server to say so."""
    clock = FakeClock()
    settings = options(max_binlog_total_size=4 * FILE, slave_connections_needed_for_purge=0)
    with Store.open("/s", settings, disk=SimDisk(now=clock.now), clock=clock) as store:
        fill_to(store, 2)
        store.leases.renew("spark", store.state().position(), age_limit=60)
        fill_to(store, 6)
        assert names(store)[0] == 2
        assert [record for record in caplog.records if "lapsed" in record.message] == []
        clock.time += 61
        fill_to(store, 7)
        assert names(store)[0] > 2
    (told,) = [record for record in caplog.records if "lapsed" in record.message]
    assert "lease 'spark' has lapsed, not renewed in 60 seconds" in told.message
