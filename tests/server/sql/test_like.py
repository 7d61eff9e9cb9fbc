"""LIKE, against a regular expression as the model."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.server.sql.like import is_like


@given(st.text("aB_%", max_size=8), st.text("ab%_", max_size=8))
def test_like_is_what_the_regular_expression_says(text, pattern):
    model = "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern)
    assert is_like(text, pattern) == bool(re.fullmatch(model, text, re.IGNORECASE | re.DOTALL))


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("server_id", r"server\_id", True),
        ("serverxid", r"server\_id", False),
        ("100%", r"100\%", True),
        ("back\\", "back\\", True),
        ("back\\slash", r"back\\slash", True),
        ("", "%", True),
        ("", "_", False),
    ],
)
def test_a_backslash_takes_the_meaning_away(text, pattern, matches):
    assert is_like(text, pattern) is matches


def test_a_pattern_of_many_wildcards_takes_no_time_to_speak_of():
    assert not is_like("a" * 64, "%a" * 500 + "b")
