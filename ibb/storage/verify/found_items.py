"""
What was found of groups and states, as few items in their order: a kernel.

Groups of a domain and server whose numbers ascend are one item, unless another server of the domain
or a state comes between: of such a stretch the history need only judge the first. Runs as plain
Python, too; `found_items.pxd` gives it C types.
"""

from __future__ import annotations

from typing import Final, NamedTuple

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.storage.page import PAGE_SIZE_MAX

ITEMS_MAX: Final = 512
NESTED_MAX: Final = 16  # states inside one record
STATES_BYTES: Final = 4 * PAGE_SIZE_MAX
LOOKED_BACK: Final = 16  # items among which one of the same domain is looked for

_items_max, _nested_max, _states_bytes = ITEMS_MAX, NESTED_MAX, STATES_BYTES
_looked_back = LOOKED_BACK


class Stretch(NamedTuple):
    """
    Groups with ascending numbers.

    Attributes:
        domain, server: of all of them.
        first, last: the lowest and the highest number.
        groups: how many there are.
        offset: in the file, of the first one's commit record.
    """

    domain: int
    server: int
    first: int
    last: int
    groups: int
    offset: int


class FoundState(NamedTuple):
    """The contents of a GTID state record, and its offset in the file."""

    offset: int
    contents: bytes


class FoundItems:
    """Items that wait to be taken, and the states inside a record that is not whole yet."""

    def __init__(self) -> None:
        self._count = self._nested = self._used = 0
        self._states = memoryview(bytearray(STATES_BYTES))
        if not cython.compiled:
            self._domain, self._server, self._first, self._last, self._groups, self._offset = (
                [0] * ITEMS_MAX for _ in range(6)
            )
            self._nested_offset, self._nested_start, self._nested_size = (
                [0] * NESTED_MAX for _ in range(3)
            )

    def is_full(self) -> bool:
        """Tell whether there may be no room for another record's items."""
        return self._count + 1 + _nested_max > _items_max

    def has_room(self, size: int) -> bool:
        """Tell whether a state of *size* bytes has room."""
        return self._used + size <= _states_bytes and self._nested < _nested_max

    def add_state(self, data: memoryview, at: int, size: int, offset: int) -> None:
        """Add a state that is not inside a record, for which there is room."""
        self.add_nested(data, at, size, offset)
        self.add_states()

    def add_nested(self, data: memoryview, at: int, size: int, offset: int) -> None:
        """Keep a state that is inside a record, for which there is room."""
        nested, used = self._nested, self._used
        if cython.compiled:
            for place in range(size):
                self._states[used + place] = data[at + place]
        else:
            self._states[used : used + size] = data[at : at + size]
        self._nested_offset[nested], self._nested_start[nested] = offset, used
        self._nested_size[nested] = size
        self._nested = nested + 1
        self._used = used + size

    def end_group(self, domain: int, server: int, number: int, offset: int) -> None:
        """Add a group, and the states inside its commit record."""
        item = self._count - 1
        oldest = max(item - _looked_back, -1)
        while item > oldest and self._groups[item] != 0 and self._domain[item] != domain:
            item -= 1
        is_behind = item > oldest and self._groups[item] != 0 and self._server[item] == server
        if is_behind and number > self._last[item]:
            self._last[item] = number
            self._groups[item] += 1
        else:
            item = self._count
            self._domain[item], self._server[item], self._offset[item] = domain, server, offset
            self._first[item] = self._last[item] = number
            self._groups[item] = 1
            self._count = item + 1
        self.add_states()

    def give_up(self) -> None:
        """Forget the states inside a record that is left to others."""
        self._nested = 0

    def take(self) -> list[Stretch | FoundState]:
        """Hand out the items, in order."""
        found: list[Stretch | FoundState] = []
        for item in range(self._count):
            first, last, groups = self._first[item], self._last[item], self._groups[item]
            offset = self._offset[item]
            if groups:
                domain, server = self._domain[item], self._server[item]
                found.append(Stretch(domain, server, first, last, groups, offset))
            else:
                found.append(FoundState(offset, bytes(self._states[first : first + last])))
        self._count = 0
        if not self._nested:
            self._used = 0
        return found

    def add_states(self) -> None:
        """Add the states inside the record that has come to its end."""
        for nested in range(self._nested):
            item = self._count
            self._groups[item] = 0
            self._offset[item] = self._nested_offset[nested]
            self._first[item], self._last[item] = (
                self._nested_start[nested],
                self._nested_size[nested],
            )
            self._count = item + 1
        self._nested = 0
