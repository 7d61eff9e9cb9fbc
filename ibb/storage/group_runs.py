"""
Event groups many at a time, for who passes through all of a directory.

    runs = GroupRuns(directory, start)
    while (found := runs.next()) is not None:
        if isinstance(found, GroupBlock):
            ...                                 # whole groups side by side
        else:
            ...                                 # one as `GroupReader` gives it

Blocks are made by `GroupCopier` out of big reads; what is not for it comes from a `GroupReader`,
with the same rules and errors as everywhere. Source: ibb-format 5.1, 6.3.
"""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.fields import U32
from ibb.protocol.gtid import Gtid

from .directory import BinlogDirectory
from .group_copier import FULL, GroupCopier
from .group_reader import GroupReader, StoredGroup
from .page_room import PageRoom
from .page_runs import LONG_RUN_BYTES, PageRun, PageRuns
from .position import Position
from .record_walker import NEED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .file_header import FileHeader
    from .page_source import PageSource

TURNS_MAX: Final = 64  # groups that a reader gives before a block is tried again
_LENGTH: Final = slice(9, 13)  # of the event, in its header


class CopiedGroup:
    """
    A group of a block, with what `StoredGroup` has.

    Attributes:
        gtid: its id.
        position: the first chunk of its commit record.
        timestamp: seconds since 1970 in its GTID event.
        data: all of its bytes.
    """

    __slots__ = ("data", "gtid", "position", "timestamp")

    def __init__(self, gtid: Gtid, position: Position, timestamp: int, data: memoryview) -> None:
        self.gtid: Gtid | None = gtid
        self.position = position
        self.timestamp = timestamp
        self.data = data

    @property
    def head(self) -> bytes:
        """The GTID event, without checksum."""
        return bytes(self.data[: U32.unpack(self.data[_LENGTH])[0]])

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Return an iterator over every byte of the group, in one piece."""
        yield self.data


class GroupBlock:
    """
    Whole groups of one file that follow one another; used before the next is taken.

    Attributes:
        file_no: of the file.
        copied: the groups, those from *first* up to *stop* are of this block.
    """

    __slots__ = ("copied", "file_no", "first", "stop")

    def __init__(self, file_no: int, copied: GroupCopier, first: int, stop: int) -> None:
        self.file_no, self.copied, self.first, self.stop = file_no, copied, first, stop

    def __len__(self) -> int:
        return self.stop - self.first

    def part(self, first: int, stop: int) -> GroupBlock:
        """Return some of the groups, by their numbers in `copied`."""
        return GroupBlock(self.file_no, self.copied, first, stop)

    def before(self, end: Position) -> GroupBlock:
        """Return the groups whose commit record begins before a place."""
        stop = self.stop
        if self.file_no >= end.file_no:
            offset = end.offset if self.file_no == end.file_no else 0
            stop = bisect_left(self.copied.offsets, offset, self.first, self.stop)
        return self.part(self.first, stop)

    def position(self, number: int) -> Position:
        """Return where the commit record of a group begins."""
        return Position(self.file_no, self.copied.offsets[number])

    def gtid(self, number: int) -> Gtid:
        """Return the GTID of a group."""
        copied = self.copied
        return Gtid(copied.domains[number], copied.servers[number], copied.numbers[number])

    def newest(self) -> list[Gtid]:
        """Return the last GTID of each domain that there is."""
        last = {
            domain: number
            for number, domain in enumerate(self.copied.domains[self.first : self.stop], self.first)
        }
        return [self.gtid(number) for number in last.values()]

    def group(self, number: int) -> CopiedGroup:
        """Return a group, by its number in `copied`."""
        copied = self.copied
        data = copied.data[copied.starts[number] : copied.ends[number]]
        return CopiedGroup(self.gtid(number), self.position(number), copied.times[number], data)


@dataclass(frozen=True, slots=True)
class _AtRest:
    """A directory as `PageRuns` wants a history."""

    pages: BinlogDirectory

    @property
    def generation(self) -> int:
        return self.pages.generation

    def end(self) -> Position:
        return self.pages.end()


class GroupPlace(NamedTuple):
    """
    What is to know of a group without a look at its events.

    Attributes:
        gtid: its id.
        position: the first chunk of its commit record.
        timestamp: seconds since 1970 in its GTID event.
    """

    gtid: Gtid
    position: Position
    timestamp: int


def places_from(pages: PageSource, start: Position) -> Iterator[GroupPlace]:
    """
    Yield the place of each group from a position on.

    Raises:
        FormatError: the pages or records are damaged.
        DiskError: a file cannot be read.
    """
    groups: GroupRuns | GroupReader = GroupReader(pages, start)
    if isinstance(pages, BinlogDirectory):
        groups = GroupRuns(pages, start)
    while (found := groups.next()) is not None:
        if isinstance(found, GroupBlock):
            for number in range(found.first, found.stop):
                gtid, time = found.gtid(number), found.copied.times[number]
                yield GroupPlace(gtid, found.position(number), time)
        elif found.gtid is not None:
            yield GroupPlace(found.gtid, found.position, found.timestamp)


class GroupRuns:
    """
    Reads the groups of a directory from a position on.

    Args:
        pages: the directory.
        start: where to begin, see `RecordReader`.
    """

    def __init__(self, pages: BinlogDirectory, start: Position) -> None:
        self._pages = pages
        self._runs = PageRuns(_AtRest(pages))
        self._copier = GroupCopier()
        self._reader: GroupReader | None = GroupReader(pages, start)
        self._header: FileHeader | None = None  # of the copier's file
        self._known: PageRun | None = None  # what the copier has of it
        self._room: PageRoom | None = None
        self._is_stuck = False  # what comes next is not for the copier
        self._turns = self._patience = 1

    @property
    def position(self) -> Position:
        """Where the next record is looked for."""
        if self._reader is not None:
            return self._reader.position
        assert self._header is not None
        return Position(self._header.file_no, self._copier.border)

    def next(self) -> GroupBlock | StoredGroup | None:
        """
        Return some groups, one group or a format description record; None: nothing (more) now.

        Raises:
            FormatError: the pages or records from here on are damaged.
            DiskError: a file cannot be read.
        """
        if self._reader is not None and self._turns <= 0:
            self._begin_run(self._reader)
        if self._reader is None:
            block = None if self._is_stuck else self._block()
            if block is not None:
                return block
            self._reader = GroupReader(self._pages, self.position)
            self._turns, self._known = self._patience, None
            self._patience = min(2 * self._patience, TURNS_MAX)
        self._turns -= 1
        return self._reader.next()

    def _begin_run(self, reader: GroupReader) -> None:
        """Have the copier go on where a reader is, if it can."""
        with suppress(FormatError):  # else the reader meets it again, and tells
            position = reader.position
            header = self._runs.header(position.file_no)
            if header is None:
                return
            is_inside = position.offset > header.page_size and position.offset % header.page_size
            if not is_inside and not reader.met_boundary:
                return  # the page may begin inside a record
            self._header, self._reader, self._is_stuck = header, None, False
            self._copier.seek(*position)

    def _block(self) -> GroupBlock | None:
        """Return the next groups that the copier has; None: it has none."""
        copier, header = self._copier, self._header
        assert header is not None
        copier.clear()
        while (code := copier.run()) == NEED:
            run = self._load(header, copier.walker.wanted_page(header.page_size))
            if run is None or not run.give_to(copier.walker):
                break
            self._known = run
        self._is_stuck = code != FULL
        if not copier.count:
            return None
        self._patience = 1
        return GroupBlock(header.file_no, copier, 0, copier.count)

    def _load(self, header: FileHeader, page_no: int) -> PageRun | None:
        """Return pages from one on, more of them than are known."""
        known = self._known
        end = known.first + known.pages if known and known.first <= page_no else 0
        if self._room is None:
            self._room = PageRoom(LONG_RUN_BYTES, 2)
        room = self._room.free([known] if known else [])
        return self._runs.load(header, page_no, end if page_no < end else 0, room=room)
