"""
A look into one event group: its events as SHOW BINLOG EVENTS words them, and their rows; and the
groups of a file.

A group may be larger than memory: what is read, shown and waited for is limited, and what was left
out is said.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from ibb.protocol.event import EventType
from ibb.protocol.event_info import event_info, event_word
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.rows.rows_event import OPS
from ibb.storage.file_name import binlog_name, parse_binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_file_start
from ibb.storage.holds import HoldKind
from ibb.storage.position import Position

from .row_texts import RowTexts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.event_splitter import EventPart
    from ibb.protocol.gtid import Gtid
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.history import History

    from .statement_rows import Row, Value

EVENTS_MAX: Final = 500  # of one answer
GROUPS_MAX: Final = 200  # of one answer
BYTES_MAX: Final = 64 << 20  # of a group that are read for one answer
SECONDS_MAX: Final = 2.0
INFO_CHARS_MAX: Final = 1000
HOLDER: Final = "the dashboard"
_TOO_LARGE: Final = "the event is too large for its rows to be shown"
GROUP_COLUMNS: Final = ("Gtid", "Time", "File", "Position")


EventRow: TypeAlias = "dict[str, Value | list[str]]"


class NoSuchGroup(LookupError):  # noqa: N818 - an answer
    """There is no group at a place; the message says so."""


class GroupLook(NamedTuple):
    """
    What is in a group.

    Attributes:
        timestamp: seconds since 1970, of the GTID event.
        size: bytes that were read, of the whole group if it `is_whole`.
        events: that were read; `rows` show some of them.
        left_out: why the rest was not read, "" if all was.
    """

    gtid: Gtid
    position: Position
    timestamp: int
    size: int
    events: int
    rows: list[EventRow]
    left_out: str


class GroupList(NamedTuple):
    """Groups of a file, and the offset behind them, None at its end."""

    rows: list[Row]
    following: int | None


def look_into(history: History, position: Position, skip: int = 0) -> GroupLook:
    """
    Read the group whose commit record begins at *position*; blocking.

    Args:
        history: where it is.
        position: as `list_groups` and searches give it.
        skip: events that are not to be shown.

    Raises:
        NoSuchGroup: none begins there.
        FormatError, DiskError: it is damaged, or cannot be read.
    """
    with history.hold(HoldKind.READER, HOLDER):
        group = next(_groups_from(history, position), None)
        if group is None or group.position != position or group.gtid is None:
            file = binlog_name(position.file_no)
            raise NoSuchGroup(f"no group begins in {file} at {position.offset}")
        return _look(group, group.gtid, skip)


def _look(group: StoredGroup, gtid: Gtid, skip: int) -> GroupLook:
    until = time.monotonic() + SECONDS_MAX
    splitter = EventSplitter()
    texts = RowTexts()
    rows: list[EventRow] = []
    size = events = at = 0
    left_out = ""
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if not part.first:
                continue
            if part.header.type == EventType.TABLE_MAP:
                texts.add_table(part.data)
            if events >= skip and len(rows) < EVENTS_MAX:
                rows.append(_event_row(part, events, at, texts))
            events += 1
            at += part.header.length
        size += len(piece)
        if size >= BYTES_MAX:
            left_out = f"only its first {size} bytes were read"
        elif time.monotonic() > until:
            left_out = f"only its first {size} bytes were read, in the time for a look"
        if left_out:
            break
    return GroupLook(gtid, group.position, group.timestamp, size, events, rows, left_out)


def list_groups(history: History, file: str, offset: int, limit: int) -> GroupList:
    """
    Return groups whose commit record begins in a file; blocking.

    Args:
        history: where they are.
        file: its name.
        offset: none before it.
        limit: `GROUPS_MAX` at most.

    Raises:
        NoSuchGroup: there is no such file.
        FormatError, DiskError: it is damaged, or cannot be read.
    """
    number = parse_binlog_name(file)
    if number is None or number not in {each.file_no for each in history.files()}:
        raise NoSuchGroup(f"there is no file {file!r}")
    until = time.monotonic() + SECONDS_MAX
    limit = max(1, min(limit, GROUPS_MAX))
    rows: list[Row] = []
    with history.hold(HoldKind.READER, HOLDER):
        for group in _groups_from(history, Position(number, offset)):
            place = group.position
            if place.file_no != number:
                break
            if len(rows) >= limit or time.monotonic() > until:
                return GroupList(rows, place.offset)
            if group.gtid is not None:
                values = (str(group.gtid), group.timestamp, file, place.offset)
                rows.append(dict(zip(GROUP_COLUMNS, values, strict=True)))
    return GroupList(rows, None)


def _groups_from(history: History, position: Position) -> Iterator[StoredGroup]:
    """
    Yield the groups that begin at *position* or behind it.

    Where a record begins is known of the beginnings of pages only: so the page is read.
    """
    pages = history.pages
    header = pages.header(position.file_no)
    if header is None or not 0 <= position.offset < header.page_count * header.page_size:
        return
    page_no = position.offset // header.page_size
    start = Position(position.file_no, page_no * header.page_size)
    reader = GroupReader(pages, find_file_start(pages, position.file_no) if page_no <= 1 else start)
    while (group := reader.next()) is not None:
        if group.position >= position:
            yield group


def _event_row(part: EventPart, number: int, at: int, texts: RowTexts) -> EventRow:
    header = part.header
    told: list[str] = []
    if header.type in OPS:
        told = texts.rows_of(part.data) if part.last else [_TOO_LARGE]
    return {
        "Number": number,
        "Event_type": event_word(header.type),
        "Server_id": header.server_id,
        "Bytes": header.length,
        "Offset": at,
        "Info": event_info(header.type, part.data)[:INFO_CHARS_MAX],
        "Rows": told,
    }
