"""
Images of changed rows as Arrow maps from column to text, for mode changes.

A large value is written once, where it stays: it is there as it was decoded, and as its text.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from ibb.protocol.errors import FormatError

from .columns import TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .row_batches import RowBatch

TEXT_BYTES_MAX: Final = 2**31 - 1  # of all texts of a batch: Arrow's offsets have 32 bits
LARGE_BYTES: Final = 1 << 18  # of a column, from which on its values are no objects of Python
PIECE_BYTES: Final = 1 << 16  # that are turned into digits at a time


class LargeText(NamedTuple):
    """The text of a value: its bytes, or their hexadecimal digits."""

    data: memoryview
    in_digits: bool

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len(self.data) * (2 if self.in_digits else 1)

    def pieces(self) -> Iterator[bytes]:
        """Yield the text, some of it at a time."""
        for at in range(0, len(self.data), PIECE_BYTES):
            piece = self.data[at : at + PIECE_BYTES]
            yield piece.hex().upper().encode() if self.in_digits else bytes(piece)


_Text = str | LargeText | None
_Row = list[tuple[str, _Text]] | None  # of each column its name and text; None: no image


class TextImages:
    """
    The images of a batch of rows.

    Args:
        batch: the rows.
    """

    def __init__(self, batch: RowBatch) -> None:
        self._key = batch.layout.key
        self._names = {batch.layout.columns[number].name for number in self._key or ()}
        self._rows = {image: _rows_of(batch, image) for image in ("before", "after")}
        records = (image for image in (batch.before, batch.after) if image is not None)
        self._has_large = any(map(_is_large, (column for image in records for column in image)))

    def column(self, name: str) -> pa.MapArray:
        """
        Return the column "before", "after" or "key": that of before the change if there was one.

        Raises:
            FormatError: the texts of the batch are too long together.
        """
        if name != "key":
            return self._map(self._rows[name])
        pairs = zip(self._rows["before"], self._rows["after"], strict=True)
        if self._key is None:
            return self._map([None for _ in pairs])
        return self._map(
            [[pair for pair in old or new or [] if pair[0] in self._names] for old, new in pairs]
        )

    def _map(self, rows: list[_Row]) -> pa.MapArray:
        return _large_map(rows) if self._has_large else pa.array(rows, TEXTS)


def text_of(value: Any) -> str | None:
    """Return a value as a text: bytes in hexadecimal digits, all else about as SELECT shows it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Decimal):
        return f"{value:f}"  # never with an exponent
    return str(value)


def _rows_of(batch: RowBatch, image: str) -> list[_Row]:
    """Return an image of each row, without columns that it lacks."""
    records = batch.before if image == "before" else batch.after
    if records is None:
        return [None] * batch.rows
    numbers = {column.name: number for number, column in enumerate(batch.layout.columns)}
    rows: list[list[tuple[str, _Text]]] = [[] for _ in range(batch.rows)]
    for name, values in zip(records.schema.names, records.columns, strict=True):
        there = batch.has_column(image, numbers[name]).to_pylist()
        for row, text, is_there in zip(rows, _texts_of(values), there, strict=True):
            if is_there:
                row.append((name, text))
    lacking = "insert" if image == "before" else "delete"
    return [
        None if op == lacking else row for row, op in zip(rows, batch.op.to_pylist(), strict=True)
    ]


def _is_large(values: pa.Array) -> bool:
    is_text = pa.types.is_binary(values.type) or pa.types.is_string(values.type)
    return bool(is_text and values.nbytes >= LARGE_BYTES)


def _texts_of(values: pa.Array) -> Iterator[_Text]:
    return _large_texts(values) if _is_large(values) else map(text_of, values.to_pylist())


def _large_texts(values: pa.Array) -> Iterator[_Text]:
    is_binary = pa.types.is_binary(values.type)
    _, places, data = (memoryview(buffer or b"") for buffer in values.buffers())
    ends = places.cast("B").cast("i")[values.offset :]
    for row, is_there in enumerate(values.is_valid().to_pylist()):
        value = data[ends[row] : ends[row + 1]].cast("B")  # a scalar would be a copy
        yield LargeText(value, is_binary) if is_there else None


def _large_map(rows: Sequence[_Row]) -> pa.MapArray:
    starts: list[int | None] = []
    names: list[str] = []
    texts: list[_Text] = []
    for row in rows:
        starts.append(None if row is None else len(names))
        for name, text in row or ():
            names.append(name)
            texts.append(text)
    offsets = pa.array([*starts, len(names)], pa.int32())
    items = _written(texts)
    return pa.MapArray.from_arrays(offsets, pa.array(names, pa.string()), items).cast(TEXTS)


def _written(texts: Sequence[_Text]) -> pa.StringArray:
    """Return texts as an array whose bytes are written once."""
    stored = [
        text if isinstance(text, LargeText) else LargeText(memoryview((text or "").encode()), False)
        for text in texts
    ]
    offsets = [0, *accumulate(text.size for text in stored)]
    if offsets[-1] > TEXT_BYTES_MAX:
        raise FormatError(
            f"changed rows whose texts have {offsets[-1]} bytes: more than {TEXT_BYTES_MAX} are not"
            " read at a time; option tables can leave the table out, option table has the bytes"
        )
    out, at = bytearray(offsets[-1]), 0
    for text in stored:
        for piece in text.pieces():
            out[at : at + len(piece)] = piece
            at += len(piece)
    there = pa.array([text is not None for text in texts], pa.bool_())
    buffers = [there.buffers()[1], pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)
