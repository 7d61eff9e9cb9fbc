"""Pages cut into chunks, chunks joined to records. Source: ibb-format 4, 7.2, 7.3."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .files import BinlogFile, Place, checksum_is_right, is_zero

COMMIT, GTID_STATE, OOB, DUMMY, XA_PREPARE, XA_COMPLETE = 1, 2, 3, 4, 5, 6
NESTED = (GTID_STATE, DUMMY)
LAST, CONTINUATION, TYPE_MASK = 0x40, 0x80, 0x3F
FILLER = 0xFF

Report = Callable[[Place, str], None]


class Chunk(NamedTuple):
    """A chunk and where it is."""

    place: Place
    type_byte: int
    data: bytes

    @property
    def type(self) -> int:
        return self.type_byte & TYPE_MASK

    @property
    def starts(self) -> bool:
        return not self.type_byte & CONTINUATION

    @property
    def ends(self) -> bool:
        return bool(self.type_byte & LAST)

    @property
    def end(self) -> Place:
        return Place(self.place.file_no, self.place.offset + 3 + len(self.data))


@dataclass
class Record:
    """A record; the chunks of those nested in it are theirs alone."""

    type: int
    chunks: list[Chunk]
    is_nested: bool

    @property
    def place(self) -> Place:
        return self.chunks[0].place

    @property
    def end(self) -> Place:
        return self.chunks[-1].end

    @property
    def is_whole(self) -> bool:
        return self.chunks[-1].ends

    @property
    def data(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)


def cut(file: BinlogFile, report: Report) -> tuple[list[Chunk], Place]:
    """Return the chunks of a file and where its data ends."""
    chunks: list[Chunk] = []
    for number in range(1, file.pages):
        page, start = file.page(number), number * file.page_size
        here = Place(file.number, start)
        if is_zero(page):
            _expect_unused(file, number + 1, report)
            return chunks, here
        if not checksum_is_right(page):
            report(here, "wrong page checksum")
            return chunks, here
        at = 0
        while at <= file.end - 4 and page[at] not in (0, FILLER):
            size = int.from_bytes(page[at + 1 : at + 3], "little")
            chunk = Chunk(Place(file.number, start + at), page[at], page[at + 3 : at + 3 + size])
            if size == 0 or at + 3 + size > file.end:
                report(chunk.place, f"chunk of {size} bytes")
                return chunks, chunk.place
            chunks.append(chunk)
            at += 3 + size
            if not chunk.ends and at != file.end:
                report(chunk.place, "goes on elsewhere but does not fill its page")
        rest, here = page[at : file.end], Place(file.number, start + at)
        if rest[:1] == b"\0":
            if not is_zero(rest):
                report(here, "bytes behind the end of data")
            _expect_unused(file, number + 1, report)
            return chunks, here
        if len(rest) > 3 or rest.strip(bytes([FILLER])):
            report(here, f"{rest[:8].hex()} is no filler of one to three bytes")
    return chunks, Place(file.number, file.pages * file.page_size)


def _expect_unused(file: BinlogFile, first: int, report: Report) -> None:
    for number in range(first, file.pages):
        if not is_zero(file.page(number)):
            report(Place(file.number, number * file.page_size), "used page behind the end of data")
            return


def join(chunks: Iterable[Chunk], report: Report, *, begins_inside: bool) -> list[Record]:
    """
    Return the records in the order in which they begin.

    Args:
        chunks: of all files, in order.
        report: is told of each violation.
        begins_inside: older files are gone: continuations of a record that began there come first.
    """
    records: list[Record] = []
    open_records: list[Record] = []  # at most an ordinary one and one nested in it
    for chunk in chunks:
        if chunk.starts:
            if open_records and (
                len(open_records) > 1
                or chunk.type not in NESTED
                or chunk.type == open_records[0].type
            ):
                report(chunk.place, "Binlog record missing end chunk")
                open_records.clear()
            record = Record(chunk.type, [chunk], bool(open_records))
            records.append(record)
            open_records.append(record)
            begins_inside = begins_inside and chunk.type != COMMIT
        elif open_records and open_records[-1].type == chunk.type:
            open_records[-1].chunks.append(chunk)
        else:
            if not begins_inside:
                report(chunk.place, "Binlog record starts with continuation chunk")
            continue
        if chunk.ends:
            open_records.pop()
    for record in open_records:
        report(record.place, "data ends inside this record")
    return records
