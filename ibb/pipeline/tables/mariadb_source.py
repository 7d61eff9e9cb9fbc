"""The source's MariaDB: views of its tables at one GTID, read as change tables have them."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import SSCursor

from ibb.pipeline.ddl.column_types import base_type
from ibb.protocol.rows.text_encoding import label_of

from .errors import PipelineError
from .generated import UNLOGGED, kind_of, logs_generated
from .key_values import check_unique
from .place import Place
from .server_traits import ServerTraits
from .shape import TYPE_METADATA
from .source_tables import SourceTable, TableRedefined, named_at, quoted, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from .config import ServerConfig

CONNECT_SECONDS: Final = 30
READ_SECONDS: Final = 3600  # one statement without a row
LOCK_WAIT_SECONDS: Final = 10  # for a table that others lock, who may wait for one read before
LOOK_SECONDS: Final = 10.0  # between looks at all tables that are not read yet
PASSWORD_BYTES_MAX: Final = 4096
XIDS_SHOWN: Final = 5  # in an error
FETCH_ROWS_MAX: Final = 10_000  # at a time; as few at first as there may be large ones
FETCH_ROWS_FIRST: Final = 16
FETCH_BYTES: Final = 8 << 20  # that a fetch aims at, by the rows before it
RANGE_BYTES: Final = 32 << 20  # of a range that is collected, by what the server knows of the table
_NOT_ALLOWED: Final = frozenset({1142, 1227, 1401})  # denied: command, privilege, XA RECOVER
# No such table, a lock that is waited for in vain or in a circle, defined anew behind the view.
_REDEFINED: Final = frozenset({1146, 1205, 1213, 1412})
_NO_RANGES: Final = frozenset({"year", "time", "bit"})  # whose values are no integers in SQL
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class View:
    """
    Connections that see the same rows, those of `place`.

    Args:
        connections: inside a transaction each.
        place: where their view is.
    """

    def __init__(self, connections: Sequence[pymysql.Connection[Any]], place: Place) -> None:
        self.connections = list(connections)
        self.place = place
        self._looked = time.monotonic()

    def read(self, table: SourceTable, worker: int, condition: str = "") -> Iterator[pa.Table]:
        """
        Yield the rows of *table*, in pieces.

        Args:
            table: which one.
            worker: number of the connection.
            condition: what comes behind WHERE; empty: all rows.

        Raises:
            PipelineError: the server ends it: the table is not as it was in the view, mostly.
        """
        columns = ", ".join(_expression(field) for field in table.schema)
        where = f" WHERE {condition}" if condition else ""
        try:
            with self.connections[worker].cursor(SSCursor) as cursor:
                cursor.execute(f"SELECT {columns} FROM {quoted(*table.name)}{where}")  # noqa: S608 - quoted names
                size = FETCH_ROWS_FIRST
                while rows := cursor.fetchmany(size):
                    piece = _table_of(table.schema, rows)
                    size = FETCH_BYTES * len(rows) // max(piece.nbytes, 1)
                    size = max(1, min(size, FETCH_ROWS_MAX))
                    yield piece
        except pymysql.Error as error:
            raise PipelineError(f"{table.name}: the server refused: {error.args[-1]}") from error

    def keep_name(self, table: SourceTable, others: Sequence[SourceTable] = ()) -> None:
        """
        Have the name of *table* mean the same one until the view ends.

        A view is of rows, not of names: who exchanges two tables of one kind behind its beginning
        would have each read for the other. Who has begun to read one cannot be overtaken any more;
        all connections do: a statement that waits for one of them would keep the next one waiting.

        Args:
            table: which is read next.
            others: that are read behind it; looked at too, if that is `LOOK_SECONDS` ago, for it
                may be hours until it is their turn.

        Raises:
            TableRedefined: it, or another one, is gone, or not what it was when the view began.
            PipelineError: the server refuses to read it.
        """
        try:
            for connection in self.connections:
                with connection.cursor() as cursor:
                    cursor.execute(f"SELECT 1 FROM {quoted(*table.name)} LIMIT 1")  # noqa: S608
        except pymysql.Error as error:
            refused = TableRedefined if error.args[0] in _REDEFINED else PipelineError
            raise refused(f"{table.name}: the server refused: {error.args[-1]}") from error
        now = time.monotonic()
        looked = [table]
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            looked += others
        for one in looked:
            if named_at(self.connections[0], one.name) != one.named_at:
                raise TableRedefined(
                    f"{one.name}: it was renamed, or defined anew, behind the view"
                )

    def check_unique(self, table: SourceTable, key: Sequence[str]) -> None:
        """
        Check that the rows of *table* differ in *key*, as change tables keep it.

        Raises:
            PipelineError: some do not.
        """
        check_unique(self.connections[0], table, key, self.place.position)

    def ranges(self, table: SourceTable, rows: int) -> list[str]:
        """
        Return conditions that cut *table* into pieces by its key.

        A piece has about *rows* rows, or about `RANGE_BYTES` where that is less.
        """
        if len(table.key) != 1:
            return [""]
        key = table.schema.field(table.key[0])
        kind = base_type((key.metadata or {}).get(TYPE_METADATA, b"").decode())
        if not pa.types.is_integer(key.type) or kind in _NO_RANGES:
            return [""]
        name = quoted(key.name)
        ((low, high),) = rows_of(
            self.connections[0],
            f"SELECT MIN({name}), MAX({name}) FROM {quoted(*table.name)}",  # noqa: S608
        )
        if low is None:
            return [""]
        ((count, size),) = rows_of(
            self.connections[0],
            "SELECT TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s "
            "AND TABLE_NAME = %s",
            *table.name,
        )
        wanted = max(int(count or 0) // rows, int(size or 0) // RANGE_BYTES)
        pieces = min(wanted + 1, RANGES_MAX)
        width = (high - low) // pieces + 1
        return [
            f"{name} >= {start} AND {name} < {start + width}"
            for start in range(low, high + 1, width)
        ]


RANGES_MAX: Final = 10_000  # of one table


def open_connections(
    stack: ExitStack, config: ServerConfig
) -> tuple[pymysql.Connection[Any], list[pymysql.Connection[Any]]]:
    """
    Return a connection that commands, and those that are to have a view.

    Raises:
        PipelineError: the server cannot be reached, or its settings do not allow a pipeline.
    """
    control = stack.enter_context(_connect(config))
    _check_settings(control)
    workers = [stack.enter_context(_connect(config)) for _ in range(config.workers)]
    for worker in workers:
        rows_of(worker, f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")
    return control, workers


def server_traits(config: ServerConfig) -> ServerTraits:
    """
    Ask the server how it is.

    Raises:
        PipelineError: it cannot be reached.
    """
    with _connect(config) as connection:
        ((letter_case, version),) = rows_of(
            connection, "SELECT @@lower_case_table_names, VERSION()"
        )
    return ServerTraits(bool(letter_case), logs_generated(version))


def _connect(config: ServerConfig) -> pymysql.Connection[Any]:
    password = ""
    if config.password_file:
        try:
            with Path(config.password_file).open() as file:
                password = file.readline(PASSWORD_BYTES_MAX).rstrip("\r\n")
        except OSError as error:
            raise PipelineError(f"server.password_file: {error.strerror}") from error
    place = {"unix_socket": config.socket} if config.socket else {"host": config.host}
    try:
        return pymysql.connect(
            **place,
            port=config.port,
            user=config.user,
            password=password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            init_command="SET time_zone = '+00:00', sql_mode = '', net_write_timeout = 3600, "
            "session_track_state_change = 0",
        )
    except pymysql.Error as error:
        where = config.socket or f"{config.host}:{config.port}"
        raise PipelineError(f"server {where}: {error.args[-1]}") from error


def _check_settings(connection: pymysql.Connection[Any]) -> None:
    ((on, form, metadata),) = rows_of(
        connection, "SELECT @@log_bin, @@GLOBAL.binlog_format, @@GLOBAL.binlog_row_metadata"
    )
    for variable, is_right, wanted in (
        ("log_bin", bool(on), "ON"),
        ("binlog_format", form == "ROW", "ROW"),
        ("binlog_row_metadata", metadata == "FULL", "FULL"),
    ):
        if not is_right:
            raise PipelineError(
                f"the server's {variable} must be {wanted}: the binlog does not say enough of rows "
                f"otherwise. SET GLOBAL {variable} = {wanted}, then FLUSH BINARY LOGS"
            )


def check_prepared(connection: pymysql.Connection[Any]) -> None:
    """
    Check that no XA transaction is prepared at the server.

    Raises:
        PipelineError: some are.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("XA RECOVER FORMAT='SQL'")
            found = [row[-1] for row in cursor.fetchmany(XIDS_SHOWN + 1)]
    except pymysql.Error as error:
        if error.args[0] in _NOT_ALLOWED:
            return  # the stream stops where one of them is committed
        raise PipelineError(f"the server refused 'XA RECOVER': {error.args[-1]}") from error
    if found:
        xids = "; ".join(found[:XIDS_SHOWN]) + (" ..." if len(found) > XIDS_SHOWN else "")
        raise PipelineError(
            f"XA transactions are prepared at the server, which a snapshot would lose: {xids}. "
            "Commit or roll them back, then begin again"
        )


def _expression(field: pa.Field) -> str:
    """Return what SELECT must be asked for, so that nothing of the value is rounded."""
    name = quoted(field.name)
    if kind_of(field) == UNLOGGED:
        return "NULL"  # as in rows of the stream
    kind = base_type((field.metadata or {}).get(TYPE_METADATA, b"").decode())
    if kind == "float":
        return f"CAST({name} AS DOUBLE)"
    if kind == "bit":
        return f"CAST({name} AS UNSIGNED)"
    return f"CAST({name} AS CHAR)" if kind in ("time", "uuid", "inet4", "inet6") else name


def _table_of(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array([_value(value, field.type) for value in column], field.type)
        for field, column in zip(schema, columns, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def _value(value: Any, kind: pa.DataType) -> Any:
    """Return a value of PyMySQL as the row decoder gives it."""
    if value is None:
        return None
    if pa.types.is_integer(kind):
        return _microseconds(value) if isinstance(value, str) else int(value)
    if pa.types.is_string(kind):
        if isinstance(value, bytes):  # of ENUM and SET alone, where texts are bytes
            return label_of(value, "binary")
        return f"{value:f}" if isinstance(value, Decimal) else value
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return None if isinstance(value, str) else value  # 0000-00-00 and its like
    if pa.types.is_boolean(kind):
        return bool(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_binary(kind) and isinstance(value, str):
        return value.encode()
    return value


def _microseconds(text: str) -> int:
    """Return a TIME such as `-838:59:59.5` in microseconds."""
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    moment = dt.timedelta(hours=int(hours), minutes=int(minutes), seconds=int(whole))
    found = moment // _MICROSECOND + int(fraction.ljust(6, "0") or 0)
    return -found if text.startswith("-") else found
