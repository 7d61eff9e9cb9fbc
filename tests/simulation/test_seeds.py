"""A store under power loss, failures, lies and administration, by seed."""

import pytest

from ibb.storage import Store

from ..faults.crash_points import name_crash_point
from ..faults.sim_disk import PowerLost, SimDisk, SimFile
from .aimed_losses import PREFIX, SCENES
from .run import CRASHES_MIN, STEPS_MIN, Step, draw_plan, run_plan, run_seed, shrink
from .steps import STEPS

SEEDS = 300
AIM_SEEDS = 20


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_no_promise_is_broken(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.failure is None, f"scripts/simulate --seeds {seed}\n{outcome.trace}"
    assert len(outcome.story) == STEPS_MIN
    assert outcome.counts["crashes"] >= CRASHES_MIN


def test_a_seed_repeats() -> None:
    first, second = run_seed(7), run_seed(7)
    assert (first.story, first.counts) == (second.story, second.counts)


def test_a_broken_store_is_noticed_and_its_story_made_short(monkeypatch) -> None:
    """A store that forgets to sync its log is found out by a step or two."""
    monkeypatch.setattr(SimFile, "sync", lambda _: None)
    seed = next(seed for seed in range(1, 50) if run_seed(seed).failure is not None)
    short = shrink(run_seed(seed))
    assert short.failure is not None
    assert len(short.plan) < 20


def test_every_step_is_drawn() -> None:
    drawn = {step.name for seed in range(1, SEEDS + 1) for step in draw_plan(seed, STEPS_MIN)}
    assert drawn == set(STEPS)


@pytest.mark.parametrize("point", [point for points in SCENES.values() for point in points])
def test_an_aim_is_reached(point: str) -> None:
    """Some seed or other loses its power there, and comes up again."""
    for seed in range(1, AIM_SEEDS + 1):
        plan = [Step(0, "publish one", seed), Step(1, f"{PREFIX}{point}", seed)]
        outcome = run_plan(seed, plan)
        assert outcome.failure is None, outcome.trace
        if outcome.counts[f"at {point}"]:
            return
    raise AssertionError(f"no power was lost at {point}")


def test_a_crash_point_has_a_name() -> None:
    disk = SimDisk()
    disk.crash_at = 8
    with pytest.raises(PowerLost) as lost:
        Store.open("/s", disk=disk)
    assert name_crash_point(lost.tb) == "opening: redo preparation"


def test_an_empty_plan_is_fine() -> None:
    assert run_plan(1, []).failure is None
