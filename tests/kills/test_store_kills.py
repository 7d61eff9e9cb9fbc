"""A few rounds of kill -9 in each mode; scripts/kill-rounds runs many."""

import pytest

from ibb.demo.installation import Installation

from .store_rounds import StoreRounds

ROUNDS = 6


@pytest.mark.live
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_store_that_is_killed_keeps_what_it_promised(
    tmp_path, mode, mariadb_10: Installation
) -> None:
    rounds = StoreRounds(tmp_path, mode, seed=mode, tool=mariadb_10)
    for _ in range(ROUNDS):
        rounds.run_round()
    rounds.finish()
    counts = rounds.history.counts
    assert counts["acknowledged"] > ROUNDS
    assert mode == 0 or not counts["lost"]
    assert counts["groups read"] > 0
    assert counts["looked at by verify"] > 0
