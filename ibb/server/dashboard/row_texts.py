"""
Changed rows in words, for people: `insert id=1, what='tea'`.

Names of columns are there if the primary writes them (binlog_row_metadata), else they are `@1`,
`@2`, as mariadb-binlog has it. Strings of an unknown character set are taken for UTF-8 where they
can be.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError
from ibb.protocol.rows.column_form import Kind
from ibb.protocol.rows.column_reader import ColumnReader
from ibb.protocol.rows.row_stage import IS_ABSENT, IS_NULL, RowStage
from ibb.protocol.rows.rows_event import open_rows
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.value_policy import BadText, NoDates, Times, Unknown, ValuePolicy

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer
    from ibb.protocol.rows.column_reader import ColumnBuffers
    from ibb.protocol.rows.table_layout import TableLayout

ROWS_MAX: Final = 20  # of one event
TABLES_MAX: Final = 256  # of one group; the rows of further ones stay bytes
VALUE_CHARS_MAX: Final = 100
ROW_CHARS_MAX: Final = 1000
_WORDS: Final = ("", "insert", "update", "delete")
_FLOATS: Final = {4: struct.Struct("<f"), 8: struct.Struct("<d")}
_OFFSET: Final = struct.Struct("<i")
_POLICY: Final = ValuePolicy(
    no_dates=NoDates.TEXT, times=Times.TEXT, bad_text=BadText.REPLACE, unknown=Unknown.BYTES
)


class RowTexts:
    """The tables of one group, and what happened to their rows."""

    def __init__(self) -> None:
        self._tables: dict[int, TableLayout] = {}

    def add_table(self, event: Buffer) -> None:
        """Take a table map event; one that is damaged leaves its rows untold."""
        try:
            table = TableMap.parse(event)
            if len(self._tables) < TABLES_MAX:
                self._tables[table.number] = layout_of(table)
        except IbbError:
            return  # its rows say that the table is not known

    def rows_of(self, event: Buffer) -> list[str]:
        """Return the first `ROWS_MAX` rows of a whole rows event, or why they cannot be told."""
        try:
            head = open_rows(event)
            layout = self._tables.get(head.number)
            if layout is None:
                return ["the table of these rows is not known"]
            stage = RowStage([column.column.skip for column in layout.columns], ROWS_MAX)
            stage.add(head.event, head.offset, head.op, 0)
            before = _images(layout, stage, stage.before) if stage.has_before else None
            after = _images(layout, stage, stage.after) if stage.has_after else None
        except IbbError as error:
            return [f"the rows cannot be told: {error}"]
        told = []
        for row in range(stage.rows):
            images = [image[row] for image in (before, after) if image is not None and image[row]]
            text = f"{_WORDS[stage.ops[row]]} {' to '.join(images)}"
            told.append(text[:ROW_CHARS_MAX])
        return [*told, "and more rows"] if stage.pending else told


def _images(layout: TableLayout, stage: RowStage, places: memoryview) -> list[str]:
    """Return the images of all staged rows; columns that are not in one are left out."""
    texts: list[list[str]] = [[] for _ in range(stage.rows)]
    for number, column in enumerate(layout.columns):
        reader = ColumnReader(column, number, _POLICY, "a row")
        buffers = reader.read(stage, places)
        for row in range(stage.rows):
            place = places[row * stage.width + number]
            if place != IS_ABSENT:
                value = "NULL" if place == IS_NULL else _text(buffers, row)
                texts[row].append(f"{column.name}={value}")
    return [", ".join(text) for text in texts]


def _text(buffers: ColumnBuffers, row: int) -> str:
    form, values = buffers.form, buffers.values.cast("B")
    if buffers.offsets is not None:
        offsets = buffers.offsets.cast("B")
        (start,) = _OFFSET.unpack_from(offsets, row * 4)
        (end,) = _OFFSET.unpack_from(offsets, row * 4 + 4)
        return _quoted(bytes(values[start:end]))
    if form.kind is Kind.BOOLEAN:
        return str(values[row // 8] >> row % 8 & 1)
    data = bytes(values[row * form.size : (row + 1) * form.size])
    if form.kind is Kind.FLOAT:
        return repr(_FLOATS[form.size].unpack(data)[0])
    number = int.from_bytes(data, "little", signed=True)
    return str(Decimal(number).scaleb(-form.scale)) if form.scale else str(number)


def _quoted(data: bytes) -> str:
    cut = data[: VALUE_CHARS_MAX * 4]
    text = cut.decode(errors="replace")
    if len(cut) < len(data):
        text = text.rstrip("\ufffd")  # of a character that was cut
    if "\ufffd" in text or not text.replace("\n", "").isprintable():
        shown = data[:VALUE_CHARS_MAX].hex()
        return f"X'{shown}'{'...' if len(data) > VALUE_CHARS_MAX else ''}"
    more = "..." if len(text) > VALUE_CHARS_MAX or len(cut) < len(data) else ""
    quoted = text[:VALUE_CHARS_MAX].replace("'", "''")
    return f"'{quoted}'{more}"
