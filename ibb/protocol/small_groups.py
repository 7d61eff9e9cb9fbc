"""
Rows events of many small transactions, found without an object for any: a kernel.

What most histories consist of are transactions of some rows that end with an XID event, so that all
of their rows stand. Of these the places of rows events and their table maps are all that is wanted.
Any other group, damage too, is left to who reads its events one by one. Runs as plain Python, too;
`small_groups.pxd` gives it C types.

Source: dump-protocol 5.2, 4.9b.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .event import HEADER_SIZE, EventType
from .event_group import ROWS
from .gtid_event import GtidExtraFlag, GtidFlag
from .rows.rows_event import OPS, PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fields import Buffer

EVENTS_MAX: Final = 1 << 14  # at a time
MAPS_MAX: Final = 16  # of a group
TABLES_MAX: Final = 64  # different ones at a time
NOT_PLAIN: Final = 8

_OTHER, _BEGIN, _MAP, _ROWS, _END = 1, 2, 3, 4, 5  # kinds of events; 0: not for here


def _kinds() -> bytes:
    kinds = bytearray(256)
    for code in (EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.ANNOTATE_ROWS):
        kinds[code] = _OTHER
    for code in ROWS:
        kinds[code] = _ROWS
    kinds[EventType.GTID], kinds[EventType.XID] = _BEGIN, _END
    kinds[EventType.TABLE_MAP] = _MAP
    return bytes(kinds)


def _ops() -> bytes:
    """Return what happens in rows events, by their type; `NOT_PLAIN` more if that is not usual."""
    ops = bytearray(256)
    for code, op in OPS.items():
        ops[int(code)] = op if code in PLAIN else op | NOT_PLAIN
    return bytes(ops)


_header_size = HEADER_SIZE
_kind_of, _op_of = memoryview(_kinds()), memoryview(_ops())
_begin, _map, _end = _BEGIN, _MAP, _END
_events_max, _maps_max, _tables_max = EVENTS_MAX, MAPS_MAX, TABLES_MAX
_has_commit_id = int(GtidFlag.GROUP_COMMIT_ID)
_has_xid = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
_has_engines = int(GtidExtraFlag.MULTI_ENGINE)
_has_alter_seq = int(GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER)
_has_thread_id = int(GtidExtraFlag.THREAD_ID)


class RowsFinder:
    """
    Finds the rows events of groups that lie side by side.

    `groups`, `positions`, `tables`, `starts`, `ends`, `ops` and `threads` have an entry a rows
    event: the group's number, the event's in it (the GTID event being 0), which of `maps` it
    belongs to, where it begins and ends, what happens (as `RowStage` has it, `NOT_PLAIN` more if
    its type is not the usual one), and the thread that committed it, -1 if nobody says. They hold
    until the next `look`.

    Attributes:
        count: how many rows events were found.
        is_full: there is no room for those of the group where the last look ended.
        maps: the group and the bytes of each table map that differs from the others in more than
            number and flags.
    """

    def __init__(self) -> None:
        self.count = self._tables = self._maps = self._last = 0
        self.is_full = False
        self.maps: list[tuple[int, bytes]] = []
        columns = [memoryview(array("q", bytes(8 * _events_max))) for _ in range(7)]
        self.groups, self.positions, self.tables, self.starts = columns[:4]
        self.ends, self.ops, self.threads = columns[4:]
        self._of_group, self._position, self._table, self._start = columns[:4]
        self._stop, self._op, self._thread = columns[4:]
        if not cython.compiled:
            self._map_number, self._map_table = [0] * _maps_max, [0] * _maps_max
            self._map_start, self._map_end, self._map_group = ([0] * _tables_max for _ in range(3))

    def look(
        self, data: Buffer, starts: Sequence[int], ends: Sequence[int], first: int, stop: int
    ) -> int:
        """
        Find the rows events of groups; return at which one it ended.

        Args:
            data: holds all bytes of the groups, without checksums.
            starts: where each group begins in it, an array of 64-bit integers.
            ends: where each ends.
            first: of the groups that are looked at.
            stop: the group behind those.

        Returns:
            *stop*; else the first group for which there is no room (`is_full`), or that is no
            transaction that ends with an XID event, or not surely one.
        """
        if not 0 <= first <= stop <= min(len(starts), len(ends)):
            raise ValueError(f"groups {first} to {stop} of {len(starts)}")
        self.count = self._tables = self._last = 0
        self.is_full = False
        at = self._look(data, starts, ends, first, stop)
        self.maps = [
            (self._map_group[place], bytes(data[self._map_start[place] : self._map_end[place]]))
            for place in range(self._tables)
        ]
        return at

    def _look(
        self, data: Buffer, starts: Sequence[int], ends: Sequence[int], first: int, stop: int
    ) -> int:
        view, size, group = data, len(data), first
        while group < stop:
            count, tables = self.count, self._tables
            start, end = starts[group], ends[group]
            if not 0 <= start <= end <= size or not self._find(view, start, end, group):
                self.count, self._tables, self._last = count, tables, 0
                self.is_full = self.is_full and (count > 0 or tables > 0)
                return group
            group += 1
        return stop

    def _find(self, view: Buffer, start: int, end: int, group: int) -> bool:
        """Find the rows events of one group; False: it is left to others."""
        at, position, thread = start, 0, -1
        self._maps = 0
        while end - at >= _header_size:
            length = _u32(view, at + 9)
            if length < _header_size or length > end - at:
                return False
            kind = _kind_of[view[at + 4]]
            if kind == 0 or (kind == _begin) != (position == 0):
                return False
            if kind == _end:
                return at + length == end
            if kind == _begin:
                thread = _thread_of(view, at, length)
                if thread < -1:
                    return False
            elif kind >= _map:
                if length < _header_size + 8:
                    return False
                if kind == _map:
                    if not self._add_map(view, at, length, group):
                        return False
                elif not self._add_rows(view, at, length, thread, group, position):
                    return False
            at += length
            position += 1
        return False

    def _add_map(self, view: Buffer, at: int, length: int, group: int) -> bool:
        """Note a table map: its number, and which of those that differ it is."""
        if self._maps == _maps_max:
            return False
        place, tables = self._last, self._tables
        if place >= tables or not self._is_same(view, at, length, place):
            place = 0
            while place < tables and not self._is_same(view, at, length, place):
                place += 1
            if place == tables:
                if tables == _tables_max:
                    self.is_full = True
                    return False
                self._map_start[place], self._map_end[place] = at, at + length
                self._map_group[place] = group
                self._tables += 1
        self._last = place
        self._map_number[self._maps], self._map_table[self._maps] = _u48(view, at), place
        self._maps += 1
        return True

    def _is_same(self, view: Buffer, at: int, length: int, place: int) -> bool:
        """Tell whether a table map says the same as a known one, but for number and flags."""
        start = self._map_start[place]
        if self._map_end[place] - start != length:
            return False
        rest = _header_size + 8
        if cython.compiled:
            one, other = cython.address(view[start + rest]), cython.address(view[at + rest])
            return memcmp(one, other, length - rest) == 0  # noqa: F821
        return view[start + rest : start + length] == view[at + rest : at + length]

    def _add_rows(
        self, view: Buffer, at: int, length: int, thread: int, group: int, position: int
    ) -> bool:
        """Note a rows event with the last table map that has its number."""
        number, place, count = _u48(view, at), self._maps - 1, self.count
        while place >= 0 and self._map_number[place] != number:
            place -= 1
        if place < 0:
            return False
        if count == _events_max:
            self.is_full = True
            return False
        self._of_group[count], self._position[count] = group, position
        self._table[count], self._op[count] = self._map_table[place], _op_of[view[at + 4]]
        self._start[count], self._stop[count] = at, at + length
        self._thread[count] = thread
        self.count = count + 1
        return True


def _thread_of(view: Buffer, at: int, length: int) -> int:
    """Return the thread that a GTID event names, -1: none; -2: it is for others."""
    place, end = at + 32, at + length
    if place > end:
        return -2
    flags = view[at + 31]
    if flags & _has_xid:
        return -2
    if flags & _has_commit_id:
        place += 8
    if place >= end:
        return -1 if place == end else -2
    flags = view[place]
    place += 1
    if flags & _has_engines:
        place += 1
    if flags & _has_alter_seq:
        place += 8
    if flags & _has_thread_id:
        return _u32(view, place) if place + 4 <= end else -2
    return -1 if place <= end else -2


def _u32(view: Buffer, at: int) -> int:
    top = view[at + 3]
    return top << 24 | view[at + 2] << 16 | view[at + 1] << 8 | view[at]


def _u48(view: Buffer, at: int) -> int:
    """Return the number of the table that an event begins with."""
    high = view[at + _header_size + 5] << 8 | view[at + _header_size + 4]
    return high << 32 | _u32(view, at + _header_size)
