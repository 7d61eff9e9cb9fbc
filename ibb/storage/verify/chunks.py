"""
Chunks: joined into records, and joined again behind damage.

The rules are those of the record reader. What breaks one is reported, the records that are open
are given up, and reading goes on where the next record begins. Source: ibb-format 4, 7.2.
"""

from ibb.protocol.gtid import Gtid
from ibb.storage.chunk import (
    CONTINUATION,
    FILLER,
    LAST,
    UNUSED,
    chunk_area_end,
    last_chunk_start,
    read_chunk,
)
from ibb.storage.page import page_is_zero
from ibb.storage.record import RecordType
from ibb.storage.record_reader import NESTED_TYPES, TYPE_MAX

from .finding import Finding, Kind, Place
from .records import RecordCheck, RecordChecks

_PADDED_ENDS = tuple(bytes([FILLER]) * size for size in range(4))


class ChunkChecks:
    """
    Takes the pages of all files in order.

    Args:
        records: takes the records.
        skipping: the pages may begin inside a record.

    Attributes:
        last_type: record type of the last chunk taken.
        border: where it stopped in the page taken last, between two records, if it was to.
    """

    def __init__(self, records: RecordChecks, *, skipping: bool) -> None:
        self._records = records
        self._skipping = skipping
        self._outer: RecordCheck | None = None  # the record that is open
        self._outer_type = 0
        self._outer_place = Place(0, 0, 0, 0)
        self._nested: RecordCheck | None = None  # and the one that is open inside it
        self._nested_type = 0
        self._place = Place(0, 0, 0, 0)  # of the present chunk
        self.last_type = 0
        self.border: int | None = None

    @property
    def is_between(self) -> bool:
        """No record is open, nor is one being skipped."""
        return self._outer is None and not self._skipping

    @property
    def is_open(self) -> bool:
        """A record has begun and not ended."""
        return self._outer is not None

    @property
    def open_at(self) -> Place | None:
        """Where the record begins that has not ended."""
        return None if self._outer is None else self._outer_place

    def page(
        self, file_no: int, page_no: int, page: bytes, start: int = 0, *, to_border: bool = False
    ) -> int:
        """
        Take the chunks of a page whose checksum is right.

        Args:
            file_no: of its file.
            page_no: of it.
            page: its image.
            start: chunks before this offset were taken before.
            to_border: stop behind the first chunk that leaves no record open.

        Returns:
            Where it stopped, or where unused bytes begin, even if they are too few for a chunk; the
            end of the chunk area if there are none.
        """
        area_end = chunk_area_end(len(page))
        last_start = last_chunk_start(len(page))
        view = memoryview(page)
        at, self.border = start, None
        while at <= last_start:
            type_byte = page[at]
            if type_byte == UNUSED:
                return at
            if type_byte == FILLER:
                if page[at:area_end].strip(b"\xff\0"):
                    self._report_padding(file_no, page_no, at, page)
                return area_end
            self._place = Place(file_no, page_no, at, len(page))
            chunk = read_chunk(page, at, area_end)
            if chunk is None:
                length = page[at + 1] | page[at + 2] << 8
                text = f"Invalid record of type 0x{type_byte:02x} (invalid chunk length {length})"
                self._lose(Kind.CHUNK_LENGTH, text)
                return area_end
            record_type, flags, data_start, length = chunk
            if not 0 < record_type <= TYPE_MAX:
                self._lose(Kind.CHUNK_TYPE, f"Invalid chunk type 0x{type_byte:02x}")
                return area_end
            at = data_start + length
            self.last_type = record_type
            if flags & CONTINUATION:
                self._go_on(record_type, view[data_start:at], last=bool(flags & LAST))
            else:
                self._begin(record_type, view[data_start:at], last=bool(flags & LAST))
                if record_type == RecordType.DUMMY and at != area_end:
                    self._report_padding(file_no, page_no, at, page)
            if to_border and self.is_between:
                self.border = at
                return at
        rest = page[at:area_end]
        if rest and page_is_zero(rest):
            return at  # the next record will pad it
        if rest != _PADDED_ENDS[len(rest)]:
            self._report_padding(file_no, page_no, at, page)
        return area_end

    def skip(self, finding: Finding) -> None:
        """Report that what follows cannot be read; a record may go on behind it."""
        self._records.lose(finding, self._give_up())
        self._skipping = True

    def pass_over(self) -> None:
        """What follows is gone, and no damage: nothing of it is missed."""
        self._give_up()
        self._records.pass_over()
        self._skipping = True

    def _begin(self, record_type: int, data: memoryview, *, last: bool) -> None:
        if self._outer is not None:
            allowed = record_type in NESTED_TYPES and record_type != self._outer_type
            if self._nested is None and allowed:
                nested = self._records.begin(record_type, self._place)
                nested.add(data)
                if last:
                    nested.end()
                else:
                    self._nested, self._nested_type = nested, record_type
                return
            self._miss_end()
        if record_type not in NESTED_TYPES:
            self._skipping = False
        record = self._records.begin(record_type, self._place)
        record.add(data)
        if last:
            record.end()
        else:
            self._outer, self._outer_type, self._outer_place = record, record_type, self._place

    def _go_on(self, record_type: int, data: memoryview, *, last: bool) -> None:
        if self._nested is not None:
            if record_type == self._nested_type:
                self._nested.add(data)
                if last:
                    nested, self._nested = self._nested, None
                    nested.end()
                return
        elif self._outer is not None:
            if record_type == self._outer_type:
                self._outer.add(data)
                if last:
                    outer, self._outer = self._outer, None
                    outer.end()
                return
        elif self._skipping:
            if last and record_type not in NESTED_TYPES:
                self._skipping = False
            return
        if self._outer is not None:
            self._miss_end()
        else:
            self._lose(Kind.CONTINUATION, "Binlog record starts with continuation chunk")
        self._skipping = not last

    def _miss_end(self) -> None:
        self._lose(Kind.MISSING_END, "Binlog record missing end chunk")

    def _lose(self, kind: Kind, text: str) -> None:
        self.skip(Finding.at(kind, self._place, text))

    def _give_up(self) -> Gtid | None:
        nested, self._nested = self._nested, None
        outer, self._outer = self._outer, None
        if nested is not None:
            nested.give_up()
        return None if outer is None else outer.give_up()

    def _report_padding(self, file_no: int, page_no: int, at: int, page: bytes) -> None:
        text = "the end of the page is not filled up as it should be"
        place = Place(file_no, page_no, at, len(page))
        self._records.report(Finding.at(Kind.PADDING, place, text))
