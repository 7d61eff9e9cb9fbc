"""Two lists, savepoints and prepared transactions of a group that is being written."""

from pathlib import Path

import pytest

from ibb.protocol.event import HEAD_BYTES_MAX
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import GroupError, StoreFull
from ibb.storage.file_header import NO_XA
from ibb.storage.new_record import NewRecord
from ibb.storage.position import Position
from ibb.storage.record import RecordType, Xid
from ibb.storage.record_reader import RecordReader
from ibb.storage.state_scan import read_state

from .events import query, rows_event, transaction, xid

OPTIONS = StoreOptions(
    page_size=512,
    max_binlog_size=32 * 512,
    state_interval=1024,
    redo_segment_size=256 << 10,
    oob_piece_size=1000,
    format_description="upstream",
)
NAME = Xid(1, b"gtrid", b"bqual")


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path, OPTIONS) as store:
        yield store


def bodies(store: Store) -> list[tuple[str, bytes]]:
    return [
        (str(group.gtid), b"".join(group.pieces())[len(group.head) :])
        for group in store.reader()
        if group.gtid is not None
    ]


@pytest.mark.parametrize("size", [7, 5000, 20_000])
def test_a_view_of_larger_items_is_taken_by_its_bytes(store: Store, size: int) -> None:
    events = query("q" * size)
    events += rows_event(-(len(events) + len(rows_event(0))) % 8)
    with store.begin() as group:
        group.write(memoryview(events).cast("Q"))
        group.write(xid(3))
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", events + xid(3))]


@pytest.mark.parametrize(
    ("statement_size", "transaction_size"), [(9, 9), (5000, 9), (9, 5000), (5000, 5000)]
)
def test_the_statement_list_comes_first(
    store: Store, statement_size: int, transaction_size: int
) -> None:
    statement = query("s" * statement_size)
    rest = query("t" * transaction_size)
    with store.begin() as group:
        group.write(rest)
        group.write(statement, statement=True)
        group.write(xid(3))
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", statement + rest + xid(3))]
    (stored,) = store.reader()
    assert len(stored.lists) == (0 if statement_size + transaction_size < 1000 else 2)


def test_the_statement_list_alone_is_a_group(store: Store) -> None:
    events = query("insert") + query("COMMIT")
    with store.begin() as group:
        group.write(events, statement=True)
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", events)]


def test_a_statement_list_that_ends_the_group_cannot_be_followed(store: Store) -> None:
    with store.begin() as group:
        group.write(query("insert") + query("COMMIT"), statement=True)
        group.write(transaction("more"))
        with pytest.raises(GroupError, match="ends the group"):
            group.commit(Gtid(0, 1, 1))


@pytest.mark.parametrize("size", [10, 900, 1500, 30_000])
def test_going_back_to_a_savepoint_leaves_no_trace_in_the_group(store: Store, size: int) -> None:
    first, lost, last = query("a" * size), query("b" * size * 2), query("c" * size)
    with store.begin() as group:
        group.write(first)
        savepoint = group.savepoint()
        for _ in range(2):
            group.write(lost)
            later = group.savepoint()
            group.write(lost)
            group.rollback_to(savepoint)
            with pytest.raises(GroupError, match="does not exist"):
                group.rollback_to(later)
        group.write(last + xid(1))
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", first + last + xid(1))]


def test_node_indexes_repeat_after_going_back(store: Store) -> None:
    with store.begin() as group:
        savepoint = group.savepoint()
        group.write(query("x" * 3000))
        group.rollback_to(savepoint)
        group.write(transaction("y" * 3000))
        group.commit(Gtid(0, 1, 1))
    (stored,) = store.reader()
    assert stored.lists[0].count == 4
    assert stored.lists[0].first > Position(0, 512 + 2500)
    assert len(bodies(store)[0][1]) == len(transaction("y" * 3000))


def test_an_event_cannot_be_cut_by_a_savepoint(store: Store) -> None:
    with store.begin() as group:
        group.write(query("insert")[:-1])
        with pytest.raises(GroupError, match="inside an event"):
            group.savepoint()


def test_a_prepared_transaction_is_invisible_until_it_is_committed(store: Store) -> None:
    events = transaction("prepared", 3000)
    with store.begin() as group:
        group.write(events)
        group.prepare(NAME)
    assert bodies(store) == []
    assert [prepared.xid for prepared in store.prepared()] == [NAME]
    store.commit_prepared(NAME, Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", events)]
    assert store.prepared() == []
    with pytest.raises(GroupError, match="is prepared"):
        store.commit_prepared(NAME, Gtid(0, 1, 2))


def test_a_prepared_transaction_survives_restarts_and_keeps_its_files(tmp_path: Path) -> None:
    events = transaction("prepared", 3000)
    with Store.open(tmp_path, OPTIONS) as store:
        with store.begin() as group:
            group.write(events)
            group.prepare(NAME)
        number = 0
        while store.end().file_no < 3:
            number += 1
            with store.begin() as group:
                group.write(transaction("filler", 700))
                group.commit(Gtid(0, 1, number))
        header = store.pages.header(3)
        assert header is not None
        assert (header.oob_reference, header.xa_reference) == (0, 0)
        state = read_state(store.pages, 3, 1)
        assert state is not None
        assert state.xa_file == 0
    for _ in range(3):
        with Store.open(tmp_path, OPTIONS) as store:
            assert [(found.xid, found.file_no) for found in store.prepared()] == [(NAME, 0)]
            with pytest.raises(GroupError, match="prepared already"), store.begin() as group:
                group.write(transaction("again"))
                group.prepare(NAME)
    with Store.open(tmp_path, OPTIONS) as store:
        head = GtidEvent(Gtid(0, 7, 99), 5, 0x0C).encode()
        store.commit_prepared(NAME, Gtid(0, 7, 99), gtid_event=head)
        assert bodies(store)[-1] == ("0-7-99", events)
        while store.end().file_no < 5:
            number += 1
            with store.begin() as group:
                group.write(transaction("filler", 700))
                group.commit(Gtid(0, 1, number))
        header = store.pages.header(5)
        assert header is not None
        assert (header.oob_reference, header.xa_reference) == (5, NO_XA)


def test_a_prepared_transaction_can_be_given_up(tmp_path: Path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        with store.begin() as group:
            group.write(transaction("prepared"))
            group.prepare(NAME)
        store.rollback_prepared(NAME)
        with store.begin() as group:  # the name is free again
            group.write(transaction("again"))
            group.prepare(NAME)
        store.rollback_prepared(NAME)
    with Store.open(tmp_path, OPTIONS) as store:
        assert store.prepared() == []
        assert bodies(store) == []


def test_the_complete_record_stands_right_before_the_commit_record(store: Store) -> None:
    with store.begin() as group:
        group.write(transaction("prepared"))
        group.prepare(NAME)
    store.commit_prepared(NAME, Gtid(0, 1, 1))
    reader, types = RecordReader(store.pages, Position(0, 512)), []
    while (record := reader.next()) is not None:
        types.append(record.type)
    assert types[-4:] == [
        RecordType.OOB,
        RecordType.XA_PREPARE,
        RecordType.XA_COMPLETE,
        RecordType.COMMIT,
    ]


def test_a_group_that_lost_events_is_not_published(store: Store) -> None:
    with store.begin() as group:
        savepoint = group.savepoint()
        group.write(query("insert 1") + query("insert 2"), statement=True)
        with pytest.raises(GroupError, match="not the events"):
            group.write(query("insert 3") + b"\0" * 40 + query("insert 4"), statement=True)
        for attempt in (
            lambda: group.write(transaction("more")),
            lambda: group.commit(Gtid(0, 1, 1)),
            lambda: group.prepare(NAME),
            group.savepoint,
        ):
            with pytest.raises(GroupError, match="an earlier write of the group failed"):
                attempt()
        group.rollback_to(savepoint)
        group.write(transaction("again"))
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", transaction("again"))]


def test_a_savepoint_before_the_gtid_event_forgets_it(store: Store) -> None:
    head = GtidEvent(Gtid(0, 1, 1), 5, 0x0C).encode()
    with store.begin() as group:
        savepoint = group.savepoint()
        group.write(head + query("insert"))
        group.rollback_to(savepoint)
        group.write(head + transaction("again"))
        group.commit(Gtid(0, 1, 1))
    assert bodies(store) == [("0-1-1", transaction("again"))]


def test_what_cannot_be_prepared(store: Store) -> None:
    with store.begin() as group, pytest.raises(GroupError, match="empty"):
        group.prepare(NAME)
    with store.begin() as group, pytest.raises(GroupError, match="does not end with XID"):
        group.write(query("BEGIN") + query("insert"))
        group.prepare(NAME)
    with store.begin() as group, pytest.raises(GroupError, match="without a GTID event"):
        group.write(query("insert"), statement=True)
        group.prepare(NAME)


def test_a_group_that_could_not_be_prepared_goes_on_as_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreFull("no room")

    group = store.begin()
    group.write(transaction("x" * 2000))
    append = store._engine.append
    with monkeypatch.context() as patch:
        patch.setattr(
            store._engine,
            "append",
            lambda *records: refuse() if is_prepare(records) else append(*records),
        )
        with pytest.raises(StoreFull):
            group.prepare(NAME)
    pins = store._engine.writer.pins
    assert pins.lowest() == 0
    assert pins.lowest_prepared() is None
    group.rollback()
    assert not len(pins)


def is_prepare(records: tuple[NewRecord, ...]) -> bool:
    return any(record.type == RecordType.XA_PREPARE for record in records)


@pytest.mark.parametrize("size", [HEAD_BYTES_MAX, HEAD_BYTES_MAX + 1])
def test_a_gtid_event_that_no_reader_would_take_is_refused(tmp_path: Path, size: int) -> None:
    gtid = Gtid(0, 1, 2)
    event = GtidEvent(gtid, 7, 0x0C, rest=bytes(size - 33)).encode()
    assert len(event) == size
    with Store.open(tmp_path, OPTIONS) as store:
        with store.begin() as group:
            group.write(transaction("prepared"))
            group.prepare(NAME)
        with store.begin() as group:
            if size > HEAD_BYTES_MAX:
                with pytest.raises(GroupError, match="Gtid event of 4097 bytes cannot be stored"):
                    group.write(event)
                with pytest.raises(GroupError, match="Gtid event of 4097 bytes cannot be stored"):
                    store.commit_prepared(NAME, gtid, gtid_event=event)
            else:
                group.write(event + transaction("whole"))
                group.commit(gtid)
        store.commit_prepared(NAME, Gtid(0, 1, 3))
    with Store.open(tmp_path, OPTIONS) as store:
        found = [name for name, _ in bodies(store)]
        assert found == ["0-1-2", "0-1-3"][size > HEAD_BYTES_MAX :]
