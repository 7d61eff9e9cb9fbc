"""
Event groups in commit order, put together from commit records and their out-of-band pieces.

A group comes as an iterator of pieces no larger than a page's contents, however large it is.
Events may be cut anywhere between pieces. Source: ibb-format 5.1, 6.3, 7.6.
"""

import struct
from collections.abc import Callable, Iterator

from ibb.protocol.errors import FormatError, Truncated

from .chunk import CONTINUATION, TYPE_MASK
from .group_head import GroupHead, read_head
from .oob import walk_tree
from .page_source import PageSource
from .position import Position
from .record import OobHeader, OobReference, RecordType, parse_oob_header
from .record_reader import Record, RecordReader

REPORTS_MAX = 100  # findings kept in memory

_TIMESTAMP = struct.Struct("<I")


class StoredGroup:
    """
    One event group, or a format description record.

    Attributes:
        gtid: None for a format description record.
        position: the first chunk of the commit record.
        head: the GTID event, or the whole format description, without checksum.
        lists: the out-of-band lists that make up the rest of the group; empty if the commit
            record holds all of it.
    """

    __slots__ = ("_payload", "_record", "_source", "_taken", "gtid", "head", "lists", "position")

    def __init__(
        self, source: PageSource, record: Record, head: GroupHead, report: Callable[[str], None]
    ) -> None:
        self.gtid = head.gtid
        self.position = record.position
        self.head = head.event
        self.lists = head.lists
        self._payload = head.payload
        self._record = record
        self._source = source
        self._taken: Callable[[str], None] | None = report

    @property
    def timestamp(self) -> int:
        """Seconds since 1970 in the first event's header."""
        timestamp: int = _TIMESTAMP.unpack_from(self.head)[0]
        return timestamp

    def pieces(self) -> Iterator[bytes | memoryview]:
        """
        Return an iterator over every byte of the group, GTID event first, in bounded pieces.

        May be called once. The pieces of a group that is not all in one page must be taken before
        the reader's next `next`.

        Raises:
            FormatError: while iterating: something of the group is damaged or missing; what came
                before is then not the group.
        """
        report, self._taken = self._taken, None
        assert report is not None, "the pieces of this group were taken before"
        return self._read(report)

    def error(self, what: str) -> FormatError:
        """Return the error that says *what* is wrong with the group, at its commit record."""
        return self._record.error(what)

    def _read(self, report: Callable[[str], None]) -> Iterator[bytes | memoryview]:
        yield self._payload
        yield from self._record.rest()
        if not self.lists:
            return
        try:
            header = self._source.header(self.position.file_no)
            assert header is not None  # its commit record was read
            for reference in self.lists:
                yield from read_list(
                    self._source,
                    reference,
                    before=self.position,
                    lowest_file=header.lowest_oob_file,
                    report=report,
                )
        except FormatError as error:
            if error.file is not None:
                raise
            raise self._record.error(error.what) from error


def read_list(
    source: PageSource,
    reference: OobReference,
    *,
    before: Position,
    lowest_file: int,
    report: Callable[[str], None],
) -> Iterator[bytes | memoryview]:
    """
    Yield the bytes of an out-of-band list, in order; see `walk_tree`.

    Raises:
        FormatError: while iterating: something of it is damaged or missing.
    """

    def open_node(position: Position) -> _Node:
        """Open the oob record at *position* and read its links."""
        here = f"oob record {position} of commit record {before}"
        header = source.header(position.file_no)
        if header is None:
            raise FormatError(f"{here}: the file is missing")
        if position.offset < header.page_size:
            raise FormatError(f"{here}: no such place")
        reader = RecordReader(source, position)
        type_byte = reader.peek()
        if type_byte is None or type_byte == 0:
            raise FormatError(f"{here}: Unexpected EOF, expected oob chunk")
        if type_byte & CONTINUATION or type_byte & TYPE_MASK != RecordType.OOB:
            raise FormatError(f"{here}: Wrong chunk type 0x{type_byte:02x}")
        record = reader.next()
        if record is None:
            raise FormatError(f"{here}: binlog tablespace truncated in the middle of record")
        return _Node(record, here)

    return walk_tree(open_node, reference, before=before, lowest_file=lowest_file, report=report)


class _Node:
    """An oob record of which the header has been read."""

    __slots__ = ("_piece", "_record", "header")

    def __init__(self, record: Record, here: str) -> None:
        data: bytes | memoryview = record.first
        rest = record.rest()
        while True:
            try:
                header, start = parse_oob_header(data)
                break
            except Truncated as error:
                more = next(rest, None)
                if more is None:
                    raise FormatError(f"{here}: Short chunk: {error.what}") from error
                data = b"".join((data, more))
            except FormatError as error:
                raise FormatError(f"{here}: {error.what}") from error
        if start == len(data) and not record.is_open:
            raise FormatError(f"{here}: Short chunk: no piece behind the header")
        self.header: OobHeader = header
        self._piece = data[start:]
        self._record = record

    def pieces(self) -> Iterator[bytes | memoryview]:
        if self._piece:  # else the header ends with its chunk
            yield self._piece
        yield from self._record.rest()


class GroupReader:
    """
    Reads the groups from a position on, and those that are added later.

    Args:
        source: the pages.
        start: where to begin, see `RecordReader`.

    Attributes:
        reports: findings that do not stop reading, the first `REPORTS_MAX` of them.
        unknown_records: number of records of unknown types that were skipped.
    """

    def __init__(self, source: PageSource, start: Position) -> None:
        self._source = source
        self._records = RecordReader(source, start)
        self.reports: list[str] = []
        self.unknown_records = 0

    @property
    def position(self) -> Position:
        """Where the next record is looked for."""
        return self._records.position

    @property
    def met_boundary(self) -> bool:
        """Whether a record was seen to begin or to end; until then it may be inside of one."""
        return self._records.met_boundary

    def next(self) -> StoredGroup | None:
        """
        Return the next group or format description record; None: nothing (more) now.

        What was not read of the group before is discarded.

        Raises:
            FormatError: the pages or records from here on are damaged.
        """
        while (record := self._records.next()) is not None:
            if record.type == RecordType.COMMIT:
                head = read_head(record)
                if head is not None:
                    return StoredGroup(self._source, record, head, self._report)
                self._report(
                    f"commit record {record.position} begins with neither a GTID event nor a"
                    " format description: skipped"
                )
            elif record.type > RecordType.XA_COMPLETE:
                self.unknown_records += 1
                self._report(f"record {record.position} has unknown type {record.type}: skipped")
        return None

    def _report(self, finding: str) -> None:
        if len(self.reports) < REPORTS_MAX:
            self.reports.append(finding)
