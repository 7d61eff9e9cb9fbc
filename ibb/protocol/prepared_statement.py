"""
Prepared statements: the answer to COM_STMT_PREPARE, parameters, and rows in binary.

    prepared    00, u32 statement id, u16 columns, u16 parameters, 00, u16 warnings; a definition a
                parameter and EOF; a definition a column and EOF; neither where there are none
    execute     17, u32 statement id, u8 flags, u32 iterations = 1, then with parameters:
                NULL bitmap, u8 types follow, [u8 type and u8 flags a parameter,] values
    row         00, NULL bitmap whose first two bits are unused, values
    values      integers of 1, 2, 4, 8 bytes; FLOAT and DOUBLE; lestr for text and decimals;
                moments: u8 length 0, 4, 7, 11 (12 for a time), then its fields

Source: MariaDB's documentation of the binary protocol; dump-protocol 2.3 (zongji).
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from struct import Struct
from typing import TYPE_CHECKING, Final

from mysql_mimic.types import ColumnType

from .character_sets import decoded, encoded
from .errors import FormatError
from .fields import FieldReader, lenenc, lestr
from .reply import eof
from .result_set import Column, ResultSet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .fields import Buffer
    from .result_set import Value

ParameterValue = int | float | Decimal | str | bytes | datetime | date | timedelta | None

PARAMETERS_MAX: Final = 4096
DECIMAL_DIGITS_MAX: Final = 200  # with those that an exponent stands for
TIME_DAYS_MAX: Final = 34  # of a TIME, whose bound is 838:59:59
_PREPARED: Final = Struct("<BIHHBH")
_UNSIGNED: Final = 0x80
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_INTEGER_BYTES: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.YEAR: 2,
    ColumnType.LONG: 4,
    ColumnType.INT24: 4,
    ColumnType.LONGLONG: 8,
}
_BYTES_TYPES: Final = frozenset(
    {ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB}
)
_TEXT_TYPES: Final = _BYTES_TYPES | {
    ColumnType.VARCHAR,
    ColumnType.VAR_STRING,
    ColumnType.STRING,
    ColumnType.ENUM,
    ColumnType.SET,
    ColumnType.BIT,
    ColumnType.JSON,
    ColumnType.GEOMETRY,
}
_DECIMAL_TYPES: Final = (ColumnType.DECIMAL, ColumnType.NEWDECIMAL)
_MOMENTS: Final = (ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.DATE)
_PARAMETER: Final = Column("?", ColumnType.NULL, 0, 0x80)


def prepared_payloads(
    statement_id: int,
    columns: Sequence[Column],
    parameters: int,
    *,
    status: int,
    charset: str = "utf8mb4",
) -> list[bytes]:
    """Return what answers COM_STMT_PREPARE, with names in *charset*."""
    payloads = [_PREPARED.pack(0, statement_id, len(columns), parameters, 0, 0)]
    for definitions in ([_PARAMETER] * parameters, columns):
        if definitions:
            payloads += [column.encode(charset=charset) for column in definitions]
            payloads.append(eof(status=status))
    return payloads


def binary_payloads(result: ResultSet) -> Iterator[bytes]:
    """Yield the payloads of a result whose rows are in binary."""
    yield from result.head()
    for row in result.rows:
        yield encode_binary_row(result.columns, row, result.charset)
    yield eof(status=result.status, warnings=result.warnings)


def encode_binary_row(
    columns: Sequence[Column], values: Sequence[Value], charset: str = "utf8mb4"
) -> bytes:
    """Return one row's payload, texts in *charset*; a value may be a number or its text."""
    bitmap = bytearray((len(columns) + 9) // 8)
    parts = []
    for index, (column, value) in enumerate(zip(columns, values, strict=True)):
        if value is None:
            bitmap[(index + 2) // 8] |= 1 << (index + 2) % 8
        else:
            parts.append(_encoded(column.type, value, charset))
    return b"\0" + bytes(bitmap) + b"".join(parts)


def _encoded(type_: int, value: str | bytes | float, charset: str) -> bytes:
    size = _INTEGER_BYTES.get(ColumnType(type_))
    if size is not None:
        return (int(value) % (1 << 8 * size)).to_bytes(size, "little")
    if type_ == ColumnType.DOUBLE:
        return _DOUBLE.pack(float(value))
    if type_ == ColumnType.FLOAT:
        return _FLOAT.pack(float(value))
    if type_ in _MOMENTS:
        return _encoded_moment(str(value))
    if type_ == ColumnType.TIME:
        return _encoded_time(str(value))
    return lestr(value if isinstance(value, bytes) else encoded(str(value), charset))


def _encoded_moment(text: str) -> bytes:
    """Return `2024-01-31[ 12:30:00[.000001]]` in fields."""
    day, _, clock = text.partition(" ")
    year, month, day_of_month = (int(part) for part in day.split("-"))
    fields = year.to_bytes(2, "little") + bytes((month, day_of_month))
    if clock.strip("0:."):
        clock, _, fraction = clock.partition(".")
        fields += bytes(int(part) for part in clock.split(":"))
        if fraction:
            fields += int(fraction.ljust(6, "0")).to_bytes(4, "little")
    return lenenc(len(fields)) + fields


def _encoded_time(text: str) -> bytes:
    """Return `[-]838:59:59[.000001]` in fields."""
    if not text.strip("-0:."):
        return b"\0"
    clock, _, fraction = text.lstrip("-").partition(".")
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    fields = bytes([text.startswith("-")]) + (hours // 24).to_bytes(4, "little")
    fields += bytes((hours % 24, minutes, seconds))
    if fraction:
        fields += int(fraction.ljust(6, "0")).to_bytes(4, "little")
    return lenenc(len(fields)) + fields


class Parameters:
    """
    The parameters of one prepared statement, whose types stay from one execution to the next.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._types: list[tuple[int, bool]] | None = None

    def read(
        self, body: Buffer, long_data: Mapping[int, bytes], charset: str = "utf8mb4"
    ) -> list[ParameterValue]:
        """
        Read the part of COM_STMT_EXECUTE behind its fixed fields.

        Args:
            body: that part.
            long_data: what came before by COM_STMT_SEND_LONG_DATA, by parameter.
            charset: of texts.

        Raises:
            FormatError: it does not fit the statement.
        """
        if not self._count:
            return []
        reader = FieldReader(body, what="COM_STMT_EXECUTE")
        bitmap = reader.take((self._count + 7) // 8)
        if reader.u8():
            pairs = [reader.take(2) for _ in range(self._count)]
            self._types = [(code, bool(flags & _UNSIGNED)) for code, flags in pairs]
        if self._types is None:
            raise FormatError("COM_STMT_EXECUTE: parameters without types", offset=0)
        values: list[ParameterValue] = []
        for index, (code, unsigned) in enumerate(self._types):
            if index in long_data:
                values.append(_texts(code, long_data[index], charset))
            elif bitmap[index // 8] >> index % 8 & 1:
                values.append(None)
            else:
                values.append(_decoded(reader, code, charset, unsigned=unsigned))
        return values


def _texts(code: int, data: bytes, charset: str) -> str | bytes:
    return data if code in _BYTES_TYPES else decoded(data, charset)


def _decoded(reader: FieldReader, code: int, charset: str, *, unsigned: bool) -> ParameterValue:
    if code == ColumnType.NULL:
        return None
    if code in _INTEGER_BYTES:
        data = reader.take(_INTEGER_BYTES[ColumnType(code)])
        return int.from_bytes(data, "little", signed=not unsigned)
    if code == ColumnType.DOUBLE:
        return _decoded_float(_DOUBLE.unpack(reader.take(8))[0])
    if code == ColumnType.FLOAT:
        return _decoded_float(_FLOAT.unpack(reader.take(4))[0])
    if code in _TEXT_TYPES:
        return _texts(code, reader.lestr(), charset)
    if code in _DECIMAL_TYPES:
        return _decoded_decimal(reader.lestr())
    if code in _MOMENTS:
        moment = _decoded_moment(reader.u8str())
        return moment.date() if code == ColumnType.DATE and isinstance(moment, datetime) else moment
    if code == ColumnType.TIME:
        return _decoded_time(reader.u8str())
    raise FormatError(f"COM_STMT_EXECUTE: parameter of type {code}")


def _decoded_float(number: float) -> float | None:
    """Return a number; SQL has none for infinity, and for what is no number."""
    return number if isfinite(number) else None


def _decoded_decimal(data: bytes) -> Decimal:
    try:
        number = Decimal(data.decode())
    except (UnicodeDecodeError, InvalidOperation) as error:
        raise FormatError("COM_STMT_EXECUTE: a decimal number that is none") from error
    if not number.is_finite() or abs(number.adjusted()) + len(data) > DECIMAL_DIGITS_MAX:
        raise FormatError("COM_STMT_EXECUTE: a decimal number with too many digits")
    return number


def _decoded_moment(data: bytes) -> datetime | str:
    """Return the moment; one that no calendar has (0000-00-00) as SQL writes it."""
    fields = data.ljust(11, b"\0")
    year, fraction = (int.from_bytes(part, "little") for part in (fields[:2], fields[7:11]))
    try:
        month, day, hour, minute, second = fields[2:7]
        return datetime(year, month, day, hour, minute, second, fraction)  # noqa: DTZ001 - without zone
    except (ValueError, OverflowError):
        text = f"{year:04}-{fields[2]:02}-{fields[3]:02}"
        if len(data) > 4:
            text += f" {fields[4]:02}:{fields[5]:02}:{fields[6]:02}"
        return f"{text}.{fraction:06}" if fraction else text


def _decoded_time(data: bytes) -> timedelta:
    fields = data.ljust(12, b"\0")
    days, fraction = (int.from_bytes(part, "little") for part in (fields[1:5], fields[8:12]))
    if days > TIME_DAYS_MAX:
        raise FormatError(f"COM_STMT_EXECUTE: a time of {days} days")
    hours, minutes, seconds = fields[5:8]
    time = timedelta(days, seconds, fraction, minutes=minutes, hours=hours)
    return -time if fields[0] else time
