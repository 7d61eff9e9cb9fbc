"""Spreads, ratios and verdicts."""

import pytest

from ibb.bench.figures import (
    Figure,
    Sample,
    Spread,
    Verdict,
    ratio,
    ratio_at_most,
    value,
    value_at_most,
)


def figure(goal, ours, theirs=()):
    made = Figure("row", "speed", "MB/s", goal)
    for place, mine in enumerate(ours):
        made.add(Sample("speed", "MB/s", mine, theirs[place] if theirs else None, goal))
    return made


def test_a_spread_is_least_median_most():
    assert Spread.of([3.0, 1.0, 10.0]) == (1.0, 3.0, 10.0)
    assert Spread.of([1.0, 2.0]) == (1.0, 1.5, 2.0)
    assert Spread.of([]) is None


def test_ratios_are_taken_within_a_round():
    # Across rounds the medians would say 1: a machine that was slower for a while.
    assert figure(None, [10.0, 1.0, 4.0], [5.0, 0.5, 2.0]).ratios() == [2.0, 2.0, 2.0]
    assert figure(None, [10.0]).ratios() == []


@pytest.mark.parametrize(
    ("goal", "ours", "theirs", "verdict"),
    [
        (ratio(2), [4, 6, 1], [2, 2, 2], Verdict.MET),  # 2, 3, 0.5: the median counts
        (ratio(2), [4, 3, 1], [2, 2, 2], Verdict.SHORT),
        (ratio_at_most(0.5), [1], [2], Verdict.MET),
        (ratio_at_most(0.5), [1.1], [2], Verdict.SHORT),
        (ratio(2), [4], (), Verdict.NONE),  # nobody to compare with
        (value(300), [300], (), Verdict.MET),
        (value_at_most(0.9), [0.91], (), Verdict.SHORT),
        (None, [1], [1], Verdict.NONE),
    ],
)
def test_the_median_is_judged(goal, ours, theirs, verdict):
    assert figure(goal, ours, theirs).verdict() is verdict


def test_goals_are_written_as_the_table_shows_them():
    assert [str(goal) for goal in (ratio(1.4), ratio_at_most(0.6), value(300))] == [
        ">= 1.4 x",
        "<= 0.6 x",
        ">= 300",
    ]
