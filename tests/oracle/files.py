"""Files, header pages and checksums. Source: ibb-format 3."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

import crcmod.predefined

from .fields import DamageError, Fields

MAGIC = 0x010DFEFE
HEADER_UNIT = 512
NO_XA = 2**64 - 1

crc32c = crcmod.predefined.mkPredefinedCrcFun("crc-32c")


class Image(Protocol):
    """The bytes of a file: `bytes`, or something that can be measured and cut like it."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> bytes: ...


class Place(NamedTuple):
    """A byte of the binlog."""

    file_no: int
    offset: int


class Header(NamedTuple):
    """The fields of page 0."""

    page_size: int
    major: int
    minor: int
    file_no: int
    page_count: int
    lsn: int
    interval: int
    oob_reference: int
    xa_reference: int


class BinlogFile:
    """A file that has a header."""

    def __init__(self, image: Image, header: Header) -> None:
        self._image = image
        self.header = header
        self.number = header.file_no
        self.page_size = header.page_size
        self.end = header.page_size - 4  # of the chunks of a page
        self.pages = len(image) // header.page_size
        self.has_partial_page = len(image) % header.page_size != 0

    def page(self, number: int) -> bytes:
        return self._image[number * self.page_size : (number + 1) * self.page_size]


@lru_cache(maxsize=256)
def checksum_is_right(unit: bytes) -> bool:
    """Tell whether the last four bytes are the CRC-32C of those before them."""
    return crc32c(unit[:-4]) == int.from_bytes(unit[-4:], "little")


def is_zero(data: bytes) -> bool:
    return data == bytes(len(data))


def read_file(image: Image, number: int) -> BinlogFile | None:
    """Return a file, or None if it was made in advance and never used."""
    unit = image[:HEADER_UNIT]
    if is_zero(unit):
        if any(not is_zero(image[at : at + 65536]) for at in range(0, len(image), 65536)):
            raise DamageError("bytes in a file without header")
        return None
    if len(unit) != HEADER_UNIT or not checksum_is_right(unit):
        raise DamageError("wrong header checksum")
    header = _parse_header(unit)
    if header.file_no != number:
        raise DamageError(f"the header says it is file {header.file_no}")
    page = image[: header.page_size]
    if len(image) < 2 * header.page_size or not checksum_is_right(page):
        raise DamageError("file too short, or wrong checksum of page 0")
    if not is_zero(page[64:508]) or not is_zero(page[HEADER_UNIT:-4]):
        raise DamageError("bytes behind the header fields")
    return BinlogFile(image, header)


def _parse_header(unit: bytes) -> Header:
    fields = Fields(unit)
    if fields.number(4) != MAGIC:
        raise DamageError("wrong magic")
    exponent, major, minor = (fields.number(4) for _ in range(3))
    if not 9 <= exponent <= 16 or major > 1:
        raise DamageError(f"page size 2**{exponent}, major version {major}")
    return Header(1 << exponent, major, minor, *(fields.number(8) for _ in range(6)))


def images_in(directory: Path) -> Mapping[int, bytes]:
    """Return the files of a directory by their numbers."""
    names = (
        (path, re.fullmatch(r"binlog-(\d{6,})\.ibb", path.name)) for path in directory.iterdir()
    )
    return {int(match[1]): path.read_bytes() for path, match in names if match}
