"""
Many records into pages and into the redo log, at once: a kernel.

It does for a row of records what `Writer` and `redo_record` do for one: each is cut into
chunks, and each is one redo group of its own with a change for every page it reaches. The pages
come from the writer, which sees to everything between records: no state and no file begins inside
a run. Runs as plain Python, too; `record_run.pxd` gives it C types.

Source: ibb-format 4, 9.2; docs/redo-log.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32c

if TYPE_CHECKING:
    from array import array

    from ibb.protocol.fields import Buffer

    from .fifo_page import FifoPage
    from .writer_place import Pages

_ROOM_FIRST = 1 << 16


class RecordRun:
    """
    Records of one type.

    Record i holds `heads[head_bounds[i]:head_bounds[i + 1]]` and `data[bounds[i]:bounds[i + 1]]`,
    together at least one byte.

    Args:
        type_code: of the records.
        heads: with what they begin.
        head_bounds: where that is; None: each begins with all of *heads*.
        data: the rest of them.
        bounds: where that is.
        first: the record to begin with.
        count: how many are wanted.

    Attributes:
        next: the record that comes next, all before it were written.
        is_open: it was begun, and goes on in the next page.
        redo_size: bytes of the redo groups so far.
    """

    def __init__(
        self,
        type_code: int,
        heads: bytes,
        head_bounds: array[int] | None,
        data: memoryview,
        bounds: array[int],
        first: int,
        count: int,
    ) -> None:
        assert 0 <= first <= first + count < len(bounds)
        assert bounds[first + count] <= len(data)
        if head_bounds is not None:
            assert first + count < len(head_bounds)
            assert head_bounds[first + count] <= len(heads)
        self.next = first
        self.is_open = False
        self.redo_size = 0
        self._own = memoryview(bytearray(_ROOM_FIRST))  # of the redo groups what is no page's
        self._own_size = 0
        self._type = type_code
        self._heads = heads
        self._each_has_own = head_bounds is not None
        self._head_bounds = memoryview(head_bounds if head_bounds is not None else bounds)
        self._data = data
        self._bounds = memoryview(bounds)
        self._end = first + count
        self._log = self._own
        # What is large is not copied to the log: (what is before it of `_own`, bytes of a page)
        self._shared: list[tuple[int, memoryview]] = []
        self._group = 0  # where the redo group at hand begins, in `_own`
        self._group_shared = 0  # and in `_shared`
        self._group_size = 0
        self._head = 0  # where that of the record at hand begins
        self._head_size = 0
        self._size = 0  # of that record
        self._done = 0  # of it
        self._file_no = 0
        self._lsn = 0
        self._synced_lsn = 0

    def begin(self, file_no: int, lsn: int, synced_lsn: int) -> None:
        """Say which file the pages are of, where the log goes on, and up to where it is synced."""
        self._file_no, self._lsn, self._synced_lsn = file_no, lsn, synced_lsn

    def redo_groups(self) -> list[Buffer]:
        """
        Return the redo groups so far, in not much more memory than they have bytes.

        They share memory with the pages, which may get more content, but not other content.
        """
        own: Buffer = self._own[: self._own_size]
        if 2 * self._own_size <= len(self._own):
            own = bytes(own)
        if not self._shared:
            return [own]
        parts: list[Buffer] = []
        at, own = 0, memoryview(own)
        for before, shared in self._shared:
            parts += own[at:before], shared
            at = before
        if at < self._own_size:
            parts.append(own[at:])
        return parts

    def fill_pages(
        self, tail: FifoPage | None, fifo: Pages, page_no: int, page_size: int, pages_after: int
    ) -> list[FifoPage]:
        """
        Put as many records as fit into pages, from the one that is begun on; return those changed.

        Args:
            tail: the page that is begun; None: none is.
            fifo: gives further ones.
            page_no: in the file, of that page or of the next one.
            page_size: bytes.
            pages_after: further pages that may be begun.
        """
        payload = page_size - 4 - 3
        changed: list[FifoPage] = []
        page = tail
        while self.next < self._end:
            if page is None:
                if not self.is_open and self._next_size() > pages_after * payload:
                    break
                page = fifo.append(self._file_no, page_no, page_size)
                pages_after -= 1
            begun = page.used
            since = 0 if page.flushed_clean else begun
            used = self.fill(page.data, begun, since, page_no, pages_after)
            if used == begun:
                break
            page.used, page.flushed_clean = used, False
            changed.append(page)
            if used == page.end:
                page = None
                page_no += 1
        return changed

    def fill(self, page: bytearray, used: int, since: int, page_no: int, pages_after: int) -> int:
        """
        Put as much as fits into a page, the rest of a record that was begun before anything else.

        Args:
            page: the image, checksum not in place.
            used: bytes of content that it has.
            since: from where on its content is to be logged with what is added.
            page_no: in the file.
            pages_after: further pages that may be begun: what does not fit in all these and this
                one is not begun.

        Returns:
            The bytes of content now; *used* if nothing more fits.
        """
        out = page
        end = len(out) - 4
        payload = end - 3
        while self.next < self._end and used < end:
            if not self.is_open:
                size = self._next_size()
                room = end - used - 3
                if size > max(0, room) + pages_after * payload:
                    break
                self._begin_group(size)
            room = end - used
            if room < 4:
                while used < end:
                    out[used] = 0xFF
                    used += 1
            else:
                length = room - 3
                left = self._size - self._done
                length = min(length, left)
                kind = self._type | (0x80 if self._done else 0) | (0x40 if length == left else 0)
                out[used] = kind
                out[used + 1] = length & 255
                out[used + 2] = length >> 8
                self._copy(out, used + 3, length)
                used += 3 + length
            self._log_change(page, out, since, used, page_no)
            since = used
            if self._done == self._size:
                self._end_group()
        return used

    def _next_size(self) -> int:
        """Return the bytes of the next record, and note where its head is."""
        at = self.next
        if self._each_has_own:
            self._head = self._head_bounds[at]
            self._head_size = self._head_bounds[at + 1] - self._head
        else:
            self._head, self._head_size = 0, len(self._heads)
        return self._head_size + self._bounds[at + 1] - self._bounds[at]

    def _copy(self, out: bytearray, at: int, length: int) -> None:
        """Copy the next bytes of the record at hand."""
        head = self._head_size
        if self._done < head:
            count = head - self._done
            count = min(count, length)
            for index in range(count):
                out[at + index] = self._heads[self._head + self._done + index]
            self._done += count
            at += count
            length -= count
        if length:
            start = self._bounds[self.next] + self._done - head
            out[at : at + length] = self._data[start : start + length]
            self._done += length

    def _begin_group(self, size: int) -> None:
        self.is_open = True
        self._size = size
        self._done = 0
        self._group, self._group_shared = self._own_size, len(self._shared)
        self._group_size = 28
        self._need(28)
        self._own_size += 28

    def _log_change(
        self, page: bytearray, content: bytearray, start: int, end: int, page_no: int
    ) -> None:
        """Log bytes of a page, *content* being what it holds."""
        size = end - start
        is_shared = size > 2048  # a copy costs less than a buffer more to write, up to there
        self._need(16 if is_shared else 16 + size)
        at = self._own_size
        self._put(at, self._file_no, 8)
        self._put(at + 8, page_no, 4)
        self._put(at + 12, start, 2)
        self._put(at + 14, size, 2)
        at += 16
        if is_shared:
            self._shared.append((at, memoryview(page)[start:end]))
            self._own_size = at
        else:
            self._log[at : at + size] = content[start:end]
            self._own_size = at + size
        self._group_size += 16 + size

    def _end_group(self) -> None:
        start, size, checksum = self._group, self._group_size, 0
        # The checksum leaves itself out: where it will be, what is checked is in one piece first.
        self._put_head(start + 4, size - 28)
        at = start + 4
        for index in range(self._group_shared, len(self._shared)):
            before, shared = self._shared[index]
            checksum = self._checksum(self._log, at, before, checksum)
            checksum = self._checksum(shared, 0, len(shared), checksum)
            at = before
        checksum = self._checksum(self._log, at, self._own_size, checksum)
        self._put_head(start, size - 28)
        self._put(start + 24, checksum, 4)
        self._lsn += size
        self.redo_size += size
        self.next += 1
        self.is_open = False

    def _put_head(self, at: int, size: int) -> None:
        """Write what begins a redo group whose changes are *size* bytes."""
        self._put(at, 0x31476452, 4)  # RdG1
        self._put(at + 4, size, 4)
        self._put(at + 8, self._lsn, 8)
        self._put(at + 16, self._synced_lsn, 8)

    def _checksum(self, data: memoryview, start: int, end: int, before: int) -> int:
        """Return a checksum that goes on with bytes, if there are any."""
        if start == end:
            return before
        if cython.compiled:
            return crc32c_at(cython.address(data[start]), end - start, before)  # noqa: F821
        return crc32c(data[start:end], before)

    def _put(self, at: int, number: int, size: int) -> None:
        """Write a little-endian number of *size* bytes."""
        log = self._log
        for index in range(size):
            log[at + index] = number >> 8 * index & 255

    def _need(self, size: int) -> None:
        """Make room for *size* bytes more in the log."""
        if self._own_size + size > len(self._own):
            grown = memoryview(bytearray(2 * (self._own_size + size)))
            grown[: self._own_size] = self._own[: self._own_size]
            self._own = self._log = grown
