"""Rows events of an encoder of our own come out as what went in."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.pipeline.row_batches import RowBatches
from ibb.protocol.errors import FormatError
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap
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

pytestmark = pytest.mark.kernel

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATIN1, UTF8, BINARY, GBK = 8, 45, 63, 28


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


def decimals(digits, scale):
    """Return decimals that keep all their digits."""
    most = 10**digits - 1

    def build(number):
        return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))

    return st.integers(-most, most).map(build)


def moments(digits):
    unit = 10 ** (6 - digits)
    return st.integers(0, 999_999).map(lambda value: value // unit * unit)


def datetimes(digits):
    return st.builds(
        lambda moment, micro: moment.replace(microsecond=micro),
        st.datetimes(),
        moments(digits),
    )


def times(digits):
    return st.builds(
        lambda sign, seconds, micro: sign * timedelta(seconds=seconds, microseconds=micro),
        st.sampled_from((-1, 1)),
        st.integers(0, 838 * 3600 + 59 * 60 + 58),
        moments(digits),
    )


def timestamps(digits):
    return st.builds(
        lambda seconds, micro: timedelta(seconds=seconds, microseconds=micro),
        st.integers(1, 2**32 - 1),
        moments(digits),
    )


def as_is(value):
    return value


def texts(codec):
    """Return texts in the bytes of a character set."""
    letters = {"utf-8": "aZ09äß€語😀", "gbk": "aZ9語中文", "latin-1": "aZ9äöß\xa0ÿ"}[codec]
    return st.text(letters, max_size=12).map(lambda text: text.encode(codec))


CASES = {
    "tinyint": (enc.integer(1), st.integers(-128, 127), as_is),
    "tinyint unsigned": (enc.integer(1, unsigned=True), st.integers(0, 255), as_is),
    "smallint": (enc.integer(2), st.integers(-(2**15), 2**15 - 1), as_is),
    "smallint unsigned": (enc.integer(2, unsigned=True), st.integers(0, 2**16 - 1), as_is),
    "mediumint": (enc.integer(3), st.integers(-(2**23), 2**23 - 1), as_is),
    "mediumint unsigned": (enc.integer(3, unsigned=True), st.integers(0, 2**24 - 1), as_is),
    "int": (enc.integer(4), st.integers(-(2**31), 2**31 - 1), as_is),
    "int unsigned": (enc.integer(4, unsigned=True), st.integers(0, 2**32 - 1), as_is),
    "bigint": (enc.integer(8), st.integers(-(2**63), 2**63 - 1), as_is),
    "bigint unsigned": (enc.integer(8, unsigned=True), st.integers(0, 2**64 - 1), Decimal),
    "float": (enc.real(4), st.floats(width=32, allow_nan=False), as_is),
    "double": (enc.real(8), st.floats(allow_nan=False), as_is),
    "decimal(1,0)": (enc.decimal(1, 0), decimals(1, 0), as_is),
    "decimal(9,9)": (enc.decimal(9, 9), decimals(9, 9), as_is),
    "decimal(18,5)": (enc.decimal(18, 5), decimals(18, 5), as_is),
    "decimal(38,10)": (enc.decimal(38, 10), decimals(38, 10), as_is),
    "decimal(38,38)": (enc.decimal(38, 38), decimals(38, 38), as_is),
    "decimal(65,30)": (enc.decimal(65, 30), decimals(65, 30), lambda value: f"{value:f}"),
    "decimal(65,0)": (enc.decimal(65, 0), decimals(65, 0), lambda value: f"{value:f}"),
    "decimal(39,38)": (enc.decimal(39, 38), decimals(39, 38), lambda value: f"{value:f}"),
    "bit(1)": (enc.bits(1), st.integers(0, 1), bool),
    "bit(12)": (enc.bits(12), st.integers(0, 2**12 - 1), as_is),
    "bit(63)": (enc.bits(63), st.integers(0, 2**63 - 1), as_is),
    "bit(64)": (enc.bits(64), st.integers(0, 2**64 - 1), Decimal),
    "year": (enc.year(), st.integers(1901, 2155) | st.just(0), as_is),
    "date": (enc.a_date(), st.dates(), as_is),
    **{
        f"datetime({digits})": (enc.a_datetime(digits), datetimes(digits), as_is)
        for digits in range(7)
    },
    **{
        f"timestamp({digits})": (
            enc.a_timestamp(digits),
            timestamps(digits),
            lambda value: EPOCH + value,
        )
        for digits in range(7)
    },
    **{f"time({digits})": (enc.a_time(digits), times(digits), as_is) for digits in range(7)},
    "varchar(50)": (enc.varchar(50), texts("utf-8"), bytes.decode),
    "varchar(1000)": (enc.varchar(1000), texts("utf-8"), bytes.decode),
    "varchar latin1": (
        enc.varchar(50, LATIN1),
        texts("latin-1").filter(lambda data: not any(0x80 <= byte < 0xA0 for byte in data)),
        lambda data: data.decode("latin-1"),
    ),
    "varchar gbk": (enc.varchar(80, GBK), texts("gbk"), lambda data: data.decode("gbk")),
    "varbinary": (enc.varchar(50, BINARY), st.binary(max_size=50), as_is),
    "char(40)": (enc.char(40), texts("utf-8"), bytes.decode),
    "char(400)": (enc.char(400), texts("utf-8"), bytes.decode),
    "binary(9)": (enc.char(9, BINARY), st.binary(min_size=9, max_size=9), as_is),
    **{f"blob of {size}": (enc.blob(size), st.binary(max_size=200), as_is) for size in range(1, 5)},
    "text": (enc.blob(2, UTF8), texts("utf-8"), bytes.decode),
    "compressed blob": (enc.compressed_blob(2), st.binary(max_size=300), as_is),
    "compressed text": (enc.compressed_blob(4, UTF8, wrap=False), texts("utf-8"), bytes.decode),
    "enum": (enc.enum("a", "ä€", ""), st.sampled_from(("a", "ä€", "")), as_is),
    "enum of 300": (enc.enum(*map(str, range(300))), st.integers(0, 299).map(str), as_is),
    **{
        f"set of {count}": (
            enc.a_set(*(f"w{index}" for index in range(count))),
            st.sets(st.integers(0, count - 1)).map(
                lambda chosen: [f"w{index}" for index in sorted(chosen)]
            ),
            ",".join,
        )
        for count in (3, 20, 64)
    },
}


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


NO_DATES = [(0, 0, 0), (2024, 0, 1), (2024, 2, 0), (2023, 2, 29), (0, 5, 5)]


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
