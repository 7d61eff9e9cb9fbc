"""
Result sets in text: what answers a SELECT or SHOW, in both directions.

    lenenc column count; one definition a column; EOF; one row a payload; EOF

    definition  lestr "def", schema, table, org_table, name, org_name, [extended metadata,]
                0c, u16 collation, u32 display length in bytes, u8 type, u16 flags, u8 decimals,
                0000
    row         lestr a value, fb for NULL

Three capabilities change this: DEPRECATE_EOF drops the first EOF and makes the last one an OK,
EXTENDED_METADATA adds a string to each definition, CACHE_METADATA a byte to the column count.
Our server announces none of them; they are here so that what real servers say can be read.
Source: dump-protocol 1.7, 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

from mysql_mimic.types import ColumnDefinition as ColumnFlag
from mysql_mimic.types import ColumnType

from .capabilities import Capability
from .character_sets import encoded
from .errors import FormatError, ProtocolError
from .fields import LENENC_NULL, FieldReader, lenenc, lestr
from .handshake import STATUS_AUTOCOMMIT
from .reply import Ok, eof, is_eof, is_err, is_ok, ok, parse_eof, parse_err, parse_ok

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .fields import Buffer

__all__ = [
    "Column",
    "ColumnFlag",
    "ColumnType",
    "ReplyReader",
    "ResultSet",
    "Value",
    "encode_row",
    "parse_row",
]

Value = str | bytes | int | float | None

COLUMNS_MAX: Final = 4096  # of a table in MariaDB
REPLY_BYTES_MAX: Final = 16 << 20  # of all packets of one reply that a client collects
COLLATION_BINARY: Final = 63
COLLATION_LATIN1: Final = 8
DECIMALS_NOT_FIXED: Final = 39  # what real servers say of text

_PLAIN: Final = Capability(0)
_UTF8: Final = "utf8mb4"
_TAIL: Final = Struct("<BHIBHBH")
_TAIL_BYTES: Final = 0x0C  # of the tail after this byte
_CATALOG: Final = b"def"
_DEFINITIONS_FOLLOW: Final = b"\x01"  # under CACHE_METADATA
_LOCAL_INFILE: Final = 0xFB  # first byte of a request for a file of the client's
_NULL: Final = bytes([LENENC_NULL])
_NUMBER_FLAGS: Final = ColumnFlag.UNSIGNED_FLAG | ColumnFlag.BINARY_FLAG

# Collations of one and of three bytes a character; all others count as four.
_ONE_BYTE: Final = frozenset(
    (5, COLLATION_LATIN1, 11, 15, 31, 47, 48, 49, COLLATION_BINARY, 65, 94)
)
_THREE_BYTES: Final = frozenset((33, 83, *range(192, 216), 223))


@dataclass(frozen=True, slots=True)
class Column:
    """
    One column's definition.

    Args:
        length: display width in bytes; clients ignore it.
        org_name: name of the column behind an alias; empty for expressions.
        extended: extended metadata as it came; empty unless a real server sent some.
    """

    name: str
    type: int
    length: int
    flags: int = 0
    collation: int = COLLATION_BINARY
    decimals: int = 0
    schema: str = ""
    table: str = ""
    org_table: str = ""
    org_name: str = ""
    extended: bytes = b""

    @classmethod
    def text(
        cls,
        name: str,
        characters: int,
        *,
        collation: int = COLLATION_LATIN1,
        nullable: bool = False,
    ) -> Column:
        """Return a VAR_STRING column, `S(characters)` in the notation of the specification."""
        length = characters * _bytes_per_character(collation)
        flags = 0 if nullable else ColumnFlag.NOT_NULL_FLAG
        return cls(name, ColumnType.VAR_STRING, length, flags, collation, DECIMALS_NOT_FIXED)

    @classmethod
    def long(cls, name: str, digits: int, *, nullable: bool = False) -> Column:
        """Return an unsigned LONG column, `L(digits)`."""
        flags = _NUMBER_FLAGS if nullable else _NUMBER_FLAGS | ColumnFlag.NOT_NULL_FLAG
        return cls(name, ColumnType.LONG, digits, flags)

    @classmethod
    def longlong(cls, name: str, digits: int, *, nullable: bool = False) -> Column:
        """Return an unsigned LONGLONG column, `LL(digits)`."""
        flags = _NUMBER_FLAGS if nullable else _NUMBER_FLAGS | ColumnFlag.NOT_NULL_FLAG
        return cls(name, ColumnType.LONGLONG, digits, flags)

    def encode(self, capabilities: Capability = _PLAIN, charset: str = _UTF8) -> bytes:
        """
        Return the payload under the *capabilities* in effect, its names in *charset*.

        mysql-mimic's `make_column_definition_41` is not used: it repeats the name where
        a real server leaves org_name empty.
        """
        names = (self.schema, self.table, self.org_table, self.name, self.org_name)
        parts = [lestr(_CATALOG), *(lestr(encoded(name, charset)) for name in names)]
        if capabilities & Capability.EXTENDED_METADATA:
            parts.append(lestr(self.extended))
        parts.append(
            _TAIL.pack(
                _TAIL_BYTES,
                self.collation,
                self.length,
                self.type,
                self.flags,
                self.decimals,
                0,
            )
        )
        return b"".join(parts)

    @classmethod
    def parse(cls, payload: Buffer, capabilities: Capability = _PLAIN) -> Column:
        """
        Read a definition sent under the *capabilities* in effect.

        Raises:
            FormatError: it is none.
        """
        reader = FieldReader(payload, what="column definition")
        if reader.lestr() != _CATALOG:
            raise FormatError("column definition: another catalog than def", offset=0)
        schema, table, org_table, name, org_name = (
            reader.lestr().decode(errors="replace") for _ in range(5)
        )
        extended = reader.lestr() if capabilities & Capability.EXTENDED_METADATA else b""
        start = reader.offset
        tail = _TAIL.unpack(reader.take(_TAIL.size))
        reader.expect_end()
        tail_bytes, collation, length, type_, flags, decimals, _ = tail
        if tail_bytes != _TAIL_BYTES:
            raise FormatError(f"column definition: fixed part of {tail_bytes} bytes", offset=start)
        return cls(
            name,
            type_,
            length,
            flags,
            collation,
            decimals,
            schema,
            table,
            org_table,
            org_name,
            extended,
        )


@dataclass(frozen=True, slots=True)
class ResultSet:
    """
    Columns and rows; every row has one value a column.

    Values are sent as text: `str` in *charset*, `bytes` as they are, numbers in decimal, None as
    NULL. Those that were received are all `bytes` or None.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    status: int = STATUS_AUTOCOMMIT
    warnings: int = 0
    charset: str = _UTF8

    def head(self, capabilities: Capability = _PLAIN) -> list[bytes]:
        """Return the payloads before the rows; an ERR may follow them instead."""
        count = lenenc(len(self.columns))
        if capabilities & Capability.CACHE_METADATA:
            count += _DEFINITIONS_FOLLOW
        payloads = [count, *(self._definitions(capabilities))]
        if not capabilities & Capability.DEPRECATE_EOF:
            payloads.append(eof(status=self.status, warnings=self.warnings))
        return payloads

    def _definitions(self, capabilities: Capability) -> Iterator[bytes]:
        return (column.encode(capabilities, self.charset) for column in self.columns)

    def packets(self, capabilities: Capability = _PLAIN) -> Iterator[bytes]:
        """Yield all payloads, to be framed one after the other."""
        yield from self.head(capabilities)
        width = len(self.columns)
        for row in self.rows:
            assert len(row) == width
            yield encode_row(row, self.charset)
        if capabilities & Capability.DEPRECATE_EOF:
            yield ok(status=self.status, warnings=self.warnings, ends_rows=True)
        else:
            yield eof(status=self.status, warnings=self.warnings)


def encode_row(values: Sequence[Value], charset: str = _UTF8) -> bytes:
    """Return one row's payload, its texts in *charset*."""
    return b"".join(_NULL if value is None else lestr(_sent(value, charset)) for value in values)


def parse_row(payload: Buffer, width: int) -> tuple[bytes | None, ...]:
    """
    Read one row of *width* values.

    Raises:
        FormatError: it has fewer or more.
    """
    reader = FieldReader(payload, what="row")
    values = tuple(reader.lestr_or_null() for _ in range(width))
    reader.expect_end()
    return values


class ReplyReader:
    """
    Collects the payloads that answer one Query, up to `REPLY_BYTES_MAX` in all.

    Args:
        capabilities: those in effect.
    """

    def __init__(self, capabilities: Capability = _PLAIN) -> None:
        self._capabilities = capabilities
        self._bytes = 0
        self._width: int | None = None  # columns announced
        self._columns: list[Column] = []
        self._rows: list[tuple[bytes | None, ...]] = []
        self._in_rows = False

    def add(self, payload: Buffer) -> Ok | ResultSet | None:
        """
        Take the next payload; return the reply when it is whole, else None.

        Raises:
            SqlError: the server refused, perhaps after some rows.
            FormatError: the payload does not fit its place.
            ProtocolError: the server wants a file, or the reply is too large.
        """
        self._bytes += len(payload)
        if self._bytes > REPLY_BYTES_MAX:
            raise ProtocolError(f"a reply of more than {REPLY_BYTES_MAX} bytes")
        if is_err(payload):
            raise parse_err(payload)
        if self._width is None:
            return self._begin(payload)
        if len(self._columns) < self._width:
            self._columns.append(Column.parse(payload, self._capabilities))
            self._in_rows = len(self._columns) == self._width and self._deprecate_eof
            return None
        if not self._in_rows:
            if not is_eof(payload):
                raise FormatError("result set: no EOF after the column definitions")
            self._in_rows = True
            return None
        if is_eof(payload):
            end = parse_ok(payload) if self._deprecate_eof else parse_eof(payload)
            return ResultSet(self._columns, self._rows, end.status, end.warnings)
        self._rows.append(parse_row(payload, self._width))
        return None

    @property
    def _deprecate_eof(self) -> bool:
        return bool(self._capabilities & Capability.DEPRECATE_EOF)

    def _begin(self, payload: Buffer) -> Ok | None:
        """Take the first payload: an OK, or a column count."""
        if is_ok(payload):
            return parse_ok(payload)
        if len(payload) > 0 and payload[0] == _LOCAL_INFILE:
            raise ProtocolError("the server asks for a file of ours")
        reader = FieldReader(payload, what="column count")
        self._width = reader.lenenc()
        if self._capabilities & Capability.CACHE_METADATA and reader.u8() == 0:
            raise FormatError("result set: a text reply without column definitions", offset=1)
        reader.expect_end()
        if not 0 < self._width <= COLUMNS_MAX:
            raise FormatError(f"result set: {self._width} columns", offset=0)
        return None


def _sent(value: str | bytes | float, charset: str) -> bytes:
    return value if isinstance(value, bytes) else encoded(str(value), charset)


def _bytes_per_character(collation: int) -> int:
    if collation in _ONE_BYTE:
        return 1
    return 3 if collation in _THREE_BYTES else 4
