"""Columns of every type: how the encoder writes them, values to try, what decoding must give."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from ..protocol.rows import row_encoder as enc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATIN1, UTF8, BINARY, GBK = 8, 45, 63, 28


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
