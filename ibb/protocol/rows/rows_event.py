"""
Rows events: which table and what happened, and their rows whether compressed or not.

    post-header: u48 number of the table, u16 flags, [version 2: u16 size of more, itself included]
    lenenc columns, bits of the images, rows; in compressed events the rows alone are deflated

Source: dump-protocol 4.10, 4.11.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, TYPE_OFFSET, EventType, type_name
from ibb.protocol.fields import FieldReader

from .row_stage import DELETE, INSERT, UPDATE
from .table_map import COLUMNS_MAX

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

ROWS_BYTES_MAX: Final = 1 << 30  # of rows when they are inflated: no packet is larger
STATEMENT_END: Final = 1  # flag: the last rows event of its statement

OPS: Final = {
    EventType.WRITE_ROWS_V1: INSERT,
    EventType.UPDATE_ROWS_V1: UPDATE,
    EventType.DELETE_ROWS_V1: DELETE,
    EventType.WRITE_ROWS: INSERT,
    EventType.UPDATE_ROWS: UPDATE,
    EventType.DELETE_ROWS: DELETE,
    EventType.WRITE_ROWS_COMPRESSED_V1: INSERT,
    EventType.UPDATE_ROWS_COMPRESSED_V1: UPDATE,
    EventType.DELETE_ROWS_COMPRESSED_V1: DELETE,
    EventType.WRITE_ROWS_COMPRESSED: INSERT,
    EventType.UPDATE_ROWS_COMPRESSED: UPDATE,
    EventType.DELETE_ROWS_COMPRESSED: DELETE,
}
PLAIN: Final = {  # the usual ones, of which nothing has to be looked at but the type
    int(EventType.WRITE_ROWS_V1): INSERT,
    int(EventType.UPDATE_ROWS_V1): UPDATE,
    int(EventType.DELETE_ROWS_V1): DELETE,
}
_VERSION_2: Final = frozenset(code for code in OPS if not code.name.endswith("_V1"))
_COMPRESSED: Final = frozenset(code for code in OPS if "_COMPRESSED" in code.name)
_POST_HEADER_BYTES: Final = 8


class RowsHead(NamedTuple):
    """
    A rows event, ready to be staged.

    Args:
        number: of the table, as in the table map before it.
        op: INSERT, UPDATE or DELETE.
        flags: `STATEMENT_END` and others.
        event: the event, inflated.
        offset: where in `event` the number of columns stands.
    """

    number: int
    op: int
    flags: int
    event: Buffer
    offset: int


def open_rows(event: Buffer) -> RowsHead:
    """
    Read the head of a rows event without checksum, and inflate its rows if they are compressed.

    Raises:
        FormatError: it is no rows event, is cut, or its compressed rows are damaged.
    """
    code = event[TYPE_OFFSET] if len(event) >= HEADER_SIZE else 0
    op = OPS.get(code)  # type: ignore[call-overload]  # codes are integers
    if op is None:
        raise FormatError(f"rows event wanted, found {type_name(code)}")
    reader = FieldReader(event, HEADER_SIZE, what=f"{type_name(code)} event")
    number, flags = reader.u48(), reader.u16()
    if code in _VERSION_2:
        more = reader.u16()
        if more < 2:
            raise FormatError(
                f"{type_name(code)} event with {more} bytes more", offset=reader.offset
            )
        reader.skip(more - 2)
    offset = reader.offset
    if code in _COMPRESSED:
        event = _inflated(event, reader, op)
    return RowsHead(number, op, flags, event, offset)


def _inflated(event: Buffer, reader: FieldReader, op: int) -> bytes:
    """Return the event with its rows as they were."""
    columns = reader.lenenc()
    if columns > COLUMNS_MAX:
        raise FormatError(f"{reader.what} of {columns} columns", offset=reader.offset)
    reader.skip((columns + 7) // 8 * (2 if op == UPDATE else 1))
    head = bytes(event[: reader.offset])
    first = reader.u8()
    size_bytes = first & 7
    if first & 0xF0 != 0x80 or not 1 <= size_bytes <= 4:
        raise FormatError(
            f"{reader.what}: {first:02x} is no head of compressed rows", offset=reader.offset - 1
        )
    size = int.from_bytes(reader.take(size_bytes), "big")
    if size > ROWS_BYTES_MAX:
        raise FormatError(
            f"{reader.what}: {size} bytes of rows; {ROWS_BYTES_MAX} are possible",
            offset=reader.offset,
        )
    inflater = zlib.decompressobj()
    try:
        rows = inflater.decompress(event[reader.offset :], size + 1)
    except zlib.error as error:
        raise FormatError(f"{reader.what}: {error}", offset=reader.offset) from error
    if len(rows) != size or not inflater.eof:
        raise FormatError(
            f"{reader.what}: compressed rows do not have their {size} bytes", offset=reader.offset
        )
    return head + rows
