"""Texts in the character sets of clients."""

import pytest

from ibb.protocol.character_sets import (
    COLLATIONS,
    DEFAULT_COLLATIONS,
    charset_of,
    decoded,
    encoded,
    readable,
)

EVERY_BYTE = bytes(range(256))


@pytest.mark.parametrize("charset", sorted(DEFAULT_COLLATIONS))
def test_every_byte_comes_back_as_it_was(charset):
    assert encoded(decoded(EVERY_BYTE, charset), charset) == EVERY_BYTE


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("utf8mb4", "ä€😀".encode()),
        ("utf8mb3", "ä€?".encode()),
        ("latin1", b"\xe4\x80?"),
        ("ascii", b"???"),
        ("binary", "ä€😀".encode()),
    ],
)
def test_what_a_character_set_lacks_is_a_question_mark(charset, data):
    assert encoded("ä€😀", charset) == data


def test_latin1_is_that_of_windows_with_nothing_left_out():
    assert decoded(b"\x80\x81\xe4", "latin1") == "€\x81ä"


def test_four_bytes_in_utf8mb3_are_four_characters_that_come_back():
    text = decoded("a😀".encode(), "utf8mb3")
    assert len(text) == 5
    assert encoded(text, "utf8mb3") == "a😀".encode()


def test_bytes_that_are_no_text_are_written_out_in_messages():
    assert readable(decoded(b"near '\xe4'", "utf8mb4")) == r"near '\xE4'"


def test_every_collation_belongs_to_a_character_set_that_is_known():
    assert {charset_of(name) for name in COLLATIONS} <= set(DEFAULT_COLLATIONS)
