"""SHOW: the server's state in MariaDB's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    BAD_DB_ERROR,
    NO_DB_ERROR,
    NO_MASTER_CONNECTION,
    NOT_SUPPORTED_YET,
)
from ibb.protocol.result_set import Column, ColumnFlag, ColumnType, ResultSet
from ibb.server.sql.like import is_like
from ibb.server.sql.select import STATUS_NO_INDEX_USED, of_table
from ibb.server.sql.show_views import PRIVILEGES_SHOWN, VIEWS
from ibb.server.sql.tables import INFORMATION_SCHEMA, TABLES, status_values, variable_rows
from ibb.server.sql.types import Kind, SqlType, text_type
from ibb.storage.file_name import binlog_name

from .events import event_columns
from .grants import show_create_user, show_grants
from .privileges_needed import require
from .replica_status import ALL_STATUS_COLUMNS, STATUS_COLUMNS
from .show_binlog import show_leases, show_readers, show_storage
from .show_result import result_of, signed_column, text_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.server.sql.ast import Show
    from ibb.server.sql.context import Context

_INFO_CHARS: Final = 100  # of a statement in SHOW PROCESSLIST
_NAME_BYTES: Final = 3  # of a character in utf8mb3, in which MariaDB keeps what it shows
_NO_DEFAULT: Final = 0x1000  # flag of a column
_IN_DATABASE: Final = frozenset({"TABLES", "TABLE STATUS", "TRIGGERS", "EVENTS"})


def show(statement: Show, context: Context) -> ResultSet:
    """
    Answer a SHOW.

    Raises:
        SqlError: 1227 without the privilege, 1046 or 1049 for a database, 1235 not here.
    """
    require(f"SHOW {statement.what}", context)
    if statement.what in _IN_DATABASE:
        _check_database(statement.name or context.database)
    answer = _ANSWERS.get(statement.what)
    if answer is not None:
        return answer(statement, context)
    view = VIEWS.get(statement.what)
    if view is None:
        raise NOT_SUPPORTED_YET.error(f"SHOW {statement.what}")
    table, compared, columns = view
    found = _view(statement, context, table, columns, compared)
    if statement.what == "EVENTS":
        return ResultSet(found.columns, found.rows, context.variables.status)
    return found


def _view(
    statement: Show,
    context: Context,
    table: str,
    columns: Sequence[tuple[str, str]],
    compared: str,
) -> ResultSet:
    like = statement.filter.like
    return of_table(
        TABLES[table],
        columns,
        context,
        keep=statement.filter.where,
        like=None if like is None else (compared, like),
    )


def _check_database(name: str | None) -> None:
    if name is None:
        raise NO_DB_ERROR.error()
    if name.lower() != INFORMATION_SCHEMA:
        raise BAD_DB_ERROR.error(name)


def _binlog_status(_: Show, context: Context) -> ResultSet:
    columns = [
        text_column(context, "File", 512),
        Column.longlong("Position", 20),
        text_column(context, "Binlog_Do_DB", 255),
        text_column(context, "Binlog_Ignore_DB", 255),
    ]
    file_no, offset = context.facts.history.end()
    return result_of(context, columns, [(binlog_name(file_no), offset, "", "")])


def _binary_logs(_: Show, context: Context) -> ResultSet:
    columns = [text_column(context, "Log_name", 255), Column.longlong("File_size", 20)]
    files = context.facts.history.files()
    return result_of(context, columns, [(file.name, file.size) for file in files])


def _replica_hosts(_: Show, context: Context) -> ResultSet:
    columns = [
        Column.long("Server_id", 10),
        text_column(context, "Host", 20),
        Column.long("Port", 7),
        Column.long("Master_id", 10),
    ]
    return result_of(context, columns, context.facts.replicas())


def _warnings(statement: Show, context: Context) -> ResultSet:
    columns = [
        text_column(context, "Level", 7),
        Column.long("Code", 4),
        text_column(context, "Message", 512),
    ]
    noted = context.diagnostics
    found = noted.errors() if statement.what == "ERRORS" else noted.warnings
    end = None if statement.limit is None else statement.offset + statement.limit
    return result_of(context, columns, found[statement.offset : end])


def _count(statement: Show, context: Context) -> ResultSet:
    noted = context.diagnostics
    errors = statement.what == "COUNT ERRORS"
    name = f"@@session.{'error' if errors else 'warning'}_count"
    type_ = SqlType(Kind.INTEGER, 21, nullable=True, unsigned=True)
    count = len(noted.errors()) if errors else noted.count
    return result_of(context, [type_.column(name, context.variables.system_charset)], [(count,)])


def _named_values(statement: Show, context: Context) -> ResultSet:
    """Answer SHOW VARIABLES and SHOW STATUS; both name the session's table, as MariaDB does."""
    what = statement.what
    shown = TABLES[f"SESSION_{what}"]
    like = statement.filter.like
    if what == "VARIABLES":
        shown = shown._replace(
            rows=lambda c: (
                (str(name).lower(), value)
                for name, value in variable_rows(
                    c, statement.scope, lambda name: like is None or is_like(name, like)
                )
            )
        )
    else:
        shown = shown._replace(rows=lambda c: sorted(status_values(c).items()))
    columns = (("Variable_name", "VARIABLE_NAME"), ("Value", "VARIABLE_VALUE"))
    result = of_table(
        shown,
        columns,
        context,
        keep=statement.filter.where,
        like=None if like is None else ("VARIABLE_NAME", like),
    )
    if what == "STATUS":
        return ResultSet(result.columns, result.rows, context.variables.status)
    return result


def _processlist(statement: Show, context: Context) -> ResultSet:
    info = text_column(context, "Info", _INFO_CHARS, nullable=True)
    if statement.full:
        characters = context.facts.config.max_allowed_packet * _NAME_BYTES
        wire = ColumnType.MEDIUM_BLOB if characters < 1 << 24 else ColumnType.LONG_BLOB
        type_ = SqlType(Kind.TEXT, characters, nullable=True, wire=wire)
        info = type_.column("Info", context.variables.system_charset)
    columns = [
        signed_column("Id", ColumnType.LONGLONG, 11),
        text_column(context, "User", 128),
        text_column(context, "Host", 64),
        text_column(context, "db", 64, nullable=True),
        text_column(context, "Command", 16),
        signed_column("Time", ColumnType.LONG, 7),
        text_column(context, "State", 30, nullable=True),
        info,
        Column("Progress", ColumnType.DOUBLE, 7, 0x81, decimals=3),
    ]
    rows = [
        (
            process.id,
            process.user,
            process.host,
            process.database,
            process.command,
            int(process.seconds),
            process.state,
            process.info if statement.full or process.info is None else process.info[:_INFO_CHARS],
            "0.000",
        )
        for process in context.facts.processes(context)
    ]
    return result_of(context, columns, rows)


def _databases(statement: Show, context: Context) -> ResultSet:
    like = statement.filter.like
    name = "Database" if like is None else f"Database ({like})"
    return _view(statement, context, "SCHEMATA", [(name, "SCHEMA_NAME")], "SCHEMA_NAME")


def _tables(statement: Show, context: Context) -> ResultSet:
    like = "" if statement.filter.like is None else f" ({statement.filter.like})"
    table = TABLES["TABLES"]
    names = {"TABLE_NAME": 73, "TABLE_TYPE": 64}
    columns = tuple(
        column._replace(
            type=text_type(names[column.name], nullable=False),
            definition=_resized(column.definition, names[column.name]),
        )
        if column.name in names
        else column
        for column in table.columns
    )
    shown = [(f"Tables_in_{INFORMATION_SCHEMA}{like}", "TABLE_NAME")]
    if statement.full:
        shown.append(("Table_type", "TABLE_TYPE"))
    return of_table(
        table._replace(name="TABLE_NAMES", columns=columns),
        shown,
        context,
        keep=statement.filter.where,
        like=None if not like else ("TABLE_NAME", statement.filter.like or ""),
    )


def _resized(definition: Column, characters: int) -> Column:
    return replace(definition, length=characters * 4, org_table="TABLE_NAMES")


def _open_tables(_: Show, context: Context) -> ResultSet:
    definitions = [
        text_column(context, "Database", 64),
        text_column(context, "Table", 64),
        signed_column("In_use", ColumnType.LONGLONG, 1),
        signed_column("Name_locked", ColumnType.LONGLONG, 4),
    ]
    shown = [
        replace(
            column,
            flags=ColumnFlag.NOT_NULL_FLAG | _NO_DEFAULT,
            decimals=0,
            schema=INFORMATION_SCHEMA,
            table="OPEN_TABLES",
            org_table="OPEN_TABLES",
            org_name=column.name,
        )
        for column in definitions
    ]
    return ResultSet(shown, [], context.variables.status | STATUS_NO_INDEX_USED)


def _relay_log_events(statement: Show, context: Context) -> ResultSet:
    """Answer with nothing: a relay keeps no relay log."""
    _check_connection(statement.name)
    return result_of(context, event_columns(context), [])


def _create_database(statement: Show, context: Context) -> ResultSet:
    _check_database(statement.name)
    columns = [text_column(context, "Database", 64), text_column(context, "Create Database", 1024)]
    charset = "DEFAULT CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci"
    sql = f"CREATE DATABASE `{INFORMATION_SCHEMA}` /*!40100 {charset} */"
    return result_of(context, columns, [(INFORMATION_SCHEMA, sql)])


def _privileges(_: Show, context: Context) -> ResultSet:
    columns = [
        text_column(context, "Privilege", 10),
        text_column(context, "Context", 15),
        text_column(context, "Comment", 64),
    ]
    return result_of(context, columns, PRIVILEGES_SHOWN)


def _profiles(_: Show, context: Context) -> ResultSet:
    columns = [
        Column.long("Query_ID", 10),
        Column("Duration", ColumnType.DOUBLE, 8, 0xA1),
        text_column(context, "Query", 40),
    ]
    return result_of(context, columns, [])


def _check_connection(name: str) -> None:
    if name:
        raise NO_MASTER_CONNECTION.error(name)


def _replica_status(statement: Show, context: Context) -> ResultSet:
    _check_connection(statement.name)
    columns = [column.definition(context.variables.system_charset) for column in STATUS_COLUMNS]
    row = context.facts.replica_status()
    rows = [] if row is None else [tuple(row[column.name] for column in STATUS_COLUMNS)]
    return result_of(context, columns, rows)


def _all_replicas_status(_: Show, context: Context) -> ResultSet:
    columns = [column.definition(context.variables.system_charset) for column in ALL_STATUS_COLUMNS]
    position = str(context.facts.history.state().position())
    characters = 0 if context.probing else len(position)
    columns[-1] = text_column(context, columns[-1].name, characters)
    row = context.facts.replica_status()
    rows = [] if row is None else [tuple(row[column.name] for column in ALL_STATUS_COLUMNS)]
    return result_of(context, columns, rows)


_ANSWERS: Final[dict[str, Callable[[Show, Context], ResultSet]]] = {
    "ALL REPLICAS STATUS": _all_replicas_status,
    "BINARY LOGS": _binary_logs,
    "BINLOG LEASES": show_leases,
    "BINLOG READERS": show_readers,
    "BINLOG STATUS": _binlog_status,
    "BINLOG STORAGE": show_storage,
    "COUNT ERRORS": _count,
    "COUNT WARNINGS": _count,
    "CREATE DATABASE": _create_database,
    "CREATE USER": show_create_user,
    "DATABASES": _databases,
    "ERRORS": _warnings,
    "GRANTS": show_grants,
    "OPEN TABLES": _open_tables,
    "PRIVILEGES": _privileges,
    "PROCESSLIST": _processlist,
    "PROFILES": _profiles,
    "RELAYLOG EVENTS": _relay_log_events,
    "REPLICA HOSTS": _replica_hosts,
    "REPLICA STATUS": _replica_status,
    "STATUS": _named_values,
    "TABLES": _tables,
    "VARIABLES": _named_values,
    "WARNINGS": _warnings,
}
