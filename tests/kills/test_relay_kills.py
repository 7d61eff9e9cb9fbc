"""A few rounds of kill -9 of a relay in each mode; scripts/kill-rounds runs many."""

import pytest

from .relay_rounds import RelayRounds

pytestmark = [pytest.mark.live, pytest.mark.slow]

ROUNDS = 3  # in each mode


def test_a_relay_that_is_killed_loses_and_doubles_nothing(rig, mariadb_10, mariadb_11):
    rounds = RelayRounds(rig, mariadb_10, mariadb_11, modes=[0, 1, 2], seed=1)
    with rounds.load():
        for _ in range(3 * ROUNDS):
            rounds.run_round()
    assert rounds.counts["groups stored and read"] >= rounds.counts["groups written"] > ROUNDS
