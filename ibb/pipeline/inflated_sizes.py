"""
How large the values of COMPRESSED columns become: a kilobyte of an event may be megabytes of rows.

Each says so at its beginning (`ibb.protocol.rows.string_reader`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from ibb.protocol.rows.string_reader import VALUE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.rows.row_stage import RowStage


class InflatedSizes:
    """
    The bytes of such values in the rows of a stage.

    Args:
        stage: the rows.
        columns: number of each such column, and how many bytes say how long a value is; usually
            there is none.
    """

    def __init__(self, stage: RowStage, columns: Sequence[tuple[int, int]]) -> None:
        self._stage = stage
        self._columns = columns
        self._totals = array("q", [0])  # before each row

    @property
    def is_needed(self) -> bool:
        """Whether there is such a column."""
        return bool(self._columns)

    @property
    def total(self) -> int:
        """Bytes in the rows so far."""
        return self._totals[-1]

    def read(self) -> None:
        """Read the sizes in the rows that are new; those of values that are damaged are none."""
        if not self._columns:
            return
        stage = self._stage
        images = [stage.before] * stage.has_before + [stage.after] * stage.has_after
        for row in range(len(self._totals) - 1, stage.rows):
            size = sum(
                self._size(image[row * stage.width + number], prefix)
                for image in images
                for number, prefix in self._columns
            )
            self._totals.append(self._totals[-1] + size)

    def end_of(self, first: int, size: int) -> int:
        """Return the row behind *first* and those after it that have up to *size* bytes."""
        return max(first + 1, bisect_right(self._totals, self._totals[first] + size) - 1)

    def clear(self) -> None:
        """Begin anew: the stage has no rows."""
        self._totals = array("q", [0])

    def _size(self, place: int, prefix: int) -> int:
        if place < 0:
            return 0
        data, begin = self._stage.data, place + prefix
        length = int.from_bytes(data[place:begin], "little")
        if not length or not data[begin]:
            return max(length - 1, 0)
        sizes = min(data[begin] & 7, length - 1)
        return min(int.from_bytes(data[begin + 1 : begin + 1 + sizes], "big"), VALUE_BYTES_MAX)
