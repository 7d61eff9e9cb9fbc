"""
Pages of a file in which nothing is wrong, looked over without an object for any part: a kernel.

What the check of a directory looks at is looked at here, as far as it takes no history: checksums
of pages, chunks and what fills a page up, records one inside the other, the heads of records, the
links of out-of-band pieces, the lengths of events. It never says what is wrong. Whatever it does
not know to be right is `ODD`, and what was taken ends at the `border`, behind the last whole record
before it: from there on the other checks look, which have words for it. What only the history can
judge, GTIDs and states, is handed out in the order of the records.

It stays in one file. Runs as plain Python, too; `sound_run.pxd` gives it C types. Every length is
checked against what holds it. Source: ibb-format 2, 4, 5, 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32c
from ibb.storage.chunk import FILLER
from ibb.storage.group_head import GTID_EVENT_SIZE_MIN
from ibb.storage.page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN
from ibb.storage.record import OOB_HEADER_BYTES_MAX, RecordType

from . import found_items, open_lists, record_head

if TYPE_CHECKING:
    from .found_items import FoundState, Stretch

MORE: Final = 0  # of the file; a record may be open
ODD: Final = 1  # not for here
FULL: Final = 2  # what was found must be taken first

_ok, _more, _odd, _full = 3, MORE, ODD, FULL
_last, _continuation, _type_mask, _filler = 64, 128, 63, FILLER
_commit, _state, _oob = int(RecordType.COMMIT), int(RecordType.GTID_STATE), int(RecordType.OOB)
_gtid_start = GTID_EVENT_SIZE_MIN  # bytes of an event that tell the GTID
_oob_head_max, _held_bytes = OOB_HEADER_BYTES_MAX, record_head.HELD_BYTES
_no_link, _elsewhere = open_lists.NO_LINK, open_lists.ELSEWHERE
_own_walk = open_lists.LISTS_MAX  # of the events of a commit record


class SoundRun:
    """
    A place in a file, up to which nothing was wrong.

    Attributes:
        page: number of the page that comes next, or in which it stopped.
        border: offset in the file behind the last whole record.
        last_type: of that record; 0: none since `begin`.
        records: how many were passed since the last `take`, GTID states not counted.
    """

    def __init__(self) -> None:
        self._lists, self._head = open_lists.OpenLists(), record_head.RecordHead()
        self._found = found_items.FoundItems()
        self._data = memoryview(b"")
        self._file_no = self._page_size = self._area_end = self._interval = 0
        self._first_page = self._end_page = self.page = self._place = self._is_entered = 0
        self.border = self.last_type = self.records = 0
        self._open = self._begin = self._is_plain = self._is_head = 0  # the record that is open
        self._has_piece = 0
        self._list = -1

    def enter_file(self, file_no: int, page_size: int, interval: int) -> None:
        """
        Go to a file; what is open in another one is forgotten.

        Args:
            file_no: its number.
            page_size: bytes.
            interval: pages from one GTID state to the next; 0: none but on page 1.
        """
        if not PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX:
            raise ValueError(f"pages of {page_size} bytes")
        self._file_no, self._page_size, self._interval = file_no, page_size, interval
        self._area_end = page_size - CHECKSUM_SIZE
        self._give_up()
        self._lists.forget_all()

    def begin(self, page: int, place: int) -> None:
        """Go to where a record begins, or ends, in a page."""
        if page < 1 or not 0 <= place <= self._area_end:
            raise ValueError(f"byte {place} of page {page}")
        self._give_up()
        self.page, self._place, self._is_entered = page, place, 0
        self.border, self.last_type = page * self._page_size + place, 0

    def run(self, data: bytes, first: int, end: int) -> int:
        """
        Go on through pages; return MORE, ODD or FULL.

        Args:
            data: what is in the file from the first page on.
            first: number of the first page.
            end: number of the page behind the last one; the present one lies before it.
        """
        if not 0 < first <= self.page < end or len(data) < (end - first) * self._page_size:
            raise ValueError(f"pages {first} to {end} in {len(data)} bytes, {self.page} is wanted")
        self._data = memoryview(data)
        self._first_page, self._end_page = first, end
        with cython.nogil:
            code = self._run()
        self._data = memoryview(b"")
        return code

    def take(self) -> list[Stretch | FoundState]:
        """Hand out, in order, what groups and states there are up to the border."""
        self.records = 0
        return self._found.take()

    def _run(self) -> int:
        code = _ok
        while code == _ok and self.page < self._end_page:
            base = (self.page - self._first_page) * self._page_size
            if not self._is_entered:
                code = self._enter(base)
            if code == _ok:
                code = self._take_page(base)
            if code == _ok:
                self.page += 1
                self._place = self._is_entered = 0
        if code == _odd:
            self._give_up()
        return _more if code == _ok else code

    def _give_up(self) -> None:
        """Leave the record that is open to others."""
        if self._open == _oob and self._list >= 0:
            self._lists.forget(self._list)
        self._open = 0
        self._found.give_up()

    def _enter(self, base: int) -> int:
        """Look whether a page is used, and right, and has its state if one is due."""
        data = cython.address(self._data[0]) if cython.compiled else self._data
        end = base + self._area_end
        if data[base] == 0:
            return _odd
        if cython.compiled:
            checksum = crc32c_at(cython.address(data[base]), self._area_end, 0)  # noqa: F821
        else:
            checksum = crc32c(data[base:end])
        stored = data[end + 3]
        stored = stored << 8 | data[end + 2]
        stored = stored << 8 | data[end + 1]
        stored = stored << 8 | data[end]
        if checksum != stored:
            return _odd
        is_due = self.page == 1 or (self._interval > 0 and self.page % self._interval == 0)
        if self._place == 0 and is_due and data[base] & _type_mask != _state:
            return _odd
        self._is_entered = 1
        return _ok

    def _take_page(self, base: int) -> int:
        """Take the chunks of a page from the present place on, and what fills it up."""
        data = cython.address(self._data[0]) if cython.compiled else self._data
        place, area_end = self._place, self._area_end
        while place <= area_end - 4:
            if not self._open and self._found.is_full():
                return _full
            at = base + place + 3
            size = data[at - 2] | data[at - 1] << 8
            if size == 0 or place + 3 + size > area_end:
                return _odd
            code = self._take_chunk(data[at - 3], place, at, at + size)
            if code != _ok:
                return code
            place += 3 + size
            self._place = place
            if not self._open:
                self.border = self.page * self._page_size + place
        while place < area_end:
            if data[base + place] != _filler:
                return _odd
            place += 1
        return _ok

    def _take_chunk(self, kind: int, place: int, at: int, end: int) -> int:
        """Take the contents of a chunk: a record, or a part of one, or a state inside one."""
        record_type = kind & _type_mask
        if kind & _continuation:
            if not self._open or record_type != self._open:
                return _odd
        elif record_type == _state:
            return self._take_state(place, at, end - at) if kind & _last else _odd
        elif self._open or (record_type != _commit and record_type != _oob):  # noqa: PLR1714
            return _odd
        else:
            at = self._begin_record(record_type, place, at)
        code = self._feed_commit(at, end) if self._open == _commit else self._feed_oob(at, end)
        if code == _ok and kind & _last:
            code = self._end_commit() if self._open == _commit else self._end_oob()
        return code

    def _begin_record(self, record_type: int, place: int, at: int) -> int:
        """Note what begins in the present page; return where the contents go on."""
        self._open = record_type
        self._begin = self.page * self._page_size + place
        self._head.size = self._has_piece = 0
        self._is_head, self._list = 1, -1
        self._is_plain = 1 if record_type == _commit and self._data[at] == 0 else 0  # no lists
        return at + self._is_plain

    def _take_state(self, place: int, at: int, size: int) -> int:
        """Keep a state that is one chunk; inside a commit record it comes behind the group."""
        offset = self.page * self._page_size + place
        if not self._found.has_room(size):
            return _odd if self._open else _full
        data = cython.address(self._data[0]) if cython.compiled else self._data
        if self._open:
            self._found.add_nested(data, at, size, offset)
        else:
            self._found.add_state(data, at, size, offset)
            self.last_type = _state
        return _ok

    def _end_record(self) -> int:
        self._found.add_states()
        self.last_type = self._open
        self.records += 1
        self._open = 0
        return _ok

    def _feed_commit(self, at: int, end: int) -> int:
        """Take contents of a commit record."""
        data = cython.address(self._data[0]) if cython.compiled else self._data
        if not self._is_plain:
            return _ok if self._head.hold(data, at, end, _held_bytes) == end else _odd
        if self._is_head:
            at = self._head.hold(data, at, end, _gtid_start)
            if self._head.size < _gtid_start:
                return _ok
            length = self._head.read_gtid(0)
            if length == 0:
                return _odd
            self._is_head = 0
            self._lists.events.begin(_own_walk, length - _gtid_start)
        return _ok if self._lists.events.feed(_own_walk, data, at, end) else _odd

    def _end_commit(self) -> int:
        """Look whether a commit record's group is whole, and note it."""
        if self._is_plain:
            if self._is_head or not self._lists.events.is_done(_own_walk):
                return _odd
        elif not self._is_group_of_lists():
            return _odd
        self._found.end_group(self._head.domain, self._head.server, self._head.number, self._begin)
        return self._end_record()

    def _is_group_of_lists(self) -> bool:
        """Tell whether the commit record that is held has nothing but a GTID, and known lists."""
        numbers, lists = self._head.numbers, 1
        at = self._head.read_numbers(0, 0, 6)
        if at > 0 and numbers[5] > 0:
            at = self._head.read_numbers(at, 6, 4)
            lists = 2
        if at <= 0 or self._head.size - at < _gtid_start:
            return False
        if self._head.read_gtid(at) != self._head.size - at:
            return False
        for which in range(0, 5 * lists, 5):
            first, last = self._link(which + 1), self._link(which + 3)
            if first < 0 or not self._lists.close(numbers[which], first, last):
                return False
        return True

    def _feed_oob(self, at: int, end: int) -> int:
        """Take contents of an out-of-band record."""
        data = cython.address(self._data[0]) if cython.compiled else self._data
        if self._is_head:
            known = self._head.size
            self._head.hold(data, at, end, _oob_head_max)
            size = self._head.read_numbers(0, 0, 5)
            if size == 0:
                return _ok
            if size < 0 or not self._find_list():
                return _odd
            at += size - known
            self._is_head = 0
        if at < end:
            self._has_piece = 1
            if self._list >= 0 and not self._lists.events.feed(self._list, data, at, end):
                self._lists.forget(self._list)  # its commit record will tell
                self._list = -1
        return _ok

    def _find_list(self) -> bool:
        """Look at the links of an out-of-band record; False: they do not lead backward."""
        file_no, numbers = self._file_no, self._head.numbers
        for which in range(1, 5, 2):
            is_here = numbers[which] == file_no
            if numbers[which] > file_no or (is_here and numbers[which + 1] >= self._begin):
                return False
        left, right = self._link(1), self._link(3)
        is_before = numbers[2] < numbers[4] if numbers[1] == numbers[3] else numbers[1] < numbers[3]
        if left != _no_link and not is_before:
            return False
        self._list = self._lists.find(numbers[0], left, right)
        return True

    def _end_oob(self) -> int:
        """Look whether an out-of-band record has a piece, and note it."""
        if self._is_head or not self._has_piece:
            return _odd
        if self._list >= 0:
            self._lists.add(self._list, self._begin)
        return self._end_record()

    def _link(self, which: int) -> int:
        """Return the offset to which two of the numbers lead in this file."""
        file_no, offset = self._head.numbers[which], self._head.numbers[which + 1]
        if file_no == 0 and offset == 0:
            return _no_link
        return offset if file_no == self._file_no else _elsewhere
