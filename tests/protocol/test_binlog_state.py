import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition

few = st.integers(0, 2)
gtids = st.builds(Gtid, few, few, st.integers(1, 4))
histories = st.lists(gtids, max_size=12)


def test_newest_of_each_pair_and_of_the_domain():
    state = BinlogState([Gtid(0, 1, 5), Gtid(7, 1, 2), Gtid(0, 2, 6), Gtid(0, 1, 7), Gtid(0, 3, 7)])
    assert str(state) == "0-2-6,0-1-7,0-3-7,7-1-2"
    assert state.entries() == [Gtid(0, 2, 6), Gtid(0, 1, 7), Gtid(0, 3, 7), Gtid(7, 1, 2)]
    assert state.newest(0) == Gtid(0, 3, 7)
    assert state.newest(9) is None
    assert state.seq(0, 1) == 7
    assert state.seq(0, 9) is None
    assert state.seq(9, 1) is None
    assert state.domains() == [0, 7]
    assert state.position() == GtidPosition.parse("0-3-7,7-1-2")
    assert len(state) == 4


def test_lower_number_logged_later_is_the_newest():
    state = BinlogState([Gtid(0, 1, 5), Gtid(0, 1, 3)])
    assert state.newest(0) == Gtid(0, 1, 3)
    assert state.contains(Gtid(0, 1, 3))
    assert not state.contains(Gtid(0, 1, 5))


def test_contains_needs_the_pair():
    state = BinlogState.parse("0-1-5")
    assert state.contains(Gtid(0, 1, 5))
    assert state.contains(Gtid(0, 1, 4))
    assert not state.contains(Gtid(0, 1, 6))
    assert not state.contains(Gtid(0, 2, 1))
    assert not state.contains(Gtid(1, 1, 1))


@given(histories)
def test_text_and_entries_round_trip(history):
    state = BinlogState(history)
    assert BinlogState.parse(str(state)) == state
    assert BinlogState(state.entries()).entries() == state.entries()
    assert BinlogState(state.entries()) == state


@given(histories, gtids)
def test_copy_is_independent(history, gtid):
    state = BinlogState(history)
    before = state.entries()
    copy = state.copy()
    assert copy == state
    copy.update(gtid)
    assert state.entries() == before


@given(histories, histories)
def test_what_was_logged_since_leads_from_one_state_to_the_other(history, later):
    base, state = BinlogState(history), BinlogState(history + later)
    since = state.since(base)
    rebuilt = base.copy()
    rebuilt.load(since.entries())
    assert rebuilt.entries() == state.entries()
    assert len(since) <= len(BinlogState(later))


def test_equality_knows_the_most_recent_entry():
    assert BinlogState.parse("0-1-5,0-2-6") != BinlogState.parse("0-2-6,0-1-5")
    assert BinlogState.parse("0-1-5,0-2-6,0-3-7") == BinlogState.parse("0-2-6,0-1-5,0-3-7")
    assert BinlogState.parse("0-1-5,7-1-1") == BinlogState.parse("7-1-1,0-1-5")


def test_text_that_is_no_gtid_list_is_refused():
    with pytest.raises(SqlError, match="1941"):
        BinlogState.parse("0-1")


@pytest.mark.parametrize(
    ("state", "position", "before"),
    [
        ("", "", True),
        ("", "0-1-5", True),
        ("0-1-5", "", False),  # domain 0 is wanted from its beginning
        ("0-1-4", "0-1-5", True),
        ("0-1-5", "0-1-5", True),
        ("0-1-6", "0-1-5", False),
        ("0-1-5,0-2-6", "0-1-5", False),  # equal, but another server logged later
        ("0-2-4,0-1-5", "0-1-5", True),
        ("0-1-4,0-2-6", "0-1-5", True),
        ("0-2-9", "0-1-5", True),  # pair unknown
        ("0-1-5", "0-1-5,7-1-1", True),  # domain unknown to the state
        ("0-1-5,7-1-1", "0-1-5", False),
    ],
)
def test_is_before(state, position, before):
    assert BinlogState.parse(state).is_before(GtidPosition.parse(position)) is before


rising = st.lists(st.tuples(few, few), max_size=14)


@given(rising, st.data())
def test_is_before_is_true_just_up_to_the_last_wanted_group(pairs, data):
    """In a history with rising numbers, it is true up to the last GTID of a position, not after."""
    numbers: dict[int, int] = {}
    history = []
    for domain, server in pairs:
        numbers[domain] = numbers.get(domain, 0) + 1
        history.append(Gtid(domain, server, numbers[domain]))
    have = data.draw(st.integers(0, len(history)))
    position = BinlogState(history[:have]).position()
    for end in range(len(history) + 1):
        # Nothing that is needed comes before `end`: all of history[:end] is had by the position.
        needed = [
            gtid
            for gtid in history[:end]
            if (held := position.get(gtid.domain)) is None or gtid.seq > held.seq
        ]
        assert BinlogState(history[:end]).is_before(position) is (not needed)
