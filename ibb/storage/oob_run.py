"""
Many pieces of a list at once: what stands in their records, since it is known where each begins.

A node's links name the places of earlier nodes, which depend on the bytes of those before; the way
records are cut into chunks says where each ends, so all of a row can be made before any is written:
a kernel. Runs as plain Python, too; `oob_run.pxd` gives it C types. Source: ibb-format 4, 6.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from .chunk import CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN
from .oob_forest import OobForest
from .page import CHECKSUM_SIZE
from .position import Position
from .record import OOB_HEADER_BYTES_MAX

_chunk_header, _chunk_min, _checksum = CHUNK_HEADER_SIZE, CHUNK_SIZE_MIN, CHECKSUM_SIZE


class OobRun(NamedTuple):
    """
    Out-of-band records one behind the other: a head and a piece each.

    Attributes:
        heads: of all of them.
        head_bounds: where each begins in it, and where the last ends.
        bounds: the same of the pieces.
        file_no: of the file that they will be written to.
        starts: where in it each record will begin, and what is written behind them.
    """

    heads: bytes
    head_bounds: array[int]
    bounds: array[int]
    file_no: int
    starts: array[int]

    @property
    def size(self) -> int:
        """Bytes of all."""
        return len(self.heads) + self.bounds[len(self.bounds) - 1]


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
    size = len(pieces)
    count = (size + piece_size - 1) // piece_size
    heads = bytearray(count * OOB_HEADER_BYTES_MAX)
    head_bounds, bounds, starts = (array("q", bytes(8 * (count + 1))) for _ in range(3))
    trees, start = forest.copy(), _begin_at(end.offset, page_size)
    used = _plan(
        trees, heads, head_bounds, bounds, starts, end.file_no, start, page_size, piece_size, size
    )
    return OobRun(bytes(memoryview(heads)[:used]), head_bounds, bounds, end.file_no, starts)


def start_behind(start: int, size: int, page_size: int) -> int:
    """
    Return where a record begins behind one of *size* bytes of contents, in pages just of records.

    Args:
        start: offset in the file where that one begins; there is room for a chunk.
        size: at least 1.
        page_size: of the pages.
    """
    area = page_size - _checksum
    page, used = start // page_size, start % page_size
    left = size - (area - used - _chunk_header)
    if left > 0:
        payload = area - _chunk_header
        further = (left + payload - 1) // payload
        page += further
        used, size = 0, left - (further - 1) * payload
    return _begin_at(page * page_size + used + _chunk_header + size, page_size)


def _plan(
    forest: OobForest,
    heads: bytearray,
    head_bounds: array[int],
    bounds: array[int],
    starts: array[int],
    file_no: int,
    start: int,
    page_size: int,
    piece_size: int,
    size: int,
) -> int:
    """Fill in all records; return the bytes of their heads."""
    used = at = which = 0
    starts[0] = start
    while at < size:
        head = used
        used = forest.put_head(heads, used)
        piece = min(piece_size, size - at)
        at += piece
        forest.add_at(file_no, start)
        start = start_behind(start, used - head + piece, page_size)
        which += 1
        head_bounds[which], bounds[which], starts[which] = used, at, start
    return used


def _begin_at(offset: int, page_size: int) -> int:
    """Return where a record begins that is written when so much of a file is used."""
    used = offset % page_size
    return offset if page_size - _checksum - used >= _chunk_min else offset - used + page_size
