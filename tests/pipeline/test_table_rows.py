"""Option table: typed columns, updates in two rows, older versions of the table, streams."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from ibb.pipeline.columns import columns_of_schema
from ibb.pipeline.errors import OptionError
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.rows import columns_of, rows_of
from ibb.pipeline.stream_reader import StreamReader
from ibb.protocol.errors import FormatError
from ibb.storage import Store

from ..protocol.rows import row_encoder as enc
from ..storage.events import xid
from .published import OPTIONS, publish_events

OLD = [("id", enc.integer(4)), ("note", enc.varchar(50)), ("gone", enc.integer(1))]
NEW = [("id", enc.integer(8)), ("note", enc.varchar(50)), ("price", enc.decimal(10, 2))]
METADATA = 10  # columns of ours
DATETIME = enc.a_datetime(0)
MIDNIGHT = datetime(2024, 1, 2)  # noqa: DTZ001 - as DATETIME is
LATER = MIDNIGHT.replace(hour=3)
GTIDS = columns_of_schema([("_gtid", "string")])


def specs(columns):
    return [spec for _, spec in columns]


def rows(columns, code, values, present=None):
    return enc.table_map(columns, key=[0]) + enc.rows_event(code, specs(columns), values, present)


def parse(path, **options):
    return SourceOptions.parse({"path": str(path), "table": "d.t", **options})


def read(path, **options):
    options = parse(path, **options)
    columns = columns_of(options)
    found = [batch for task in plan_read(options) for batch in rows_of(task, options, columns)]
    return [row for batch in found for row in batch.to_pylist()]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        store.path = tmp_path
        yield store


def test_a_table_has_its_own_columns_and_ours(store):
    publish_events(store, "0-1-1", rows(OLD, enc.WRITE, [[(1, b"a", 7)], [(2, None, 7)]]), xid(1))
    columns = columns_of(parse(store.path))
    assert [column.ddl for column in columns[:-METADATA]] == [
        "`id` int",
        "`note` string",
        "`gone` tinyint",
    ]
    first, second = read(store.path)
    assert (first["id"], first["note"], second["note"]) == (1, "a", None)
    assert (first["_gtid"], first["_op"], first["_image"]) == ("0-1-1", "insert", "after")
    assert (second["_position"], second["_row"], second["_missing"]) == (2, 1, None)


def test_updates_come_as_one_row_or_two_and_deletes_as_they_were(store):
    update = rows(OLD, enc.UPDATE, [[(1, b"a", 7), (2, b"b", 8)]])
    delete = rows(OLD, enc.DELETE, [[(2, b"b", 8)]])
    publish_events(store, "0-1-1", update, delete, xid(1))
    found = [(row["id"], row["_op"], row["_image"]) for row in read(store.path)]
    assert found == [(2, "update", "after"), (2, "delete", "before")]
    found = [(row["id"], row["_op"], row["_image"]) for row in read(store.path, images="both")]
    assert found == [(1, "update", "before"), (2, "update", "after"), (2, "delete", "before")]
    assert [row["id"] for row in read(store.path, ops="delete", columns="id")] == [2]


def test_columns_that_an_image_lacks_are_named(store):
    lacking = [[True, False, False], [False, True, False]]
    update = rows(OLD, enc.UPDATE, [[(1, None, None), (None, b"b", None)]], lacking)
    publish_events(store, "0-1-1", update, xid(1))
    before, after = read(store.path, images="both")
    assert (before["id"], before["_missing"]) == (1, ["note", "gone"])
    assert (after["note"], after["_missing"]) == ("b", ["id", "gone"])


def test_older_versions_of_the_table_get_the_newest_columns(store):
    publish_events(store, "0-1-1", rows(OLD, enc.WRITE, [[(1, b"a", 7)]]), xid(1))
    publish_events(store, "0-1-2", rows(NEW, enc.WRITE, [[(2**40, b"b", None)]]), xid(1))
    found = [(row["id"], row["note"], row["price"]) for row in read(store.path)]
    assert found == [(1, "a", None), (2**40, "b", None)]
    (first,) = read(store.path, endingGtid="0-1-1")
    assert first["gone"] == 7


def test_names_of_columns_are_the_same_in_any_case(store):
    publish_events(store, "0-1-1", rows([("ID", enc.integer(4))], enc.WRITE, [[(1,)]]), xid(1))
    publish_events(store, "0-1-2", rows([("id", enc.integer(4))], enc.WRITE, [[(2,)]]), xid(1))
    assert [row["id"] for row in read(store.path)] == [1, 2]
    options = parse(store.path)
    columns = columns_of_schema([("Id", "int"), ("_GTID", "string")])
    batches = [b for task in plan_read(options) for b in rows_of(task, options, columns)]
    found = [row for batch in batches for row in batch.to_pylist()]
    assert found == [{"Id": 1, "_GTID": "0-1-1"}, {"Id": 2, "_GTID": "0-1-2"}]
    reader = StreamReader(options, columns_of_schema([("Id", "int")]))
    start = reader.initialOffset()
    (partition,) = reader.partitions(start, reader.latestOffset(start))
    assert sum(batch.num_rows for batch in reader.read(partition)) == 2


def test_filters_on_a_column_of_the_table_are_not_on_one_of_ours(store):
    columns = [("domain", enc.integer(4)), ("database", enc.varchar(9)), ("commit_time", DATETIME)]
    from pyspark.sql.datasource import EqualTo, GreaterThan, In  # not before PySpark 4.1

    from ibb.pipeline.pushed_filters import narrowed_by

    row = (7, b"x", datetime(2024, 1, 1))  # noqa: DTZ001 - as DATETIME is
    publish_events(store, "0-1-1", rows(columns, enc.WRITE, [[row]]), xid(1))
    publish_events(store, "5-1-1", rows(columns, enc.WRITE, [[row]]), xid(1))

    def gtids(*filters):
        options = narrowed_by(parse(store.path), filters)
        found = [b for task in plan_read(options) for b in rows_of(task, options, GTIDS)]
        return [row["_gtid"] for batch in found for row in batch.to_pylist()]

    late = datetime(2024, 1, 1)  # noqa: DTZ001
    own = (EqualTo(("domain",), 7), In(("database",), ("x",)), GreaterThan(("commit_time",), late))
    assert gtids(*own) == ["0-1-1", "5-1-1"]
    assert gtids(EqualTo(("_domain",), 5)) == ["5-1-1"]
    assert gtids(GreaterThan(("_commit_time",), datetime(2024, 1, 1, tzinfo=UTC))) == []


def test_a_value_that_the_column_cannot_hold_stops_the_read(store):
    publish_events(store, "0-1-1", rows(NEW, enc.WRITE, [[(2**40, b"b", None)]]), xid(1))
    publish_events(store, "0-1-2", rows(OLD, enc.WRITE, [[(1, b"a", 7)]]), xid(1))
    with pytest.raises(
        FormatError, match=r"d\.t: in group 0-1-1 column id is of type bigint, and .* as int: "
    ):
        read(store.path)


@pytest.mark.parametrize(
    ("old", "new", "fits", "does_not"),
    [
        (enc.a_datetime(0), enc.a_date(), MIDNIGHT, LATER),
        (enc.real(8), enc.real(4), 0.5, 0.1),
        (enc.integer(8), enc.real(8), 5, 2**53 + 1),
        (enc.decimal(10, 3), enc.decimal(10, 2), Decimal("1.250"), Decimal("1.255")),
        (enc.varchar(9), enc.char(9), b"a", b"a "),
        (enc.bits(8), enc.bits(1), 1, 5),
        (enc.a_datetime(0), enc.a_timestamp(0), None, LATER),
    ],
)
def test_an_older_value_that_would_be_changed_stops_the_read(store, old, new, fits, does_not):
    publish_events(store, "0-1-1", rows([("v", old)], enc.WRITE, [[(fits,)]]), xid(1))
    publish_events(store, "0-1-2", rows([("v", new)], enc.WRITE, [[(None,)]]), xid(1))
    first, second = read(store.path)
    shown = fits.decode() if isinstance(fits, bytes) else fits
    assert first["v"] == (fits.date() if hasattr(fits, "date") else shown)
    assert second["v"] is None
    publish_events(store, "0-1-3", rows([("v", old)], enc.WRITE, [[(does_not,)]]), xid(1))
    publish_events(store, "0-1-4", rows([("v", new)], enc.WRITE, [[(None,)]]), xid(1))
    with pytest.raises(
        FormatError, match=r"d\.t: in group 0-1-\d column v is of type .* and the query"
    ):
        read(store.path)


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        (enc.integer(8), 20240131120000, enc.a_datetime(0)),
        (enc.a_date(), MIDNIGHT, enc.integer(4)),
        (enc.integer(4), 123, enc.a_date()),
        (enc.a_datetime(0), MIDNIGHT, enc.integer(8)),
        (enc.a_datetime(0), MIDNIGHT, enc.varchar(30)),
        (enc.a_time(0), timedelta(hours=12), enc.varchar(30)),
        (enc.integer(8), 120000, enc.a_time(0)),
        (enc.bits(1), 1, enc.varchar(5)),
        (enc.varchar(9), b"\xc3\xa9", enc.varchar(9, 63)),
        (enc.varchar(9, 63), b"\xc3\xa9", enc.varchar(9, 8)),
        (enc.real(8), 1e20, enc.varchar(30)),
        (enc.real(8), 0.5, enc.decimal(30, 20)),
        (enc.integer(4, unsigned=True), 7, enc.varchar(30)),
        (enc.integer(2), 24, enc.year()),
        (enc.a_set("a", "b"), ["a", "b"], enc.a_set("b", "a")),
    ],
)
def test_a_type_that_means_something_else_stops_the_read(store, old, value, new):
    publish_events(store, "0-1-1", rows([("v", old)], enc.WRITE, [[(value,)]]), xid(1))
    publish_events(store, "0-1-2", rows([("v", new)], enc.WRITE, [[(None,)]]), xid(1))
    told = r"d\.t: in group 0-1-1 column v is of type .* as .* Read the rows of each type by"
    with pytest.raises(FormatError, match=told):
        read(store.path)
    with pytest.raises(FormatError, match=told):
        read(store.path, times="microseconds")


@pytest.mark.parametrize(
    ("old", "value", "new", "read_as"),
    [
        (enc.integer(4), -5, enc.varchar(30), "-5"),
        (enc.integer(4, unsigned=True), 7, enc.integer(8, unsigned=True), 7),
        (enc.bits(1), 1, enc.integer(4), 1),
        (enc.year(), 2024, enc.integer(4), 2024),
        (enc.enum("x", "y"), "y", enc.varchar(30), "y"),
        (enc.a_set("a", "b"), ["a", "b"], enc.a_set("a", "c", "b"), "a,b"),
        (enc.a_date(), MIDNIGHT, enc.a_datetime(0), MIDNIGHT),
    ],
)
def test_a_type_that_means_the_same_is_followed(store, old, value, new, read_as):
    publish_events(store, "0-1-1", rows([("v", old)], enc.WRITE, [[(value,)]]), xid(1))
    publish_events(store, "0-1-2", rows([("v", new)], enc.WRITE, [[(None,)]]), xid(1))
    assert [row["v"] for row in read(store.path)] == [read_as, None]


def test_a_type_that_a_user_gives_must_mean_the_same(store):
    moments = rows([("v", enc.a_datetime(0))], enc.WRITE, [[(MIDNIGHT,)]])
    publish_events(store, "0-1-1", moments, xid(1))
    options = parse(store.path)

    def as_type(kind):
        columns = columns_of_schema([("v", kind)])
        found = [batch for task in plan_read(options) for batch in rows_of(task, options, columns)]
        return [row["v"] for batch in found for row in batch.to_pylist()]

    assert as_type("timestamp_ntz") == [MIDNIGHT]
    assert as_type("date") == [MIDNIGHT.date()]
    for kind in ("bigint", "string", "timestamp"):
        with pytest.raises(FormatError, match=f"of type datetime, and the query has it as {kind}"):
            as_type(kind)


def test_decimals_that_became_texts_are_as_select_shows_them(store):
    zero = [[(Decimal("0.0000000000"),)]]
    publish_events(store, "0-1-1", rows([("v", enc.decimal(20, 10))], enc.WRITE, zero), xid(1))
    publish_events(store, "0-1-2", rows([("v", enc.varchar(50))], enc.WRITE, [[(b"x",)]]), xid(1))
    assert [row["v"] for row in read(store.path)] == ["0.0000000000", "x"]


def test_a_stream_stops_before_rows_with_columns_that_it_has_not(store):
    publish_events(store, "0-1-1", rows(OLD, enc.WRITE, [[(1, b"a", 7)]]), xid(1))
    options = parse(store.path)
    reader = StreamReader(options, columns_of(options))
    start = reader.initialOffset()
    more = [*OLD, ("price", enc.decimal(10, 2))]
    publish_events(store, "0-1-2", rows(more, enc.WRITE, [[(2, b"b", 7, None)]]), xid(1))
    (partition,) = reader.partitions(start, reader.latestOffset(start))
    with pytest.raises(FormatError, match="the table has a column price that the query has not"):
        list(reader.read(partition))
    options = parse(store.path, columns="id,_op")
    reader = StreamReader(options, columns_of(options))
    assert [row["id"] for batch in reader.read(partition) for row in batch.to_pylist()] == [1, 2]


@pytest.mark.parametrize(
    ("new", "value", "told"),
    [
        ([("id", enc.integer(4)), ("v", enc.a_datetime(0))], (2, MIDNIGHT), "from bigint to datet"),
        ([("id", enc.integer(4)), ("v", enc.integer(4))], (2, 3), "changed from bigint to int"),
        ([("id", enc.integer(4))], (2,), "has no column v any more"),
        ([("id", enc.integer(4)), ("w", enc.integer(8))], (2, 3), "has no column v any more"),
    ],
)
def test_a_stream_goes_on_behind_another_type_only_when_it_is_started_again(
    store, new, value, told
):
    old = [("id", enc.integer(4)), ("v", enc.integer(8))]
    publish_events(store, "0-1-1", rows(old, enc.WRITE, [[(1, None)]]), xid(1))
    made = []
    for chosen in ({}, {"columns": "id,v"}):
        options = parse(store.path, **chosen)
        made.append(StreamReader(options, columns_of(options)))
        late = StreamReader(options, columns_of(options))
        start = made[-1].initialOffset()
    publish_events(store, "0-1-2", rows(new, enc.WRITE, [[value]]), xid(1))
    for reader in made:
        (partition,) = reader.partitions(start, reader.latestOffset(start))
        with pytest.raises(FormatError, match=rf"group 0-1-2: d\.t.*{told}"):
            list(reader.read(partition))
    with pytest.raises(OptionError, match=r"was changed after the query was made|no column v"):
        late.latestOffset(start)
    again = parse(store.path)
    reader = StreamReader(again, columns_of(again))
    (partition,) = reader.partitions(start | {"gtid": ""}, reader.latestOffset(start))
    assert [row["id"] for batch in reader.read(partition) for row in batch.to_pylist()] == [1, 2]


def test_a_table_that_is_not_there_is_named(store):
    publish_events(store, "0-1-1", rows(OLD, enc.WRITE, [[(1, b"a", 7)]]), xid(1))
    with pytest.raises(OptionError, match=r"option table: the history has no row of d\.u"):
        read(store.path, table="d.u")
    with pytest.raises(OptionError, match="option table: it goes with mode table"):
        parse(store.path, mode="events")
    with pytest.raises(OptionError, match="option columns: there is no column nothing: id, note"):
        read(store.path, columns="nothing")


def test_a_column_that_is_named_twice_comes_once(store):
    publish_events(store, "0-1-1", rows(OLD, enc.WRITE, [[(1, b"a", 7)]]), xid(1))
    assert read(store.path, columns="ID,note,id") == [{"id": 1, "note": "a"}]
