"""Rows events of an encoder of our own come out as what went in."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.pipeline.row_batches import RowBatches
from ibb.protocol.errors import FormatError
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema
from ibb.protocol.rows.value_policy import (
    BadText,
    NoDates,
    SchemaMissing,
    Times,
    Unknown,
    ValuePolicy,
    ValueRefused,
)

from ..protocol.rows import row_encoder as enc
from ..protocol.rows.row_encoder import DELETE, UPDATE, WRITE
from .row_cases import CASES

pytestmark = pytest.mark.kernel

GBK = 28


def batches_of(columns, policy=None, names=None, **settings):
    layout = layout_of(TableMap.parse(enc.table_map(columns)))
    return RowBatches(layout, policy or ValuePolicy(), names, **settings)


def decoded(columns, rows, policy=None, **settings):
    """Return the images after of one WRITE event."""
    batches = batches_of(columns, policy)
    batches.add(enc.rows_event(WRITE, [spec for _, spec in columns], [[row] for row in rows]))
    batch = batches.take()
    batch.to_batch().validate(full=True)
    return [tuple(row.values()) for row in batch.after.to_pylist()]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15)
@given(data=st.data())
def test_values_come_out_as_they_went_in(name, data):
    spec, values, expected = CASES[name]
    rows = data.draw(st.lists(st.none() | values, max_size=20))
    found = decoded([("id", enc.integer(4)), ("v", spec)], [(1, value) for value in rows])
    assert [row[1] for row in found] == [
        None if value is None else expected(value) for value in rows
    ]


@settings(max_examples=25)
@given(data=st.data())
def test_rows_of_many_columns_in_many_events(data):
    names = data.draw(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=12))
    columns = [(f"c{number}", CASES[name][0]) for number, name in enumerate(names)]
    specs = [spec for _, spec in columns]
    row = st.tuples(*(st.none() | CASES[name][1] for name in names))
    wanted = []
    batches = batches_of(columns)
    for number in range(data.draw(st.integers(1, 5))):
        code = data.draw(st.sampled_from((WRITE, UPDATE, DELETE)))
        images = 2 if code == UPDATE else 1
        rows = data.draw(st.lists(st.tuples(*[row] * images), min_size=1, max_size=4))
        present = data.draw(
            st.none() | st.lists(flags(len(names)), min_size=images, max_size=images)
        )
        event = enc.rows_event(code, specs, rows, present, compressed=data.draw(st.booleans()))
        assert batches.add(event, tag=number) == len(rows)
        wanted += [
            (code, number, index, shown(names, code, images, present))
            for index, images in enumerate(rows)
        ]
    batch = batches.take()
    found = batch.to_batch()
    found.validate(full=True)
    ops = {"insert": WRITE, "update": UPDATE, "delete": DELETE}
    assert [
        (
            ops[row["op"]],
            row["tag"],
            row["number"],
            {"before": row["before"], "after": row["after"]},
        )
        for row in found.to_pylist()
    ] == [(code, tag, number, values) for code, tag, number, (values, _) in wanted]
    for image in ("before", "after"):
        for column in range(len(names)):
            assert batch.has_column(image, column).to_pylist() == [
                present[image][column] for *_, (_, present) in wanted
            ]


def flags(count):
    """Return which columns an image has: at least one."""
    return st.lists(st.booleans(), min_size=count, max_size=count).filter(any)


def shown(names, code, images, present):
    """Return what decoding must give of a row, and which columns are in its images."""
    values = {"before": None, "after": None}
    there = {"before": [False] * len(names), "after": [False] * len(names)}
    places = {WRITE: ["after"], UPDATE: ["before", "after"], DELETE: ["before"]}[code]
    for index, place in enumerate(places):
        there[place] = present[index] if present else [True] * len(names)
        values[place] = {
            f"c{number}": CASES[name][2](value) if value is not None and has else None
            for number, (name, value, has) in enumerate(
                zip(names, images[index], there[place], strict=True)
            )
        }
    return values, there


def test_only_columns_that_are_asked_for_are_made():
    columns = [("a", enc.integer(4)), ("b", enc.varchar(20)), ("c", enc.year())]
    batches = batches_of(columns, names=["c", "a"])
    batches.add(enc.rows_event(WRITE, [spec for _, spec in columns], [[(1, b"x", 1999)]]))
    assert batches.take().after.to_pylist() == [{"a": 1, "c": 1999}]
    with pytest.raises(ValueError, match=r"d\.t has no column 'd'"):
        batches_of(columns, names=["d"])


def test_an_event_of_more_rows_than_a_batch_takes_several():
    columns = [("a", enc.integer(4)), ("b", enc.integer(2))]
    specs = [spec for _, spec in columns]
    batches = batches_of(columns, batch_rows=10)
    found = []
    batches.add(enc.rows_event(WRITE, specs, [[(row, 1)] for row in range(25)]), tag=3)
    while batches.is_full:
        found.append(batches.take())
    assert [batch.rows for batch in found] == [10, 10, 5]
    assert [value for batch in found for value in batch.after["a"].to_pylist()] == [*range(25)]
    assert [value for batch in found for value in batch.number.to_pylist()] == [*range(25)]


def test_an_event_whose_values_inflate_to_more_than_a_batch_takes_several():
    columns = [("v", enc.compressed_blob(2)), ("n", enc.integer(4)), ("w", enc.compressed_blob(4))]
    specs = [spec for _, spec in columns]
    sizes = [10, 3000, 0, 10, 9000, 9000, *[400] * 10, None, None, 9000, None]
    rows = [
        (None if size is None else b"x" * size, number, None) for number, size in enumerate(sizes)
    ]
    batches = batches_of(columns, batch_bytes=4000, batch_rows=15)
    batches.add(enc.rows_event(WRITE, specs, [[row] for row in rows[:2]]), 1)
    assert not batches.is_full
    event = enc.rows_event(UPDATE, specs, [[row, (None, 0, row[0])] for row in rows[2:]])
    assert len(event) < 1000
    batches.add(event, 2)
    found = []
    while batches.is_full:
        batch = batches.take()
        batch.to_batch().validate(full=True)
        found.append(batch)
    assert not batches.rows
    assert [batch.rows for batch in found] == [4, 1, 1, 5, 4, 3, 1, 1]
    before = [row["v"] for batch in found for row in batch.before.to_pylist() if row]
    assert before[2:] == [row[0] for row in rows[2:]]
    assert [row["w"] for batch in found for row in batch.after.to_pylist()][2:] == before[2:]
    batches.add(enc.rows_event(WRITE, specs, [[rows[0]]]), 3)
    assert not batches.is_full
    assert batches.take().rows == 1


def test_damaged_sizes_of_values_are_none():
    columns = [("v", enc.compressed_blob(2))]
    raw = enc.compressed_blob(2)._replace(encode=lambda value: b"%c\0" % len(value) + value)
    batches = batches_of(columns, batch_bytes=4000)
    for value in (b"", b"\0", b"\x87", b"\x82\xff", b"\x81\x05"):
        batches.add(enc.rows_event(WRITE, [raw], [[(value,)]]))
        assert not batches.is_full, value
    batches.add(enc.rows_event(WRITE, [raw], [[(b"\x87" + bytes(6) + b"\xff" * 9,)]]))
    assert not batches.is_full
    batches.add(enc.rows_event(WRITE, [raw], [[(b"\x87" + b"\xff" * 9,)]]))
    assert batches.is_full
    with pytest.raises(FormatError, match=r"column `v` of d\.t: a compressed value"):
        batches.take()


NO_DATES = [(0, 0, 0), (2024, 0, 1), (2024, 2, 0), (2023, 2, 29), (0, 5, 5)]


def test_an_event_of_more_bytes_than_a_batch_takes_several():
    columns = [("v", enc.varchar(9000)), ("n", enc.integer(4))]
    specs = [spec for _, spec in columns]
    sizes = [10, 3000, 10, 10, 9000, 9000, *[400] * 30, None, None, 9000, None]
    rows = [(None if size is None else b"x" * size, None) for size in sizes]
    other = [(b"other", number) for number in range(3)]
    batches = batches_of(columns, batch_bytes=4000, batch_rows=20)
    batches.add(enc.rows_event(UPDATE, specs, [[row, row] for row in rows]), 1)
    found = []
    while batches.rows or batches.is_full:
        assert batches.is_full
        batch = batches.take()
        batch.to_batch().validate(full=True)
        found.append(batch)
    assert [batch.rows for batch in found] == [2, 3, 1, 5, 5, 4, 5, 5, 5, 5]
    assert [row["v"] for batch in found for row in batch.before.to_pylist()] == [
        None if size is None else "x" * size for size in sizes
    ]
    assert [row for batch in found for row in batch.number.to_pylist()] == list(range(len(sizes)))
    batches.add(enc.rows_event(WRITE, specs, [[row] for row in other]), 2)
    last = batches.take()
    assert (last.tag.to_pylist(), last.number.to_pylist()) == ([2] * 3, [0, 1, 2])
    assert [row["n"] for row in last.after.to_pylist()] == [0, 1, 2]


def test_dates_that_no_calendar_has_are_null_and_counted_or_text_or_an_error():
    raw = enc.a_date()._replace(encode=lambda value: enc.date_bytes(*value))
    zero = enc.a_timestamp(2)._replace(encode=bytes)
    moment = enc.a_datetime(3)._replace(encode=lambda value: enc.datetime_bytes(value, 3))
    columns = [("d", raw), ("z", zero), ("m", moment)]
    rows = [(day, bytes(5), (*day, 10, 20, 30, 400_000)) for day in NO_DATES]
    event = enc.rows_event(WRITE, [spec for _, spec in columns], [[row] for row in rows])
    batches = batches_of(columns)
    batches.add(event)
    batch = batches.take()
    assert batch.left_out == 3 * len(rows)
    assert batch.after.to_pylist() == [{"d": None, "z": None, "m": None}] * len(rows)
    found = decoded(columns, rows, ValuePolicy(no_dates=NoDates.TEXT))
    assert found == [
        (
            f"{year:04}-{month:02}-{day:02}",
            "0000-00-00 00:00:00.00",
            f"{year:04}-{month:02}-{day:02} 10:20:30.400",
        )
        for year, month, day in NO_DATES
    ]
    with pytest.raises(ValueRefused, match=r"column `d` of d\.t: 5 of 5 values are dates"):
        decoded(columns, rows, ValuePolicy(no_dates=NoDates.ERROR))


@pytest.mark.parametrize("name", ["date", "datetime(0)", "datetime(4)", "timestamp(6)"])
@settings(max_examples=15)
@given(data=st.data())
def test_moments_as_text(name, data):
    spec, values, expected = CASES[name]
    digits = spec.metadata[0] if spec.metadata else 0
    rows = data.draw(st.lists(st.none() | values, max_size=10))
    found = decoded([("v", spec)], [(row,) for row in rows], ValuePolicy(no_dates=NoDates.TEXT))
    for (text,), value in zip(found, rows, strict=True):
        if value is None:
            assert text is None
            continue
        moment = expected(value)
        shown = f"{moment.year:04}-{moment:%m-%d}"
        if not isinstance(moment, datetime):
            assert text == shown
        else:
            fraction = f".{moment.microsecond:06}"[: digits + 1] if digits else ""
            assert text == f"{shown} {moment:%H:%M:%S}{fraction}"


def test_times_as_microseconds_and_as_text():
    columns = [("t", enc.a_time(6)), ("u", enc.a_time(0))]
    long = timedelta(hours=838, minutes=59, seconds=59)
    rows = [(-timedelta(microseconds=1), -long), (timedelta(hours=1.5), timedelta()), (None, None)]
    assert decoded(columns, rows, ValuePolicy(times=Times.MICROSECONDS)) == [
        (-1, -3_020_399_000_000),
        (5_400_000_000, 0),
        (None, None),
    ]
    assert decoded(columns, rows, ValuePolicy(times=Times.TEXT)) == [
        ("-00:00:00.000001", "-838:59:59"),
        ("01:30:00.000000", "00:00:00"),
        (None, None),
    ]


def test_bytes_that_are_no_characters():
    cut = "ä".encode()
    columns = [("a", enc.varchar(20)), ("b", enc.varchar(20, GBK))]
    for rows in ([(cut[:1], b""), (cut[1:], b"")], [(b"x", b"\xff")]):
        with pytest.raises(
            ValueRefused, match=r"has bytes that are no characters of (utf8mb4|gbk)"
        ):
            decoded(columns, rows)
    replaced = ValuePolicy(bad_text=BadText.REPLACE)
    assert decoded(columns, [(cut[:1], b""), (cut[1:], b"\xff")], replaced) == [
        ("\ufffd", ""),
        ("\ufffd", "\ufffd"),
    ]


def test_without_metadata_columns_must_be_said_to_be_unknown():
    columns = [("a", enc.integer(4)), ("b", enc.varchar(20)), ("c", enc.enum("x", "y"))]
    table = TableMap.parse(enc.table_map(columns, metadata=False))
    with pytest.raises(SchemaMissing, match=r"d\.t: the binlog does not say enough of @1, @2, @3"):
        RowBatches(layout_of(table))
    batches = RowBatches(layout_of(table), ValuePolicy(unknown=Unknown.BYTES))
    batches.add(enc.rows_event(WRITE, [spec for _, spec in columns], [[(-1, b"\xff", "y")]]))
    assert batches.take().after.to_pylist() == [{"@1": -1, "@2": b"\xff", "@3": 2}]


@pytest.mark.parametrize(
    ("spec", "data"),
    [
        (enc.decimal(4, 2), b"\xff\xff"),
        (enc.a_date(), enc.date_bytes(2024, 13, 1)),
        (enc.a_datetime(0), enc.datetime_bytes((2024, 1, 1, 24, 0, 0, 0), 0)),
        (enc.a_datetime(6), enc.datetime_bytes((2024, 1, 1, 0, 0, 60, 0), 6)),
        (enc.a_datetime(2), bytes(6)),
        (enc.a_datetime(1), enc.datetime_bytes((2024, 1, 1, 0, 0, 0, 0), 0) + b"\xff"),
        (enc.a_time(0), b"\xff\xff\xff"),
        (enc.enum("a"), b"\x02"),
        (enc.a_set("a", "b"), b"\x04"),
        (enc.compressed_blob(1), b"\x04\x80\x00\x00\x00"),
        (enc.compressed_blob(1), b"\x03\x82\x00\x05"),
    ],
    ids=[
        *("decimal", "month", "hour", "second", "sign", "fraction", "time", "enum", "set"),
        *("method", "size"),
    ],
)
def test_bytes_that_no_server_writes_are_damage(spec, data):
    raw = spec._replace(encode=bytes)
    with pytest.raises(FormatError, match=r"column `v` of d\.t"):
        decoded([("v", raw)], [(data,)])


def test_an_event_that_ends_before_a_length_is_refused():
    for prefix in range(1, 5):
        columns = [("a", enc.blob(prefix))]
        event = enc.rows_event(WRITE, [columns[0][1]], [[(b"",)], [(b"",)]])
        for cut in range(1, prefix + 1):
            with pytest.raises(FormatError, match="row ends in the value of column 1"):
                batches_of(columns).add(event[:-cut])


def test_rows_without_a_column_are_refused():
    columns = [("id", enc.integer(4)), ("v", enc.integer(4))]
    specs = [spec for _, spec in columns]
    for rows in (1, 3):  # of nothing but defaults, which MINIMAL leaves out
        event = enc.rows_event(WRITE, specs, [[(0, 3)]] * rows, present=[[False, False]])
        with pytest.raises(FormatError, match=r"without columns: .*binlog_row_image=MINIMAL"):
            batches_of(columns).add(event)


@settings(max_examples=25)
@given(data=st.data())
def test_a_cut_event_is_refused_and_leaves_no_row(data):
    names = data.draw(st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=5))
    columns = [(f"c{number}", CASES[name][0]) for number, name in enumerate(names)]
    row = data.draw(st.tuples(*(CASES[name][1] for name in names)))
    event = enc.rows_event(WRITE, [spec for _, spec in columns], [[row], [row]])
    batches = batches_of(columns)
    batches.add(event)
    whole = batches.take().after.to_pylist()
    cut = data.draw(st.integers(19, len(event) - 1))
    try:
        rows = batches.add(event[:cut])
    except FormatError:
        assert batches.rows == 0
    else:
        assert rows in (0, 1)  # cut exactly where a row, or the columns, end
    batches.drop()
    batches.add(event)
    assert batches.take().after.to_pylist() == whole


@settings(max_examples=15)
@given(
    moment=st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    hours=st.integers(-838, 838),
)
def test_moments_of_old_servers(moment, hours):
    number = int(f"{moment.year:04}{moment:%m%d%H%M%S}")
    seconds = int(moment.replace(year=2004).timestamp())  # which has a 29 February
    specs = [enc.Spec(12, b"", bytes), enc.Spec(11, b"", bytes), enc.Spec(7, b"", bytes)]
    table = TableMap.parse(enc.table_map(list(zip("abc", specs, strict=True)), metadata=False))
    names = ("datetime", "time", "timestamp")
    columns = tuple(ColumnSchema(name, name) for name in names)
    batches = RowBatches(layout_of(table, TableSchema(columns)))
    time = (10000 * hours + (1 if hours >= 0 else -1) * 102).to_bytes(3, "little", signed=True)
    row = (number.to_bytes(8, "little"), time, seconds.to_bytes(4, "little"))
    batches.add(enc.rows_event(WRITE, specs, [[row], [(bytes(8), bytes(3), bytes(4))]]))
    found = batches.take().after.to_pylist()
    sign = 1 if hours >= 0 else -1
    assert found[0] == {
        "datetime": moment,
        "time": sign * timedelta(hours=abs(hours), minutes=1, seconds=2),
        "timestamp": datetime.fromtimestamp(seconds, UTC),
    }
    assert found[1] == {"datetime": None, "time": timedelta(), "timestamp": None}
