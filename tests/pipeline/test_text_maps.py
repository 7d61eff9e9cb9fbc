"""Texts of changed rows: large values as small ones, written once."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ibb.pipeline import text_maps
from ibb.pipeline.row_batches import RowBatches
from ibb.pipeline.text_maps import TextImages
from ibb.protocol.errors import FormatError
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap

from ..protocol.rows import row_encoder as enc

COLUMNS = [
    ("id", enc.integer(4)),
    ("b", enc.blob(4)),
    ("t", enc.blob(2, 45)),
    ("n", enc.integer(8)),
]
SPECS = [spec for _, spec in COLUMNS]
BLOBS = (b"", b"\x00\xff\x1a", bytes(range(256)) * 700, None, b"x")
TEXTS = (None, "é\U0001f600" * 9, "", "word", "x" * 30000)


def images():
    rows = [
        (number, BLOBS[number], TEXTS[number].encode() if TEXTS[number] else None, None)
        for number in range(5)
    ]
    batches = RowBatches(layout_of(TableMap.parse(enc.table_map(COLUMNS, key=[0, 2]))))
    batches.add(enc.rows_event(enc.WRITE, SPECS, [[row] for row in rows]))
    batches.add(enc.rows_event(enc.UPDATE, SPECS, [[rows[0], rows[4]]]))
    partial = [[True, False, False, True], [False, True, False, False]]
    batches.add(
        enc.rows_event(enc.UPDATE, SPECS, [[(7, None, None, 8), (None, b"z", None, None)]], partial)
    )
    batches.add(enc.rows_event(enc.DELETE, SPECS, [[rows[2]]]))
    return TextImages(batches.take())


def columns():
    found = [images().column(name) for name in ("key", "before", "after")]
    for array in found:
        array.validate(full=True)
        assert array.type == pa.map_(pa.string(), pa.string())
    return [array.to_pylist() for array in found]


def test_large_values_are_as_small_ones(monkeypatch):
    small = columns()
    monkeypatch.setattr(text_maps, "LARGE_BYTES", 1)
    monkeypatch.setattr(text_maps, "PIECE_BYTES", 1000)
    assert columns() == small
    key, before, after = small
    assert after[1] == [("id", "1"), ("b", "00FF1A"), ("t", TEXTS[1]), ("n", None)]
    assert dict(after[2])["b"] == BLOBS[2].hex().upper()
    assert before[:5] == [None] * 5
    assert (before[6], after[6], after[7]) == ([("id", "7"), ("n", "8")], [("b", "7A")], None)
    assert [dict(found)["id"] for found in key] == ["0", "1", "2", "3", "4", "0", "7", "2"]


def test_small_decimals_have_no_exponent():
    columns = [("small", enc.decimal(38, 10)), ("smaller", enc.decimal(38, 38))]
    batches = RowBatches(layout_of(TableMap.parse(enc.table_map(columns))))
    row = (Decimal("0.0000000000"), Decimal("-1e-38"))
    batches.add(enc.rows_event(enc.WRITE, [spec for _, spec in columns], [[row]]))
    ((small, smaller),) = TextImages(batches.take()).column("after").to_pylist()
    assert (small[1], smaller[1]) == ("0.0000000000", f"-0.{1:038d}")


def test_texts_that_are_too_long_together_are_refused(monkeypatch):
    monkeypatch.setattr(text_maps, "LARGE_BYTES", 1)
    monkeypatch.setattr(text_maps, "TEXT_BYTES_MAX", 300_000)
    with pytest.raises(FormatError, match=r"texts have \d+ bytes: more than 300000 .*option table"):
        columns()
