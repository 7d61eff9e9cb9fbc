"""
Directories, files and pages as a person wants to see them.

Nothing here believes what it reads: damaged bytes are shown as far as they mean something.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ibb.protocol.errors import FormatError
from ibb.storage.chunk import (
    CHUNK_HEADER_SIZE,
    FILLER,
    TYPE_MASK,
    UNUSED,
    chunk_area_end,
    last_chunk_start,
    read_chunk,
)
from ibb.storage.directory import BinlogDirectory
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError
from ibb.storage.file_header import NO_XA, FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.listing import list_files
from ibb.storage.open_files import OpenFiles
from ibb.storage.page import check_page, page_is_zero
from ibb.storage.position import Position
from ibb.storage.record import RecordType
from ibb.storage.record_reader import RecordReader
from ibb.storage.state_scan import read_state
from ibb.storage.used_pages import find_used_pages
from ibb.storage.verify.headers import check_file

from .record import GOES_ON, describe, part_of, type_of

STATE_CHARS_MAX = 60  # of a GTID state in a table
DESCRIBED_BYTES_MAX = 64 << 10  # of a record whose first chunk does not tell enough

_STARTS = ("whole", "first")  # parts that begin a record


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """
    A file of a directory; the fields of the header are None when it has none that is valid.

    Attributes:
        name: of the file.
        size: bytes.
        status: `ok`, `empty`, or what is wrong with the header.
        page_size: bytes.
        major: format version.
        pages: page count in the header.
        used: last page that is used.
        lsn: redo log position.
        interval: pages between states.
        oob_reference: lowest file that out-of-band pointers lead to.
        xa_reference: lowest file of a prepared XA transaction; None: there is none.
        state: the GTID state on page 1, shortened; None: there is none.
    """

    name: str
    size: int
    status: str
    page_size: int | None = None
    major: int | None = None
    pages: int | None = None
    used: int | None = None
    lsn: int | None = None
    interval: int | None = None
    oob_reference: int | None = None
    xa_reference: int | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLine:
    """
    A page, or several unused ones.

    Attributes:
        page: its number.
        last: number of the last one of a run of unused pages.
        offset: of its first byte in the file.
        status: `ok`, `unused`, or what is wrong with it.
        chunks: number of chunks.
        used: bytes used by them, padding included.
        first_record: offset in the page of the first record that begins here; None: none does.
        first_type: its type.
        state: the GTID state at the beginning of the page, shortened; None: there is none.
    """

    page: int
    last: int
    offset: int
    status: str
    chunks: int = 0
    used: int = 0
    first_record: int | None = None
    first_type: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLine:
    """
    A chunk, or what stands in place of one.

    Attributes:
        offset: in the page.
        type: of the record, or `filler`, `unused`, `damaged`.
        part: `whole`, `first`, `middle` or `last` of its record.
        length: bytes of contents; of filler and unused bytes, their number.
        meaning: what the record says that begins here.
    """

    offset: int
    type: str
    part: str
    length: int
    meaning: str


class Inspector:
    """
    Looks into the files of a directory.

    Args:
        disk: where it is; nothing is written.
        path: of the directory.

    Raises:
        DiskError: the directory cannot be read.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._files = OpenFiles(disk, path)
        self.pages = BinlogDirectory(disk, path)

    def close(self) -> None:
        """Close the files."""
        self._files.close()
        self.pages.close()

    def files(self) -> Iterator[FileLine]:
        """Yield a line for each file; those that vanish meanwhile, not."""
        for file_no in list_files(self._disk, self._path):
            try:
                line = self.file(file_no)
            except DiskError as error:
                if not error.missing:
                    raise
            else:
                yield line

    def file(self, file_no: int) -> FileLine:
        """
        Return the line of a file.

        Raises:
            DiskError: it is missing.
        """
        found = check_file(self._disk, self._path, file_no)
        header = found.header
        wrong = "; ".join(finding.text for finding in found.findings)
        status = wrong or ("empty" if found.empty else "ok")
        if header is None:
            return FileLine(name=binlog_name(file_no), size=found.size, status=status)
        return FileLine(
            name=binlog_name(file_no),
            size=found.size,
            status=status,
            page_size=header.page_size,
            major=header.major,
            pages=header.page_count,
            used=find_used_pages(self._files, file_no, header.page_size, 0).last,
            lsn=header.lsn,
            interval=header.state_interval,
            oob_reference=header.lowest_oob_file,
            xa_reference=None if header.xa_reference == NO_XA else header.xa_reference,
            state=self._state(file_no, 1),
        )

    def file_pages(self, file_no: int) -> Iterator[PageLine]:
        """
        Yield a line for each page of a file behind its header; unused ones together.

        Raises:
            FormatError: the header is damaged, so nobody knows where pages begin.
            DiskError: the file is missing or cannot be read.
        """
        header = self._header(file_no)
        unused: PageLine | None = None
        for page_no in range(1, self._files.size(file_no) // header.page_size):
            data = self._read(header, page_no)
            if page_is_zero(data):
                first = page_no if unused is None else unused.page
                offset = first * header.page_size
                unused = PageLine(page=first, last=page_no, offset=offset, status="unused")
                continue
            if unused is not None:
                yield unused
                unused = None
            yield self._page_line(header, page_no, data)
        if unused is not None:
            yield unused

    def page_status(self, file_no: int, page_no: int) -> str:
        """
        Return `ok`, `unused`, or what is wrong with a page.

        Raises:
            FormatError: the header is damaged, or there is no such page.
            DiskError: the file is missing or cannot be read.
        """
        return _status(self._page(file_no, page_no), file_no, page_no)

    def chunks(self, file_no: int, page_no: int) -> Iterator[ChunkLine]:
        """
        Yield what a page consists of, whether its checksum is right or not.

        Raises:
            FormatError, DiskError: as `page_status`.
        """
        header = self._header(file_no)
        data = self._page(file_no, page_no)
        for line in _chunks(data):
            if line.part not in _STARTS:
                yield line
                continue
            position = Position(file_no, page_no * len(data) + line.offset)
            start = line.offset + CHUNK_HEADER_SIZE
            meaning = self._describe(
                header,
                data[line.offset] & TYPE_MASK,
                data[start : start + line.length],
                position,
                whole=line.part == "whole",
            )
            yield replace(line, meaning=meaning)

    def header_page(self, file_no: int) -> bytes:
        """
        Return the first bytes of a file, those that a header takes.

        Raises:
            DiskError: the file is missing or cannot be read.
        """
        return self._files.read(file_no, 0, 512)

    def page_size(self, file_no: int) -> int:
        """
        Return the bytes a page of a file.

        Raises:
            FormatError: its header is damaged or it has none.
            DiskError: it is missing or cannot be read.
        """
        return self._header(file_no).page_size

    def _header(self, file_no: int) -> FileHeader:
        self._files.size(file_no)  # a missing file is an error of its own
        header = self.pages.header(file_no)
        if header is None:
            raise FormatError("the file is empty", file=binlog_name(file_no))
        return header

    def _page(self, file_no: int, page_no: int) -> bytes:
        header = self._header(file_no)
        data = self._read(header, page_no)
        if page_no < 1 or len(data) < header.page_size:
            raise FormatError("no such page", file=binlog_name(file_no), page=page_no)
        return data

    def _read(self, header: FileHeader, page_no: int) -> bytes:
        size = header.page_size
        return self._files.read(header.file_no, page_no * size, size)

    def _page_line(self, header: FileHeader, page_no: int, data: bytes) -> PageLine:
        lines = list(_chunks(data))
        starts = [line for line in lines if line.part in _STARTS]
        unused = lines and lines[-1].type == "unused"
        used = lines[-1].offset if unused else chunk_area_end(len(data))
        first = next((line for line in starts if line.type != RecordType.GTID_STATE.name), None)
        begins = lines and lines[0].type == RecordType.GTID_STATE.name and lines[0] in starts
        return PageLine(
            page=page_no,
            last=page_no,
            offset=page_no * header.page_size,
            status=_status(data, header.file_no, page_no),
            chunks=sum(bool(line.part) for line in lines),
            used=used,
            first_record=None if first is None else first.offset,
            first_type=None if first is None else first.type,
            state=self._state(header.file_no, page_no) if begins else None,
        )

    def _state(self, file_no: int, page_no: int) -> str | None:
        try:
            state = read_state(self.pages, file_no, page_no)
        except (FormatError, DiskError):
            return "damaged"
        if state is None:
            return None
        text = ",".join(map(str, state.entries[:STATE_CHARS_MAX])) or "(empty)"
        return text if len(text) <= STATE_CHARS_MAX else text[: STATE_CHARS_MAX - 3] + "..."

    def _describe(
        self,
        header: FileHeader,
        record_type: int,
        contents: bytes,
        position: Position,
        *,
        whole: bool,
    ) -> str:
        """Return what a record says; one that goes on in other pages is read if need be."""
        text = describe(record_type, contents, header.major, whole=whole)
        if whole or text != GOES_ON:
            return text
        try:
            record = RecordReader(self.pages, position).next()
            if record is None:
                return text
            data = bytes(record.first)
            for more in record.rest():
                data += more
                if len(data) > DESCRIBED_BYTES_MAX:
                    break
        except (FormatError, DiskError) as error:
            return f"goes on, but cannot be read: {error}"
        return describe(record_type, data, header.major)


def _status(data: bytes, file_no: int, page_no: int) -> str:
    if page_is_zero(data):
        return "unused"
    try:
        check_page(data, file_no, page_no)
    except FormatError as error:
        return error.what
    return "ok"


def _chunks(data: bytes) -> Iterator[ChunkLine]:
    """Yield what a page consists of, without what it means."""
    end, last_start = chunk_area_end(len(data)), last_chunk_start(len(data))
    at = 0
    while at <= last_start and data[at] not in (FILLER, UNUSED):
        chunk = read_chunk(data, at, end)
        if chunk is None:
            length = data[at + 1] | data[at + 2] << 8
            meaning = f"type byte 0x{data[at]:02x}, chunk length {length}"
            yield ChunkLine(offset=at, type="damaged", part="", length=end - at, meaning=meaning)
            return
        record_type, flags, start, length = chunk
        name, part = type_of(record_type), part_of(flags)
        yield ChunkLine(offset=at, type=name, part=part, length=length, meaning="")
        at = start + length
    if at < end:
        name = "unused" if data[at] == UNUSED else "filler"
        rest = data[at:end].strip(data[at : at + 1])
        meaning = "not all of it is what it should be" if rest else ""
        yield ChunkLine(offset=at, type=name, part="", length=end - at, meaning=meaning)
