"""
Records one after the other: chunks joined over pages and files, nested records skipped.

While a record is open, GTID state records and padding may stand between its chunks; they are no
part of it. A file's end means nothing to a record. Source: ibb-format 4, 7.1, 7.2.
"""

from collections.abc import Iterator

from ibb.protocol.errors import FormatError

from .chunk import CONTINUATION, LAST, TYPE_MASK
from .chunk_cursor import ChunkCursor
from .file_name import binlog_name
from .page_source import PageSource, PageStatus
from .position import Position
from .record import RecordType

RECORD_BYTES_MAX = 64 << 20  # of a record that is wanted in one piece
FILES_OF_RECORD_MAX = 2  # a record is smaller than a file, so it touches at most two, unless ...
FILE_BYTES_PASSED_MAX = 1 << 20  # ... GTID states fill a file but for less than a record
TYPE_MAX = 62  # type 63 cannot be told from the filler

NESTED_TYPES = frozenset({RecordType.GTID_STATE, RecordType.DUMMY})
_TRUNCATED = "binlog tablespace truncated in the middle of record"


class Record:
    """
    One record; its contents can be taken once, until the reader goes on.

    Attributes:
        type: `RecordType` or an unknown number up to `TYPE_MAX`.
        position: where its first chunk is.
        page_size: of the file where it begins, in bytes.
        major: format version of that file.
        first: contents of its first chunk; a view of the page, valid as long as it is held.
        is_open: there are more chunks to read.
    """

    __slots__ = ("_reader", "first", "is_open", "major", "page_size", "position", "type")

    def __init__(self, reader: "RecordReader", chunk: ChunkCursor) -> None:
        self._reader = reader
        self.type = chunk.type_byte & TYPE_MASK
        self.position = chunk.chunk_position
        self.first = chunk.data
        self.page_size = chunk.page_size
        self.major = chunk.major
        self.is_open = not chunk.type_byte & LAST

    def rest(self) -> Iterator[memoryview]:
        """
        Yield the contents behind what was read so far, a chunk at a time.

        Raises:
            FormatError: a page is damaged, or the record does not go on as it must.
        """
        if self.is_open:
            yield from self._reader.rest_of(self)

    def contents(self) -> bytes | memoryview:
        """
        Return all of the contents.

        Raises:
            FormatError: as `rest`, or there are more than `RECORD_BYTES_MAX` bytes.
        """
        if not self.is_open:
            return self.first
        parts: list[memoryview] = [self.first]
        size = len(self.first)
        for part in self.rest():
            size += len(part)
            if size > RECORD_BYTES_MAX:
                raise self.error(f"record of more than {RECORD_BYTES_MAX} bytes")
            parts.append(part)
        return b"".join(parts)

    def error(self, what: str) -> FormatError:
        """Return an error that names the place of the record."""
        page_no, place = divmod(self.position.offset, self.page_size)
        name = binlog_name(self.position.file_no)
        return FormatError(what, file=name, page=page_no, offset=place)


class RecordReader:
    """
    Reads the records from a position on, and those that are added later.

    Args:
        source: the pages.
        start: where to begin. At the beginning of a page the chunks that end an earlier record
            are skipped; anywhere else a record begins there. An offset inside the header page
            means page 1, also of a file that does not exist yet.
    """

    def __init__(self, source: PageSource, start: Position) -> None:
        self._cursor = ChunkCursor(source, start)
        # Of the record that is not read to its end: the record itself would be in a circle with us,
        # and its pages held until somebody looks for garbage.
        self._open: tuple[int, Position] | None = None  # its type and place

    @property
    def position(self) -> Position:
        """Where the next record is looked for, behind the present one if that is still open."""
        if self._open is None:
            return self._cursor.position
        ahead = self._cursor.copy()
        if not _walk_over(ahead, self._open[0]):
            raise ahead.error(_TRUNCATED)
        return ahead.position

    @property
    def met_boundary(self) -> bool:
        """
        Whether a record was seen to begin or to end.

        Until then everything may belong to one that began before the start.
        """
        return not self._cursor.at_page_start

    def next(self) -> Record | None:
        """
        Return the next record, or None when it is not there, or not all of it is there, yet.

        What was not read of the record before is skipped.

        Raises:
            FormatError: a page or the sequence of chunks is damaged; so is the end of data inside
                a record if it can never go on. The next call fails in the same way.
        """
        cursor = self._cursor
        if self._open is not None:
            if not _walk_over(cursor, self._open[0]):
                raise cursor.error(_TRUNCATED)
            self._open = None  # but the record stays open: who wants the rest now is told
        while cursor.next():
            type_byte = cursor.type_byte
            record_type = type_byte & TYPE_MASK
            if type_byte & CONTINUATION:
                if not cursor.at_page_start:
                    cursor.unread()
                    raise cursor.error("Binlog record starts with continuation chunk")
                if type_byte & LAST and record_type not in NESTED_TYPES:
                    cursor.at_page_start = False
                continue
            if not 0 < record_type <= TYPE_MAX:
                cursor.unread()
                raise cursor.error(f"Invalid chunk type 0x{type_byte:02x}")
            if record_type not in NESTED_TYPES:
                cursor.at_page_start = False
            record = Record(self, cursor)
            if record.is_open:
                if self._may_be_unfinished():
                    ahead = cursor.copy()
                    cursor.unread()  # it begins here again if it cannot be read to its end
                    if not _walk_over(ahead, record_type):
                        return None
                    cursor.next()
                self._open = record_type, record.position
            return record
        return None

    def peek(self) -> int | None:
        """Return the byte at the very position of the reader; None if no data is there."""
        return self._cursor.peek()

    def rest_of(self, record: Record) -> Iterator[memoryview]:
        """Yield the contents of *record* that were not read yet."""
        cursor = self._cursor
        while record.is_open:
            assert self._open == (record.type, record.position), "the reader has gone on"
            if not _next_part(cursor, record.type):
                raise cursor.error(_TRUNCATED)
            if cursor.type_byte & LAST:
                record.is_open = False
                self._open = None
            yield cursor.data

    def _may_be_unfinished(self) -> bool:
        """Tell whether the rest of a record that begins here can still be on its way."""
        source, file_no = self._cursor.source, self._cursor.file_no
        if source.tail_is_final:
            return False
        if file_no > source.last_file() - FILES_OF_RECORD_MAX:
            return True
        try:
            passed = source.header(file_no + 1)
        except FormatError:
            return False  # what lies before it is whole; who comes to it is told
        return passed is not None and passed.page_count * passed.page_size <= FILE_BYTES_PASSED_MAX


def _walk_over(cursor: ChunkCursor, record_type: int) -> bool:
    """Move to the end of an open record; return False if it is not there (yet)."""
    while _next_part(cursor, record_type):
        if cursor.type_byte & LAST:
            return True
    return False


def _next_part(cursor: ChunkCursor, record_type: int) -> bool:
    """Take the next chunk of an open record, nested records skipped; False: end of data."""
    nested: int | None = None  # type of the nested record that is open
    before = cursor.position
    while cursor.next():
        if cursor.file_no != before.file_no:
            _check_uncut(cursor.source, before)
        before = cursor.position
        type_byte = cursor.type_byte
        chunk_type = type_byte & TYPE_MASK
        if type_byte & CONTINUATION:
            if nested is None and chunk_type == record_type:
                return True
            if chunk_type != nested:
                break
        elif nested is not None or chunk_type not in NESTED_TYPES or chunk_type == record_type:
            break
        nested = None if type_byte & LAST else chunk_type
    else:
        return False
    cursor.unread()
    raise cursor.error("Binlog record missing end chunk")


def _check_uncut(source: PageSource, end: Position) -> None:
    """
    Check that a file from which a record goes on into the next one was not cut at its *end*.

    FLUSH cuts files too, but behind whole records: the next file begins with the rest of another
    one then, which must not be taken for the rest of this. Source: ibb-format 12.1.
    """
    header = source.header(end.file_no)
    if header is None:
        return  # purged meanwhile: what was read of it was right
    last_page = max(header.page_count - 1, 1)
    if source.read_page(end.file_no, last_page).status is not PageStatus.PAGE:
        page = -(-end.offset // header.page_size)  # the first that is not there
        raise FormatError(_TRUNCATED, file=binlog_name(end.file_no), page=page, offset=0)
