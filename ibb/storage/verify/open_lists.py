"""
Lists of out-of-band records whose commit record is still to come: a kernel.

The records of a list are taken as they follow one another in a file, those of other lists in
between or not. A list is known here as long as each record of it has just the links that a writer
gives it, which are those by which `walk_tree` would find them in this order. When its commit record
comes, it need not be read again. What does not fit is no list that is known, and nothing more is
said of it. Runs as plain Python, too; `open_lists.pxd` gives it C types. Source: ibb-format 6.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from . import event_lengths

LISTS_MAX: Final = 8  # at a time; above that the one is forgotten that has not gone on for longest
ROOTS_MAX: Final = 64  # of a list of fewer than 2**32 records
NO_LINK: Final = -1  # the offset of nothing
ELSEWHERE: Final = -2  # the offset of what lies in another file

_lists_max, _roots_max, _no_link = LISTS_MAX, ROOTS_MAX, NO_LINK


class OpenLists:
    """
    The lists of one file, each by its number.

    Attributes:
        events: of their pieces, joined; walk N is that of list N.
    """

    def __init__(self) -> None:
        self.events = event_lengths.EventLengths()
        self._clock = 0
        if not cython.compiled:
            self._count, self._first, self._last, self._roots, self._moved = (
                [0] * LISTS_MAX for _ in range(5)
            )
            self._root_at, self._height = ([0] * (LISTS_MAX * ROOTS_MAX) for _ in range(2))
        self.forget_all()

    def forget_all(self) -> None:
        """Know none."""
        for which in range(_lists_max):
            self.forget(which)

    def forget(self, which: int) -> None:
        """Know a list no more."""
        self._count[which] = self._roots[which] = self._moved[which] = 0

    def find(self, index: int, left: int, right: int) -> int:
        """
        Return which list a record begins, or goes on with; -1: none that is known.

        Args:
            index: of the record.
            left: offset of its left child, `NO_LINK` or `ELSEWHERE`.
            right: of its right child, or of the tree before it.
        """
        if index == 0:
            return self._begin() if left == _no_link and right == _no_link else -1
        for which in range(_lists_max):
            if self._count[which] == index:
                top = which * _roots_max + self._roots[which] - 1
                before = self._root_at[top - 1] if self._joins(which) else _no_link
                if self._root_at[top] == right and before == left:
                    return which
        return -1

    def add(self, which: int, begin: int) -> None:
        """Add the record that was found to go on with a list, and begins at an offset."""
        roots, height = self._roots[which], 1
        base = which * _roots_max
        if self._joins(which):
            height = self._height[base + roots - 1] + 1
            roots -= 2
        if roots + 1 == _roots_max:
            self.forget(which)
            return
        self._root_at[base + roots], self._height[base + roots] = begin, height
        self._roots[which] = roots + 1
        if self._count[which] == 0:
            self._first[which] = begin
        self._last[which] = begin
        self._count[which] += 1
        self._clock += 1
        self._moved[which] = self._clock

    def close(self, count: int, first: int, last: int) -> bool:
        """Forget the list of which a commit record says this; tell if it is known and right."""
        for which in range(_lists_max):
            if self._count[which] and self._last[which] == last:
                is_right = self._count[which] == count and self._first[which] == first
                is_right = is_right and self.events.is_done(which)
                self.forget(which)
                return is_right
        return False

    def _begin(self) -> int:
        """Return a list to begin with, that of which nothing was heard for longest."""
        oldest = 0
        for which in range(1, _lists_max):
            if self._moved[which] < self._moved[oldest]:
                oldest = which
        self.forget(oldest)
        self.events.begin(oldest, 0)
        return oldest

    def _joins(self, which: int) -> bool:
        """Tell whether the next record joins the last two trees."""
        roots, top = self._roots[which], which * _roots_max + self._roots[which] - 1
        return roots >= 2 and self._height[top] == self._height[top - 1]


assert LISTS_MAX < event_lengths.WALKS
