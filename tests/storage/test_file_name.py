"""Names and numbers of binlog files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.storage.file_name import FILE_NO_MAX, binlog_name, is_misspelt, parse_binlog_name
from ibb.storage.position import Position


@given(st.integers(0, FILE_NO_MAX))
def test_a_name_leads_back_to_its_number(number):
    assert parse_binlog_name(binlog_name(number)) == number


def test_numbers_have_at_least_six_digits():
    assert binlog_name(7) == "binlog-000007.ibb"
    assert binlog_name(1234567) == "binlog-1234567.ibb"


@pytest.mark.parametrize(
    "name",
    ["binlog-7.ibb", "binlog-0000007.ibb", f"binlog-{2**64}.ibb", "binlog-" + "9" * 5000 + ".ibb"],
)
def test_other_spellings_are_no_names_but_noticed(name):
    assert parse_binlog_name(name) is None
    assert is_misspelt(name)


@pytest.mark.parametrize(
    "name",
    [
        "binlog-000007.ibb.tmp",
        "xbinlog-000007.ibb",
        "binlog-.ibb",
        "binlog-00000x.ibb",
        "binlog-00000\u0667.ibb",
        "binlog-000007.ibb\n",
    ],
)
def test_foreign_files_are_not_noticed(name):
    assert parse_binlog_name(name) is None
    assert not is_misspelt(name)


def test_positions_are_ordered_as_the_stream_is():
    assert Position(1, 600) > Position(0, 70000) > Position(0, 512)
    assert str(Position(3, 512)) == "binlog-000003.ibb:512"
