"""
How much fits where in a file: between two of its GTID states, and behind one.

Source: ibb-format 5.2.
"""

from typing import NamedTuple

from .chunk import CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN
from .page import CHECKSUM_SIZE


class FileShape(NamedTuple):
    """A file's size in pages, its page size in bytes, and its pages between states, 0: none."""

    pages: int
    page_size: int
    interval: int

    @property
    def page_payload(self) -> int:
        """Bytes of records that a page takes if they are one chunk."""
        return self.page_size - CHUNK_HEADER_SIZE - CHECKSUM_SIZE

    def room_between(self, state_bytes: int) -> int:
        """
        Return the bytes that lie between two states at least, of any two spans in a row.

        A file's last span may be a short one; the one behind it is not.
        """
        pages = min(self.interval or self.pages, self.pages) - 2
        return pages * self.page_payload - state_bytes


def state_fits(data_bytes: int, page_size: int, pages_left: int) -> bool:
    """
    Tell whether a state record is written, or left out for lack of room for anything behind it.

    Args:
        data_bytes: of the record.
        page_size: bytes.
        pages_left: of the file, the page counted at whose beginning the record is due.

    Source: ibb-format 5.2.
    """
    area = page_size - CHECKSUM_SIZE
    chunks = -(-data_bytes // (area - CHUNK_HEADER_SIZE))
    # The format's estimate forgets the chunk headers. Those of hundreds of pages take up pages of
    # their own: such a record could run past the file's end, where the next state is due.
    really = data_bytes + chunks * CHUNK_HEADER_SIZE + CHUNK_SIZE_MIN
    return -(-data_bytes // area) < pages_left and really <= pages_left * area
