"""
Query events: the text of a statement, and what its meaning depends on.

    u32 thread, u32 seconds, u8 bytes of the database's name, u16 error, u16 bytes of the settings,
    settings, name, 00, text (of a compressed event: lenenc-like length, deflated text)

LOAD DATA that is logged as a statement has 13 bytes about its file before the settings.

Source: dump-protocol 4.5, 4.11.
"""

from __future__ import annotations

import re
import zlib
from struct import Struct
from typing import Final, NamedTuple

from ibb.pipeline.ddl.session_modes import SessionModes
from ibb.protocol.errors import FormatError
from ibb.protocol.event import (
    HEADER_SIZE,
    QUERY_POST_HEADER,
    TYPE_OFFSET,
    EventFlag,
    EventHeader,
    EventType,
)
from ibb.protocol.rows.text_encoding import charset_of_collation, text_of

TEXT_BYTES_MAX: Final = 64 << 20  # of a compressed text when it is inflated
_ANSI_QUOTES: Final = 4  # in sql_mode
_NO_BACKSLASH_ESCAPES: Final = 1 << 20  # in sql_mode
_STRICT: Final = 1 << 21 | 1 << 22  # in sql_mode: for tables with transactions, and for all
_PAD_CHAR_TO_FULL_LENGTH: Final = 1 << 31  # in sql_mode
_EMPTY_STRING_IS_NULL: Final = 1 << 32  # in sql_mode
_TYPES: Final = {  # by bits of sql_mode: types that mean others
    1: (("real", "float"),),  # REAL_AS_FLOAT
    512: (("date", "datetime"), ("number", "double"), ("blob", "longblob")),  # ORACLE
    4096: (("timestamp", "datetime"),),  # MAXDB
}
_EXPLICIT_TIMESTAMPS: Final = 1 << 24  # in the flags; old servers never set it
_LOAD_BYTES: Final = 13  # u32 file, u32 begin and u32 end of the file's name in the text, u8

_FLAGS: Final = Struct("<I")
_SQL_MODE: Final = Struct("<Q")
_CHARSETS: Final = Struct("<HHH")  # collations of client, connection and server
_UTF8: Final = 45  # the collation utf8mb4_general_ci
# Names and comments, which stay as they are; else texts, of which the backslashes matter.
_PIECE: Final = re.compile(
    r"""(`[^`]*`|--(?=\s|$)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/)|'[^']*'|"[^"]*"|\\""", re.DOTALL
)
# Bytes of the settings that may come before the character set, by their code.
_FLAGS2_CODE, _SQL_MODE_CODE, _AUTO_INCREMENT_CODE, _CHARSET_CODE = 0, 1, 3, 4
_CATALOG_CODE: Final = 6  # a length and so many bytes
_FIXED_BYTES: Final = {_FLAGS2_CODE: 4, _SQL_MODE_CODE: 8, _AUTO_INCREMENT_CODE: 4}


class QueryEvent(NamedTuple):
    """
    One statement.

    Args:
        database: the session's.
        sql: its text, with backslashes as they are by default: they escape what is behind them.
        modes: of the session.
        server_charset: of the session's collation_server: of databases made without one; or empty.
        error: by which it failed at the source, having done a part; 0: it did not.
        uses_temporary: tables that it names may be the session's temporary ones.
    """

    database: str
    sql: str
    modes: SessionModes
    server_charset: str = ""
    error: int = 0
    uses_temporary: bool = False

    @classmethod
    def parse(cls, event: bytes) -> QueryEvent:
        """
        Read a Query or Execute_load_query event without checksum, compressed or not.

        Raises:
            FormatError: it is cut, or damaged.
        """
        place = HEADER_SIZE + QUERY_POST_HEADER.size
        if len(event) < place:
            raise FormatError("Query event: it is cut", offset=len(event))
        _, _, name_bytes, error, settings_bytes = QUERY_POST_HEADER.unpack_from(event, HEADER_SIZE)
        if event[TYPE_OFFSET] == EventType.EXECUTE_LOAD_QUERY:
            place += _LOAD_BYTES
        settings = _settings(event[place : place + settings_bytes])
        place += settings_bytes
        database = event[place : place + name_bytes].decode(errors="replace")
        text = event[place + name_bytes + 1 :]
        if event[TYPE_OFFSET] == EventType.QUERY_COMPRESSED:
            text = _inflated(text)
        charset = charset_of_collation(settings.collation) or "utf8mb4"
        sql = text_of(text, charset, of_statement=True)
        if settings.sql_mode & _NO_BACKSLASH_ESCAPES:
            sql = _PIECE.sub(lambda found: found[1] or found[0].replace("\\", r"\\"), sql)
        return cls(
            database,
            sql,
            SessionModes(
                ansi_quotes=bool(settings.sql_mode & _ANSI_QUOTES),
                strict=bool(settings.sql_mode & _STRICT),
                explicit_timestamps=bool(settings.flags & _EXPLICIT_TIMESTAMPS),
                empty_is_null=bool(settings.sql_mode & _EMPTY_STRING_IS_NULL),
                pads_chars=bool(settings.sql_mode & _PAD_CHAR_TO_FULL_LENGTH),
                bytewise=charset == "binary",
                types=tuple(
                    both
                    for bit, types in _TYPES.items()
                    if settings.sql_mode & bit
                    for both in types
                ),
            ),
            charset_of_collation(settings.server_collation) or "",
            error,
            bool(EventHeader.unpack(event).flags & EventFlag.THREAD_SPECIFIC),
        )


class _Settings(NamedTuple):
    """Flags, sql_mode, and the numbers of the text's and the server's collation."""

    flags: int = 0
    sql_mode: int = 0
    collation: int = _UTF8
    server_collation: int = 0


def _settings(data: bytes) -> _Settings:
    flags, sql_mode, place = 0, 0, 0
    while place < len(data):
        code = data[place]
        place += 1
        if code == _CHARSET_CODE and len(data) >= place + _CHARSETS.size:
            client, _, server = _CHARSETS.unpack_from(data, place)
            return _Settings(flags, sql_mode, client, server)
        if code == _FLAGS2_CODE and len(data) >= place + _FLAGS.size:
            flags = int(_FLAGS.unpack_from(data, place)[0])
        if code == _SQL_MODE_CODE and len(data) >= place + _SQL_MODE.size:
            sql_mode = int(_SQL_MODE.unpack_from(data, place)[0])
        if code in _FIXED_BYTES:
            place += _FIXED_BYTES[code]
        elif code == _CATALOG_CODE and place < len(data):
            place += 1 + data[place]
        else:
            break
    return _Settings(flags, sql_mode)


def _inflated(data: bytes) -> bytes:
    skipped = 1 + (data[0] & 7 if data else 0)
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data[skipped:], TEXT_BYTES_MAX)
    except zlib.error as error:
        raise FormatError(f"compressed Query event: {error}", offset=HEADER_SIZE) from error
    if not inflater.eof:
        raise FormatError("compressed Query event: it is cut or too long", offset=HEADER_SIZE)
    return text
