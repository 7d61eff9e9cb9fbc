"""The header page of a binlog file. Source: ibb-format 3.2 to 3.5."""

import struct
from dataclasses import dataclass

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .file_name import binlog_name
from .page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN, check_page, page_is_zero
from .page_seal import seal_page

HEADER_UNIT = 512  # bytes read first, whatever the page size
HEADER_CHECKSUM_AT = HEADER_UNIT - 4  # over all bytes before it
HEADER_FIELDS_SIZE = 64  # bytes that are not zero, but for the checksums
MAGIC = 0x010DFEFE
MAJOR_DRAFT = 0
MAJOR_FINAL = 1
NO_XA = 2**64 - 1  # XA reference: none
OOB_UNKNOWN = 2**64 - 1  # oob reference: take the file itself

_FIELDS = struct.Struct("<IIIIQQQQQQ")
_CHECKSUM = struct.Struct("<I")


def has_magic(page0: bytes) -> bool:
    """Tell whether bytes begin as a header does."""
    return int.from_bytes(page0[:4], "little") == MAGIC


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """
    The fields of a header page.

    Attributes:
        file_no: the number in the file's name.
        page_size: bytes, a power of two from 512 to 65536.
        page_count: pages of the file as it was allocated; FLUSH may have cut it since.
        lsn: redo log position when the header was built; older redo does not apply to the file.
        state_interval: pages between GTID state records; 0: none but on page 1; may be larger
            than the file and need not be a power of two.
        oob_reference: lowest file number that out-of-band pointers of this file may lead to.
        xa_reference: lowest file number with pieces of a prepared XA transaction, or `NO_XA`.
        major: format version, 1 final, 0 draft.
        minor: higher ones can be read all the same.
    """

    file_no: int
    page_size: int
    page_count: int
    lsn: int
    state_interval: int
    oob_reference: int
    xa_reference: int = NO_XA
    major: int = MAJOR_FINAL
    minor: int = 0

    @property
    def lowest_oob_file(self) -> int:
        """The oob reference, with "not known" taken as the file itself."""
        return self.file_no if self.oob_reference == OOB_UNKNOWN else self.oob_reference

    @classmethod
    def parse(cls, page0: bytes, file_no: int) -> "FileHeader":
        """
        Read the header at the beginning of *page0*, which may be longer than the page.

        Raises:
            FormatError: anything is not as it must be in file *file_no*; an empty (all-zero)
                page is no header either.
        """
        name = binlog_name(file_no)
        if len(page0) < HEADER_UNIT or page_is_zero(page0[:HEADER_UNIT]):
            raise _invalid(name)
        (stored,) = _CHECKSUM.unpack_from(page0, HEADER_CHECKSUM_AT)
        if stored != crc32c(memoryview(page0)[:HEADER_CHECKSUM_AT]):
            raise _invalid(name)
        magic, exponent, major, minor, number, *_ = _FIELDS.unpack_from(page0)
        if magic != MAGIC:
            raise _invalid(name)
        if major > MAJOR_FINAL:
            raise FormatError(
                f"Unsupported version of InnoDB binlog file, cannot read (version {major}.{minor})",
                file=name,
                page=0,
            )
        if not PAGE_SIZE_MIN.bit_length() - 1 <= exponent < PAGE_SIZE_MAX.bit_length():
            raise _invalid(name)
        page_size = 1 << exponent
        if len(page0) < page_size:
            raise FormatError("file too short: no whole header page", file=name, page=0)
        check_page(memoryview(page0)[:page_size], file_no, 0)
        if number != file_no:
            raise FormatError(
                f"Inconsistent file header in file '{name}', wrong file_no {number}",
                file=name,
                page=0,
            )
        return cls.unpack(page0)

    @classmethod
    def unpack(cls, page0: bytes) -> "FileHeader":
        """Read the header at the beginning of *page0*, in which all is as it must be."""
        _, exponent, major, minor, number, count, lsn, interval, oob, xa = _FIELDS.unpack_from(
            page0
        )
        return cls(
            file_no=number,
            page_size=1 << exponent,
            page_count=count,
            lsn=lsn,
            state_interval=interval,
            oob_reference=oob,
            xa_reference=xa,
            major=major,
            minor=minor,
        )

    @classmethod
    def from_fields(cls, fields: bytes | memoryview, file_no: int) -> "FileHeader":
        """
        Rebuild a header from what `encode_fields` gave; the redo log carries no more of it.

        Raises:
            FormatError: the fields are no header of file *file_no*.
        """
        name = binlog_name(file_no)
        if len(fields) != HEADER_FIELDS_SIZE:
            raise FormatError(f"{len(fields)} bytes are no file header", file=name, page=0)
        unit = bytearray(PAGE_SIZE_MAX)
        unit[:HEADER_FIELDS_SIZE] = fields
        page_size = 1 << min(unit[4], PAGE_SIZE_MAX.bit_length() - 1)
        return cls.parse(_with_checksums(unit[: max(page_size, HEADER_UNIT)]), file_no)

    def encode(self) -> bytes:
        """Return the whole header page with both checksums."""
        assert PAGE_SIZE_MIN <= self.page_size <= PAGE_SIZE_MAX
        assert self.page_size & (self.page_size - 1) == 0
        page = bytearray(self.page_size)
        page[:HEADER_FIELDS_SIZE] = self.encode_fields()
        return _with_checksums(page)

    def encode_fields(self) -> bytes:
        """Return the first 64 bytes of the header page: the rest follows from them."""
        return _FIELDS.pack(
            MAGIC,
            self.page_size.bit_length() - 1,
            self.major,
            self.minor,
            self.file_no,
            self.page_count,
            self.lsn,
            self.state_interval,
            self.oob_reference,
            self.xa_reference,
        )


def _with_checksums(page: bytearray) -> bytes:
    _CHECKSUM.pack_into(page, HEADER_CHECKSUM_AT, crc32c(memoryview(page)[:HEADER_CHECKSUM_AT]))
    if len(page) > HEADER_UNIT:  # else the two checksums are the same four bytes
        seal_page(page)
    return bytes(page)


assert _FIELDS.size == HEADER_FIELDS_SIZE
assert HEADER_CHECKSUM_AT + CHECKSUM_SIZE == HEADER_UNIT == PAGE_SIZE_MIN


def _invalid(name: str) -> FormatError:
    """Return the error; held by who raises it, it would hold the page until the next collection."""
    return FormatError(f"Invalid or corrupt file header in file '{name}'", file=name, page=0)
