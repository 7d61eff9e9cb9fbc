"""A place in the binlog."""

from typing import NamedTuple

from .file_name import binlog_name


class Position(NamedTuple):
    """
    A file number and a byte offset in that file, ordered as the stream is.

    It denotes a chunk boundary: page `offset // page_size`, place in it `offset % page_size`. Page
    0 is the header, so offset 0 is nowhere; `(0, 0)` means "none" in pointers. The page size is
    that of the file. Source: ibb-format 7.1.
    """

    file_no: int
    offset: int

    def __str__(self) -> str:
        return f"{binlog_name(self.file_no)}:{self.offset}"


NOWHERE = Position(0, 0)
