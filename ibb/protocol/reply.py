"""
What a server answers: OK, ERR, EOF, in both directions (`result_set` has the tables).

    OK   00, lenenc affected rows, lenenc last insert id, u16 status, u16 warnings, [lestr info]
    ERR  ff, u16 code, [#, 5 bytes of sqlstate,] message
    EOF  fe, u16 warnings, u16 status

A payload that begins with fe is an EOF only below `EOF_BYTES_MAX`; a longer one is a row that
begins with an 8-byte length. With DEPRECATE_EOF a result set ends with an OK whose first byte
is fe.
Source: dump-protocol 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mysql_mimic.packets import make_eof, make_ok
from mysql_mimic.types import Capabilities, ServerStatus

from .character_sets import encoded, readable
from .errors import FormatError, SqlError
from .fields import FieldReader, lestr
from .handshake import STATUS_AUTOCOMMIT

if TYPE_CHECKING:
    from .fields import Buffer

OK_BYTE: Final = 0x00
EOF_BYTE: Final = 0xFE
ERR_BYTE: Final = 0xFF
EOF_BYTES_MAX: Final = 9  # an EOF is shorter
MESSAGE_BYTES_MAX: Final = 511  # of an ERR: what MariaDB's clients have room for
SQLSTATE_UNKNOWN: Final = "HY000"
_UTF8: Final = "utf8mb4"

_PROTOCOL_41: Final = Capabilities.CLIENT_PROTOCOL_41
_SQLSTATE_MARK: Final = b"#"
_SQLSTATE_BYTES: Final = 5


@dataclass(frozen=True, slots=True)
class Ok:
    """The fields of an OK packet."""

    affected_rows: int = 0
    last_insert_id: int = 0
    status: int = STATUS_AUTOCOMMIT
    warnings: int = 0
    info: bytes = b""


def ok(
    *,
    affected_rows: int = 0,
    last_insert_id: int = 0,
    status: int = STATUS_AUTOCOMMIT,
    warnings: int = 0,
    info: bytes = b"",
    ends_rows: bool = False,
) -> bytes:
    """
    Return an OK packet.

    An *info* (at login the proof of the certificate) goes behind the numbers unless it is empty.
    One that *ends_rows* begins with fe, as the end of a result set under DEPRECATE_EOF does.
    """
    packet = make_ok(
        _PROTOCOL_41,
        ServerStatus(status),
        eof=ends_rows,
        affected_rows=affected_rows,
        last_insert_id=last_insert_id,
        warnings=warnings,
    )
    return packet + lestr(info) if info else packet


def err(code: int, sqlstate: str, message: str, charset: str = _UTF8) -> bytes:
    """
    Return an ERR packet; without *sqlstate* in the short form that may come before the greeting.

    A *message*, sent in *charset*, is cut above `MESSAGE_BYTES_MAX` bytes of UTF-8.
    """
    assert 0 < code < 1 << 16
    assert len(sqlstate) in (0, _SQLSTATE_BYTES)
    mark = _SQLSTATE_MARK + sqlstate.encode("ascii") if sqlstate else b""
    whole = readable(message).encode()[:MESSAGE_BYTES_MAX]
    text = whole.decode(errors="ignore")  # no half character
    return bytes([ERR_BYTE]) + code.to_bytes(2, "little") + mark + encoded(text, charset)


def err_of(error: SqlError, charset: str = _UTF8) -> bytes:
    """Return *error* as an ERR packet, its message in *charset*."""
    return err(error.code, error.sqlstate, error.message, charset)


def eof(*, status: int = STATUS_AUTOCOMMIT, warnings: int = 0) -> bytes:
    """Return an EOF packet."""
    return make_eof(_PROTOCOL_41, ServerStatus(status), warnings=warnings)


def is_ok(payload: Buffer) -> bool:
    """Return whether the answer to a login or command is an OK."""
    return len(payload) > 0 and payload[0] == OK_BYTE


def is_err(payload: Buffer) -> bool:
    """Return whether *payload* is an ERR, in whatever place."""
    return len(payload) > 0 and payload[0] == ERR_BYTE


def is_eof(payload: Buffer) -> bool:
    """Return whether *payload* is an EOF, or the OK that ends rows under DEPRECATE_EOF."""
    return 0 < len(payload) < EOF_BYTES_MAX and payload[0] == EOF_BYTE


def parse_ok(payload: Buffer) -> Ok:
    """
    Read an OK packet, also one that begins with fe.

    Raises:
        Truncated: it ends early.
    """
    reader = FieldReader(payload, 1, what="OK packet")
    affected_rows, last_insert_id = reader.lenenc(), reader.lenenc()
    status, warnings = reader.u16(), reader.u16()
    info = reader.lestr() if reader.remaining else b""
    return Ok(affected_rows, last_insert_id, status, warnings, info)


def parse_eof(payload: Buffer) -> Ok:
    """
    Read an EOF packet; only *status* and *warnings* are in it.

    Raises:
        Truncated: it ends early.
    """
    reader = FieldReader(payload, 1, what="EOF packet")
    warnings, status = reader.u16(), reader.u16()
    return Ok(status=status, warnings=warnings)


def parse_err(payload: Buffer) -> SqlError:
    """
    Read an ERR packet; the sqlstate is HY000 where there is none.

    Raises:
        FormatError: it is no ERR packet or ends early.
    """
    reader = FieldReader(payload, 1, what="ERR packet")
    code = reader.u16()
    if not code:
        raise FormatError("ERR packet: error number 0")
    text = reader.rest()
    sqlstate = SQLSTATE_UNKNOWN
    if text.startswith(_SQLSTATE_MARK) and len(text) > _SQLSTATE_BYTES:
        sqlstate = text[1 : 1 + _SQLSTATE_BYTES].decode("ascii", errors="replace")
        text = text[1 + _SQLSTATE_BYTES :]
    return SqlError(code, sqlstate, text.decode(errors="replace"))
