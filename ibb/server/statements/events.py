"""
SHOW BINLOG EVENTS: the groups that begin in one file, event by event.

As MariaDB 12.3 does with these files: a position stands for the next group that begins behind
it, never for an error, and all positions shown are 0. Source: ibb-format 12.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import ERROR_WHEN_EXECUTING_COMMAND
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader
from ibb.protocol.event_info import event_info, event_word
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.result_set import Column, ResultSet
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name, parse_binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_file_start
from ibb.storage.holds import HoldKind
from ibb.storage.position import Position

from .privileges_needed import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.result_set import Value
    from ibb.server.sql.ast import ShowBinlogEvents
    from ibb.server.sql.context import Context
    from ibb.storage.group_reader import StoredGroup

COMMAND: Final = "SHOW BINLOG EVENTS"
ROWS_MAX: Final = 100_000  # of one answer
INFO_CHARS_MAX: Final = 4096  # of one row
ANSWER_BYTES_MAX: Final = 16 << 20
_FIRST_POSITION: Final = 4
_PAGES_MAX: Final = (1 << 32) - 1  # of a file


def show_binlog_events(statement: ShowBinlogEvents, context: Context) -> ResultSet:
    """
    Answer SHOW BINLOG EVENTS; what is left out for its size is warned of.

    Raises:
        SqlError: 1220, there is no such file, or it is damaged; 1227; 1317.
    """
    require(COMMAND, context)
    columns = event_columns(context)
    if context.probing:
        return ResultSet(columns, [], context.variables.status)
    rows: list[tuple[Value, ...]] = []
    left, size = statement.offset, 0
    try:
        for row in _events(statement, context):
            if left:
                left -= 1
                continue
            if len(rows) == statement.limit:
                break
            size += len(row[-1])
            if len(rows) >= ROWS_MAX or size > ANSWER_BYTES_MAX:
                text = f"Only the first {len(rows)} events are shown: use FROM or LIMIT"
                context.diagnostics.add("Warning", 1105, text)
                break
            rows.append(row)
    except (FormatError, DiskError) as error:
        raise ERROR_WHEN_EXECUTING_COMMAND.error(COMMAND, error) from error
    return ResultSet(columns, rows, context.variables.status, context.diagnostics.new)


def event_columns(context: Context) -> list[Column]:
    """Return the columns of SHOW BINLOG EVENTS."""
    charset = context.variables.system_charset
    return [
        Column.text("Log_name", 20, collation=charset),
        Column.longlong("Pos", 21),
        Column.text("Event_type", 20, collation=charset),
        Column.long("Server_id", 10),
        Column.longlong("End_log_pos", 21),
        Column.text("Info", 20, collation=charset),
    ]


def _events(
    statement: ShowBinlogEvents, context: Context
) -> Iterator[tuple[str, int, str, int, int, str]]:
    history = context.facts.history
    with history.hold(HoldKind.READER, COMMAND):
        start = _start(statement, context)
        if start is None:
            return
        name = binlog_name(start.file_no)
        reader = GroupReader(history.pages, start)
        while (group := reader.next()) is not None:
            context.stop_if_interrupted()
            if group.position.file_no != start.file_no:
                return
            if group.position.offset < (statement.position or 0):
                continue
            for header, info in _described(group, context):
                yield name, 0, event_word(header.type), header.server_id, 0, info


def _start(statement: ShowBinlogEvents, context: Context) -> Position | None:
    """Return where to begin; None for a file in which nothing begins yet."""
    history = context.facts.history
    pages = history.pages
    file_no = pages.first_file()
    if statement.file is not None:
        number = parse_binlog_name(statement.file)
        known = {file.file_no for file in history.files()}
        if number is None or number not in known:
            raise ERROR_WHEN_EXECUTING_COMMAND.error(COMMAND, "Could not find target log")
        file_no = number
    if file_no > pages.last_file():
        return None
    header = pages.header(file_no)
    if header is None:
        return None
    page_no = (statement.position or 0) // header.page_size
    if page_no >= _PAGES_MAX:
        text = f"Invalid pos specified. Requested from pos:{statement.position}"
        raise ERROR_WHEN_EXECUTING_COMMAND.error(COMMAND, text)
    if page_no <= 1:
        return find_file_start(pages, file_no)
    if page_no >= header.page_count:
        return None
    return Position(file_no, page_no * header.page_size)


def _described(group: StoredGroup, context: Context) -> Iterator[tuple[EventHeader, str]]:
    if group.gtid is None:
        header = EventHeader.unpack(group.head)
        yield header, event_info(header.type, group.head)
        return
    splitter = EventSplitter()
    for piece in group.pieces():
        context.stop_if_interrupted()
        for part in splitter.feed(piece):
            if part.first:
                info = event_info(part.header.type, part.data)
                yield part.header, info[:INFO_CHARS_MAX]
