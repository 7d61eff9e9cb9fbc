import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition

NOT_FOUND = (
    "Error: connecting slave requested to start from GTID {}, which is not in the master's binlog"
)
DIVERGED = NOT_FOUND + (
    ". Since the master's binlog contains GTIDs with higher sequence numbers, it probably means "
    "that the slave has diverged due to executing extra erroneous transactions"
)
HOLE = (
    "The binlog on the master is missing the GTID {} requested by the slave (even though both a "
    "prior and a subsequent sequence number does exist), and GTID strict mode is enabled"
)


def state(text):
    return BinlogState.parse(text)


def position(text):
    return GtidPosition.parse(text)


def gtids(text):
    return [Gtid.parse(each) for each in text.split()]


def sent(dump_filter, history):
    """Return what a client gets of *history*, up to where the filter says it is finished."""
    out = []
    for gtid in history:
        if dump_filter.finished:
            break
        if dump_filter.wants(gtid) is Verdict.SEND:
            out.append(gtid)
            dump_filter.after(gtid)
    return out


def message(caught):
    assert (caught.value.code, caught.value.sqlstate) == (1236, "HY000")
    return caught.value.message


@pytest.mark.parametrize(
    ("history", "wanted", "empty"),
    [
        ("0-1-5", "", set()),
        ("0-1-5", "0-1-5", set()),
        ("0-1-5,0-2-6", "0-1-3", set()),
        ("0-1-5", "0-1-5,7-1-1", {7}),
        ("", "0-1-5,7-1-1", {0, 7}),
    ],
)
def test_positions_that_can_be_served(history, wanted, empty):
    assert check_position(state(history), position(wanted)) == empty


@pytest.mark.parametrize(
    ("history", "wanted", "culprit", "text"),
    [
        ("0-1-5", "0-1-6", "0-1-6", NOT_FOUND),
        ("0-1-5", "0-2-6", "0-2-6", NOT_FOUND),
        ("0-1-5", "0-2-5", "0-2-5", DIVERGED),
        ("0-1-5", "0-2-3", "0-2-3", DIVERGED),
        ("0-1-5,0-2-4", "0-1-6", "0-1-6", NOT_FOUND),
        ("0-2-4,0-1-9", "0-2-6", "0-2-6", DIVERGED),
        ("0-1-5,7-101-4294967296", "0-1-4,7-55-3", "7-55-3", DIVERGED),
    ],
)
def test_positions_that_cannot_be_served(history, wanted, culprit, text):
    with pytest.raises(SqlError) as caught:
        check_position(state(history), position(wanted))
    assert message(caught) == text.format(culprit)


def test_too_new_position_passes_for_a_client_that_ignores_duplicates():
    check_position(state("0-1-5"), position("0-2-6"), ignore_duplicates=True)
    with pytest.raises(SqlError):
        check_position(state("0-1-5"), position("0-2-5"), ignore_duplicates=True)


@pytest.mark.parametrize(("until", "passes"), [("7-1-1", True), ("0-1-5", True), ("0-1-6", False)])
def test_position_of_a_domain_that_is_at_its_until_passes(until, passes):
    def check():
        return check_position(state("0-1-5"), position("0-2-9"), until=position(until))

    if passes:
        assert check() == frozenset()
    else:
        with pytest.raises(SqlError):
            check()


def test_empty_position_gets_everything():
    history = gtids("0-1-1 7-1-1 0-2-2")
    dump_filter = DumpFilter(position(""), state(""))
    assert not dump_filter.skipping
    assert sent(dump_filter, history) == history
    assert not dump_filter.finished


def test_groups_up_to_the_position_are_skipped_domain_by_domain():
    history = gtids("0-1-1 7-1-1 0-1-2 3-1-1 0-1-3 7-1-2 7-1-3")
    dump_filter = DumpFilter(position("0-1-2,7-1-2"), state(""))
    skipping = []
    out = []
    for gtid in history:
        if dump_filter.wants(gtid) is Verdict.SEND:
            out.append(gtid)
        skipping.append(dump_filter.skipping)
    assert out == gtids("3-1-1 0-1-3 7-1-3")
    assert skipping == [True, True, True, True, True, False, False]


def test_other_servers_are_skipped_until_the_position_is_reached():
    history = gtids("0-1-4 0-2-5 0-2-6 0-1-5 0-2-7")
    assert sent(DumpFilter(position("0-1-5"), state("")), history) == gtids("0-2-7")


def test_domain_that_is_there_in_the_found_state_is_not_skipped():
    dump_filter = DumpFilter(position("0-1-5,7-1-1"), state("7-1-1,0-1-3"))
    assert sent(dump_filter, gtids("7-1-2 0-1-5 0-1-6")) == gtids("7-1-2 0-1-6")


def test_entry_of_another_server_in_the_found_state_does_not_count():
    dump_filter = DumpFilter(position("0-1-5"), state("0-2-5"))
    assert dump_filter.skipping


def test_position_given_is_not_changed():
    given_position = position("0-1-1")
    sent(DumpFilter(given_position, state("")), gtids("0-1-1 0-1-2"))
    assert given_position == position("0-1-1")


def test_hole_starts_at_the_next_number_unless_strict():
    history = gtids("0-1-3 0-1-6 0-1-7")
    assert sent(DumpFilter(position("0-1-5"), state("")), history) == gtids("0-1-6 0-1-7")
    strict = DumpFilter(position("0-1-5"), state(""), strict=True)
    assert strict.wants(Gtid(0, 1, 3)) is Verdict.SKIP
    with pytest.raises(SqlError) as caught:
        strict.wants(Gtid(0, 1, 6))
    assert message(caught) == HOLE.format("0-1-5")


def test_strict_mode_is_content_where_the_group_is_there():
    strict = DumpFilter(position("0-1-5"), state(""), strict=True)
    assert sent(strict, gtids("0-1-4 0-1-5 0-1-9")) == gtids("0-1-9")


def test_until_stops_after_its_groups():
    history = gtids("0-1-1 7-1-1 0-1-2 3-1-1 0-1-3 7-1-2 7-1-3")
    dump_filter = DumpFilter(position(""), state(""), position("0-1-2,7-1-2"))
    assert sent(dump_filter, history) == gtids("0-1-1 7-1-1 0-1-2 7-1-2")
    assert dump_filter.finished


def test_until_before_stops_in_front_of_its_groups():
    history = gtids("0-1-1 7-1-1 0-1-2 0-1-3 7-1-2 7-1-3")
    dump_filter = DumpFilter(position(""), state(""), position("0-1-2,7-1-2"), until_before=True)
    assert sent(dump_filter, history) == gtids("0-1-1 7-1-1")
    assert dump_filter.finished


def test_until_in_a_hole_leaves_the_next_group_out():
    dump_filter = DumpFilter(position(""), state(""), position("0-1-2"))
    assert sent(dump_filter, gtids("0-1-1 0-1-3 0-1-4")) == gtids("0-1-1")
    assert dump_filter.finished


def test_until_of_another_server_is_waited_for():
    dump_filter = DumpFilter(position(""), state(""), position("0-2-3"))
    history = gtids("0-1-1 0-1-4 0-2-3 0-2-5")
    assert sent(dump_filter, history) == gtids("0-1-1 0-1-4 0-2-3")


def test_until_is_finished_only_when_the_last_group_has_been_sent():
    dump_filter = DumpFilter(position(""), state(""), position("0-1-1"))
    assert dump_filter.wants(Gtid(0, 1, 1)) is Verdict.SEND
    assert not dump_filter.finished
    dump_filter.after(Gtid(0, 1, 1))
    assert dump_filter.finished


@pytest.mark.parametrize("until", ["", "0-1-4", "0-1-4,7-1-1"])
def test_until_that_is_reached_at_the_start_finishes_at_once(until):
    assert DumpFilter(position("0-1-4"), state("7-1-3,0-1-4"), position(until)).finished


def test_until_behind_the_position_is_met_while_skipping():
    dump_filter = DumpFilter(position("0-1-4"), state("0-1-1"), position("0-1-3"))
    assert sent(dump_filter, gtids("0-1-2 0-1-3 0-1-4 0-1-5")) == []
    assert dump_filter.finished


def test_domain_that_was_empty_may_begin_with_what_the_client_has():
    now = state("7-2-5")
    dump_filter = DumpFilter(
        position("7-2-5"), state(""), empty_domains=frozenset([7]), state_now=lambda: now
    )
    assert sent(dump_filter, gtids("0-1-1 7-1-4 7-2-5 7-2-6")) == gtids("0-1-1 7-2-6")


def test_domain_that_was_empty_and_begins_without_the_position_gets_1236():
    now = state("0-1-1,7-1-4")
    dump_filter = DumpFilter(
        position("7-2-5"), state(""), empty_domains=frozenset([7]), state_now=lambda: now
    )
    assert dump_filter.wants(Gtid(0, 1, 1)) is Verdict.SEND
    with pytest.raises(SqlError) as caught:
        dump_filter.wants(Gtid(7, 1, 4))
    assert message(caught) == NOT_FOUND.format("7-2-5")


def test_domain_that_was_empty_is_checked_once():
    answers = [state("7-2-5")]
    dump_filter = DumpFilter(
        position("7-2-5"), state(""), empty_domains=frozenset([7]), state_now=answers.pop
    )
    assert sent(dump_filter, gtids("7-1-4 7-1-5 7-2-6")) == gtids("7-2-6")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), max_size=14),
    st.data(),
)
def test_a_client_gets_just_what_it_lacks(pairs, data):
    """From any place before the position, the rest of every domain and nothing twice."""
    numbers: dict[int, int] = {}
    history = []
    for domain, server in pairs:
        numbers[domain] = numbers.get(domain, 0) + 1
        history.append(Gtid(domain, server, numbers[domain]))
    have = data.draw(st.integers(0, len(history)))
    start = BinlogState(history[:have]).position()
    check_position(BinlogState(history), start)
    found = data.draw(st.integers(0, have))
    found_state = BinlogState(history[:found])
    dump_filter = DumpFilter(start, found_state, strict=True)
    assert sent(dump_filter, history[found:]) == history[have:]
    end = data.draw(st.integers(have, len(history)))
    until = BinlogState(history[:end]).position()
    stopping = DumpFilter(start, found_state, until)
    assert sent(stopping, history[found:]) == history[have:end]
    assert stopping.finished
