"""
Columns of staged rows as buffers that need no more work: validity, offsets, values.

The buffers are laid out as Arrow has them, so that the pipeline hands them over without a copy:
a bit a row that is set where there is a value, 32-bit offsets of strings, little-endian values.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ibb.protocol.errors import FormatError

from .column import INTEGER_BYTES, ColumnType
from .column_form import Form, Kind, form_of
from .moment_values import (
    DATE,
    DATETIME,
    FIELDS,
    OLD_DATETIME,
    OLD_TIME,
    OLD_TIMESTAMP,
    TIME,
    TIMESTAMP,
    take_moment_texts,
    take_moments,
)
from .number_values import (
    take_big_endian,
    take_booleans,
    take_decimal_texts,
    take_decimals,
    take_integers,
    take_validity,
    take_years,
)
from .row_stage import zeros
from .string_reader import StringReader
from .value_policy import NoDates, ValueRefused

if TYPE_CHECKING:
    from collections.abc import Callable

    from .table_layout import ColumnLayout
    from .value_policy import ValuePolicy

_MOMENT_TEXT_BYTES: Final = 27
_MOMENTS: Final = {
    ColumnType.DATE: DATE,
    ColumnType.NEWDATE: DATE,
    ColumnType.TIME: OLD_TIME,
    ColumnType.DATETIME: OLD_DATETIME,
    ColumnType.TIMESTAMP: OLD_TIMESTAMP,
    ColumnType.TIME2: TIME,
    ColumnType.DATETIME2: DATETIME,
    ColumnType.TIMESTAMP2: TIMESTAMP,
}


class ColumnBuffers(NamedTuple):
    """
    One column of some rows.

    Args:
        form: what the values are.
        rows: how many.
        nulls: how many of them have no value.
        left_out: how many of these are dates that no calendar has.
        validity: a bit a row, from the lowest; None where every row has a value.
        offsets: of texts and bytes, one more than rows.
        values: of all rows, or the bytes that offsets are of.
    """

    form: Form
    rows: int
    nulls: int
    left_out: int
    validity: memoryview | None
    offsets: memoryview | None
    values: memoryview


class Staged(NamedTuple):
    """Which values: *column* of the first *rows* images whose places are *places*."""

    data: memoryview
    places: memoryview
    width: int
    column: int
    rows: int


class StagedRows(Protocol):
    """Rows whose values are in `data`: a `RowStage`, or a part of one."""

    @property
    def data(self) -> memoryview:
        """The bytes that places are in."""

    @property
    def width(self) -> int:
        """Columns of the table."""

    @property
    def rows(self) -> int:
        """How many there are."""


class ColumnReader:
    """
    Fills the buffers of one column.

    Args:
        layout: what is known of the column.
        number: of the column in its table, from 0.
        policy: what becomes of values that do not fit.
        where: the table, for error texts.
        make_room: returns so many bytes for texts to be written, whatever is in them.
    """

    def __init__(
        self,
        layout: ColumnLayout,
        number: int,
        policy: ValuePolicy,
        where: str,
        make_room: Callable[[int], memoryview] = zeros,
    ) -> None:
        self.layout = layout
        self.form = form_of(layout, policy)
        self._number = number
        self._policy = policy
        self._where = f"column `{layout.name}` of {where}"
        self._is_moment = layout.column.type in _MOMENTS and self.form.kind is not Kind.TEXT
        self._strings = StringReader(layout, policy, self._where, make_room)
        self._read = self._choose()

    def read(self, stage: StagedRows, places: memoryview) -> ColumnBuffers:
        """
        Return the column of all rows that are staged.

        Args:
            stage: the rows.
            places: their `before` or `after`.

        Raises:
            FormatError: bytes that no server writes as a value of this type.
            ValueRefused: a value that the policy does not let pass.
        """
        staged = Staged(stage.data, places, stage.width, self._number, stage.rows)
        validity = zeros((stage.rows + 7) // 8)
        nulls = take_validity(places, stage.width, self._number, stage.rows, validity)
        left_out = 0
        offsets = None
        if self._is_moment:
            left_out, values = self._moments(staged, validity)
            nulls += left_out
        else:
            offsets, values = self._read(staged)
        return ColumnBuffers(
            self.form, stage.rows, nulls, left_out, validity if nulls else None, offsets, values
        )

    def _choose(self) -> Callable[[Staged], _Filled]:
        kind = self.layout.column.type
        if kind in _MOMENTS:
            return self._moment_texts
        if kind is ColumnType.NEWDECIMAL:
            return self._decimal_texts if self.form.kind is Kind.TEXT else self._decimals
        if kind is ColumnType.BIT:
            return self._booleans if self.form.kind is Kind.BOOLEAN else self._bits
        if kind is ColumnType.YEAR:
            return self._years
        if kind is ColumnType.NULL:
            return _nothing
        is_number = kind in INTEGER_BYTES or self.form.kind in (Kind.INTEGER, Kind.DECIMAL)
        if is_number or self.form.kind is Kind.FLOAT:
            return self._integers
        return self._strings.read_one_by_one if self._strings.is_slow else self._strings.read

    def _integers(self, staged: Staged) -> _Filled:
        column, size = self.layout.column, self.form.size
        out = zeros(size * staged.rows)
        signed = column.type in INTEGER_BYTES and not self.layout.unsigned
        take_integers(*staged, column.size, signed, size, out)
        return None, out

    def _bits(self, staged: Staged) -> _Filled:
        out = zeros(self.form.size * staged.rows)
        take_big_endian(*staged, self.layout.column.size, self.form.size, out)
        return None, out

    def _booleans(self, staged: Staged) -> _Filled:
        out = zeros((staged.rows + 7) // 8)
        take_booleans(*staged, out)
        return None, out

    def _years(self, staged: Staged) -> _Filled:
        out = zeros(2 * staged.rows)
        take_years(*staged, out)
        return None, out

    def _decimals(self, staged: Staged) -> _Filled:
        column = self.layout.column
        out = zeros(16 * staged.rows)
        damaged = take_decimals(*staged, column.length, column.scale, out)
        if damaged >= 0:
            self._damaged(staged, damaged)
        return None, out

    def _decimal_texts(self, staged: Staged) -> _Filled:
        column = self.layout.column
        offsets = zeros(4 * (staged.rows + 1)).cast("i")
        out = zeros((column.length + 3) * staged.rows)
        end = take_decimal_texts(*staged, column.length, column.scale, offsets, out)
        if end < 0:
            self._damaged(staged, -1 - end)
        return offsets, out[:end]

    def _moments(self, staged: Staged, validity: memoryview) -> tuple[int, memoryview]:
        column = self.layout.column
        out = zeros(self.form.size * staged.rows)
        left_out = take_moments(
            *staged,
            _MOMENTS[column.type],
            (column.scale + 1) // 2,
            self.form.size,
            _fields(),
            out,
            validity,
        )
        if left_out < 0:
            self._damaged(staged, -1 - left_out)
        if left_out and self._policy.no_dates is NoDates.ERROR:
            raise ValueRefused(
                f"{self._where}: {left_out} of {staged.rows} values are dates that no calendar "
                "has, as 0000-00-00; let them be null or text instead"
            )
        return left_out, out

    def _moment_texts(self, staged: Staged) -> _Filled:
        column = self.layout.column
        offsets = zeros(4 * (staged.rows + 1)).cast("i")
        out = zeros(_MOMENT_TEXT_BYTES * staged.rows)
        end = take_moment_texts(
            *staged,
            _MOMENTS[column.type],
            (column.scale + 1) // 2,
            column.scale,
            _fields(),
            offsets,
            out,
        )
        if end < 0:
            self._damaged(staged, -1 - end)
        return offsets, out[:end]

    def _damaged(self, staged: Staged, row: int) -> None:
        place = staged.places[row * staged.width + staged.column]
        size = self.layout.column.size
        raise FormatError(
            f"{self._where}: the bytes {staged.data[place : place + size].hex()} are no "
            f"{self.layout.column.type.name} value"
        )


if TYPE_CHECKING:
    _Filled = tuple[memoryview | None, memoryview]


def _nothing(staged: Staged) -> _Filled:
    """Return a column of the type NULL."""
    return zeros(4 * (staged.rows + 1)).cast("i"), zeros(0)


def _fields() -> memoryview:
    return memoryview(array("q", bytes(8 * FIELDS)))
