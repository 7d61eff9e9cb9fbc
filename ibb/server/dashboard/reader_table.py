"""
Who reads, a page at a time: the columns of SHOW BINLOG READERS, how fast each goes, and why not on.

What a reader has ahead of it is looked up in the files, which takes its time for thousands; where
it is costs nothing. So all are sorted by place, which puts who is furthest behind in bytes, in
groups and in seconds first, and only those on the page are looked up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.server.dump.readers import (
    SENDING,
    SENT_ALL,
    HeldUpBy,
    ReaderLine,
    ack_age,
    bytes_between,
    reader_lines,
)
from ibb.storage.file_name import binlog_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ibb.server.dump.readers import Progress
    from ibb.server.server import Server
    from ibb.server.session import Session

    from .statement_rows import Row, Value

PAGE_ROWS_MAX: Final = 200
LOOK_SECONDS_MAX: Final = 0.5  # for the rows of a page; the rest is shown without what is ahead
FILTER_CHARS_MAX: Final = 100
COLUMNS: Final = (  # of SHOW BINLOG READERS
    "Id",
    "User",
    "Host",
    "Server_id",
    "Gtid_pos",
    "File",
    "Position",
    "Groups_behind",
    "Bytes_behind",
    "Seconds_behind",
    "Holds_from",
    "State",
    "Ack_age",
)
ORDERS: Final = (*COLUMNS, "Rate")
KEEPS_UP: Final = "keeps up"
LATE_ON_PURPOSE: Final = "is served late: dump_delay or its account"
KEEPS_UP_SECONDS: Final = 2.0  # of work ahead at its rate, with which a reader is not late
_ETA_SECONDS_MAX: Final = 99 * 3600

assert len(COLUMNS) == len(ReaderLine._fields)


class PlacedReader(NamedTuple):
    """
    A reader, and what is known of it without a look into the files.

    Attributes:
        bytes_behind: of the files, up to the durable end.
        rate: bytes a second that it was sent lately.
    """

    session: Session
    progress: Progress
    file_no: int
    offset: int
    bytes_behind: int
    rate: float

    @property
    def is_late(self) -> bool:
        """Whether it does not keep up: more waits for it than it takes in a moment."""
        return self.bytes_behind > self.rate * KEEPS_UP_SECONDS


class ReaderQuery(NamedTuple):
    """
    Which readers are wanted.

    Attributes:
        order: one of `ORDERS`.
        descending: the highest first.
        text: only those that have it in their Id, User, Host, Server_id, Gtid_pos or State.
        offset, limit: of those, which.
    """

    order: str = "Bytes_behind"
    descending: bool = True
    text: str = ""
    offset: int = 0
    limit: int = 50


class ReaderPage(NamedTuple):
    """Some readers; `found` have the text, of `total`."""

    total: int
    found: int
    rows: list[Row]


def placed_readers(server: Server, rates: Mapping[int, float]) -> list[PlacedReader]:
    """
    Return all readers and where they are, by connection id.

    Args:
        server: whose.
        rates: bytes a second by connection id.
    """
    history = server.history
    end = history.end()
    sizes = {file.file_no: file.size for file in history.files()}
    found = []
    for session in sorted(server.sessions, key=lambda one: one.id):
        progress = session.progress()
        if progress is None:
            continue
        at, here = progress.at, end
        if at is not None:
            here = at.position if at.unsent is None else at.unsent.position
        behind = 0 if session.is_idle_dump else bytes_between(here, end, sizes)
        rate = rates.get(session.id, 0.0)
        found.append(PlacedReader(session, progress, here.file_no, here.offset, behind, rate))
    return found


def reader_page(
    server: Server, readers: list[PlacedReader], query: ReaderQuery, seconds: float | None = None
) -> ReaderPage:
    """
    Return the rows of a page; blocking.

    Args:
        server: whose.
        readers: all of them.
        query: which are wanted.
        seconds: that looks into the files may take; `LOOK_SECONDS_MAX` if it is None.
    """
    text = query.text[:FILTER_CHARS_MAX].lower()
    found = [reader for reader in readers if not text or text in _searched(reader)]
    found.sort(key=_ORDERS[query.order], reverse=query.descending)
    limit = max(0, min(query.limit, PAGE_ROWS_MAX))
    offset = max(0, query.offset)
    chosen = found[offset : offset + limit]
    lines = looked_up(server, chosen, LOOK_SECONDS_MAX if seconds is None else seconds)
    rows = [_row(reader, lines, server.now()) for reader in chosen]
    return ReaderPage(len(readers), len(found), rows)


def looked_up(
    server: Server, readers: Iterable[PlacedReader], seconds: float
) -> dict[int, ReaderLine]:
    """
    Return the lines of SHOW BINLOG READERS by connection id; blocking.

    Args:
        server: whose.
        readers: the first come first, and the others if there is time.
        seconds: that looks into the files may take.
    """
    until = time.monotonic() + seconds
    lines = {}
    sessions = [reader.session for reader in readers]
    for line in reader_lines(server.history, sessions, server.now()):
        lines[line.id] = line
        if time.monotonic() > until:
            break
    return lines


def _row(reader: PlacedReader, lines: Mapping[int, ReaderLine], now: float) -> Row:
    session = reader.session
    line = lines.get(session.id)
    if line is None:
        state = SENDING if reader.bytes_behind else SENT_ALL
        number, text = session.dump_server_id or 0, str(reader.progress.reached)
        file, held = binlog_name(reader.file_no), binlog_name(reader.progress.held_file)
        known: tuple[Value, ...] = (session.id, session.user, session.host, number, text, file)
        acknowledged = ack_age(reader.progress, now)
        values = (*known, reader.offset, None, reader.bytes_behind, None, held, state, acknowledged)
    else:
        values = tuple(line)
    row: Row = dict(zip(COLUMNS, values, strict=True))
    row["Rate"] = round(reader.rate)
    row["Why"] = why_behind(reader, row)
    return row


def why_behind(reader: PlacedReader, row: Row) -> str:
    """Return in words why a reader has not everything, "" if it has."""
    behind = row["Bytes_behind"]
    assert isinstance(behind, int)
    if not behind:
        return ""
    held_up = reader.session.held_up_by()
    if held_up is HeldUpBy.CLIENT and not reader.rate:
        return "does not read what it is sent"
    if held_up is HeldUpBy.RATE:
        return "its rate is limited: dump_rate, dump_rate_total or its account"
    if held_up is HeldUpBy.DELAY and not reader.rate:
        return LATE_ON_PURPOSE
    if not reader.rate:
        return "is about to be sent more"
    if not reader.is_late:
        return KEEPS_UP
    seconds = behind / reader.rate
    if seconds > _ETA_SECONDS_MAX:
        return "hardly reads what it is sent"
    pace = "as fast as it reads" if held_up is HeldUpBy.CLIENT else "as fast as it can be"
    return f"catches up {pace}: there in {duration(seconds)} if nothing more came"


def duration(seconds: float) -> str:
    """Return a time as people say it, rounded where the dashboard's scripts round it."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    if seconds < 7200:
        return f"{round(seconds / 60)} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"


def _searched(reader: PlacedReader) -> str:
    session = reader.session
    state = SENDING if reader.bytes_behind else SENT_ALL
    number = session.dump_server_id or 0
    return (
        f"{session.id}\n{session.user}\n{session.host}\n{number}\n{reader.progress.reached}\n"
        f"{state}"
    ).lower()


def by_place(reader: PlacedReader) -> tuple[int, int, int]:
    """Return what is the greater the further behind a reader is."""
    return reader.bytes_behind, -reader.file_no, -reader.offset


_ORDERS: Final[dict[str, Callable[[PlacedReader], tuple[int | float | str, ...]]]] = {
    "Id": lambda reader: (reader.session.id,),
    "User": lambda reader: (reader.session.user, reader.session.id),
    "Host": lambda reader: (reader.session.host, reader.session.id),
    "Server_id": lambda reader: (reader.session.dump_server_id or 0, reader.session.id),
    "Gtid_pos": lambda reader: (str(reader.progress.reached), reader.session.id),
    "File": lambda reader: (reader.file_no, reader.offset),
    "Position": lambda reader: (reader.file_no, reader.offset),
    "Groups_behind": by_place,
    "Bytes_behind": by_place,
    "Seconds_behind": by_place,
    "Holds_from": lambda reader: (reader.progress.held_file, reader.session.id),
    "State": lambda reader: (reader.bytes_behind > 0, reader.session.id),
    "Ack_age": lambda reader: (-(reader.progress.acknowledged_at or 0.0), reader.session.id),
    "Rate": lambda reader: (reader.rate, reader.session.id),
}

assert tuple(_ORDERS) == ORDERS
