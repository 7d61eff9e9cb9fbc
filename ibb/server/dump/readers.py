"""Who reads the binlog, how far behind each is, and what that keeps from being purged."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.file_name import binlog_name
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.store import Store

from .dump_batch import Place
from .groups_ahead import look_ahead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.server.session import Session
    from ibb.storage.history import History
    from ibb.storage.position import Position

IDLE: Final = "Sleep"  # the command of who does nothing
SENT_ALL: Final = "Master has sent all binlog to slave; waiting for more updates"
SENDING: Final = "Sending binlog event to slave"


class HeldUpBy(Enum):
    """What a dump that has more to send may wait for."""

    NOTHING = "its turn"
    CLIENT = "the client, which has to read first"
    RATE = "a limit of bytes a second"
    DELAY = "groups to be old enough"


class Process(NamedTuple):
    """A line of SHOW PROCESSLIST; *seconds* since the command began."""

    id: int
    user: str
    host: str
    database: str | None
    command: str
    seconds: float
    state: str | None
    info: str | None


class ReaderLine(NamedTuple):
    """
    A line of SHOW BINLOG READERS.

    Attributes:
        groups_behind: not sent yet; beyond `GROUPS_COUNTED_MAX` by sequence numbers.
        bytes_behind: of the files, up to the durable end.
        seconds_behind: age of the oldest group that was not sent; None: nobody knows.
        holds_from: the oldest file that is kept for it.
        ack_age: seconds since it acknowledged a group last; None: it never did.
    """

    id: int
    user: str
    host: str
    server_id: int
    position: str
    file: str
    offset: int
    groups_behind: int
    bytes_behind: int
    seconds_behind: int | None
    holds_from: str
    state: str
    ack_age: int | None = None


class LeaseLine(NamedTuple):
    """A line of SHOW BINLOG LEASES; times in seconds."""

    name: str
    position: str
    holds_from: str | None
    age: int
    expires_after: int | None
    lapsed: str


class Progress(NamedTuple):
    """
    How far a dump has come.

    Attributes:
        at: how far it is; None before the start was found.
        reached: the last GTID sent in each domain, or had by the client before.
        held_file: number of the oldest file that is kept for it.
        start: the last GTID that the client had in each domain; None if it named a file.
        acknowledged_at: when it acknowledged something last, in seconds since 1970; None: never.
        delay: seconds that a group must be old before it is sent; 0: none.
    """

    at: Place | None
    reached: GtidPosition
    held_file: int
    start: GtidPosition | None
    acknowledged_at: float | None = None
    delay: float = 0.0


def process_line(session: Session, now: float) -> Process:
    """Return the line of a session; *now* is the server's uptime."""
    command, state, info = IDLE, "", None
    progress = session.progress()
    if progress is not None:
        command = "Binlog Dump"
        state = SENT_ALL if session.is_idle_dump else SENDING
    elif (runner := session.runner) is None:
        command, state = "Connect", "login"
    elif runner.running is not None:
        command, state, info = runner.command, "starting", runner.running
    return Process(
        session.id,
        session.user,
        session.host,
        session.database,
        command,
        max(0.0, now - session.began_at),
        state,
        info,
    )


def reader_lines(history: History, sessions: Iterable[Session], now: float) -> Iterator[ReaderLine]:
    """Yield a line for each session with a dump, in their order."""
    end = history.end()
    sizes = {file.file_no: file.size for file in history.files()}
    for session in sessions:
        progress = session.progress()
        if progress is None:
            continue
        ahead = look_ahead(history, progress, progress.at or Place(end))
        position = ahead.start
        behind = bytes_between(position, end, sizes)
        seconds: int | None = 0
        if ahead.groups:
            seconds = None if ahead.oldest is None else max(0, int(now) - ahead.oldest)
        held = _lowered(history, progress.held_file)
        yield ReaderLine(
            session.id,
            session.user,
            session.host,
            session.dump_server_id or 0,
            str(progress.reached),
            binlog_name(position.file_no),
            position.offset,
            ahead.groups,
            behind,
            seconds,
            binlog_name(held),
            SENT_ALL if behind == 0 else SENDING,
            ack_age(progress, now),
        )


def ack_age(progress: Progress, now: float) -> int | None:
    """Return the seconds since a reader's last acknowledgement; *now* is seconds since 1970."""
    at = progress.acknowledged_at
    return None if at is None else max(0, int(now - at))


def bytes_between(start: Position, end: Position, sizes: dict[int, int]) -> int:
    """Return the bytes of the files from *start* to *end*; *sizes* are those of whole files."""
    if start >= end:
        return 0
    if start.file_no == end.file_no:
        return end.offset - start.offset
    first = max(0, sizes.get(start.file_no, 0) - start.offset)
    between = range(start.file_no + 1, end.file_no)
    return first + sum(sizes.get(file_no, 0) for file_no in between) + end.offset


def lease_lines(history: History, now: float) -> Iterator[LeaseLine]:
    """Yield the leases of a store; a directory of another program has none."""
    if not isinstance(history, Store):
        return
    for lease in history.leases.all():
        age = max(0.0, now - lease.renewed_at)
        left = None if lease.age_limit is None else max(0, int(lease.age_limit - age))
        is_over = lease.is_over(now)
        yield LeaseLine(
            lease.name,
            lease.position,
            None if is_over else _held_by(history, lease.position),
            int(age),
            left,
            "Yes" if is_over else "No",
        )


def _held_by(history: History, position: str) -> str | None:
    """Return the oldest file that a lease's position needs, None if that cannot be told."""
    try:
        place = find_start(history.pages, GtidPosition.parse(position))
    except TooOld:
        return binlog_name(history.pages.first_file())
    except IbbError:
        return None
    return binlog_name(_lowered(history, place.position.file_no))


def _lowered(history: History, file_no: int) -> int:
    """Return the lowest file that a reader of *file_no* may go back to."""
    header = history.pages.header(file_no)
    return file_no if header is None else min(file_no, header.lowest_oob_file)
