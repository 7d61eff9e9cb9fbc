"""
Whole event groups side by side, copied out of runs of pages without an object for any: a kernel.

What is usual is done here: groups that lie in their commit record, or in one list of out-of-band
records that follow one another in one file. Out-of-band records are copied as they are passed, and
put behind their commit record's contents when that turns up, so that every page is looked at once.
Whatever else comes, damage too, is `ODD`, and left to `GroupReader`, where all rules are. Runs as
plain Python, too; `group_copier.pxd` gives it C types. Source: ibb-format 5.1, 6.
"""

from __future__ import annotations

from array import array
from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.event import HEAD_BYTES_MAX, HEADER_SIZE, EventType

from . import record_walker
from .record_walker import NEED, ODD, OK

FULL: Final = 4  # there is as much as was wanted
GROUP_BYTES_MAX: Final = 1 << 20  # of a group; larger ones are odd
WANTED_BYTES: Final = 256 << 10  # of groups, from which on no other is begun
GROUPS_MAX: Final = 1 << 12  # at a time

_ok, _need, _odd, _full = OK, NEED, ODD, FULL
_group_bytes_max, _wanted, _groups_max = GROUP_BYTES_MAX, WANTED_BYTES, GROUPS_MAX
_gtid, _gtid_size_min, _head_size_max = int(EventType.GTID), HEADER_SIZE + 13, HEAD_BYTES_MAX


class GroupCopier:
    """
    Copies groups of one file.

    `offsets`, `starts`, `ends`, `domains`, `servers`, `numbers` and `times` have an entry a group:
    where its commit record begins in the file, where its bytes begin and end in `data`, its GTID,
    and the seconds since 1970 in its GTID event. They hold until the next `run`.

    Attributes:
        walker: where it is; takes pages.
        border: offset in the file behind the last whole record.
        count: how many groups lie ready.
        used: bytes of them.
    """

    def __init__(self) -> None:
        self.walker = record_walker.RecordWalker()
        self.border = self.count = self.used = 0
        self._list_bytes = self._copied = 0
        self.data = memoryview(bytearray(_wanted + _group_bytes_max))
        self._out = self.data
        self._list = memoryview(bytearray(_group_bytes_max))
        columns = [memoryview(array("q", bytes(8 * _groups_max))) for _ in range(7)]
        self.offsets, self.starts, self.ends, self.domains = columns[:4]
        self.servers, self.numbers, self.times = columns[4:]
        self._offsets, self._starts, self._ends, self._domains = columns[:4]
        self._servers, self._numbers, self._times = columns[4:]

    def seek(self, file_no: int, offset: int) -> None:
        """Go to where a record ends in a file; no page of before is known any more."""
        self.walker.seek(file_no, offset)
        self.border = offset
        self.count = self.used = self._list_bytes = 0

    def clear(self) -> None:
        """Forget the groups that lie ready."""
        self.count = self.used = 0

    def run(self) -> int:
        """Copy groups until there are enough; return NEED, FULL or ODD."""
        code = NEED
        if self.walker.page_size:
            with cython.nogil:
                code = self._run()
        return code

    def _run(self) -> int:
        while self.used < _wanted and self.count < _groups_max:
            code = self.walker.begin_record()
            if code == _ok:
                if self.walker.type == 1:
                    code = self._copy_group()
                elif self.walker.type == 3:
                    code = self._copy_node()
                else:
                    code = self.walker.skip()
            if code != _ok:
                if code == _need:
                    self.walker.go(self.border)
                return code
            self.border = self.walker.at()
        return _full

    def _copy_node(self) -> int:
        """Copy the piece of a list that an out-of-band record has."""
        code = self.walker.begin_node()
        is_node = code == _ok
        if is_node:
            if self.walker.links[0] == 0 or self.walker.count == 0:
                self._list_bytes = 0  # of a list that begins, or goes on from where nobody knows
            room = _group_bytes_max - self._list_bytes
            code = self._copy_rest(self._list, self._list_bytes, room)
            self._list_bytes += self._copied
        elif code != _need and code != _odd:  # noqa: PLR1714 - C has no sets
            code = self.walker.skip()
        if code == _ok:
            self.walker.end_node(is_node)
        return code

    def _copy_group(self) -> int:
        """Copy what a commit record holds, and its list behind that."""
        code = self.walker.read_list()
        if code != _ok:
            return code
        begin = self.walker.begin
        room = _group_bytes_max - (self._list_bytes if self.walker.list_count else 0)
        code = self._copy_rest(self._out, self.used, room)
        if code != _ok:
            return code
        end = self.used + self._copied
        if not self._note_head(end):
            return _odd
        if self.walker.list_count:
            size = self._list_bytes
            if cython.compiled:
                memcpy(  # noqa: F821
                    cython.address(self._out[end]), cython.address(self._list[0]), size
                )
            else:
                self._out[end : end + size] = self._list[:size]
            end += size
        self._offsets[self.count] = begin
        self._starts[self.count], self._ends[self.count] = self.used, end
        self.count += 1
        self.used = end
        return _ok

    def _copy_rest(self, out: memoryview, to: int, room: int) -> int:
        """Copy the rest of a record, `_copied` bytes; ODD: they are more than there is room for."""
        at, end, self._copied = to, to + room, 0
        while True:
            size, part = self.walker.left, self.walker.part
            if size > end - at:
                return _odd  # for who reads on from its commit record
            if size > 0:
                if cython.compiled:
                    memcpy(  # noqa: F821
                        cython.address(out[at]), cython.address(self.walker.data[part]), size
                    )
                else:
                    out[at : at + size] = self.walker.data[part : part + size]
            at += size
            self.walker.part, self.walker.left = part + size, 0
            if self.walker.ends:
                self._copied = at - to
                return _ok
            code = self.walker.next_part()
            if code != _ok:
                return code

    def _note_head(self, end: int) -> bool:
        """Note whose group it is that was copied up to *end*; False: it begins with no GTID."""
        at, count = self.used, self.count
        data = cython.address(self._out[0]) if cython.compiled else self._out
        if end - at < _gtid_size_min or data[at + 4] != _gtid:
            return False
        size, number = _u32(data, at + 9), _u32(data, at + 23)
        if not _gtid_size_min <= size <= _head_size_max or size > end - at or number >> 31:
            return False
        number = number << 32 | _u32(data, at + 19)
        self._times[count], self._servers[count] = _u32(data, at), _u32(data, at + 5)
        self._domains[count], self._numbers[count] = _u32(data, at + 27), number
        return number != 0


def _u32(data: memoryview, at: int) -> int:
    top = data[at + 3]
    return top << 24 | data[at + 2] << 16 | data[at + 1] << 8 | data[at]
