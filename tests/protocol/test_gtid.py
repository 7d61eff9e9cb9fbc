import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition

ids = st.integers(0, 2**32 - 1)
gtids = st.builds(Gtid, ids, ids, st.integers(0, 2**64 - 1))
positions = st.builds(GtidPosition, st.lists(gtids, max_size=6))


@given(gtids)
def test_text_round_trip(gtid):
    assert str(gtid) == f"{gtid.domain}-{gtid.server}-{gtid.seq}"
    assert Gtid.parse(str(gtid)) == gtid


@given(positions)
def test_position_text_round_trip(position):
    assert GtidPosition.parse(str(position)) == position
    assert GtidPosition.parse(", ".join(map(str, position))) == position


@pytest.mark.parametrize("text", ["", "  "])
def test_blank_text_is_the_empty_position(text):
    assert len(GtidPosition.parse(text)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "0-1",
        "0-1-2-3",
        "0-1-2,",
        ",0-1-2",
        "0-1-2,,1-1-1",
        "-1-1-1",
        "0 -1-2",
        "4294967296-1-1",
        "1-4294967296-1",
        "1-1-18446744073709551616",
        "0-1-+2",
        "0-1-0x2",
        "0-1-\u0662",  # a digit, but not an ASCII one
        "0-1-" + "9" * 5000,
    ],
)
def test_what_is_no_gtid_list_gets_1941(text):
    with pytest.raises(SqlError) as caught:
        GtidPosition.parse(text)
    assert (caught.value.code, caught.value.sqlstate) == (1941, "HY000")
    assert caught.value.message == "Could not parse GTID list"


def test_domain_named_twice_gets_1943():
    with pytest.raises(SqlError) as caught:
        GtidPosition.parse("7-1-1,0-101-29,7-2-4294967296")
    assert (caught.value.code, caught.value.sqlstate) == (1943, "HY000")
    assert caught.value.message == (
        "GTID 7-2-4294967296 and 7-1-1 conflict (duplicate domain id 7)"
    )


def test_positions_compare_as_sets():
    one = GtidPosition.parse("0-101-35,7-101-8")
    other = GtidPosition.parse("7-101-8,0-101-35")
    assert one == other
    assert str(one) != str(other)
    other.set(Gtid(7, 101, 9))
    assert one != other


def test_copy_is_independent():
    position = GtidPosition.parse("0-1-5,7-1-1")
    copy = position.copy()
    copy.remove(0)
    copy.remove(3)  # not held: nothing happens
    copy.set(Gtid(7, 2, 9))
    assert str(position) == "0-1-5,7-1-1"
    assert str(copy) == "7-2-9"
    assert position.get(0) == Gtid(0, 1, 5)
    assert copy.get(0) is None
    assert 7 in copy
    assert 0 not in copy
