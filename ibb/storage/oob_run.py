"""
Many pieces of a list at once: what stands in their records, since it is known where each begins.

A node's links name the places of earlier nodes, which depend on the bytes of those before; the way
records are cut into chunks says where each ends, so all of a row can be made before any is written.
Source: ibb-format 4, 6.
"""

from array import array
from typing import NamedTuple

from .chunk import CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, chunk_area_end
from .oob import OobForest
from .position import Position
from .record import encode_oob_header


class OobRun(NamedTuple):
    """
    Out-of-band records one behind the other: a head and a piece each.

    Attributes:
        heads: of all of them.
        head_bounds: where each begins in it, and where the last ends.
        bounds: the same of the pieces.
        starts: where each record will begin in the binlog, and what is written behind them.
    """

    heads: bytes
    head_bounds: "array[int]"
    bounds: "array[int]"
    starts: list[Position]

    @property
    def size(self) -> int:
        """Bytes of all."""
        return len(self.heads) + self.bounds[-1]


def plan_run(
    forest: OobForest, end: Position, page_size: int, piece_size: int, pieces: memoryview
) -> OobRun:
    """
    Return the next records of a list if nothing but they is written.

    Args:
        forest: of the list; it does not change.
        end: of the binlog: the first begins there, or on the next page.
        page_size: of the pages from there on.
        piece_size: bytes of each piece; the last one may have fewer.
        pieces: all of them, one behind the other.
    """
    forest = forest.copy()
    heads = bytearray()
    start = _start_at(end.file_no, *divmod(end.offset, page_size), page_size)
    head_bounds, bounds, starts = array("q", (0,)), array("q", (0,)), [start]
    for at in range(0, len(pieces), piece_size):
        head = encode_oob_header(forest.next_node())
        heads += head
        head_bounds.append(len(heads))
        bounds.append(min(at + piece_size, len(pieces)))
        forest.add(start)
        start = start_behind(start, len(head) + bounds[-1] - at, page_size)
        starts.append(start)
    return OobRun(bytes(heads), head_bounds, bounds, starts)


def start_behind(start: Position, size: int, page_size: int) -> Position:
    """
    Return where a record begins behind one of *size* bytes of contents, in pages just of records.

    Args:
        start: where that one begins; there is room for a chunk.
        size: at least 1.
        page_size: of the pages.
    """
    file_no, offset = start
    page_no, used = divmod(offset, page_size)
    area = chunk_area_end(page_size)
    left = size - (area - used - CHUNK_HEADER_SIZE)
    if left > 0:
        further = -(-left // (area - CHUNK_HEADER_SIZE))
        page_no += further
        used, size = 0, left - (further - 1) * (area - CHUNK_HEADER_SIZE)
    return _start_at(file_no, page_no, used + CHUNK_HEADER_SIZE + size, page_size)


def _start_at(file_no: int, page_no: int, used: int, page_size: int) -> Position:
    """Return where a record begins behind what is used of a page."""
    if chunk_area_end(page_size) - used < CHUNK_SIZE_MIN:
        page_no, used = page_no + 1, 0
    return Position(file_no, page_no * page_size + used)
