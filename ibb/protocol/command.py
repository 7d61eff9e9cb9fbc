"""
What a client asks once it is logged in: one payload, a code byte and its fields.

`parse_command` reads every command that a server of binlogs answers; all others come as
`Unknown`. File names are cut at their first NUL, since some clients pad or end them so.
Source: dump-protocol 2.3, 3, 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct
from typing import TYPE_CHECKING, Final

from .character_sets import encoded
from .fields import FieldReader
from .statement_command import (
    STMT_FETCH,
    STMT_PREPARE,
    STMT_RESET,
    StatementCommand,
    parse_statement_command,
    statement_text,
)

if TYPE_CHECKING:
    from .fields import Buffer

SEMI_SYNC_ACK: Final = 0xEF  # first byte of the only payload that is no command

_DUMP_HEAD: Final = Struct("<BIHI")
_DUMP_GTID_HEAD: Final = Struct("<BHII")
_REGISTER_TAIL: Final = Struct("<HII")
_ACK_HEAD: Final = Struct("<BQ")
_MARIADB_GTIDS_BYTES_MIN: Final = 5  # "0-1-2"
_MARIADB_GTIDS_ALPHABET: Final = frozenset(b"0123456789-, ")


class CommandCode(IntEnum):
    """The first byte, under MariaDB's names without COM_."""

    SLEEP = 0x00
    QUIT = 0x01
    INIT_DB = 0x02
    QUERY = 0x03
    FIELD_LIST = 0x04
    REFRESH = 0x07
    STATISTICS = 0x09
    PROCESS_KILL = 0x0C
    PING = 0x0E
    BINLOG_DUMP = 0x12
    REGISTER_SLAVE = 0x15
    SET_OPTION = 0x1B
    BINLOG_DUMP_GTID = 0x1E
    RESET_CONNECTION = 0x1F


class RefreshOption(IntFlag):
    """What a refresh concerns, as far as there is anything of it here."""

    LOG = 0x02
    HOSTS = 0x08
    SLAVE = 0x40
    MASTER = 0x80


class DumpFlag(IntFlag):
    """What a dump is asked to do."""

    NON_BLOCK = 1  # send what there is, then EOF
    SEND_ANNOTATE_ROWS = 2
    THROUGH_GTID = 4  # BINLOG_DUMP_GTID only: a GTID set follows


@dataclass(frozen=True, slots=True)
class Quit:
    """The client goes; no answer."""

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.QUIT])


@dataclass(frozen=True, slots=True)
class Ping:
    """Answer: OK."""

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.PING])


@dataclass(frozen=True, slots=True)
class Statistics:
    """Answer: one payload of bare text."""

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.STATISTICS])


@dataclass(frozen=True, slots=True)
class Refresh:
    """Do what FLUSH and RESET do, as `mariadb-admin` asks. Answer: OK or ERR."""

    options: int  # bits of `RefreshOption` and others

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.REFRESH, self.options])


@dataclass(frozen=True, slots=True)
class ResetConnection:
    """Forget the connection's variables. Answer: OK."""

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.RESET_CONNECTION])


@dataclass(frozen=True, slots=True)
class InitDb:
    """USE a database. Answer: OK."""

    database: str

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.INIT_DB]) + self.database.encode()


@dataclass(frozen=True, slots=True)
class Query:
    """One statement; bytes that are no text as in `character_sets`. Answer: OK, ERR or rows."""

    sql: str

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.QUERY]) + encoded(self.sql, "utf8mb4")


@dataclass(frozen=True, slots=True)
class FieldList:
    """Which columns like a *pattern* a table has. Answer: definitions and EOF, or ERR."""

    table: str
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class ProcessKill:
    """KILL of a connection. Answer: OK."""

    connection_id: int


@dataclass(frozen=True, slots=True)
class SetOption:
    """Multiple statements on (0) or off (1). Answer: EOF."""

    option: int

    def encode(self) -> bytes:
        """Return the payload."""
        return bytes([CommandCode.SET_OPTION]) + self.option.to_bytes(2, "little")


@dataclass(frozen=True, slots=True)
class RegisterSlave:
    """
    A replica introduces itself. Answer: OK.

    Args:
        host: what the replica reports, as are *user*, *password* and *port*; often empty.
    """

    server_id: int
    host: str = ""
    user: str = ""
    password: str = ""
    port: int = 0
    rank: int = 0
    master_id: int = 0

    def encode(self) -> bytes:
        """Return the payload."""
        parts = [bytes([CommandCode.REGISTER_SLAVE]), self.server_id.to_bytes(4, "little")]
        for text in (self.host, self.user, self.password):
            data = text.encode()
            parts += [len(data).to_bytes(1, "little"), data]
        parts.append(_REGISTER_TAIL.pack(self.port, self.rank, self.master_id))
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class BinlogDump:
    """
    Send events from here on. Answer: the stream.

    Args:
        position: the low 32 bits; 0 from clients that count on GTIDs.
        server_id: the replica's own; 0 from tools.
        file_name: may be empty; stale when the connection has set a GTID position.
    """

    position: int
    flags: DumpFlag
    server_id: int
    file_name: str

    def encode(self) -> bytes:
        """Return the payload."""
        head = _DUMP_HEAD.pack(CommandCode.BINLOG_DUMP, self.position, self.flags, self.server_id)
        return head + self.file_name.encode()


@dataclass(frozen=True, slots=True)
class BinlogDumpGtid:
    """
    MySQL's way to ask for a dump. Answer: ERR, or the stream.

    Args:
        gtid_set: the data block as it came.
    """

    position: int
    flags: DumpFlag
    server_id: int
    file_name: str
    gtid_set: bytes

    @property
    def mariadb_gtids(self) -> str | None:
        """The data block where it is a MariaDB GTID list in text, else None."""
        data = self.gtid_set
        if len(data) < _MARIADB_GTIDS_BYTES_MIN or not data[:1].isdigit():
            return None
        return data.decode("ascii") if _MARIADB_GTIDS_ALPHABET.issuperset(data) else None

    @property
    def has_mysql_gtids(self) -> bool:
        """
        Whether the data block is a MySQL GTID set that names anything.

        Raises:
            Truncated: it is too short to say.
        """
        if not self.gtid_set or self.mariadb_gtids is not None:
            return False
        return FieldReader(self.gtid_set, what="MySQL GTID set").u64() > 0


@dataclass(frozen=True, slots=True)
class SemiSyncAck:
    """A replica has stored everything up to *position* of *file_name*. No answer."""

    position: int
    file_name: str

    def encode(self) -> bytes:
        """Return the payload."""
        return _ACK_HEAD.pack(SEMI_SYNC_ACK, self.position) + self.file_name.encode()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A command that is not served. Answer: ERR 1047."""

    code: int


Command = (
    Quit
    | Ping
    | Statistics
    | Refresh
    | ResetConnection
    | InitDb
    | Query
    | FieldList
    | ProcessKill
    | StatementCommand
    | SetOption
    | RegisterSlave
    | BinlogDump
    | BinlogDumpGtid
    | SemiSyncAck
    | Unknown
)


def parse_command(payload: Buffer, charset: str = "utf8mb4") -> Command:
    """
    Read one payload of a client that is logged in; an empty one is `Unknown(SLEEP)`.

    Args:
        payload: what came.
        charset: of statements.

    Raises:
        FormatError: the fields do not fit the payload.
    """
    if not payload:
        return Unknown(CommandCode.SLEEP)
    code = payload[0]
    match code:
        case CommandCode.QUERY:
            return Query(statement_text(payload, charset))
        case CommandCode.QUIT:
            return Quit()
        case CommandCode.PING:
            return Ping()
        case CommandCode.STATISTICS:
            return Statistics()
        case CommandCode.REFRESH:
            return Refresh(payload[1] if len(payload) > 1 else 0)
        case CommandCode.RESET_CONNECTION:
            return ResetConnection()
        case CommandCode.INIT_DB:
            return InitDb(_text(payload[1:]))
        case CommandCode.FIELD_LIST:
            table, _, pattern = bytes(payload[1:]).partition(b"\0")
            return FieldList(_text(table), _file_name(pattern))
        case CommandCode.PROCESS_KILL:
            return ProcessKill(FieldReader(payload, 1, what="COM_PROCESS_KILL").u32())
        case _ if STMT_PREPARE <= code <= STMT_RESET or code == STMT_FETCH:
            return parse_statement_command(payload, charset)
        case CommandCode.SET_OPTION:
            return SetOption(FieldReader(payload, 1, what="COM_SET_OPTION").u16())
        case CommandCode.REGISTER_SLAVE:
            return _parse_register_slave(payload)
        case CommandCode.BINLOG_DUMP:
            return _parse_binlog_dump(payload)
        case CommandCode.BINLOG_DUMP_GTID:
            return _parse_binlog_dump_gtid(payload)
        case _ if code == SEMI_SYNC_ACK:
            reader = FieldReader(payload, 1, what="semi-sync acknowledgement")
            return SemiSyncAck(reader.u64(), _file_name(reader.rest()))
        case _:
            return Unknown(code)


def _parse_register_slave(payload: Buffer) -> RegisterSlave:
    reader = FieldReader(payload, 1, what="COM_REGISTER_SLAVE")
    return RegisterSlave(
        reader.u32(),
        _text(reader.u8str()),
        _text(reader.u8str()),
        _text(reader.u8str()),
        reader.u16(),
        reader.u32(),
        reader.u32(),
    )


def _parse_binlog_dump(payload: Buffer) -> BinlogDump:
    reader = FieldReader(payload, what="COM_BINLOG_DUMP")
    _, position, flags, server_id = _DUMP_HEAD.unpack(reader.take(_DUMP_HEAD.size))
    return BinlogDump(position, DumpFlag(flags), server_id, _file_name(reader.rest()))


def _parse_binlog_dump_gtid(payload: Buffer) -> BinlogDumpGtid:
    reader = FieldReader(payload, what="COM_BINLOG_DUMP_GTID")
    head = _DUMP_GTID_HEAD.unpack(reader.take(_DUMP_GTID_HEAD.size))
    _, flag_bits, server_id, name_bytes = head
    file_name = _file_name(reader.take(name_bytes))
    position = reader.u64()
    flags = DumpFlag(flag_bits)
    gtid_set = b""
    if flags & DumpFlag.THROUGH_GTID or reader.remaining:
        gtid_set = reader.take(reader.u32())
    return BinlogDumpGtid(position, flags, server_id, file_name, gtid_set)


def _file_name(data: bytes) -> str:
    return _text(data.split(b"\0", 1)[0])


def _text(data: Buffer) -> str:
    return bytes(data).decode(errors="replace")
