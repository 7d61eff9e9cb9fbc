"""Mode changes: which rows stand, in what shape, whatever the partitions."""

import struct

import pytest

from ibb.pipeline import prepared_groups
from ibb.pipeline.errors import OptionError
from ibb.pipeline.group_outcome import STATEMENT_BYTES_MAX
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.prepared_groups import PreparedGroups
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.rows import columns_of, rows_of
from ibb.pipeline.schema_sources import schemas_of
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, XaId
from ibb.protocol.rows.value_policy import SchemaMissing
from ibb.storage import Store

from ..protocol.rows import row_encoder as enc
from ..storage.events import TIMESTAMP, fragments, query, xid
from .published import OPTIONS, publish_events

COLUMNS = [("id", enc.integer(8, unsigned=True)), ("note", enc.varchar(50))]
SPECS = [spec for _, spec in COLUMNS]
MAP = enc.table_map(COLUMNS, key=[0])
XA = XaId(1, b"transfer", b"")


def event(code, body):
    return build_event(code, body, timestamp=TIMESTAMP, server_id=1)


def write(*ids):
    return MAP + enc.rows_event(enc.WRITE, SPECS, [[(number, b"n%d" % number)] for number in ids])


def changes(path, **options):
    """Return the rows as dicts."""
    parsed = SourceOptions.parse({"path": str(path), "mode": "changes", **options})
    tables = [
        batch.to_pylist()
        for task in plan_read(parsed)
        for batch in rows_of(task, parsed, columns_of(parsed), schemas_of(parsed))
    ]
    return [row for rows in tables for row in rows]


def ids(path, **options):
    return [(row["gtid"], dict(row["after"])["id"]) for row in changes(path, **options)]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        store.path = tmp_path
        yield store


def test_each_kind_of_change_has_its_images(store):
    update = enc.rows_event(enc.UPDATE, SPECS, [[(1, b"a"), (2, None)]])
    partial = enc.rows_event(
        enc.UPDATE, SPECS, [[(2, None), (None, b"x")]], [[True, False], [False, True]]
    )
    delete = enc.rows_event(enc.DELETE, SPECS, [[(2, b"x")], [(2**64 - 1, b"y")]])
    publish_events(store, Gtid(2**32 - 1, 2**32 - 1, 7), write(1), update, partial, delete, xid(1))
    rows = changes(store.path)
    assert [(row["op"], row["before"], row["after"]) for row in rows] == [
        ("insert", None, [("id", "1"), ("note", "n1")]),
        ("update", [("id", "1"), ("note", "a")], [("id", "2"), ("note", None)]),
        ("update", [("id", "2")], [("note", "x")]),
        ("delete", [("id", "2"), ("note", "x")], None),
        ("delete", [("id", str(2**64 - 1)), ("note", "y")], None),
    ]
    assert [dict(row["key"])["id"] for row in rows] == ["1", "1", "2", "2", str(2**64 - 1)]
    assert [(row["position"], row["row"]) for row in rows] == [
        *((2, 0), (3, 0), (4, 0), (5, 0), (5, 1))
    ]
    first = rows[0]
    assert (first["gtid"], first["domain"], first["server"], first["seq_no"]) == (
        *(f"{2**32 - 1}-{2**32 - 1}-7", 2**32 - 1, 2**32 - 1, 7),
    )
    assert (first["database"], first["table"]) == ("d", "t")
    assert first["commit_time"].timestamp() == 1_700_000_000


def test_groups_have_a_number_in_their_partition_that_tells_their_order(store):
    for number, gtid in enumerate(("0-1-9", "1-1-3", "0-1-4"), 1):
        publish_events(store, gtid, write(number), xid(1))
    found = changes(store.path, columns="gtid,_group", endingGtid="0-1-4,1-1-3")
    assert [tuple(row.values()) for row in found] == [("0-1-9", 1), ("1-1-3", 2), ("0-1-4", 3)]
    assert "_group" not in changes(store.path)[0]


def test_a_history_that_ends_with_a_lower_number_is_read_to_its_end(store):
    for number, gtid in enumerate(("0-1-9", "1-1-3", "0-1-4"), 1):
        publish_events(store, gtid, write(number), xid(1))
    assert ids(store.path) == [("0-1-9", "1"), ("1-1-3", "2"), ("0-1-4", "3")]
    assert ids(store.path, endingGtid="0-1-4") == [("0-1-9", "1"), ("0-1-4", "3")]
    assert ids(store.path, startingGtid="0-1-4") == [("1-1-3", "2")]


def test_tables_and_kinds_are_chosen(store):
    delete = enc.rows_event(enc.DELETE, SPECS, [[(1, b"x")]])
    publish_events(store, "0-1-1", write(1, 2), delete, xid(1))
    assert len(changes(store.path, ops="insert")) == 2
    assert len(changes(store.path, tables="d.t", ops="delete,update")) == 1
    assert changes(store.path, tables="d.u") == changes(store.path, databases="e") == []


def test_a_rolled_back_transaction_changes_nothing(store):
    publish_events(store, "0-1-1", write(1), query("ROLLBACK"))
    publish_events(store, "0-1-2", write(2), query("COMMIT"))
    assert ids(store.path) == [("0-1-2", "2")]


def test_of_mixed_transactions_the_tables_stand_that_cannot_roll_back(store):
    publish_events(store, "0-1-1", write(1), query("ROLLBACK"), flags=GtidFlag(0))
    with pytest.raises(FormatError, match=r"group 0-1-1: rows of d.t .*option nonTransactional"):
        changes(store.path)
    assert ids(store.path, nonTransactional="d.t") == [("0-1-1", "1")]
    assert ids(store.path, nonTransactional="d.u") == ids(store.path, nonTransactional="none") == []


def test_what_lies_behind_a_savepoint_goes_with_it(store):
    publish_events(
        store,
        "0-1-1",
        write(1),
        query("SAVEPOINT `a``b`"),
        write(2),
        query("savepoint c"),
        write(3),
        query("ROLLBACK TO `A``B`"),
        write(4),
        xid(1),
    )
    assert [row for _, row in ids(store.path)] == ["1", "4"]
    publish_events(store, "0-1-2", write(1), query("ROLLBACK TO d"), xid(1))
    with pytest.raises(FormatError, match=r"group 0-1-2: .*d, which is no savepoint"):
        changes(store.path)


def xa_group(store, gtid, flag, *events, name):
    gtid = Gtid.parse(gtid)
    head = GtidEvent(gtid, 1_700_000_000, flag | GtidFlag.TRANSACTIONAL, xa_id=name)
    with store.begin() as group:
        group.write(head.encode() + b"".join(events))
        group.commit(gtid)


def prepare(store, gtid, *events, name=XA):
    prepared = event(EventType.XA_PREPARE, struct.pack("<BIII", 0, 1, 8, 0) + b"transfer")
    xa_group(store, gtid, GtidFlag.PREPARED_XA, *events, prepared, name=name)


def complete(store, gtid, word, name=XA):
    flags = GtidFlag.COMPLETED_XA | GtidFlag.STANDALONE
    xa_group(store, gtid, flags, query(f"XA {word} {name}"), name=name)


def test_rows_of_an_xa_transaction_come_when_it_is_committed(store):
    prepare(store, "0-1-9", write(1))
    for number in range(10, 300):  # some files between
        publish_events(store, f"0-1-{number}", query("." * 3000), write(number), xid(1))
    assert ids(store.path, endingGtid="0-1-10") == [("0-1-10", "10")]
    complete(store, "0-1-300", "COMMIT")
    prepare(store, "0-1-301", write(2))  # the same name again
    complete(store, "0-1-302", "ROLLBACK")
    assert store.files()[-1].file_no > 2
    for count in ("1", "7"):
        found = ids(store.path, minPartitions=count)
        assert found[-1] == ("0-1-300", "1")
        assert len(found) == 291
    assert ids(store.path, startingGtid="0-1-299") == [("0-1-300", "1")]


@pytest.mark.parametrize("places", [1000, 5])
def test_files_are_looked_through_once_for_all_that_they_prepared(store, monkeypatch, places):
    names = [XaId(1, b"%d" % number, b"") for number in range(20)]
    for number, name in enumerate(names, 1):
        prepare(store, f"0-1-{number}", write(number), name=name)
    for number in range(100, 250):
        publish_events(store, f"0-1-{number}", query("." * 3000), xid(1))
    for number, name in enumerate(reversed(names), 300):
        complete(store, f"0-1-{number}", "COMMIT", name)
    looked, look = [], PreparedGroups._prepared_in
    monkeypatch.setattr(prepared_groups, "PLACES_MAX", places)
    monkeypatch.setattr(
        PreparedGroups, "_prepared_in", lambda *given: looked.append(given[1]) or look(*given)
    )
    assert [row for _, row in ids(store.path)] == [str(number) for number in range(20, 0, -1)]
    assert (len(looked) == len(set(looked)) > 1) == (places == 1000)


def test_an_xa_transaction_whose_rows_were_purged_stops_the_read(store):
    complete(store, "0-1-1", "COMMIT")
    with pytest.raises(FormatError, match=r"group 0-1-1: it commits the XA .* not in the history"):
        changes(store.path)


def test_fragments_are_joined_and_large_groups_read_twice(store, monkeypatch):
    monkeypatch.setattr("ibb.pipeline.row_events.HELD_BYTES_MAX", 4000)
    large = enc.rows_event(enc.WRITE, SPECS, [[(number, b"x" * 40)] for number in range(3000)])
    publish_events(store, "0-1-1", write(7), MAP, *fragments(large, 50_000), xid(1))
    publish_events(store, "0-1-2", MAP, large, query("ROLLBACK"))
    assert len(ids(store.path)) == 3001


def test_changes_that_are_no_rows_stop_the_read_unless_allowed(store):
    publish_events(store, "0-1-1", query("/* x */ UPDATE t SET a = 1"), xid(1))
    with pytest.raises(FormatError, match=r"group 0-1-1: .*option allowStatements"):
        changes(store.path)
    assert changes(store.path, allowStatements="true") == changes(store.path, tables="d.t") == []
    incident = event(EventType.INCIDENT, b"\x01\x00\x00")
    publish_events(store, "0-1-2", incident, flags=GtidFlag.STANDALONE)
    with pytest.raises(FormatError, match=r"group 0-1-2: .*INCIDENT"):
        changes(store.path, allowStatements="true")


@pytest.mark.parametrize(
    "sql",
    [
        "-- x\nINSERT INTO t VALUES (1)",
        "#x\n UPDATE t SET a = 1",
        "/*!50000 DELETE FROM t */",
        "SET STATEMENT max_statement_time=9 FOR DELETE FROM t",
        "WITH c AS (SELECT 1) DELETE FROM t",
        "SELECT `d`.`f`()",
        "/* a */" * 60 + "REPLACE INTO t VALUES (1)",
        "CREATE TABLE u (id INT PRIMARY KEY) SELECT id FROM t",
        'CREATE OR REPLACE TABLE "u" AS VALUES (1)',
    ],
)
def test_statements_that_change_rows_are_known_whatever_is_before_them(store, sql):
    publish_events(store, "0-1-1", query("/* a */" * 60 + "ANALYZE TABLE t"), xid(1))
    assert changes(store.path) == []
    publish_events(store, "0-1-2", query(sql), xid(1))
    with pytest.raises(FormatError, match=r"group 0-1-2: .*option allowStatements"):
        changes(store.path)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (`select` INT COMMENT 'select 1')",
        "CREATE TEMPORARY TABLE t SELECT 1",
        "CREATE VIEW v AS SELECT * FROM `TABLE`",
    ],
)
def test_what_only_defines_something_changes_no_rows(store, sql):
    publish_events(store, "0-1-1", query(sql), xid(1))
    assert changes(store.path) == []


def test_load_data_that_is_logged_as_a_statement_stops_a_read(store):
    sizes = struct.pack("<IIBHH", 1, 0, 1, 0, 0) + bytes(13)
    text = b"LOAD DATA INFILE 'x' INTO TABLE `t`"
    load = event(EventType.EXECUTE_LOAD_QUERY, sizes + b"d\0" + text)
    block = event(EventType.BEGIN_LOAD_QUERY, bytes(4) + b"1\n")
    publish_events(store, "0-1-1", block, load, xid(1))
    with pytest.raises(FormatError, match=r"group 0-1-1: .*option allowStatements"):
        changes(store.path, tables="d.t")
    assert changes(store.path, allowStatements="true") == []
    assert changes(store.path, tables="e.t") == []


@pytest.mark.parametrize("name", ["d", "`d`", "`d` "])
def test_a_statement_may_change_a_table_of_another_database_than_its_own(store, name):
    publish_events(store, "0-1-1", write(1), query("UPDATE other.t SET a = 1"), xid(1))
    assert ids(store.path, tables="d.t") == [("0-1-1", "1")]
    publish_events(store, "0-1-2", query(f"UPDATE {name}.t SET a = 1"), xid(1))
    with pytest.raises(FormatError, match=r"group 0-1-2: .*option allowStatements"):
        changes(store.path, tables="d.t")


def test_a_schema_file_says_what_the_binlog_does_not(store, tmp_path):
    bare = enc.table_map(COLUMNS, metadata=False)
    publish_events(store, "0-1-1", bare, write(5)[len(MAP) :], xid(1))
    with pytest.raises(SchemaMissing, match=r"d\.t"):
        changes(store.path)
    file = tmp_path / "schemas.json"
    file.write_text(
        '{"d.t": {"columns": [{"name": "id", "type": "bigint unsigned"},'
        ' {"name": "note", "type": "varchar(50)", "charset": "utf8mb4"}], "key": ["id"]}}'
    )
    assert ids(store.path, schemaFile=str(file)) == [("0-1-1", "5")]
    file.write_text("[]")
    with pytest.raises(OptionError, match="option schemaFile: "):
        changes(store.path, schemaFile=str(file))


def annotate(text):
    return event(EventType.ANNOTATE_ROWS, text)


def with_more(rows):
    """Return an event of rows as one that is not the last of its statement."""
    assert rows[25] & 1
    return rows[:25] + bytes([rows[25] & ~1]) + rows[26:]


def test_rows_tell_their_thread_and_statement(store):
    row = enc.rows_event(enc.WRITE, SPECS, [[(1, b"a")]])
    head = GtidEvent(
        Gtid(0, 1, 1), 1_700_000_000, int(GtidFlag.TRANSACTIONAL), flags_extra=16, thread_id=77
    )
    events = [
        *(annotate(b"INSERT 1"), MAP, with_more(row), row),
        *(MAP, row),  # nobody has said by which statement
        *(annotate(b"INSERT \xff" + b"x" * 100_000), MAP, row, xid(1)),
    ]
    with store.begin() as group:
        group.write(head.encode() + b"".join(events))
        group.commit(Gtid(0, 1, 1))
    publish_events(store, "0-1-2", write(2), xid(1))
    rows = changes(store.path)
    assert [found["thread"] for found in rows] == [77, 77, 77, 77, None]
    texts = [found["statement"] for found in rows]
    assert texts[:3] == ["INSERT 1", "INSERT 1", None]
    assert texts[3].startswith("INSERT \N{REPLACEMENT CHARACTER}xxx")
    assert len(texts[3]) == STATEMENT_BYTES_MAX
    assert texts[4] is None
    few = changes(store.path, columns="gtid,thread")
    assert few == [{"gtid": found["gtid"], "thread": found["thread"]} for found in rows]
