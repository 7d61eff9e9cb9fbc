"""What is known of files: bounded, and never more than was seen."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import file_states
from ibb.storage.file_states import FileStates

GTIDS = st.builds(Gtid, st.integers(0, 2), st.integers(1, 2), st.integers(1, 6))


def state(*numbers, server=1):
    return BinlogState(Gtid(0, server, number) for number in numbers)


def unknown(file_no):
    raise AssertionError(f"the state of file {file_no} is known")


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
    for number, found in ((45, (4, state(40))), (99, (7, state(70))), (29, None)):
        assert states.newest_before(states.rising, position(number), unknown) == found
    states.forget(5)
    assert states.rising == range(6, 8)
    assert states.get(4) == state(40)
    states.add(5, state(50))
    assert states.rising == range(3, 8)


def test_states_that_are_trusted_to_rise_are_read_where_they_are_compared():
    states, read = FileStates(), []

    def reading(file_no):
        read.append(file_no)
        return state(file_no * 10)

    def found(number, most):
        read.clear()
        found = states.newest_before(states.rising, position(number), reading)
        assert len(read) <= most
        return found

    assert not states.trust(range(1000))
    states.add(999, state(9990))
    assert states.trust(range(1000))
    assert found(9999, 0) == (999, state(9990))
    assert found(4555, 3) == (455, state(4550))
    assert found(3, 2) == (0, state(0))
    states.add(1000, state(10_000))
    assert states.rising == range(1001)
    before = states.rising
    states.forget(500)
    with pytest.raises(KeyError):
        states.newest_before(before, position(4900), reading)
    assert states.rising == range(501, 1001)
    assert not states.trust(range(1000))  # more is known by now
    assert states.rising == range(501, 1001)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=200), st.data())
def test_a_guess_that_is_off_costs_as_much_again_as_steps_of_half(steps, data):
    """Numbers rise by what they may: by one for many files, and by a lot in the next."""
    numbers = list(itertools.accumulate(data.draw(st.permutations([*steps, 10**9, 10**6]))))
    states, read = FileStates(), []
    states.add(len(numbers) - 1, state(numbers[-1]))
    if len(numbers) > 1:
        assert states.trust(range(len(numbers)))

    def reading(file_no):
        read.append(file_no)
        return state(numbers[file_no])

    wanted = data.draw(st.sampled_from(numbers)) + data.draw(st.integers(-1, 1))
    newest = max((no for no, number in enumerate(numbers) if number <= wanted), default=None)
    found = states.newest_before(states.rising, position(wanted), reading)
    assert (found and found[0]) == newest
    assert len(read) <= 3 * len(numbers).bit_length() + 2


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
