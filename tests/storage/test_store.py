"""A program publishes groups and reads them back, durable, in bounded memory, over restarts."""

import contextlib
import errno
import random
import threading
from pathlib import Path

import pytest

from ibb.protocol.event import EventHeader, EventType
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DiskError, GroupError, StoreFailed, StoreFull, StoreLocked
from ibb.storage.group_reader import GroupReader
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.writer import Writer

from ..faults.sim_disk import Fault, SimDisk
from .events import query, transaction, xid

SMALL = StoreOptions(
    page_size=512,
    max_binlog_size=32 * 512,
    state_interval=2048,
    redo_segment_size=256 << 10,
    oob_piece_size=2048,
    format_description="upstream",
)


def publish(store: Store, number: int, size: int = 0, domain: int = 0) -> bytes:
    events = transaction(f"insert {number}", size)
    with store.begin() as group:
        group.write(events)
        group.commit(Gtid(domain, 1, number))
    return events


def contents(store: Store, start: str | None = None) -> list[tuple[str, bytes]]:
    """Return (gtid, events without the GTID event) of every group."""
    found = []
    for group in store.reader(start):
        if group.gtid is not None:
            data = b"".join(group.pieces())
            found.append((str(group.gtid), data[len(group.head) :]))
    return found


def test_what_was_committed_is_read_back_in_order(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        expected = [
            (f"0-1-{number}", publish(store, number, size))
            for number, size in enumerate((0, 10, 700, 5000, 60_000, 0, 3), start=1)
        ]
        assert contents(store) == expected
        assert contents(store, "0-1-4") == expected[4:]
        assert str(store.state()) == "0-1-7"


def test_a_restart_goes_on_in_the_same_file(tmp_path: Path) -> None:
    expected = []
    for number in range(1, 30):
        with Store.open(tmp_path, SMALL) as store:
            expected.append((f"0-1-{number}", publish(store, number, 37 * number)))
            assert contents(store) == expected
    files = [file.name for file in store.files()]
    assert len(files) < 6
    history = ReadOnlyHistory(OsDisk(), str(tmp_path))
    assert str(history.state()) == "0-1-29"


def test_a_program_s_store_notes_each_opening(tmp_path: Path) -> None:
    options = StoreOptions(page_size=512, max_binlog_size=1 << 20, state_interval=4096)
    for number in (1, 2):
        with Store.open(tmp_path, options) as store:
            publish(store, number)
            kinds = [str(group.gtid) for group in store.reader()]
    assert kinds == ["None", "0-1-1", "None", "0-1-2"]
    with Store.open(tmp_path, SMALL) as store:
        heads = [group.head for group in store.reader() if group.gtid is None]
        described = FormatDescription.parse(heads[0], has_checksum=False)
        assert described.server_version == options.server_version
        assert described.created > 0
        assert store.formats.in_force(store.end()) == heads[1]


def test_groups_may_interleave_and_the_larger_leave_early(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        groups = [store.begin() for _ in range(3)]
        events = [transaction(f"group {index}", 9000 + index) for index in range(3)]
        for start in range(0, 10_000, 500):
            for group, data in zip(groups, events, strict=True):
                group.write(data[start : start + 500])
        store.sync()
        assert store.end() > Position(0, 20 * 512)  # pieces are out already
        assert str(store.state()) == ""
        for index in (2, 0, 1):
            groups[index].commit(Gtid(0, 1, index + 1))
        assert contents(store) == [(f"0-1-{index + 1}", events[index]) for index in (2, 0, 1)]


def test_nothing_is_seen_of_a_group_that_was_rolled_back(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        publish(store, 1)
        with store.begin() as group:
            group.write(transaction("lost", 9000))
        with store.begin() as group, pytest.raises(RuntimeError, match="boom"), group:
            group.write(transaction("lost too", 9000))
            raise RuntimeError("boom")
        publish(store, 2)
        assert [gtid for gtid, _ in contents(store)] == ["0-1-1", "0-1-2"]


def test_positions_in_headers_are_stored_as_zero(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        events = bytearray(transaction("positions", 3000))
        events[13:17] = b"\x99\x98\x97\x96"
        with store.begin() as group:
            for index in range(len(events)):  # cut at every byte
                group.write(events[index : index + 1])
            group.commit(Gtid(0, 1, 1))
        events[13:17] = bytes(4)
        assert contents(store) == [("0-1-1", bytes(events))]


@pytest.mark.parametrize(
    ("events", "flags"),
    [
        (query("insert") + xid(1), GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL),
        (query("insert") + query("COMMIT"), GtidFlag.ALLOW_PARALLEL),
        (query("create table t (a int)"), GtidFlag.STANDALONE | GtidFlag.ALLOW_PARALLEL),
    ],
)
def test_a_gtid_event_is_made_to_fit_the_group(
    tmp_path: Path, events: bytes, flags: GtidFlag
) -> None:
    with Store.open(tmp_path, SMALL) as store:
        with store.begin() as group:
            group.write(events)
            group.commit(Gtid(3, 9, 77))
        (stored,) = store.reader()
        made = GtidEvent.parse(stored.head)
        assert (made.gtid, made.flags2) == (Gtid(3, 9, 77), flags)
        assert EventHeader.unpack(stored.head).timestamp == EventHeader.unpack(events).timestamp


def test_a_gtid_event_that_is_given_is_kept(tmp_path: Path) -> None:
    head = GtidEvent(Gtid(0, 5, 6), 99, 0x0E, commit_id=12345).encode()
    with Store.open(tmp_path, SMALL) as store:
        with store.begin() as group:
            group.write(head + query("insert") + xid(1))
            with pytest.raises(GroupError, match="says 0-5-6, commit says 0-5-7"):
                group.commit(Gtid(0, 5, 7))
            group.commit(Gtid(0, 5, 6))
        (stored,) = store.reader()
        assert stored.head == head


@pytest.mark.parametrize(
    "events",
    [
        b"",
        query("insert"),  # may still be one statement, but see below
        query("insert") + query("insert"),
        query("insert") + xid(1) + query("more"),
        xid(1)[:-1],
        b"\xff" * 40,
        FormatDescription.default("10.11.1-MariaDB", 1, 1).to_store(),
    ],
)
def test_what_is_not_a_group_is_refused_and_nothing_stays(tmp_path: Path, events: bytes) -> None:
    whole = events == query("insert")
    with Store.open(tmp_path, SMALL) as store:
        with store.begin() as group:
            if whole:
                group.write(events)
                group.commit(Gtid(0, 1, 1))
            else:
                with pytest.raises(GroupError):
                    group.write(events)
                    group.commit(Gtid(0, 1, 1))
        assert len(contents(store)) == whole


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL), pytest.raises(StoreLocked):
        Store.open(tmp_path, SMALL)
    Store.open(tmp_path, SMALL).close()


def test_many_threads_commit_and_every_group_is_there_once(tmp_path: Path) -> None:
    with Store.open(tmp_path, StoreOptions(format_description="upstream")) as store:
        failures: list[BaseException] = []

        def work(domain: int) -> None:
            try:
                for number in range(1, 101):
                    publish(store, number, domain=domain)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(domain,)) for domain in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not failures
        found = [gtid for gtid, _ in contents(store)]
        for domain in range(8):
            mine = [gtid for gtid in found if gtid.startswith(f"{domain}-")]
            assert mine == [f"{domain}-1-{number}" for number in range(1, 101)]


def test_nothing_is_visible_before_it_is_durable() -> None:
    disk = SimDisk()
    store = Store.open("/s", SMALL, disk=disk)
    publish(store, 1)
    end = store.end()
    with store.begin() as group:
        group.write(transaction("not yet"))
        group.commit(Gtid(0, 1, 2), wait=False)
    assert (store.end(), str(store.state())) == (end, "0-1-1")
    reader = GroupReader(store.pages, end)
    assert reader.next() is None
    store.refresh()
    assert str(store.state()) == "0-1-2"
    following = reader.next()
    assert following is not None
    assert following.gtid == Gtid(0, 1, 2)
    store.close()


def test_a_full_disk_refuses_the_group_and_lets_the_next_one_in() -> None:
    options = StoreOptions(
        page_size=512, max_binlog_size=16 * 512, state_interval=2048,
        redo_segment_size=256 << 10, oob_piece_size=1024,
        format_description="upstream", background=False,
    )  # fmt: skip
    disk = SimDisk(capacity=2 * (256 << 10) + 5 * 16 * 512 + 4096)
    store = Store.open("/s", options, disk=disk)
    number = 1
    with pytest.raises(StoreFull):
        while True:
            publish(store, number, 500)
            number += 1
    assert number > 20
    assert [gtid for gtid, _ in contents(store)] == [f"0-1-{n}" for n in range(1, number)]
    disk.capacity = None
    for more in range(number, number + 20):
        publish(store, more, 500)
    assert len(contents(store)) == number + 19
    store.close()


def test_after_a_failed_sync_readers_go_on_and_nothing_more_is_taken() -> None:
    disk = SimDisk()
    store = Store.open("/s", SMALL, disk=disk)
    publish(store, 1)
    disk.faults.append(Fault(lambda op: op.kind == "sync" and "redo" in op.path))
    with pytest.raises(StoreFailed):
        publish(store, 2)
    with pytest.raises(StoreFailed):
        store.begin()
    reader = GroupReader(store.pages, Position(0, 512))
    found = []
    while (group := reader.next()) is not None:
        found.append(str(group.gtid))
    assert found == ["0-1-1"]
    store.close()
    with Store.open("/s", SMALL, disk=disk) as again:
        assert "0-1-1" in [gtid for gtid, _ in contents(again)]


def test_files_of_another_writer_are_taken_over_in_a_new_file(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        expected = [(f"0-1-{n}", publish(store, n, 300)) for n in range(1, 20)]
        last = store.end().file_no
    for path in tmp_path.glob("ibb-redo-*"):
        path.unlink()
    with Store.open(tmp_path, SMALL) as store:
        assert store.end().file_no == last + 1
        expected.append(("0-1-20", publish(store, 20)))
        assert contents(store) == expected
        assert contents(store, "0-1-18") == expected[18:]


def test_events_type_of_the_last_is_named_in_the_error(tmp_path: Path) -> None:
    assert EventType.ROTATE == 4
    rotate = bytearray(query("x"))
    rotate[4] = EventType.ROTATE
    with (
        Store.open(tmp_path, SMALL) as store,
        store.begin() as group,
        pytest.raises(GroupError, match="Rotate event"),
    ):
        group.write(rotate)


def test_the_short_way_of_a_commit_writes_what_the_long_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, in files and redo log, over pages and files that fill up."""

    def publish(folder: Path) -> dict[str, bytes]:
        rng = random.Random(5)
        options = StoreOptions(
            page_size=512,
            max_binlog_size=32 * 512,
            state_interval=4 * 512,
            redo_segment_size=1 << 20,
            format_description="upstream",
            background=False,
        )
        with Store.open(folder, options) as store:
            for number in range(1, 400):
                with store.begin() as group:
                    group.write(transaction("x" * rng.randrange(1, 300)))
                    if rng.random() < 0.2:
                        group.savepoint()  # takes the events apart
                    group.commit(Gtid(number % 3, 1, number), wait=rng.random() < 0.5)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    short = publish(tmp_path / "short")
    monkeypatch.setattr(Writer, "append_small", lambda *_: None)
    monkeypatch.setattr("ibb.storage.group_writer.is_whole_transaction", lambda _: False)
    assert publish(tmp_path / "long") == short


@pytest.mark.parametrize("calls", range(1, 60, 3))
def test_an_opening_that_fails_leaves_nothing_behind(calls: int) -> None:
    """No thread writes on beside the next opening, and no file stays open."""
    disk = SimDisk()
    settings = StoreOptions(page_size=512, max_binlog_size=16 * 512, redo_segment_size=256 << 10)
    disk.faults.append(Fault(lambda _: True, nth=calls))
    threads = threading.active_count()
    with contextlib.suppress(DiskError, StoreFailed):
        Store.open("/s", settings, disk=disk).close()
    assert threading.active_count() == threads
    disk.faults.clear()
    with Store.open("/s", settings, disk=disk) as store:
        assert store.prepared() == []


def test_a_full_disk_does_not_keep_a_store_from_its_readers() -> None:
    """The opening is noted when there is room again."""
    disk = SimDisk()
    settings = StoreOptions(page_size=512, max_binlog_size=4 * 512, redo_segment_size=256 << 10)
    with Store.open("/s", settings, disk=disk) as store:
        publish(store, 1)
        while store.end().offset < 4 * 512 - 50:
            publish(store, store.state().newest(0).seq + 1)
        newest, file_no = store.state(), store.end().file_no
    no_room_for = f"/s/binlog-{file_no + 1:06d}.ibb"
    disk.remove(no_room_for)
    kind_and_path = ("allocate", no_room_for)
    full = Fault(lambda op: (op.kind, op.path) == kind_and_path, code=errno.ENOSPC, times=1000)
    disk.faults.append(full)
    with Store.open("/s", settings, disk=disk) as store:
        assert [str(group.gtid) for group in store.reader() if group.gtid][-1] == str(newest)
        with pytest.raises(StoreFull):
            publish(store, 1000)
        disk.faults.clear()
        publish(store, 1000)
        *_, description, group = store.reader()
        assert (description.gtid, str(group.gtid)) == (None, "0-1-1000")


def test_readers_go_on_with_what_is_durable_when_the_store_has_stopped(caplog) -> None:
    disk = SimDisk()
    store = Store.open("/s", SMALL, disk=disk)
    for number in (1, 2):
        publish(store, number)
    disk.faults.append(Fault(lambda op: op.kind == "sync" and "redo" in op.path))
    with pytest.raises(StoreFailed):
        publish(store, 3)
    assert [gtid for gtid, _ in contents(store)] == ["0-1-1", "0-1-2"]
    store.refresh()
    assert str(store.backup("/copy").state) == "0-1-2"
    with pytest.raises(StoreFailed):
        store.sync()
    assert caplog.text.count("the store has stopped writing") == 1
    store.close()
