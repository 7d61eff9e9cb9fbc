"""
The trees of a list of out-of-band records while it is being written: a kernel.

A list of pieces is a forest of perfect binary trees, built from left to right without ever
changing a node that was written: an inner node joins the last two trees when they have equal
height, a leaf begins a new one and remembers the tree before it. So nothing but the roots has to
be known, and their heights say which nodes they are. Runs as plain Python, too; `oob_forest.pxd`
gives it C types. Source: ibb-format 6.1, 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .position import NOWHERE, Position
from .record import OobHeader, OobReference

if TYPE_CHECKING:
    from array import array
if not cython.compiled:  # else the .pxd names it
    from ibb.protocol.compint import put

ROOTS_MAX: Final = 66  # two more than there can be: but for the last two all heights differ


@dataclass(frozen=True, slots=True)
class Root:
    """A tree of the forest: where its root is, the root's node index and the tree's height."""

    position: Position
    index: int
    height: int


@dataclass(frozen=True, slots=True)
class ForestMark:
    """A savepoint of a forest: its trees, and where node 0 was written if there is one."""

    roots: tuple[Root, ...]
    first: Position


class OobForest:
    """
    The forest of one list: what the next node is, and what the end is.

    The number of roots is logarithmic in the number of nodes.

    Attributes:
        count: number of nodes that take part, rolled-back ones not counted.
    """

    def __init__(self) -> None:
        self.count = self._roots = 0
        self._first_file = self._first_at = 0
        if not cython.compiled:
            self._file_of, self._root_at, self._height = ([0] * ROOTS_MAX for _ in range(3))

    def copy(self) -> OobForest:
        """Return a forest of the same nodes that grows by itself."""
        forest = OobForest()
        forest.count, forest._roots = self.count, self._roots
        forest._first_file, forest._first_at = self._first_file, self._first_at
        for place in range(self._roots):
            forest._file_of[place], forest._root_at[place] = (
                self._file_of[place],
                self._root_at[place],
            )
            forest._height[place] = self._height[place]
        return forest

    @property
    def roots(self) -> tuple[Root, ...]:
        """The trees, oldest first."""
        found, nodes = [], 0
        for place in range(self._roots):
            nodes += _nodes(self._height[place])
            found.append(Root(self._root(place), nodes - 1, self._height[place]))
        return tuple(found)

    def next_node(self) -> OobHeader:
        """Return the header that the next node must have; asking changes nothing."""
        left = self._root(self._roots - 2) if self._joins() else NOWHERE
        return OobHeader(self.count, left, self._root(self._roots - 1) if self._roots else NOWHERE)

    def put_head(self, out: bytearray, at: int) -> int:
        """Write that header's bytes, for which there is room; return where they end."""
        last, left = self._roots - 1, self._roots - 2 if self._joins() else -1
        at = put(out, at, self.count)
        at = put(out, at, self._file_of[left] if left >= 0 else 0)
        at = put(out, at, self._root_at[left] if left >= 0 else 0)
        at = put(out, at, self._file_of[last] if last >= 0 else 0)
        return put(out, at, self._root_at[last] if last >= 0 else 0)

    def add(self, position: Position) -> None:
        """Take note that the next node was written at *position*."""
        assert not self._roots or position > self._root(self._roots - 1)
        self.add_at(position.file_no, position.offset)

    def add_run(self, file_no: int, starts: array[int], count: int) -> None:
        """Take note that the next *count* nodes were written where *starts* says, in one file."""
        assert 0 <= count <= len(starts)
        places = memoryview(starts)
        for which in range(count):
            self.add_at(file_no, places[which])

    def add_at(self, file_no: int, offset: int) -> None:
        """As `add`, for kernels."""
        if not self.count:
            self._first_file, self._first_at = file_no, offset
        roots, height = self._roots, 1
        if self._joins():
            roots -= 2
            height = self._height[roots] + 1
        self._file_of[roots], self._root_at[roots] = file_no, offset
        self._height[roots] = height
        self._roots = roots + 1
        self.count += 1

    def reference(self) -> OobReference:
        """Return what the commit record says of this list, which must not be empty."""
        assert self._roots
        first = Position(self._first_file, self._first_at)
        return OobReference(self.count, first, self._root(self._roots - 1))

    def save(self) -> ForestMark:
        """Return a savepoint."""
        return ForestMark(self.roots, Position(self._first_file, self._first_at))

    def restore(self, mark: ForestMark) -> None:
        """Go back to a savepoint: what was written since is garbage, and indexes repeat."""
        self._roots = self.count = 0
        self._first_file, self._first_at = mark.first
        for root in mark.roots:
            place = self._roots
            self._file_of[place], self._root_at[place] = root.position
            self._height[place] = root.height
            self._roots, self.count = place + 1, root.index + 1

    def _root(self, place: int) -> Position:
        return Position(self._file_of[place], self._root_at[place])

    def _joins(self) -> bool:
        """Tell whether the next node joins the last two trees."""
        last = self._roots - 1
        return last > 0 and self._height[last] == self._height[last - 1]


def _nodes(height: int) -> int:
    """Return how many nodes a tree has."""
    one = 1
    return (one << height) - 1
