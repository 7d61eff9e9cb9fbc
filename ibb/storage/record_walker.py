"""
Records in a run of whole pages of one file, walked over without an object for any: a kernel.

It is for who passes gigabytes of what is usual, and has `RecordReader` for the rest: it never says
what is wrong, only that something is `ODD`, and where the record border before it is. It stays in
one file, and takes no record for whole of which it has not seen the end. Out-of-band records that
follow one another are compared with the list that they would be if nothing else came between, so
that such a list is known to lie in order when its commit record turns up.

Runs as plain Python, too; `record_walker.pxd` gives it C types. Every length is checked against
what holds it. Source: ibb-format 2, 4, 6, 7.1, 7.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32c

from .page import CHECKSUM_SIZE, PAGE_SIZE_MAX, PAGE_SIZE_MIN

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

OK: Final = 0
NEED: Final = 1  # the page `page`, or more of it
ODD: Final = 2  # not for here
SHORT: Final = 3  # the record has no such number

# Of pages: who gives the interpreter away for so few has to wait for it longer than the work takes.
FEW_BYTES: Final = 64 << 10

_ok, _need, _odd, _short, _few_bytes = OK, NEED, ODD, SHORT, FEW_BYTES
_byte_needed, _byte_odd, _byte_missing = -1, -2, -3
_roots_max = 64  # of a list of fewer than 2**32 records


def count_good(data: Buffer, page_size: int) -> int:
    """Return how many pages at the beginning of *data* are used and have the right checksum."""
    if not PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX:
        raise ValueError(f"pages of {page_size} bytes")
    view = memoryview(data)
    pages = len(view) // page_size
    if not pages:
        return 0
    if pages * page_size <= _few_bytes:
        return good_pages(view, page_size, pages)
    with cython.nogil:
        pages = good_pages(view, page_size, pages)
    return pages  # noqa: RET504 - nothing returns without the interpreter


def good_pages(data: memoryview, page_size: int, pages: int) -> int:
    """Do as `count_good` for a number of pages, without the interpreter."""
    for page in range(pages):
        base = page * page_size
        end = base + page_size - 4
        if data[base] == 0:  # no chunk begins so: unused, or damaged
            return page
        if cython.compiled:
            checksum = crc32c_at(cython.address(data[base]), page_size - 4, 0)  # noqa: F821
        else:
            checksum = crc32c(data[base:end])
        stored = data[end + 3]
        stored = stored << 8 | data[end + 2]
        stored = stored << 8 | data[end + 1]
        stored = stored << 8 | data[end]
        if checksum != stored:
            return page
    return pages


class RecordWalker:
    """
    A place in a file, and the record that is there.

    Attributes:
        file_no: of the file.
        page: number of the page that comes next.
        type: of the present record.
        part, left: the bytes of its present chunk that were not taken: where, and how many.
        ends: it has no more chunks.
        begin: offset in the file of its first chunk.
        links: what `read_numbers` has read.
        count, first, last: records of the list that was just passed, offsets of the first and the
            last of them; a count of 0: none that lies in order.
        list_count: how many a commit record says that its list has.
    """

    def __init__(self) -> None:
        self.data = memoryview(b"")
        self.file_no = self.page_size = self._first_page = self._end_page = self.page = 0
        self._start = self._place = self._area_end = self._last_start = self._visible = 0
        self._turn = self._room = 0
        self._kind = self.type = self.part = self.left = self.begin = 0
        self.ends, self._nested = 1, -1
        self.count = self.first = self.last = self.list_count = self._roots = 0
        if not cython.compiled:
            self.links = [0] * 5
            self._root_at, self._height = [0] * _roots_max, [0] * _roots_max

    def seek(self, file_no: int, offset: int) -> None:
        """Go to where a record ends in a file; no page of before is known any more."""
        self.file_no, self._start = file_no, offset
        self.data = memoryview(b"")
        self.page_size = self._first_page = self._end_page = self._visible = 0
        self.part = self.left = self.count = self._roots = 0
        self.ends = 1

    def wanted_page(self, page_size: int) -> int:
        """Return which page is wanted next in a file with pages of *page_size* bytes."""
        return self.page if self.page_size else max(self._start // page_size, 1)

    def load(self, data: Buffer, page_size: int, first: int, pages: int, visible: int) -> bool:
        """
        Take pages that follow one another; tell whether they hold what was missing.

        Args:
            data: of the pages, whose checksums are right.
            page_size: bytes.
            first: number of the first page.
            pages: how many there are.
            visible: bytes of the last one that may be looked at.
        """
        if not PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX or self.page_size not in {0, page_size}:
            raise ValueError(f"pages of {page_size} bytes behind those of {self.page_size}")
        if pages <= 0 or len(data) < pages * page_size:
            raise ValueError(f"{pages} pages of {page_size} bytes in {len(data)}")
        if not 0 <= visible <= page_size - CHECKSUM_SIZE:
            raise ValueError(f"{visible} bytes of a page of {page_size}")
        if not self.page_size:
            self.page_size = page_size
            self.go(max(self._start, page_size))
        page, known = self.page, (self._end_page - 1) * page_size + self._visible
        is_known = self._first_page <= page and (first + pages - 1) * page_size + visible <= known
        if not first <= page < first + pages or (is_known and self._end_page):
            return False
        self.data = memoryview(data)
        self._first_page, self._end_page, self._visible = first, first + pages, visible
        self._area_end, self._last_start = page_size - 4, page_size - 8
        self._turn, self._room = 0, pages
        return True

    def enter(self, ring: memoryview, page_size: int) -> None:
        """
        Take pages from memory that is used round and round, as `show` says from now on.

        Args:
            ring: of some pages.
            page_size: bytes of each.
        """
        if not PAGE_SIZE_MIN <= page_size <= PAGE_SIZE_MAX or self.page_size not in {0, page_size}:
            raise ValueError(f"pages of {page_size} bytes behind those of {self.page_size}")
        if not self.page_size:
            self.page_size = page_size
            self.go(max(self._start, page_size))
        self.data = memoryview(ring)
        self._first_page = self._end_page = 0
        self._area_end, self._last_start = page_size - 4, page_size - 8
        self._visible = self._area_end
        self._turn, self._room = 0, len(self.data) // page_size

    def show(self, first: int, end: int, turn: int) -> None:
        """
        Have whole pages of the ring, whose checksums are right.

        Args:
            first: number of the first one.
            end: number behind the last, at most as many as the ring has room for.
            turn: where in the ring the first one is.
        """
        self._first_page, self._end_page, self._turn = first, end, turn
        if self.left > 0:
            self.part = self._base() + self._place - self.left

    def at(self) -> int:
        """Return the offset in the file where the next chunk is looked for."""
        return self.page * self.page_size + self._place

    def go(self, offset: int) -> None:
        """Go to where a record begins, or ends, in the pages or not."""
        self.page = offset // self.page_size
        self._place = offset - self.page * self.page_size
        self.left = 0
        self.ends = 1

    def begin_record(self) -> int:
        """Go on to the next record's first chunk."""
        code = self._next_chunk()
        if code != _ok:
            return code
        self.type = self._kind & 63
        if self._kind & 128 or self.type == 0 or self.type > 6:
            return _odd
        self.begin = self.page * self.page_size + self._place - self.left - 3
        self.ends = self._kind & 64
        self._nested = -1
        return _ok

    def next_part(self) -> int:
        """Go on to the record's next chunk, over records that are nested in it."""
        while True:
            code = self._next_chunk()
            if code != _ok:
                return code
            kind = self._kind & 63
            if self._kind & 128:
                if self._nested < 0 and kind == self.type:
                    self.ends = self._kind & 64
                    return _ok
                if kind != self._nested:
                    return _odd
            elif self._nested >= 0 or (kind != 2 and kind != 4) or kind == self.type:  # noqa: PLR1714
                return _odd
            self._nested = -1 if self._kind & 64 else kind
            self.left = 0

    def skip(self) -> int:
        """Go behind the record's end."""
        self.left = 0
        while not self.ends:
            code = self.next_part()
            if code != _ok:
                return code
            self.left = 0
        return _ok

    def look_ahead(self) -> int:
        """Tell whether the rest of the record is there; stay."""
        page, place, part, left = self.page, self._place, self.part, self.left
        ends, nested = self.ends, self._nested
        code = self.skip()
        self.page, self._place, self.part, self.left = page, place, part, left
        self.ends, self._nested = ends, nested
        return code

    def pass_node(self) -> int:
        """Go over an out-of-band record, and see whether it goes on with the list before it."""
        code = self.begin_node()
        if code == _need or code == _odd:  # noqa: PLR1714, SIM109 - C has no sets
            return code
        is_node = code == _ok
        code = self.skip()
        if code == _ok:
            self.end_node(is_node)
        return code

    def begin_node(self) -> int:
        """Read the links of an out-of-band record; SHORT: it is no piece of a list."""
        code = self.read_numbers(5)
        return _short if code == _ok and self.left == 0 and self.ends else code

    def end_node(self, is_node: bool) -> bool:
        """Note the out-of-band record that was gone over; tell whether the list goes on with it."""
        if is_node and self._add_node():
            return True
        self.count = self._roots = 0
        return False

    def read_list(self) -> int:
        """Read what a commit record says of lists: nothing, or that it has the one just passed."""
        self.list_count = self.read_number()
        if self.list_count <= 0:
            if self.list_count == 0:
                return _ok
            return _need if self.list_count == _byte_needed else _odd
        code = self.read_numbers(5)  # first and last record; what follows is the next list
        if code != _ok:
            return _need if code == _need else _odd
        is_here = self.links[0] == self.file_no and self.links[2] == self.file_no
        is_last = self.links[1] == self.first and self.links[3] == self.last
        is_all = self.list_count == self.count and self.links[4] == 0
        return _ok if is_here and is_last and is_all else _odd

    def read_numbers(self, count: int) -> int:
        """Read up to five compressed integers of the record, each below 2**53."""
        for which in range(count):
            value = self.read_number()
            if value < 0:
                if value == _byte_needed:
                    return _need
                return _odd if value == _byte_odd else _short
            self.links[which] = value
        return _ok

    def read_number(self) -> int:
        """Read a compressed integer; return it, or why not, which is below zero."""
        value = self._read_byte()
        if value < 0:
            return value
        more = value & 7
        if more == 7:
            more = 8
        value >>= 3
        shift = 5
        for _ in range(more):
            byte = self._read_byte()
            if byte < 0:
                return byte
            if shift > 45:
                if byte:
                    return _byte_missing  # too large for any place
            else:
                value |= byte << shift
            shift += 8
        return value

    def _read_byte(self) -> int:
        while self.left == 0:
            if self.ends:
                return _byte_missing
            code = self.next_part()
            if code != _ok:
                return _byte_needed if code == _need else _byte_odd
        value = self.data[self.part]
        self.part += 1
        self.left -= 1
        return value

    def _add_node(self) -> bool:
        """Add the record whose `links` were read; False: it does not go on with the list."""
        if self.links[0] == 0:
            self.count = self._roots = 0
            self.first = self.begin
        roots = self._roots
        joins = roots >= 2 and self._height[roots - 1] == self._height[roots - 2]
        fits = self.links[0] == self.count and roots + 1 < _roots_max
        fits = fits and self._is_link(1, roots - 2 if joins else -1)
        if not fits or not self._is_link(3, roots - 1):
            return False
        height = 1
        if joins:
            height = self._height[roots - 1] + 1
            roots -= 2
        self._root_at[roots], self._height[roots] = self.begin, height
        self._roots = roots + 1
        self.count += 1
        self.last = self.begin
        return True

    def _is_link(self, which: int, root: int) -> bool:
        """Tell whether two of the `links` lead to a root, or nowhere if there is none."""
        file_no, offset = self.links[which], self.links[which + 1]
        if root < 0:
            return file_no == 0 and offset == 0
        return file_no == self.file_no and offset == self._root_at[root]

    def _base(self) -> int:
        """Return where the present page lies, which is there."""
        spot = self.page - self._first_page + self._turn
        if spot >= self._room:
            spot -= self._room
        return spot * self.page_size

    def _next_chunk(self) -> int:
        while True:
            if not self._first_page <= self.page < self._end_page:
                return _need
            place = self._place
            if place > self._last_start:
                self.page, self._place = self.page + 1, 0
                continue
            base = self._base()
            visible = self._visible if self.page == self._end_page - 1 else self._area_end
            if place >= visible:
                return _need
            kind = self.data[base + place]
            if kind == 0:
                return _need  # it has grown since it was read, or data ends
            if kind == 255:
                self.page, self._place = self.page + 1, 0
                continue
            size = self.data[base + place + 1] | self.data[base + place + 2] << 8
            end = place + 3 + size
            if size == 0 or end > self._area_end:
                return _odd
            if end > visible:
                return _need
            self._kind = kind
            self.part, self.left = base + place + 3, size
            self._place = end
            return _ok
