"""One run: a plan drawn from a seed, carried out step by step, and made shorter when it fails."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from ..faults.sim_disk import PowerLost
from . import administration, aimed_losses, disk_steps  # noqa: F401 (their steps enter the table)
from .steps import STEPS, WEIGHTS
from .world import World, disk_may_fail

STEPS_MIN = 500
CRASHES_MIN = 3
SHRINK_RUNS_MAX = 400


class Step(NamedTuple):
    """
    One step of a plan.

    Attributes:
        number: its place in the plan that was drawn.
        name: of the action.
        seed: of what the action draws.
    """

    number: int
    name: str
    seed: int


@dataclass
class Outcome:
    """
    What became of a run.

    Attributes:
        seed: of the run.
        plan: the steps.
        counts: crashes, faults, openings, crash points.
        story: one line for each step that was begun.
        failure: the last line of the error; None: all is well.
        trace: the whole of it.
    """

    seed: int
    plan: list[Step]
    counts: Counter[str]
    story: list[str] = field(default_factory=list)
    failure: str | None = None
    trace: str = ""


def draw_plan(seed: int, steps: int) -> list[Step]:
    """Return the steps of a seed."""
    rng = random.Random(seed)
    names = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=steps)
    for part in range(CRASHES_MIN):
        at = rng.randrange(part * steps // CRASHES_MIN, (part + 1) * steps // CRASHES_MIN)
        names[at - at % 2 : at - at % 2 + 2] = ["lose power soon"] * 2  # the second strikes at once
    return [Step(number, name, rng.getrandbits(32)) for number, name in enumerate(names)]


def run_plan(seed: int, plan: list[Step]) -> Outcome:
    """Carry a plan out; whatever goes wrong is in the outcome."""
    outcome = Outcome(seed, plan, Counter())
    world: World | None = None
    try:
        world = World(random.Random(seed))
        outcome.counts = world.counts
        for step in plan:
            take_step(world, step, outcome.story)
        world.heal()
        world.disk.crash_at = None
        world.restart(world.options)
        world.store.close()
    except Exception as error:  # noqa: BLE001 - a run never fails otherwise than by its outcome
        outcome.failure = f"{type(error).__name__}: {error}"
        outcome.trace = traceback.format_exc()
    if world is not None:
        outcome.counts += Counter({f"fault {n}": c for n, c in world.disk.strikes.items()})
    return outcome


def take_step(world: World, step: Step, story: list[str]) -> None:
    world.said = ""
    story.append(f"{step.number:5} {step.name}")
    try:
        with disk_may_fail(world):
            STEPS[step.name](world, random.Random(step.seed))
            world.note_durable()
    except PowerLost as lost:
        world.lose_power(lost)
        world.said += " -> power lost"
    story[-1] += f" {world.said}"


def run_seed(seed: int, steps: int = STEPS_MIN) -> Outcome:
    """Draw the plan of a seed and carry it out."""
    return run_plan(seed, draw_plan(seed, steps))


def shrink(failed: Outcome) -> Outcome:
    """Leave steps out while the same failure comes; return the shortest run found."""
    kind = failure_kind(failed)
    best = run_plan(failed.seed, failed.plan[: len(failed.story)])
    if failure_kind(best) != kind:
        return failed
    runs, size = 0, max(len(best.plan) // 2, 1)
    while runs < SHRINK_RUNS_MAX:
        at, before = 0, len(best.plan)
        while at < len(best.plan) and runs < SHRINK_RUNS_MAX:
            runs += 1
            trial = run_plan(best.seed, best.plan[:at] + best.plan[at + size :])
            if failure_kind(trial) == kind:
                best = trial
            else:
                at += size
        if size == 1 and len(best.plan) == before:
            break
        size = max(size // 2, 1)
    return best


def failure_kind(outcome: Outcome) -> str | None:
    """Return what went wrong without the names and numbers in it."""
    if outcome.failure is None:
        return None
    return "".join(letter for letter in outcome.failure if not letter.isdigit())[:40]
