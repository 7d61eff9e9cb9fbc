"""
Rows events of one table side by side, and where in them each value is: a kernel.

A rows event is read once from front to back; what is noted of a value is only where it begins, or
that it is NULL, or not in the image at all (binlog_row_image). Columns are then filled one after
the other from these places, without an object for a row or value. Runs as plain Python, too;
`row_stage.pxd` gives it C types. All lengths are checked here, so that what reads values need not.

    lenenc columns, a bit for each that is in the image, [the same of the image after an UPDATE,]
    rows: a bit for each column in the image that is NULL, then the values

Source: dump-protocol 4.10.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.event import HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.protocol.fields import Buffer

IS_NULL: Final = -1
IS_ABSENT: Final = -2
INSERT: Final = 1
UPDATE: Final = 2
DELETE: Final = 3

STAGED_BYTES_MAX: Final = 2**31 - 1  # a place is a 32-bit integer
PLACES_MAX: Final = 1 << 24  # of one image in one batch: 64 MiB; rows that need more come later

PLAIN_OFFSET: Final = HEADER_SIZE + 8  # of the columns in a usual rows event

_plain_offset = PLAIN_OFFSET
_FIRST_BYTES: Final = 1 << 14
_FIRST_ROWS: Final = 64
KEPT_BYTES: Final = 1 << 20  # one huge row does not keep its memory for ever
EXPECTED_BYTES_MAX: Final = 1 << 23


def zeros(size: int) -> memoryview:
    """Return so many zero bytes to be written."""
    return memoryview(bytearray(size))


class RowStage:
    """
    The staged rows of one table.

    `data` are the bytes, `before` and `after` the places: of row r and column c at r * width + c,
    an offset in `data`, `IS_NULL` or `IS_ABSENT`. `ops`, `tags` and `numbers` have an entry a row:
    what happened, what the caller gave with the event, and the row's number in its event.
    `next_event` is where `add_plain` has stopped.

    Args:
        skips: `Column.skip` of every column.
        rows_max: rows at a time, further ones of an event wait; also limited by `PLACES_MAX`.
        make_room: returns so many bytes to be written, whatever is in them.
    """

    def __init__(
        self,
        skips: Sequence[int],
        rows_max: int,
        make_room: Callable[[int], memoryview] = zeros,
    ) -> None:
        assert skips
        self.width = len(skips)
        self.rows = 0
        self.used = 0
        self.rows_max = max(1, min(rows_max, PLACES_MAX // self.width))
        self.has_before = False
        self.has_after = False
        self.is_partial = False  # an image lacks a column
        self._skips = array("i", skips)
        self._begin = 0  # of the rows that are not read yet, in data
        self._end = 0  # of the event that they are in
        self._op = 0
        self._tag = 0
        self.next_event = 0
        self._number = 0  # of the next row in its event
        self._base = 0  # of the event in data, minus its offset in the event
        self._masks = array("B", bytes(2 * self.width))  # columns in the images: before, after
        self._counts = array("i", (0, 0))
        self._make_room = make_room
        self._expected = 0  # bytes that will be staged, if it is as much as before
        self.data = zeros(_FIRST_BYTES)
        self._bytes = self.data
        self._capacity = 0
        self.before = memoryview(array("i"))
        self.after = memoryview(array("i"))
        self.ops = memoryview(array("b"))
        self.tags = memoryview(array("q"))
        self.numbers = memoryview(array("i"))
        self._grow_rows(min(_FIRST_ROWS, self.rows_max))

    @property
    def pending(self) -> bool:
        """Whether the last event has rows that `clear` must make room for."""
        return self._begin < self._end

    def add(self, event: Buffer, offset: int, op: int, tag: int) -> int:
        """
        Stage a rows event and return how many rows of it there are; see `pending`.

        Args:
            event: the event without checksum.
            offset: where the number of columns stands in it.
            op: INSERT, UPDATE or DELETE.
            tag: kept with every row of the event.

        Raises:
            FormatError: the event is not of this table, or damaged; nothing of it is staged.
        """
        assert not self._begin < self._end
        return self._add(event, 0, offset, len(event), op, tag)

    def add_plain(
        self,
        data: Buffer,
        events: tuple[Sequence[int], Sequence[int], Sequence[int]],
        first: int,
        tag: int,
        bytes_max: int,
    ) -> int:
        """
        Stage rows events that lie in one buffer until there are enough rows, or one is not plain.

        Args:
            data: holds the events.
            events: where each begins and ends in it, and what happens in it: arrays of 64-bit
                integers. Whatever else than INSERT, UPDATE and DELETE happens is not plain.
            first: of them, to be added.
            tag: kept with the rows of the first one, of the next one more, and so on.
            bytes_max: of all that is staged, at which no further event is.

        Returns:
            The number of the event that comes next.

        Raises:
            FormatError: `next_event` is not of this table, or damaged; nothing of it is staged.
        """
        starts, ends, ops = events
        view, size = data, len(data)
        count = min(len(starts), len(ends), len(ops))
        at = first
        while at < count and 1 <= ops[at] <= 3 and not self._begin < self._end:
            if self.rows >= self.rows_max or self.used >= bytes_max:
                break
            start, end = starts[at], ends[at]
            if not 0 <= start <= end <= size:
                raise ValueError(f"an event from {start} to {end} of {size}")
            self.next_event = at
            self._add(view, start, start + _plain_offset, end, ops[at], tag + at - first)
            at += 1
        self.next_event = at
        return at

    def _add(self, data: Buffer, begin: int, offset: int, end: int, op: int, tag: int) -> int:
        """Stage the rows of an event that lies in *data*, and whose columns are at *offset*."""
        size = end - offset
        if offset < begin or size <= 0:
            raise Truncated("rows event ends before its columns", offset=end - begin)
        if self.used + size > 2147483647:
            raise FormatError(f"a rows event of {size} bytes behind {self.used} does not fit")
        start, rows = self.used, self.rows
        if start + size > len(self.data):
            self._grow_data(start + size)
        if cython.compiled:
            to, source = cython.address(self._bytes[start]), cython.address(data[offset])
            memcpy(to, source, size)  # noqa: F821
        else:
            self.data[start : start + size] = memoryview(data)[offset:end]
        self._base = start - (offset - begin)
        self.used = self._end = start + size
        self._op, self._tag, self._number = op, tag, 0
        try:
            self._read_head(start)
            return self.read_rows()
        except FormatError:
            self.used, self.rows, self._begin, self._end = start, rows, 0, 0
            raise

    def clear(self) -> None:
        """Forget all rows that were read; what is `pending` stays."""
        self.rows = 0
        self.has_before = self.has_after = self.is_partial = False
        if not self._begin < self._end:
            self._expected = min(self.used + self.used // 8, EXPECTED_BYTES_MAX)
            self.used = 0
            if len(self.data) > KEPT_BYTES:
                self.data = zeros(_FIRST_BYTES)
                self._bytes = self.data

    def _read_head(self, at: int) -> None:
        """Read which columns are in the images; what is behind are rows."""
        data, end = self._bytes, self._end
        first = data[at]
        at += 1
        extra = 0 if first < 0xFB else 2 if first == 0xFC else -1
        if extra < 0 or end - at < extra:
            raise FormatError(
                "rows event with an impossible number of columns", offset=self._at(at)
            )
        columns = first if extra == 0 else data[at] | data[at + 1] << 8
        at += extra
        if columns != self.width:
            raise FormatError(
                f"rows event of {columns} columns behind a table map of {self.width}",
                offset=self._at(at),
            )
        size = (columns + 7) // 8
        for image in range(2):
            count = 0
            if self._op == (
                3 if image else 1
            ):  # a DELETE has no image after, an INSERT none before
                self._counts[image] = -1
                continue
            if end - at < size:
                raise Truncated("rows event ends in its bits of columns", offset=self._at(at))
            for column in range(columns):
                bit = data[at + column // 8] >> column % 8 & 1
                self._masks[image * columns + column] = bit
                count += bit
            at += size
            self._counts[image] = count
        if self._counts[0] <= 0 and self._counts[1] <= 0:
            if at < end:
                raise FormatError("rows event with rows, but without columns", offset=self._at(at))
            raise FormatError(  # its rows take no byte, so nobody can tell how many there are
                "rows event without columns: a row of nothing but defaults was inserted under"
                " binlog_row_image=MINIMAL, and is not in the binlog (set FULL)",
                offset=self._at(at),
            )
        self._begin = at

    def read_rows(self) -> int:
        """
        Read on in the last event, to its end or to `rows_max`; return the number of rows.

        Raises:
            FormatError: a row does not end where the event ends.
        """
        before, after = self._counts[0] >= 0, self._counts[1] >= 0
        if before and not self.has_before:
            self._fill_absent(0, self.rows)
            self.has_before = True
        if after and not self.has_after:
            self._fill_absent(1, self.rows)
            self.has_after = True
        if (before and self._counts[0] < self.width) or (after and self._counts[1] < self.width):
            self.is_partial = True
        first = self.rows
        try:
            self._read_rows(before, after)
        except FormatError:
            self.rows, self._begin = first, self._end
            raise
        return self.rows - first

    def _read_rows(self, before: bool, after: bool) -> None:
        while self._begin < self._end and self.rows < self.rows_max:
            row = self.rows
            if row == self._capacity:
                self._grow_rows(min(2 * row, self.rows_max))
            if before:
                self._begin = self._read_image(0, row)
            elif self.has_before:
                self._fill_absent_row(0, row)
            if after:
                self._begin = self._read_image(1, row)
            elif self.has_after:
                self._fill_absent_row(1, row)
            self._ops[row] = self._op
            self._tags[row] = self._tag
            self._numbers[row] = self._number
            self._number += 1
            self.rows = row + 1

    def _read_image(self, image: int, row: int) -> int:
        """Note where the values of the next image are; return where it ends."""
        data, end, width, at = self._bytes, self._end, self.width, self._begin
        places = self._after if image else self._before
        masks, skips = self._masks, self._skips
        nulls = at
        at += (self._counts[image] + 7) // 8
        if at > end:
            raise Truncated("row ends in its bits of NULL", offset=self._at(nulls))
        index = 0
        base = row * width
        mask = image * width
        for column in range(width):
            if not masks[mask + column]:
                places[base + column] = -2
                continue
            is_null = data[nulls + (index >> 3)] >> (index & 7) & 1
            index += 1
            if is_null:
                places[base + column] = -1
                continue
            places[base + column] = at
            skip = skips[column]
            if skip < 0:
                prefix = -skip
                if end - at < prefix:
                    skip = prefix
                else:
                    skip = data[at]
                    if prefix > 1:
                        skip |= data[at + 1] << 8
                    if prefix > 2:
                        skip |= data[at + 2] << 16
                    if prefix > 3:
                        high = data[at + 3]
                        skip |= high << 24
                    at += prefix
            if end - at < skip:
                raise Truncated(
                    f"row ends in the value of column {column + 1}",
                    offset=self._at(places[base + column]),
                )
            at += skip
        return at

    def _fill_absent(self, image: int, rows: int) -> None:
        for row in range(rows):
            self._fill_absent_row(image, row)

    def _fill_absent_row(self, image: int, row: int) -> None:
        places = self._after if image else self._before
        for index in range(row * self.width, (row + 1) * self.width):
            places[index] = -2

    def _grow_data(self, size: int) -> None:
        data = self._make_room(max(size, 2 * len(self.data), self._expected))
        data[: self.used] = self.data[: self.used]
        self.data = data
        self._bytes = data

    def _grow_rows(self, rows: int) -> None:
        """Make room for *rows* rows in all arrays."""
        self.before = _longer(self.before, "i", rows * self.width)
        self.after = _longer(self.after, "i", rows * self.width)
        self.ops = _longer(self.ops, "b", rows)
        self.tags = _longer(self.tags, "q", rows)
        self.numbers = _longer(self.numbers, "i", rows)
        self._before, self._after = self.before, self.after
        self._ops, self._tags, self._numbers = self.ops, self.tags, self.numbers
        self._capacity = rows

    def _at(self, at: int) -> int:
        """Return the offset in the event of a byte of `data`."""
        return at - self._base


def _longer(old: memoryview, code: str, length: int) -> memoryview:
    new = memoryview(array(code, bytes(length * old.itemsize)))
    new[: len(old)] = old
    return new
