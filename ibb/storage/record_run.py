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

_ROOM_FIRST = 1 << 16


class RecordRun:
    """
    Records of one type.

    Record i holds *prefix* and `data[bounds[i]:bounds[i + 1]]`, at least one byte.

    Args:
        type_code: of the records.
        prefix: with which each begins.
        data: the rest of them.
        bounds: where that is.
        first: the record to begin with.
        count: how many are wanted.

    Attributes:
        next: the record that comes next, all before it were written.
        is_open: it was begun, and goes on in the next page.
        redo: the redo groups so far, `redo_size` bytes.
    """

    def __init__(
        self,
        type_code: int,
        prefix: bytes,
        data: memoryview,
        bounds: array[int],
        first: int,
        count: int,
    ) -> None:
        assert 0 <= first <= first + count < len(bounds)
        assert bounds[first + count] <= len(data)
        self.next = first
        self.is_open = False
        self.redo = memoryview(bytearray(_ROOM_FIRST))
        self.redo_size = 0
        self._type = type_code
        self._prefix = prefix
        self._data = data
        self._bounds = memoryview(bounds)
        self._end = first + count
        self._log = self.redo
        self._group = 0  # where the redo group at hand begins
        self._size = 0  # of the record at hand
        self._done = 0  # of it
        self._file_no = 0
        self._lsn = 0
        self._synced_lsn = 0

    def fits(self, size: int) -> bool:
        """Tell whether the next record goes into chunks of *size* bytes of data in all."""
        at = self.next
        return len(self._prefix) + self._bounds[at + 1] - self._bounds[at] <= size

    def begin(self, file_no: int, lsn: int, synced_lsn: int) -> None:
        """Say which file the pages are of, where the log goes on, and up to where it is synced."""
        self._file_no, self._lsn, self._synced_lsn = file_no, lsn, synced_lsn

    @property
    def is_done(self) -> bool:
        """Whether all records were written."""
        return self.next == self._end

    def redo_groups(self) -> bytes | memoryview:
        """Return the redo groups so far, in not much more memory than they have bytes."""
        groups = self.redo[: self.redo_size]
        return groups if 2 * self.redo_size > len(self.redo) else bytes(groups)

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
                size = len(self._prefix) + self._bounds[self.next + 1] - self._bounds[self.next]
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
            self._log_change(out, since, used, page_no)
            since = used
            if self._done == self._size:
                self._end_group()
        return used

    def _copy(self, out: bytearray, at: int, length: int) -> None:
        """Copy the next bytes of the record at hand."""
        head = len(self._prefix)
        if self._done < head:
            count = head - self._done
            count = min(count, length)
            for index in range(count):
                out[at + index] = self._prefix[self._done + index]
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
        self._group = self.redo_size
        self._need(28)
        self.redo_size += 28

    def _log_change(self, page: bytearray, start: int, end: int, page_no: int) -> None:
        """Log bytes of a page."""
        size = end - start
        self._need(16 + size)
        at = self.redo_size
        self._put(at, self._file_no, 8)
        self._put(at + 8, page_no, 4)
        self._put(at + 12, start, 2)
        self._put(at + 14, size, 2)
        at += 16
        self._log[at : at + size] = page[start:end]
        self.redo_size = at + size

    def _end_group(self) -> None:
        start, end = self._group, self.redo_size
        # The checksum leaves itself out: where it will be, what is checked is in one piece first.
        self._put_head(start + 4, end - start - 28)
        checksum = self._checksum(start + 4, end)
        self._put_head(start, end - start - 28)
        self._put(start + 24, checksum, 4)
        self._lsn += end - start
        self.next += 1
        self.is_open = False

    def _put_head(self, at: int, size: int) -> None:
        """Write what begins a redo group whose changes are *size* bytes."""
        self._put(at, 0x31476452, 4)  # RdG1
        self._put(at + 4, size, 4)
        self._put(at + 8, self._lsn, 8)
        self._put(at + 16, self._synced_lsn, 8)

    def _checksum(self, start: int, end: int) -> int:
        log = self._log
        if cython.compiled:
            return crc32c_at(cython.address(log[start]), end - start)  # noqa: F821
        return crc32c(log[start:end])

    def _put(self, at: int, number: int, size: int) -> None:
        """Write a little-endian number of *size* bytes."""
        log = self._log
        for index in range(size):
            log[at + index] = number >> 8 * index & 255

    def _need(self, size: int) -> None:
        """Make room for *size* bytes more in the log."""
        if self.redo_size + size > len(self.redo):
            grown = memoryview(bytearray(2 * (self.redo_size + size)))
            grown[: self.redo_size] = self.redo[: self.redo_size]
            self.redo = self._log = grown
