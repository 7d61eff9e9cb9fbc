"""
The table map event: which table a number stands for in the rows events behind it.

    post-header: u48 number, u16 flags
    u8 + database, 00, u8 + table, 00, lenenc columns, a type byte for each,
    lenenc + metadata of the types, a bit for each column that may be NULL, optional metadata

Source: dump-protocol 4.9b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, EventType, expect_event
from ibb.protocol.fields import FieldReader

from .column import Column, read_column
from .optional_metadata import OptionalMetadata, read_optional_metadata

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

COLUMNS_MAX: Final = 4096  # of a table in MariaDB
HAS_TRIGGERS: Final = 1 << 14  # flag
_POST_HEADER_BYTES: Final = 8
_WHAT: Final = "Table_map event"


class TableMap(NamedTuple):
    """
    One table map.

    Args:
        number: stands for the table in the rows events of this group.
        columns: in the order of their values.
        nullable: whether a column may be NULL.
        optional: what the primary says of the columns besides; all empty by its default.
        layout: the bytes behind the number: equal for tables that are described alike.
        has_triggers: whether triggers may change more, under the statement that changes it.
    """

    number: int
    database: str
    table: str
    columns: tuple[Column, ...]
    nullable: tuple[bool, ...]
    optional: OptionalMetadata
    layout: bytes
    has_triggers: bool = False

    @classmethod
    def parse(cls, event: Buffer) -> TableMap:
        """
        Read a table map event without checksum.

        Raises:
            FormatError: it is cut or says what cannot be, with the offset in the event.
        """
        expect_event(event, EventType.TABLE_MAP, _POST_HEADER_BYTES)
        reader = FieldReader(memoryview(event), HEADER_SIZE, what=_WHAT)
        number = reader.u48()
        flags = reader.u16()
        layout = bytes(event[reader.offset :])
        database, table = _name(reader), _name(reader)
        count = reader.lenenc()
        if not 0 < count <= COLUMNS_MAX:
            raise FormatError(
                f"{_WHAT} of {database}.{table}: {count} columns; 1 to {COLUMNS_MAX} are possible",
                offset=reader.offset,
            )
        codes = reader.take(count)
        size = reader.lenenc()
        start = reader.offset
        reader.skip(size)
        metadata = FieldReader(memoryview(event)[: reader.offset], start, what=_WHAT)
        columns = tuple(read_column(code, metadata) for code in codes)
        metadata.expect_end()
        bits = reader.take((count + 7) // 8)
        nullable = tuple(bool(bits[index // 8] & 1 << index % 8) for index in range(count))
        optional = read_optional_metadata(reader, columns)
        has_triggers = bool(flags & HAS_TRIGGERS)
        return cls(number, database, table, columns, nullable, optional, layout, has_triggers)


def _name(reader: FieldReader) -> str:
    name = reader.u8str().decode(errors="replace")
    if reader.u8():
        raise FormatError(f"{_WHAT}: a name does not end with NUL", offset=reader.offset - 1)
    return name
