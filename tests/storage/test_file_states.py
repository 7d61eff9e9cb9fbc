"""What is known of files: bounded, and never more than was seen."""

from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import file_states
from ibb.storage.file_states import FileStates

GTIDS = st.builds(Gtid, st.integers(0, 2), st.integers(1, 2), st.integers(1, 6))


def state(*numbers, server=1):
    return BinlogState(Gtid(0, server, number) for number in numbers)


def position(number):
    return GtidPosition([Gtid(0, 1, number)])


@given(st.lists(GTIDS, max_size=8), st.lists(GTIDS, max_size=8), st.lists(GTIDS, max_size=3))
def test_where_states_rise_what_is_before_a_position_stays_so_for_earlier_ones(
    logged, then, wanted
):
    earlier = BinlogState(logged)
    later = earlier.copy()
    later.load(then)
    asked = GtidPosition({gtid.domain: gtid for gtid in wanted}.values())
    if earlier.rises_to(later) and later.is_before(asked):
        assert earlier.is_before(asked)
    assert earlier.rises_to(earlier)


def test_a_lower_number_a_lost_pair_and_a_repeated_group_do_not_rise():
    assert state(4).rises_to(state(5))
    assert not state(5).rises_to(state(4))
    assert not BinlogState([Gtid(0, 1, 4), Gtid(1, 1, 1)]).rises_to(state(5))
    assert not BinlogState([Gtid(0, 1, 4), Gtid(0, 2, 1)]).rises_to(state(5))
    both = BinlogState([Gtid(0, 1, 4), Gtid(0, 2, 1)])
    assert not both.rises_to(BinlogState([Gtid(0, 2, 1), Gtid(0, 1, 4)]))
    assert both.rises_to(BinlogState([Gtid(0, 2, 1), Gtid(0, 1, 5)]))


def test_neighbours_that_rise_are_one_range_in_whatever_order_they_come():
    states = FileStates()
    for file_no in (4, 5, 7, 3, 6):
        states.add(file_no, state(file_no * 10))
    assert states.rising == range(3, 8)
    assert states.newest_before(states.rising, position(45)) == (4, state(40))
    assert states.newest_before(states.rising, position(99)) == (7, state(70))
    assert states.newest_before(states.rising, position(29)) is None
    states.forget(5)
    assert states.rising == range(6, 8)
    assert states.get(4) == state(40)
    states.add(5, state(50))
    assert states.rising == range(3, 8)


def test_where_a_number_falls_a_range_ends_and_the_newer_one_counts():
    states = FileStates()
    for file_no, number in ((0, 10), (1, 100), (2, 20), (3, 30)):
        states.add(file_no, state(number))
    assert states.rising == range(2, 4)
    states.add(1, state(100))
    assert states.rising == range(2, 4)
    states.add(4, state(5))
    assert states.rising == range(4, 5)


def test_so_much_is_kept(monkeypatch):
    monkeypatch.setattr(file_states, "PAIRS_MAX", 4)
    states = FileStates()
    for file_no in (9, 8, 7):
        states.add(file_no, state(file_no))
    assert [states.get(file_no) for file_no in (9, 8, 7)] == [state(9), state(8), None]
    assert states.rising == range(8, 10)
    states.forget(9)
    states.add(7, state(7))
    assert states.get(7) == state(7)


def test_large_states_are_kept_and_not_compared(monkeypatch):
    monkeypatch.setattr(file_states, "RISING_PAIRS_MAX", 1)
    states = FileStates()
    large = BinlogState([Gtid(0, 1, 9), Gtid(0, 2, 9)])
    states.add(1, state(8))
    states.add(2, large)
    assert states.get(2) == large
    assert states.rising == range(2, 3)
