"""Leases that servers make for replicas, many at a time; bounds; the end of a history."""

import json
import threading
from errno import EIO
from math import inf
from reprlib import repr as shortened

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage import Store, file_search
from ibb.storage import leases as leases_module
from ibb.storage.errors import DiskError, LeaseError, StoreFailed
from ibb.storage.holds import HoldKind
from ibb.storage.leases import AGE_LIMIT_SECONDS_MAX, Lease, Renewal
from ibb.storage.purge import PurgeSettings

from ..faults.sim_disk import Fault, SimDisk
from .test_purge import FakeClock, fill_to, options, publish
from .test_purge import names as files

DAY = 24 * 3600.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


@pytest.fixture
def store(disk: SimDisk, clock: FakeClock):
    with Store.open("/s", options(), disk=disk, clock=clock) as opened:
        yield opened


def renewal(name: str, position: str = "", *, owner: str = "repl") -> Renewal:
    return Renewal(name, GtidPosition.parse(position), DAY, owner)


def names(store: Store) -> list[str]:
    return [lease.name for lease in store.leases.all()]


def test_many_are_renewed_by_one_replacement_of_their_file(store: Store, disk: SimDisk) -> None:
    before = len(disk.log)
    assert store.leases.renew_all(renewal(f"replica {number}") for number in range(500)) == {}
    assert [op.kind for op in disk.log[before:]].count("sync") == 1
    assert len(names(store)) == 500


def test_one_that_cannot_be_keeps_no_other_from_being_renewed(store: Store) -> None:
    fill_to(store, 4)
    store.purge_to("binlog-000003.ibb")
    newest = str(store.state())
    errors = store.leases.renew_all([renewal("late", "0-1-1"), renewal("timely", newest)])
    assert [(name, str(error)) for name, error in errors.items()] == [
        ("late", "groups behind position '0-1-1' have been purged")
    ]
    assert names(store) == ["timely"]


def test_a_page_that_cannot_be_read_fails_no_renewal_and_purge_names_who_holds(
    store: Store, disk: SimDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_to(store, 6)
    newest = str(store.state())
    store.purge_to("binlog-000001.ibb")
    read_state, header = file_search.read_state, store.pages.header

    def bad_sector(*_: object) -> None:
        raise DiskError(EIO, "as if", operation="read", path="/s/binlog-000001.ibb")

    monkeypatch.setattr(store.pages, "first_state", lambda _: None)  # page by page
    monkeypatch.setattr(
        file_search,
        "read_state",
        lambda source, file_no, page_no: (
            bad_sector() if file_no == 1 else read_state(source, file_no, page_no)
        ),
    )
    assert store.leases.renew_all([renewal("early", "0-1-1"), renewal("timely", newest)]) == {}
    assert names(store) == ["early", "timely"]
    result = store.purge_to("binlog-000003.ibb")
    assert (result.kept, result.reasons) == ("binlog-000001.ibb", ["lease 'early' needs it"])
    store.leases.remove("early")
    with store.hold(HoldKind.BACKUP, "the nightly one") as hold:
        hold.move(4)
        monkeypatch.setattr(
            store.pages, "header", lambda number: bad_sector() if number == 4 else header(number)
        )
        result = store.purge_to("binlog-000003.ibb")
    assert result.kept == "binlog-000001.ibb"
    assert "it is in use by a backup: the nightly one" in result.reasons


def test_what_people_made_keeps_its_age_limit_and_moves(store: Store, clock: FakeClock) -> None:
    publish(store)
    store.leases.renew("replica 33", "", age_limit=None)
    clock.time += 5
    store.leases.renew_all([renewal("replica 33", "0-1-1")])
    assert store.leases.get("replica 33") == Lease("replica 33", "0-1-1", clock.time, None)


def test_those_of_replicas_go_when_they_lapse_and_others_stay_on_record(
    store: Store, clock: FakeClock
) -> None:
    store.leases.renew_all([renewal("replica 33")])
    store.leases.renew("spark", "", age_limit=DAY)
    clock.time += DAY
    assert store.leases.lapse() == []
    clock.time += 1
    assert [lease.name for lease in store.leases.lapse()] == ["replica 33", "spark"]
    assert [(lease.name, lease.lapsed) for lease in store.leases.all()] == [("spark", True)]
    assert store.leases.lapse() == []


def test_replicas_leave_room_for_each_other_and_for_people(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "LEASES_OF_OWNER_MAX", 3)
    monkeypatch.setattr(leases_module, "OWNED_LEASES_MAX", 5)
    monkeypatch.setattr(leases_module, "LEASES_MAX", 7)
    errors = store.leases.renew_all(renewal(f"one {n}", owner="one") for n in range(5))
    assert {name: str(error) for name, error in errors.items()} == dict.fromkeys(
        ("one 3", "one 4"), "there are 3 leases of its account already"
    )
    errors = store.leases.renew_all(renewal(f"two {n}", owner="two") for n in range(3))
    assert [str(error) for error in errors.values()] == ["there are 5 leases of replicas already"]
    assert store.leases.renew_all([renewal("one 0", owner="one")]) == {}
    store.leases.renew("spark", "")
    store.leases.renew("archive", "")
    with pytest.raises(LeaseError, match="there are 7 leases already"):
        store.leases.renew("one more", "")


def test_one_that_could_not_be_stored_has_nothing_of_the_next_history(
    store: Store, disk: SimDisk, clock: FakeClock
) -> None:
    """Its file may be there all the same, under its name."""
    publish(store)
    disk.faults.append(Fault(lambda op: op.kind == "sync_dir", EIO))
    with pytest.raises(DiskError):
        store.leases.renew("night", "0-1-1")
    assert names(store) == []
    store.reset()
    store.close()
    with Store.open("/s", options(), disk=disk, clock=clock) as opened:
        assert names(opened) == []


def position_of(domains: int) -> str:
    return ",".join(f"{domain}-1-1" for domain in range(1000, 1000 + domains))


def test_long_ones_are_refused_before_their_file_is_full(store: Store, disk: SimDisk) -> None:
    long = position_of(100_000)
    stored = 0
    with pytest.raises(LeaseError, match=r"there are \d+ bytes of leases already"):
        while stored < 100:
            store.leases.renew(f"archive {stored}", long)
            stored += 1
    assert 10 < stored < 20
    store.leases.renew("archive 0", "")
    store.leases.renew("spark", long)


def test_what_leases_take_is_never_counted_too_low(store: Store, disk: SimDisk) -> None:
    """Characters beyond 16 bits have 12 bytes each in the file."""
    clumsy = [renewal(f"{number:03}" + "\U0001f600" * 197) for number in range(50)]
    assert store.leases.renew_all(clumsy) == {}
    file = disk.open("/s/leases.json", read_only=True)
    size = leases_module._size(store.leases._leases)
    assert size / 2 < len(file.read_at(0, 1 << 20)) < size + 4096


def test_replicas_have_short_ones_and_leave_bytes_for_people(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = store.leases.renew_all([renewal("long", position_of(500)), renewal("short", "")])
    assert {name: str(error) for name, error in errors.items()} == {
        "long": "the position of a replica's lease has 4096 characters at most"
    }
    monkeypatch.setattr(leases_module, "OWNED_LEASES_BYTES_MAX", 2000)
    errors = store.leases.renew_all(renewal(f"replica {n}", position_of(50)) for n in range(5))
    assert list(errors) == ["replica 2", "replica 3", "replica 4"]
    assert store.leases.renew_all([renewal("replica 0", "")]) == {}
    store.leases.renew("spark", position_of(500))


@pytest.mark.parametrize("limit", [inf, -1.0, 0.0, AGE_LIMIT_SECONDS_MAX * 2, float("nan")])
def test_an_age_limit_without_sense_is_refused(store: Store, limit: float) -> None:
    with pytest.raises(LeaseError, match="above 0 and up to 3153600000"):
        store.leases.renew("spark", "", age_limit=limit)
    assert names(store) == []


def test_one_that_must_be_new_does_not_move_what_is_there(store: Store) -> None:
    publish(store)
    store.leases.renew("spark", "", replace=False)
    with pytest.raises(LeaseError, match="there is a lease named 'spark'"):
        store.leases.renew("spark", "0-1-1", replace=False)
    assert [lease.position for lease in store.leases.all()] == [""]


def test_a_reset_ends_those_that_have_something_of_what_is_gone(store: Store) -> None:
    publish(store)
    store.leases.renew("spark", "0-1-1")
    store.leases.renew("archive", "")
    store.reset()
    assert names(store) == ["archive"]


def test_a_reset_that_is_finished_at_opening_ends_them_too(disk: SimDisk) -> None:
    store = Store.open("/s", options(), disk=disk)
    publish(store)
    store.leases.renew("spark", "0-1-1")
    store._engine._marker.write(BinlogState(), pytest.fail)
    store.close()
    with Store.open("/s", options(), disk=disk) as opened:
        assert (names(opened), str(opened.state())) == ([], "")
        assert publish(opened) == "0-1-1"


WRONG = [
    *[("name", value) for value in (None, -1, [], {}, "", "a\nb", "x" * 201)],
    *[("position", value) for value in (None, -1, [], {}, "x")],
    *[("renewed_at", value) for value in (None, "x", [], True, 2**70, -inf, 10**400)],
    *[("age_limit", value) for value in ("x", [], True, 0, -1, 2**70, inf)],
    *[("lapsed", value) for value in (None, 0, "x", [])],
    *[("owner", value) for value in (None, -1, [])],
    ("more", 1),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=shortened)
def test_an_edit_of_their_file_that_makes_no_sense_is_refused_at_opening(
    tmp_path, field: str, value: object
) -> None:
    """What is of a wrong type would stop the store later, in the midst of its work."""
    with Store.open(tmp_path, options()) as store:
        store.leases.renew("spark", "", age_limit=DAY)
    content = json.loads((tmp_path / "leases.json").read_text())
    content["leases"][0][field] = value
    del content["crc32c"]
    (tmp_path / "leases.json").write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"not a file of leases: .* mend it, or move") as caught:
        Store.open(tmp_path, options())
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"version": 1}', '{"version": 1, "leases": {}}', "[" * 100_000,
     '{"version": 2, "leases": []}', '{"version": 1, "leases": [5]}', "\xff", "9" * 5000],
    ids=shortened,
)  # fmt: skip
def test_a_file_that_holds_no_leases_is_refused_at_opening(tmp_path, text: str) -> None:
    (tmp_path / "leases.json").write_text(text, "latin-1")
    with pytest.raises(FormatError, match=r"not a file of leases: .* mend it, or move"):
        Store.open(tmp_path, options())


def test_one_renewed_while_the_clock_was_ahead_lapses_from_when_that_is_found(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    monkeypatch.setattr(FakeClock, "monotonic", lambda _: passed)
    store.leases.renew("spark", "", age_limit=DAY)
    store.leases.renew("archive", "", age_limit=None)
    clock.time -= 1000 * DAY
    assert store.leases.lapse() == []
    passed = DAY
    assert store.leases.lapse() == []
    clock.time += 1000 * DAY  # a clock that was behind for an hour tells nothing of the lease
    passed += 1
    assert store.leases.lapse() == []
    clock.time -= 1000 * DAY
    assert store.leases.lapse() == []
    passed += DAY + 1
    assert [lease.name for lease in store.leases.lapse()] == ["spark"]


def test_a_closed_store_changes_no_lease_and_removes_no_file(disk: SimDisk) -> None:
    """The directory may be another store's by then, whose leases it does not know."""
    closed = Store.open("/s", options(), disk=disk)
    fill_to(closed, 6)
    closed.leases.renew("spark", "", age_limit=DAY)
    closed.leases.remove("spark")
    closed.close()
    closed.close()
    with Store.open("/s", options(), disk=disk) as store:
        store.leases.renew("mine", "0-1-1", age_limit=DAY)
        with pytest.raises(StoreFailed, match="it is closed"):
            closed.leases.renew("late", "")
        with pytest.raises(StoreFailed, match="it is closed"):
            closed.leases.renew_all([renewal("late")])
        closed.purger.settings = PurgeSettings(0, 1, 0)
        closed.purger.purge_automatically(wait=True)
        assert closed.purger.last_automatic is not None
        assert "it is closed" in str(closed.purger.last_automatic.failure)
        with pytest.raises(StoreFailed, match="it is closed"):
            closed.purger.purge_to("binlog-000003.ibb")
        assert files(store)[0] == 0
    with Store.open("/s", options(), disk=disk) as store:
        assert names(store) == ["mine"]


def test_a_purge_at_work_ends_before_the_directory_is_given_up(store: Store, disk: SimDisk) -> None:
    fill_to(store, 6)
    began, goes_on = threading.Event(), threading.Event()
    removed, remove = [], store.purger._host.remove

    def slowly(file_no: int) -> None:
        began.set()
        assert goes_on.wait(60)
        remove(file_no)
        removed.append(file_no)

    store.purger._host = store.purger._host._replace(remove=slowly)
    store.purger.settings = PurgeSettings(0, 1, 0)
    purge = threading.Thread(target=store.purger.purge_automatically)
    purge.start()
    assert began.wait(60)
    closing = threading.Thread(target=store.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive()
    goes_on.set()
    closing.join(60)
    purge.join(60)
    assert removed == [0]
