"""
Opening a store: what is there, what the redo log adds, and where the writer goes on.

- Nothing but unused files: a new binlog begins at file 0.
- A redo log: the files are recovered and the writer goes on in the same file.
- Files without a redo log: another program wrote them. They are at rest, the end of their last
  whole record is searched, and the store goes on in a file of its own.

Source: ibb-format 11.1, 11.4, 11.6.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError

from .aside import discard, holds_something
from .binlog_files import BinlogFiles
from .chunk import chunk_area_end
from .directory import BinlogDirectory
from .disk import Disk
from .durable import DurableOffset
from .end_at_rest import find_end_at_rest, find_end_of_data
from .fifo_page import FifoPage
from .file_header import FileHeader
from .file_name import binlog_name, parse_binlog_name
from .given_up_files import close_given_up_files
from .listing import EMPTY_FILES_MAX, NEWEST_EMPTY, list_files
from .live_pages import LivePages
from .options import StoreOptions
from .page import check_page, page_is_zero
from .page_fifo import PageFifo
from .position import Position
from .record import Xid
from .recovery import Replayed, clear_behind, is_unused, replay
from .redo import RedoLog
from .redo_record import Change
from .redo_segment import FIRST_LSN
from .second_reads import read_checked, read_file_header
from .state_scan import FoundState, find_state
from .writer import Writer
from .writer_place import NextFile, WriterPlace
from .xa import PreparedXa, find_prepared

_log = logging.getLogger(__name__)

_LATER = "it and all later ones away, with both ibb-redo-*.log: the groups in them are given up"
_EARLIER = (
    "it and all earlier ones away, with both ibb-redo-*.log: the prepared XA transactions are "
    "given up, and only replicas that have all groups can go on"
)


class Opened(NamedTuple):
    """
    A store's beginnings.

    Attributes:
        writer: ready to append.
        state: GTID state at the end of the binlog.
        prepared: number of the newest file that exists.
        recovered: the redo log held changes, and they were applied.
        taken_over: another program wrote the files; the writer must go over to a new one.
        copies_set_aside: files that were copied because something had to be cleared in them.
        begun_anew: the history before is gone.
        prepared_xa: XA transactions that wait for their end.
    """

    writer: Writer
    state: BinlogState
    prepared: int
    recovered: bool
    taken_over: bool
    copies_set_aside: list[str]
    begun_anew: bool
    prepared_xa: dict[Xid, PreparedXa]


def open_writer(
    disk: Disk,
    directory: str,
    options: StoreOptions,
    fifo: PageFifo,
    redo: RedoLog,
    files: BinlogFiles,
    next_file: NextFile,
    reset_to: BinlogState | None,
) -> Opened:
    """
    Recover the directory and return a writer that stands at its end; nothing is durable yet.

    Args:
        disk: where the directory is.
        directory: its path.
        options: settings for new files.
        fifo: takes the page that is begun.
        redo: begins a new segment.
        files: of the store.
        next_file: makes files for the writer.
        reset_to: all files were deleted and this is the GTID state to begin with; None: go on.

    Raises:
        FormatError, RecoveryError, StoreFull, DiskError: see `Store.open`.
    """
    with _advice(_LATER):
        replayed = replay(disk, directory, apply=reset_to is None)
    redo.prepare()
    with _advice(_LATER):
        newest = _newest_used(disk, directory, files, own=replayed is not None)
    if newest is None:
        if reset_to is None and replayed is not None and replayed.begun_at > (0, 0):
            raise _ends_early(replayed.begun_at, "no file holds anything")
        return _begin(disk, directory, options, fifo, redo, files, next_file, reset_to, replayed)
    end = _find_end(disk, directory, files, replayed)
    with _advice(_LATER):
        header = read_file_header(files.file(end.file_no), end.file_no)
        tail = _load_tail(files, end, header.page_size, fifo)
    found, prepared_xa = _look(disk, directory, fifo, end, own=replayed is not None)
    copies = _clear(disk, directory, end, header.page_size, replayed)
    files.file(end.file_no).allocate(header.page_count * header.page_size)
    place = WriterPlace(
        header=header,
        page_no=end.offset // header.page_size,
        tail=tail,
        full=found.state,
        differential=found.since_base(),
    )
    redo.begin_segment(
        replayed.sequence + 1 if replayed else 1,
        max(replayed.next_lsn if replayed else FIRST_LSN, header.lsn + 1),
        end,
    )
    if tail is not None and not tail.flushed_clean:
        _log_whole(tail, redo)
    writer = Writer(place, fifo, redo, next_file)
    for prepared in prepared_xa.values():
        writer.pins.pin(prepared.xid, prepared.file_no)
        writer.pins.prepare(prepared.xid, prepared.xid)
    return Opened(
        writer=writer,
        state=found.state,
        prepared=end.file_no,
        recovered=replayed is not None and replayed.end is not None,
        taken_over=replayed is None,
        copies_set_aside=copies,
        begun_anew=False,
        prepared_xa=prepared_xa,
    )


def _begin(
    disk: Disk,
    directory: str,
    options: StoreOptions,
    fifo: PageFifo,
    redo: RedoLog,
    files: BinlogFiles,
    next_file: NextFile,
    reset_to: BinlogState | None,
    replayed: Replayed | None,
) -> Opened:
    """Begin a new binlog at file 0. Source: ibb-format 11.6."""
    state = reset_to or BinlogState()
    copies = []
    for file_no in list_files(disk, directory):
        copies += discard(disk, files.path(file_no))
    files.create(0, options.file_pages * options.page_size)
    first_lsn = replayed.next_lsn if replayed else FIRST_LSN
    redo.begin_segment(replayed.sequence + 1 if replayed else 1, first_lsn, Position(0, 0))
    header = FileHeader(
        file_no=0,
        page_size=options.page_size,
        page_count=options.file_pages,
        lsn=first_lsn,
        state_interval=options.interval_pages,
        oob_reference=0,
    )
    place = WriterPlace(header, 1, None, state.copy(), BinlogState())
    writer = Writer(place, fifo, redo, next_file)
    writer.begin_first_file(header)
    return Opened(
        writer,
        state,
        prepared=0,
        recovered=False,
        taken_over=False,
        copies_set_aside=copies,
        begun_anew=reset_to is not None,
        prepared_xa={},
    )


@contextmanager
def _advice(move: str) -> Iterator[None]:
    """
    Say what to do, if a binlog file turns out to be damaged inside.

    Args:
        move: files that the store can do without, and at what price. What the redo log tells of
            the others is in them by now.
    """
    try:
        yield
    except FormatError as error:
        if error.file is None or parse_binlog_name(error.file.rpartition("/")[2]) is None:
            raise  # not of a binlog file
        raise FormatError(
            f"{error.what}: the store cannot be opened without it (`ibb verify` shows all damage; "
            f"put a whole copy of the file back, or move {move})",
            file=error.file,
            page=error.page,
            offset=error.offset,
        ) from error


def _clear(
    disk: Disk, directory: str, end: Position, page_size: int, replayed: Replayed | None
) -> list[str]:
    """Clear what does not count; return the copies of files that held something of that kind."""
    if replayed is not None:
        copies = replayed.copies_set_aside
    else:  # first: empty files behind the end show which older ones were given up
        copies = close_given_up_files(disk, directory, end.file_no)
    copies = copies + clear_behind(disk, directory, end, page_size)
    for copy in copies:
        _log.warning(
            "a binlog file held what the redo log does not tell of, and was cleared of it; %s is "
            "how it was: look there for groups that are missed",
            copy,
        )
    return copies


def _find_end(
    disk: Disk, directory: str, files: BinlogFiles, replayed: Replayed | None
) -> Position:
    """
    Return where the binlog ends, by the word of the redo log where there is any.

    Raises:
        FormatError: the files end before a place that was durable.
    """
    if replayed is None:
        with _advice(_LATER):
            return find_end_at_rest(disk, directory)
    begun_at = replayed.begun_at
    if replayed.end is not None:
        end = reached = replayed.end
    elif begun_at > (0, 0):  # the store was closed, or killed before it wrote anything
        end, reached = begun_at, find_end_of_data(disk, directory)
    else:
        with _advice(_LATER):
            end = reached = find_end_at_rest(disk, directory)
    if reached < begun_at:
        if files.exists(begun_at.file_no):
            with _advice(_LATER):
                read_file_header(
                    files.file(begun_at.file_no), begun_at.file_no
                )  # a file without one seems to hold nothing
        raise _ends_early(begun_at, f"the files end at {reached}")
    return end


def _newest_used(disk: Disk, directory: str, files: BinlogFiles, *, own: bool) -> int | None:
    """
    Return the newest file that has a header, or None. Source: ibb-format 11.1.

    Args:
        disk: where the directory is.
        directory: its path.
        files: of the store.
        own: there is a redo log, which tells where data ends; else only the files do.

    Raises:
        FormatError: a file of another program has lost its header, or so many newest ones are
            empty that one of them should hold something.
    """
    for number, file_no in enumerate(reversed(list_files(disk, directory))):
        path = files.path(file_no)
        if not is_unused(disk, path):
            return file_no
        if not own and holds_something(disk, path):
            name = binlog_name(file_no)
            text = f"Invalid or corrupt file header in file '{name}': it is zero, what follows is"
            raise FormatError(f"{text} not; nothing was changed", file=name, page=0)
        if not own and number == EMPTY_FILES_MAX:
            text = f"{NEWEST_EMPTY}; nothing was changed"
            raise FormatError(text, file=binlog_name(file_no))
    return None


def _ends_early(begun_at: Position, found: str) -> FormatError:
    return FormatError(
        f"the binlog was durable up to {begun_at} by the word of the redo log, but {found}; "
        "nothing but what is in the log was written (put whole files back, or remove both segments "
        "of the log to go on with what the files hold)",
        file=binlog_name(begun_at.file_no),
        offset=begun_at.offset,
    )


def _look(
    disk: Disk, directory: str, fifo: PageFifo, end: Position, *, own: bool
) -> tuple[FoundState, dict[Xid, PreparedXa]]:
    """
    Ask the files as they are now for the GTID state and the prepared transactions at their end.

    Args:
        disk: where they are.
        directory: their path.
        fifo: holds the page that is begun.
        end: of the binlog; the page in which it lies may hold part of a record behind it.
        own: False: another program wrote the files.
    """
    pages: LivePages | BinlogDirectory
    if own:
        pages = LivePages(fifo, DurableOffset(end, BinlogState()), disk, directory)
    else:
        pages = BinlogDirectory(disk, directory)
        pages.limit = end
    try:
        with _advice(_LATER):
            state = find_state(pages)
        with _advice(_EARLIER):  # which transactions are prepared, nothing behind damage tells
            return state, find_prepared(pages, torn=not own)
    finally:
        pages.close()


def _load_tail(
    files: BinlogFiles, end: Position, page_size: int, fifo: PageFifo
) -> FifoPage | None:
    """
    Put the page that is begun into the FIFO: its next change must log the whole of it.

    It is not clean if its file has more of it, which does not count.
    """
    page_no, used = divmod(end.offset, page_size)
    if used == 0:
        return None

    def check(page: bytes) -> bytes:
        page = page.ljust(page_size, b"\0")
        if page_is_zero(page):  # its checksum would be right
            text = "page is all zero although it was written"
            raise FormatError(text, file=binlog_name(end.file_no), page=page_no)
        check_page(page, end.file_no, page_no)
        return page

    page = read_checked(files.file(end.file_no), page_no * page_size, page_size, check)
    tail = fifo.append(end.file_no, page_no, page_size)
    tail.data[:used] = page[:used]
    tail.used = used
    tail.flushed_clean = page_is_zero(page[used : chunk_area_end(page_size)])
    return tail


def _log_whole(tail: FifoPage, redo: RedoLog) -> None:
    """Log a page as it is to be, so that what was cut from its end cannot come back."""
    used = bytes(tail.data[: tail.used])
    tail.last_lsn = redo.append([Change(tail.file_no, tail.page_no, 0, used)])
