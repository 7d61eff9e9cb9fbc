"""Commands about prepared statements; see `prepared_statement` for what answers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .character_sets import decoded, encoded
from .fields import FieldReader

if TYPE_CHECKING:
    from .fields import Buffer

STMT_PREPARE: Final = 0x16
STMT_EXECUTE: Final = 0x17
STMT_SEND_LONG_DATA: Final = 0x18
STMT_CLOSE: Final = 0x19
STMT_RESET: Final = 0x1A
STMT_FETCH: Final = 0x1C
LAST_PREPARED: Final = 0xFFFFFFFF  # statement id: the one prepared last


@dataclass(frozen=True, slots=True)
class StmtPrepare:
    """Prepare a statement, its text as in `Query`. Answer: see `prepared_statement`."""

    sql: str

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([STMT_PREPARE]) + encoded(self.sql, "utf8mb4")


@dataclass(frozen=True, slots=True)
class StmtExecute:
    """Execute a prepared statement; *parameters* is the part behind the fixed fields."""

    statement_id: int
    flags: int
    parameters: bytes


@dataclass(frozen=True, slots=True)
class StmtSendLongData:
    """A piece of a long parameter. No answer."""

    statement_id: int
    parameter: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StmtClose:
    """Forget a prepared statement. No answer."""

    statement_id: int


@dataclass(frozen=True, slots=True)
class StmtReset:
    """Forget the long parameters of a prepared statement. Answer: OK."""

    statement_id: int


@dataclass(frozen=True, slots=True)
class StmtFetch:
    """Rows of an open cursor. Answer: rows, or ERR."""

    statement_id: int


StatementCommand = StmtPrepare | StmtExecute | StmtSendLongData | StmtClose | StmtReset | StmtFetch


def statement_text(payload: Buffer, charset: str) -> str:
    """Return the text behind the code of a command; a NUL at its end is not of it."""
    return decoded(bytes(payload[1:]).removesuffix(b"\0"), charset)


def parse_statement_command(payload: Buffer, charset: str = "utf8mb4") -> StatementCommand:
    """
    Read one payload of a command about a prepared statement, its text in *charset*.

    Raises:
        FormatError: the fields do not fit the payload.
    """
    code = payload[0]
    if code == STMT_PREPARE:
        return StmtPrepare(statement_text(payload, charset))
    reader = FieldReader(payload, 1, what="command on a prepared statement")
    statement_id = reader.u32()
    if code == STMT_CLOSE:
        return StmtClose(statement_id)
    if code == STMT_FETCH:
        return StmtFetch(statement_id)
    if code == STMT_RESET:
        return StmtReset(statement_id)
    if code == STMT_SEND_LONG_DATA:
        return StmtSendLongData(statement_id, reader.u16(), reader.rest())
    flags = reader.u8()
    reader.u32()  # iterations, always 1
    return StmtExecute(statement_id, flags, reader.rest())
