"""SHOW BINLOG READERS, LEASES and STORAGE, which MariaDB does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.result_set import Column, ColumnType, ResultSet

from .show_result import result_of, signed_column, text_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.result_set import Value
    from ibb.server.sql.ast import Show
    from ibb.server.sql.context import Context


def show_readers(_: Show, context: Context) -> ResultSet:
    """Answer SHOW BINLOG READERS: who reads, how far behind, and what that holds back."""
    columns = [
        signed_column("Id", ColumnType.LONGLONG, 11),
        text_column(context, "User", 128),
        text_column(context, "Host", 64),
        Column.long("Server_id", 10),
        text_column(context, "Gtid_pos", 1024),
        text_column(context, "File", 255),
        Column.longlong("Position", 20),
        Column.longlong("Groups_behind", 20),
        Column.longlong("Bytes_behind", 20),
        Column.longlong("Seconds_behind", 20, nullable=True),
        text_column(context, "Holds_from", 255),
        text_column(context, "State", 64),
        Column.longlong("Ack_age", 20, nullable=True),
    ]
    rows: list[Sequence[Value]] = []
    for line in () if context.probing else context.facts.readers():
        context.stop_if_interrupted()  # what each has ahead is looked up in the files
        rows.append(line)
    return result_of(context, columns, rows)


def show_leases(_: Show, context: Context) -> ResultSet:
    """Answer SHOW BINLOG LEASES: named positions, and from which file on they hold."""
    columns = [
        text_column(context, "Name", 200),
        text_column(context, "Gtid_pos", 1024),
        text_column(context, "Holds_from", 255, nullable=True),
        Column.longlong("Age", 20),
        Column.longlong("Expires_after", 20, nullable=True),
        text_column(context, "Lapsed", 3),
    ]
    rows: list[Sequence[Value]] = []
    for line in () if context.probing else context.facts.leases():
        context.stop_if_interrupted()  # each is looked up in the files
        rows.append(line)
    return result_of(context, columns, rows)


def show_storage(_: Show, context: Context) -> ResultSet:
    """Answer SHOW BINLOG STORAGE: how full the store is between a commit and its file."""
    columns = [
        *(Column.longlong(name, 20, nullable=True) for name in ("Redo_used", "Redo_limit")),
        *(Column.longlong(name, 20, nullable=True) for name in ("Page_fifo", "Page_fifo_limit")),
        Column.longlong("Unsynced", 20, nullable=True),
        Column.longlong("Syncs", 20),
        Column.longlong("Sync_time", 20),
    ]
    line = None if context.probing else context.facts.storage_line()
    return result_of(context, columns, [] if line is None else [line])
