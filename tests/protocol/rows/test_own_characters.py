"""Characters that MariaDB reads otherwise than Python; a real server says them all elsewhere."""

import pytest

from ibb.protocol.rows.text_encoding import text_of


@pytest.mark.parametrize(
    ("charset", "code", "char"),
    [
        ("eucjpms", b"\xad\xa1", "①"),
        ("eucjpms", b"\xa1\xc1", "\uff5e"),
        ("eucjpms", b"\x8f\xf3\xf3", "\u2170"),
        ("ujis", b"\xf5\xa1", "\ue000"),
        ("big5", b"\xf9\xd6", "碁"),
    ],
)
def test_a_character_amid_others(charset, code, char):
    around = "東京".encode("euc_jp" if charset != "big5" else "big5")
    assert text_of(b"a" + around + code + around, charset, "strict") == f"a東京{char}東京"


@pytest.mark.parametrize(("charset", "code"), [("sjis", b"\x81\x5f"), ("ujis", b"\xa1\xc0")])
def test_a_backslash_of_two_bytes_escapes_nothing_in_a_statement(charset, code):
    assert text_of(b"'a" + code + b"'", charset) == r"'a\'"
    assert text_of(b"'a" + code + b"'", charset, of_statement=True) == "'a\uff3c'"


def test_what_is_no_character_is_refused_behind_one_that_is():
    with pytest.raises(UnicodeDecodeError):
        text_of(b"\xad\xa1\xff", "eucjpms", "strict")
    assert text_of(b"\xad\xa1\xff", "eucjpms") == "①\ufffd"
