"""Columns of strings out of staged rows, by the kernel, and text by text."""

from array import array
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.rows.column import ColumnType
from ibb.protocol.rows.column_reader import Staged
from ibb.protocol.rows.string_reader import StringReader
from ibb.protocol.rows.string_values import (
    count_bytes,
    count_mapped_bytes,
    take_mapped,
    take_strings,
)
from ibb.protocol.rows.text_encoding import has_ascii, text_of, utf8_table
from ibb.protocol.rows.value_policy import ValuePolicy

pytestmark = pytest.mark.kernel

CHARSETS = ("latin1", "latin2", "cp1251", "greek", "hebrew", "koi8r", "swe7", "armscii8", "tis620")
# Long stretches of ASCII, single bytes that are not, and anything.
TEXTS = st.lists(
    st.text("aZ09 ", max_size=30).map(str.encode) | st.binary(max_size=3), max_size=5
).map(b"".join)


def staged(values, prefix):
    """Return rows of one column as they are staged; None is NULL."""
    data, places = bytearray(b"?"), array("i")
    for value in values:
        places.append(-1 if value is None else len(data))
        if value is not None:
            data += len(value).to_bytes(prefix, "little") + value
    return memoryview(data), memoryview(places), 1, 0, len(values)


def cut(offsets, out):
    return [bytes(out[begin:end]) for begin, end in pairwise(offsets)]


@pytest.mark.parametrize("charset", CHARSETS)
@settings(max_examples=60)
@given(values=st.lists(st.none() | TEXTS, max_size=8), prefix=st.sampled_from((1, 2)))
def test_texts_of_one_byte_character_sets(charset, values, prefix):
    table = utf8_table(charset)
    valid = {byte for byte in range(256) if table[4 * byte + 3]}
    rows = staged(values, prefix)
    how = prefix, memoryview(table), has_ascii(table)
    bad = [row for row, one in enumerate(values) if one is not None and not set(one) <= valid]
    total = count_mapped_bytes(*rows, *how)
    if bad:
        assert total == -1 - bad[0]
        offsets, out = memoryview(array("i", bytes(4 * len(values) + 4))), bytearray(10_000)
        assert take_mapped(*rows, *how, 9_000, offsets, memoryview(out)) == -1
        return
    texts = [b"" if one is None else text_of(one, charset).encode() for one in values]
    assert total == sum(map(len, texts))
    guard = b"untouched"
    offsets, out = memoryview(array("i", bytes(4 * len(values) + 4))), bytearray(total + 3) + guard
    assert take_mapped(*rows, *how, -1, offsets, memoryview(out)[: total + 3]) == total
    assert cut(offsets, out) == texts
    assert out.endswith(guard)
    room = 3 * sum(map(len, filter(None, values)))
    for most in (room, total, total // 2, 0):
        out = bytearray(most + 3) + guard
        found = take_mapped(*rows, *how, most, offsets, memoryview(out)[: most + 3])
        assert found in ((total,) if most == room else (total, -1))
        assert out.endswith(guard)
        if found == total:
            assert cut(offsets, out) == texts


def test_a_character_set_that_changes_ascii_is_known():
    assert has_ascii(utf8_table("latin1"))
    assert not has_ascii(utf8_table("swe7"))
    assert text_of(b"[", "swe7") == "Ä"


@settings(max_examples=100)
@given(values=st.lists(st.none() | TEXTS, max_size=8), pad=st.sampled_from((0, 0, 9)))
def test_strings_are_copied_and_it_is_told_whether_they_are_ascii(values, pad):
    rows = staged(values, 2)
    total = count_bytes(*rows, 2, pad)
    offsets, out = memoryview(array("i", bytes(4 * len(values) + 4))), bytearray(total)
    is_ascii = take_strings(*rows, 2, pad, offsets, memoryview(out))
    wanted = [b"" if one is None else one.ljust(pad, b"\0") for one in values]
    assert cut(offsets, out) == wanted
    assert is_ascii == all(one.isascii() for one in wanted)


def test_only_what_a_batch_really_has_is_too_much(monkeypatch):
    """Room for as much as the batch before grew would be more than a column can have."""
    column = SimpleNamespace(type=ColumnType.VARCHAR, prefix=2, length=2000)
    layout = SimpleNamespace(column=column, special=None, charset="latin1", labels=None)
    reader = StringReader(layout, ValuePolicy(), "t.c")
    reader.read(Staged(*staged(["€".encode("cp1252") * 1500] * 1000, 2)))
    monkeypatch.setattr("ibb.protocol.rows.string_reader.COLUMN_BYTES_MAX", 2_000_000)
    _, out = reader.read(Staged(*staged([b"plain" * 300] * 1000, 2)))
    assert len(out) == 1_500_000


def test_a_batch_that_grows_more_than_the_one_before_is_read_as_well():
    texts = ["plain" * 300, "ä" * 1500, "€" * 1500, "", "plain" * 300]
    column = SimpleNamespace(type=ColumnType.VARCHAR, prefix=2, length=2000)
    layout = SimpleNamespace(column=column, special=None, charset="latin1", labels=None)
    reader = StringReader(layout, ValuePolicy(), "t.c")
    for text in texts:
        value = text.encode("cp1252")
        for count in (2, 1000):
            offsets, out = reader.read(Staged(*staged([value] * count, 2)))
            assert set(cut(offsets, out)) == {text.encode()}
            assert len(out) == count * len(text.encode())
