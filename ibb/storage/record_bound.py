"""
What a record takes of the redo log and of pages at most, told before any of it is written.

Where GTID states leave little room between them, or in whole files, a record of a few pages passes
many of them. How many, no short rule tells: it is then written to nothing, and counted.
Source: ibb-format 5.2, 9.2.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid

from .chunk import CHUNK_HEADER_SIZE
from .disk import Buffer
from .errors import GroupError, StateTooLarge
from .fifo_page import FifoPage
from .file_shape import FileShape, state_fits
from .new_record import NewRecord, gtid_of
from .options import STATE_BYTES_MAX, StoreOptions
from .page import CHECKSUM_SIZE
from .position import Position
from .record import encode_state
from .redo_record import CHANGE_HEADER_SIZE, GROUP_HEADER_SIZE, Change, group_size
from .writer import Writer, state_bytes_max


class RecordBound(NamedTuple):
    """The most that records take that are written as one unit."""

    redo_bytes: int
    pages: int


def bound_of(
    writer: Writer, records: Sequence[NewRecord], next_file: FileShape, redo_bytes_max: int
) -> RecordBound:
    """
    Return the most that records take where the writer is.

    Args:
        writer: it is not changed.
        records: to be written as one unit.
        next_file: what the files to come are like.
        redo_bytes_max: the largest group that the redo log takes.

    Raises:
        GroupError: they take more than that.
    """
    size, state_bytes = sum(len(record.data) for record in records), writer.state_bytes_max
    gtid, bound = gtid_of(records), None
    fits = gtid is None or writer.knows_pair(gtid) or writer.takes_pairs(1)
    if fits and state_bytes <= STATE_BYTES_MAX:
        room = min(shape.room_between(state_bytes) for shape in (writer.shape, next_file))
        if room >= next_file.page_size:
            bound = bound_with(size, state_bytes, 2 + 2 * (size // room), writer.page_size)
        else:
            rehearsed = _rehearsed(writer, records, next_file, redo_bytes_max)
            bound = None if rehearsed is None else rehearsed[1]
    return _checked(bound, size, state_bytes, redo_bytes_max)


def place_of(
    writer: Writer, record: NewRecord, next_file: FileShape, redo_bytes_max: int
) -> Position:
    """
    Return where a record would begin, behind what is due before it; as `bound_of`.

    Raises:
        GroupError: there is no room for it in any file.
    """
    rehearsed = _rehearsed(writer, [record], next_file, redo_bytes_max)
    if rehearsed is None:
        raise _too_large(len(record.data), writer.state_bytes_max)
    return rehearsed[0]


def switch_bound(
    writer: Writer, delete_domains: frozenset[int], next_file: FileShape, redo_bytes_max: int
) -> RecordBound:
    """
    Return the most that the end of a file and the beginning of the next take.

    Raises:
        GroupError: they take more than *redo_bytes_max*, or the state without *delete_domains*
            is larger than there may be.
        StateTooLarge: domains are to go, and the next file cannot hold the state without them:
            a restart would find the one of before.
    """
    size, kept = writer.page_size, writer.state_without(delete_domains)
    state_bytes = state_bytes_max(len(kept))
    if delete_domains and not _begins(next_file, kept, writer.pins.lowest_prepared()):
        raise StateTooLarge(len(kept))
    return _checked(bound_with(size, state_bytes, 2, size), size, state_bytes, redo_bytes_max)


def _checked(
    bound: RecordBound | None, size: int, state_bytes: int, redo_bytes_max: int
) -> RecordBound:
    if bound is None or bound.redo_bytes > redo_bytes_max or state_bytes > STATE_BYTES_MAX:
        raise _too_large(size, state_bytes)
    return bound


def _too_large(size: int, state_bytes: int) -> GroupError:
    return GroupError(
        f"a record of {size} bytes with GTID states of up to {state_bytes} bytes is too large: "
        "too many (domain, server) pairs, or too short a state interval"
    )


def bound_with(record_bytes: int, state_bytes: int, states: int, page_size: int) -> RecordBound:
    """
    Return the most that a record takes with states in its way.

    Args:
        record_bytes: the record's data.
        state_bytes: the data of each state.
        states: how many they are at most.
        page_size: of the pages it goes to.
    """
    payload = page_size - CHUNK_HEADER_SIZE - CHECKSUM_SIZE
    content = record_bytes + states * state_bytes
    pages = content // payload + states + 4
    overhead = pages * (CHANGE_HEADER_SIZE + 2 * CHUNK_HEADER_SIZE) + page_size + GROUP_HEADER_SIZE
    return RecordBound(content + overhead, pages)


def run_bound(records: int, size: int, page_size: int) -> RecordBound:
    """
    Return the most that a run takes, each record a redo group of its own.

    Args:
        records: how many.
        size: bytes of data of all, with what each begins with.
        page_size: of the pages they go to. No other file is begun for them.
    """
    content = size + records * CHUNK_HEADER_SIZE
    pages = content // (page_size - CHECKSUM_SIZE - 2 * CHUNK_HEADER_SIZE) + 2
    groups = records * (GROUP_HEADER_SIZE + CHANGE_HEADER_SIZE)
    overhead = pages * (CHANGE_HEADER_SIZE + 2 * CHUNK_HEADER_SIZE)
    return RecordBound(content + groups + overhead + page_size, 0)


def check_first_state(state: BinlogState, options: StoreOptions, redo_bytes_max: int) -> None:
    """
    Raise unless file 0 can hold *state*, which no older file would know, and a record behind it.

    Args:
        state: that a binlog is to begin with.
        options: what the file will be like.
        redo_bytes_max: the largest group that the redo log takes.

    Raises:
        StateTooLarge: it does not fit into the file, or into the log.
    """
    page_size, state_bytes = options.page_size, state_bytes_max(len(state))
    bound = bound_with(page_size, state_bytes, 2, page_size)  # of a small record behind it, too
    fits = _begins(options.file_shape, state.entries(), None)
    if not fits or state_bytes > STATE_BYTES_MAX or bound.redo_bytes > redo_bytes_max:
        raise StateTooLarge(len(state))


def _begins(file: FileShape, state: Sequence[Gtid], prepared: int | None) -> bool:
    """Tell whether a file begins with a state, or goes without one, since it is too small."""
    return state_fits(len(encode_state(state, prepared)), file.page_size, file.pages - 1)


class _TooLargeError(Exception):
    """More was written to nothing than there is room for."""


class _NoLog:
    """Takes redo groups and keeps their size."""

    next_lsn = 0
    synced_lsn = 0
    takes_small = False

    def __init__(self) -> None:
        self.bytes = 0

    def append(self, changes: list[Change]) -> int:
        self.bytes += group_size(changes)
        return 0

    def append_small(self, change: Change) -> int:
        return self.append([change])

    def append_run(self, _groups: list[Buffer], size: int) -> int:
        self.bytes += size
        return 0


class _NoFiles:
    """Gives pages that lead nowhere and files that are not there."""

    def __init__(self, shape: FileShape, pages_max: int) -> None:
        self._shape = shape
        self._pages_max = pages_max
        self.pages = 0

    def append(self, file_no: int, page_no: int, page_size: int) -> FifoPage:
        self.pages += 1
        if self.pages > self._pages_max:
            raise _TooLargeError
        return FifoPage(file_no, page_no, page_size)

    def next_file(self, file_no: int) -> FileShape:
        assert file_no > 0
        return self._shape

    def file_entered(self, file_no: int) -> None:
        assert file_no > 0


def _rehearsed(
    writer: Writer, records: Sequence[NewRecord], next_file: FileShape, redo_bytes_max: int
) -> tuple[Position, RecordBound] | None:
    """
    Write records to nothing; None: they take more than *redo_bytes_max*.

    Returns:
        Where the first one begins, and the most that they take: making room for them may bring
        the page that is begun to its file, and all of it is logged then.
    """
    smallest = min(writer.shape.page_payload, next_file.page_payload)
    log, files = _NoLog(), _NoFiles(next_file, redo_bytes_max // smallest + 2)
    try:
        copy = writer.copy(files, log, files)
        start, _ = copy.append(*(record._replace(on_start=None) for record in records))
    except _TooLargeError:
        return None
    return start, RecordBound(log.bytes + writer.page_size, files.pages)
