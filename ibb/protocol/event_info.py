"""
An event in a line: the words of SHOW BINLOG EVENTS.

Texts are those of MariaDB 10.11. Source: dump-protocol 4, 9.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING, Final

from .character_sets import COLLATION_NAMES, charset_of
from .errors import FormatError
from .event import (
    HEADER_SIZE,
    QUERY_SIZES,
    TYPE_OFFSET,
    EventFlag,
    EventHeader,
    EventType,
)
from .event_group import ROWS
from .fields import FieldReader
from .format_description import FormatDescription
from .gtid_event import GtidEvent, GtidFlag, XaId
from .incident import Incident

if TYPE_CHECKING:
    from collections.abc import Callable

    from .fields import Buffer

_REAL, _INTEGER, _DECIMAL = 1, 2, 4  # what a user variable holds; else a text
_DOUBLE: Final = Struct("<d")
_DECIMAL_DIGITS_MAX: Final = 81
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # by the number of digits

_FLAGS2: Final = Struct("<BI")  # the first of a query's settings
_FLAGS2_CODE: Final = 0
_SETTINGS: Final = (
    (0x4000000, "foreign_key_checks=0"),
    (0x4000, "sql_auto_is_null=1"),
    (0x8000000, "unique_checks=0"),
    (0x8000, "check_constraint_checks=0"),
    (0x10000000, "@@sql_if_exists=1"),
    (0x40000000, "@@system_versioning_insert_history=1"),
)

_WORDS: Final = {
    EventType.QUERY: "Query",
    EventType.STOP: "Stop",
    EventType.ROTATE: "Rotate",
    EventType.INTVAR: "Intvar",
    EventType.RAND: "RAND",
    EventType.USER_VAR: "User var",
    EventType.FORMAT_DESCRIPTION: "Format_desc",
    EventType.XID: "Xid",
    EventType.BEGIN_LOAD_QUERY: "Begin_load_query",
    EventType.EXECUTE_LOAD_QUERY: "Execute_load_query",
    EventType.APPEND_BLOCK: "Append_block",
    EventType.DELETE_FILE: "Delete_file",
    EventType.TABLE_MAP: "Table_map",
    EventType.WRITE_ROWS_V1: "Write_rows_v1",
    EventType.UPDATE_ROWS_V1: "Update_rows_v1",
    EventType.DELETE_ROWS_V1: "Delete_rows_v1",
    EventType.WRITE_ROWS: "Write_rows",
    EventType.UPDATE_ROWS: "Update_rows",
    EventType.DELETE_ROWS: "Delete_rows",
    EventType.INCIDENT: "Incident",
    EventType.HEARTBEAT: "Heartbeat",
    EventType.XA_PREPARE: "XA_prepare",
    EventType.ANNOTATE_ROWS: "Annotate_rows",
    EventType.BINLOG_CHECKPOINT: "Binlog_checkpoint",
    EventType.GTID: "Gtid",
    EventType.GTID_LIST: "Gtid_list",
    EventType.START_ENCRYPTION: "Start_encryption",
    EventType.QUERY_COMPRESSED: "Query_compressed",
    EventType.WRITE_ROWS_COMPRESSED_V1: "Write_rows_compressed_v1",
    EventType.UPDATE_ROWS_COMPRESSED_V1: "Update_rows_compressed_v1",
    EventType.DELETE_ROWS_COMPRESSED_V1: "Delete_rows_compressed_v1",
}
INFO_BYTES_MAX: Final = 16 << 10  # of a compressed text that are looked at
_LOAD_HEAD_BYTES: Final = 13  # behind the head of a query
_INTVARS: Final = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}
_STATEMENT_END: Final = 1


def event_word(code: int) -> str:
    """Return MariaDB's word for a type of event."""
    try:
        return _WORDS.get(EventType(code), EventType(code).name.capitalize())
    except ValueError:
        return "Unknown"


def event_info(code: int, event: Buffer) -> str:
    """
    Return what MariaDB says of an event.

    Args:
        code: its type.
        event: the event without checksum; of a large one the beginning is enough.

    Raises:
        FormatError: it is damaged.
    """
    describe = _DESCRIBED.get(code)
    if describe is None:
        return _rows(event) if code in ROWS else ""
    return describe(event)


def _reader(event: Buffer, what: str) -> FieldReader:
    return FieldReader(event, HEADER_SIZE, what=what)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _format_description(event: Buffer) -> str:
    described = FormatDescription.parse(bytes(event), has_checksum=False)
    return f"Server ver: {described.server_version}, Binlog ver: {described.binlog_version}"


def _query(event: Buffer) -> str:
    reader = _reader(event, "Query event")
    name_bytes, status_bytes = QUERY_SIZES.unpack(reader.take(QUERY_SIZES.size))
    settings = _settings(reader.take(status_bytes))
    database = _text(reader.take(name_bytes))
    reader.take(1)
    text = reader.rest()
    if event[TYPE_OFFSET] == EventType.QUERY_COMPRESSED:
        text = _decompressed(text)
    if EventHeader.unpack(event).flags & EventFlag.SUPPRESS_USE:
        database = ""
    return f"{f'use `{database}`; ' if database else ''}{settings}{_text(text)}"


def _settings(status: bytes) -> str:
    """Return the settings that a query was run with and that are not as usual."""
    if len(status) < _FLAGS2.size or status[0] != _FLAGS2_CODE:
        return ""
    flags = _FLAGS2.unpack_from(status)[1]
    shown = [text for flag, text in _SETTINGS if flags & flag]
    return f"set {', '.join(shown)}; " if shown else ""


def _decompressed(body: bytes) -> bytes:
    """Return the beginning of a compressed text. Source: dump-protocol 4.11."""
    length_bytes = body[0] & 7 if body else 0
    inflater = zlib.decompressobj()
    try:
        return inflater.decompress(body[1 + length_bytes :], INFO_BYTES_MAX)
    except zlib.error as error:
        raise FormatError(f"compressed Query event: {error}", offset=HEADER_SIZE) from error


def _load_query(event: Buffer) -> str:
    reader = _reader(event, "Execute_load_query event")
    name_bytes, status_bytes = QUERY_SIZES.unpack(reader.take(QUERY_SIZES.size))
    file_id = reader.u32()
    reader.take(_LOAD_HEAD_BYTES - 4 + status_bytes)
    database = _text(reader.take(name_bytes))
    reader.take(1)
    used = f"use `{database}`; " if database else ""
    return f"{used}{_text(reader.rest())} ;file_id={file_id}"


def _gtid(event: Buffer) -> str:
    parsed = GtidEvent.parse(bytes(event))
    if parsed.flags2 & GtidFlag.PREPARED_XA and parsed.xa_id is not None:
        line = f"XA START {parsed.xa_id} GTID "
    else:
        line = "GTID " if parsed.standalone else "BEGIN GTID "
    line += str(parsed.gtid)
    return line if parsed.commit_id is None else f"{line} cid={parsed.commit_id}"


def _xa_prepare(event: Buffer) -> str:
    reader = _reader(event, "XA_prepare event")
    one_phase, format_id = reader.u8(), reader.u32()
    gtrid_bytes, bqual_bytes = reader.u32(), reader.u32()
    name = XaId(format_id, reader.take(gtrid_bytes), reader.take(bqual_bytes))
    return f"XA {'COMMIT' if one_phase else 'PREPARE'} {name}{' ONE PHASE' if one_phase else ''}"


def _commit(event: Buffer) -> str:
    return f"COMMIT /* xid={_reader(event, 'Xid event').u64()} */"


def _intvar(event: Buffer) -> str:
    reader = _reader(event, "Intvar event")
    return f"{_INTVARS.get(reader.u8(), 'INVALID')}={reader.u64()}"


def _rand(event: Buffer) -> str:
    reader = _reader(event, "Rand event")
    return f"rand_seed1={reader.u64()},rand_seed2={reader.u64()}"


def _table_map(event: Buffer) -> str:
    reader = _reader(event, "Table_map event")
    number = reader.u48()
    reader.u16()
    names = []
    for _ in range(2):
        names.append(_text(reader.u8str()))
        reader.take(1)
    return f"table_id: {number} ({'.'.join(names)})"


def _rows(event: Buffer) -> str:
    reader = _reader(event, "rows event")
    number = reader.u48()
    end = " flags: STMT_END_F" if reader.u16() & _STATEMENT_END else ""
    return f"table_id: {number}{end}"


def _annotate(event: Buffer) -> str:
    return _text(_reader(event, "Annotate_rows event").rest())


def _incident(event: Buffer) -> str:
    incident = Incident.parse(event)
    message = f": {incident.message}" if incident.message else ""
    return f"#{incident.kind} ({incident.name}){message}"


def _block(event: Buffer) -> str:
    reader = _reader(event, "file event")
    return f";file_id={reader.u32()};block_len={reader.remaining}"


def _deleted_file(event: Buffer) -> str:
    return f";file_id={_reader(event, 'Delete_file event').u32()}"


def _user_variable(event: Buffer) -> str:
    reader = _reader(event, "User_var event")
    name = _text(reader.take(reader.u32()))
    if reader.u8():
        return f"@`{name}`=NULL"
    kind, collation = reader.u8(), reader.u32()
    data = reader.take(min(reader.u32(), reader.remaining))  # of a long one only the beginning
    if kind == _REAL and len(data) == _DOUBLE.size:
        value = f"{_DOUBLE.unpack(data)[0]:.14g}"
    elif kind == _INTEGER:
        signed = not (reader.remaining and reader.u8() & 1)
        value = str(int.from_bytes(data, "little", signed=signed))
    elif kind == _DECIMAL:
        value = _decimal(data)
    else:
        shown = COLLATION_NAMES.get(collation, str(collation))
        value = f"_{charset_of(shown)} X'{data.hex().upper()}' COLLATE {shown}"
    return f"@`{name}`={value}"


def _decimal(data: bytes) -> str:
    """
    Return a stored decimal as digits: u8 precision, u8 scale, then groups of nine digits in four
    bytes, the outer ones shorter; the first bit is set unless it is negative, then all are turned.
    """
    reader = FieldReader(data, what="decimal")
    precision, scale = reader.u8(), reader.u8()
    if not 0 <= scale <= precision <= _DECIMAL_DIGITS_MAX:
        raise FormatError(f"a decimal of {precision} digits, {scale} behind the point", offset=0)
    whole = precision - scale
    sizes = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]
    stored = bytearray(reader.take(sum(_DIGIT_BYTES[digits] for digits in sizes)))
    negative = bool(stored) and not stored[0] & 0x80
    if negative:
        stored = bytearray(byte ^ 0xFF for byte in stored)
    if stored:
        stored[0] ^= 0x80
    text, at = "", 0
    for digits in sizes:
        size = _DIGIT_BYTES[digits]
        if digits:
            text += str(int.from_bytes(stored[at : at + size], "big")).zfill(digits)
        at += size
    shown = text[:whole].lstrip("0") or "0"
    return f"{'-' * negative}{shown}{'.' * bool(scale)}{text[whole:]}"


_DESCRIBED: Final[dict[int, Callable[[Buffer], str]]] = {
    EventType.FORMAT_DESCRIPTION: _format_description,
    EventType.QUERY: _query,
    EventType.QUERY_COMPRESSED: _query,
    EventType.EXECUTE_LOAD_QUERY: _load_query,
    EventType.GTID: _gtid,
    EventType.XID: _commit,
    EventType.XA_PREPARE: _xa_prepare,
    EventType.INTVAR: _intvar,
    EventType.RAND: _rand,
    EventType.TABLE_MAP: _table_map,
    EventType.ANNOTATE_ROWS: _annotate,
    EventType.INCIDENT: _incident,
    EventType.BEGIN_LOAD_QUERY: _block,
    EventType.APPEND_BLOCK: _block,
    EventType.DELETE_FILE: _deleted_file,
    EventType.USER_VAR: _user_variable,
}
