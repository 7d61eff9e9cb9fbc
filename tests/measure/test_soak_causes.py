"""Words in logs are excused from before a start or end until behind it, however long it takes."""

import pytest

from .soak_causes import CAUSED_SECONDS, CLOCK_SECONDS, Causes


def test_a_long_restart_excuses_all_of_itself_and_nothing_else():
    now = 1000.0
    causes = Causes(lambda: now)
    with causes.cause():
        now += 5 * CAUSED_SECONDS
        assert causes.explain(now)
    ended = now
    for at, is_explained in (
        (1000.0 - CLOCK_SECONDS, True),
        (1000.0 - CLOCK_SECONDS - 1, False),
        (1000.0 + 3 * CAUSED_SECONDS, True),
        (ended + CAUSED_SECONDS, True),
        (ended + CAUSED_SECONDS + 1, False),
    ):
        assert causes.explain(at) is is_explained, at


def test_a_restart_that_fails_has_an_end():
    now = 0.0
    causes = Causes(lambda: now)
    with pytest.raises(ArithmeticError), causes.cause():
        raise ArithmeticError
    now = CAUSED_SECONDS + 1
    assert not causes.explain(now)
