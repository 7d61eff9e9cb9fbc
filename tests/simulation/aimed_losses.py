"""
Power losses at a place by name: one step for each, so that none is left to chance.

A step arms an `Aim` and does what leads there. Places in an opening are reached by taking the
power first; those that only an interrupted RESET MASTER leads to, by an aim behind another.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ..faults.crash_points import Aim
from ..faults.sim_disk import PowerLost
from . import administration, disk_steps  # noqa: F401 (their steps are used here)
from .model import Item, Kind
from .open_group import OpenGroup
from .steps import STEPS, WEIGHTS, publish, text
from .world import World

PREFIX = "lose power at "  # in the name of a step
WEIGHT = 0.02  # of each step
HARD_TO_REACH = ("checkpoint: partial page flush", "opening: partial page flush",
                 "take-over: truncate", "take-over: page flush")  # fmt: skip
SEGMENT_GROUPS_MAX = 80  # enough to fill a segment of the redo log
FILE_GROUPS_MAX = 80  # enough to fill a file
ROLLED_BACK_BYTES = 10_000
LOG_END_BYTES = 30_000  # of a segment of the redo log; more than a group given up takes
SWITCHES_MAX = 60  # enough to fill that
TOTAL_SIZE_LOW = 1  # byte of all files: none stays that need not
RESET_STARTED = ("RESET: reset delete", "RESET: redo preparation", "RESET: file create")


def aim(world: World, rng: random.Random, *points: str) -> None:
    """Take the power at the first place, and at the later ones in the openings behind it."""
    aims = [Aim(point, rng.choice((1, 1, 1, 2, 3))) for point in points]
    world.disk.watch, world.aims = aims[0], aims[1:]


def publish_some(world: World, rng: random.Random, point: str) -> None:
    leave_unsynced(world, rng)
    aim(world, rng, point)
    for _ in range(4):
        STEPS["publish one"](world, rng)
    world.store.sync()
    world.model.all_durable()


def leave_unsynced(world: World, rng: random.Random) -> None:
    """Publish what nobody waits for: its pages cannot be written yet."""
    for _ in range(3):
        group = OpenGroup(world.store.begin(), world.sequence)
        group.add(text(world, rng) + "u" * 1000, rng, statement=False)
        publish(world, rng, group, wait=False)


def flush(world: World, rng: random.Random, point: str) -> None:
    STEPS["switch file"](world, rng)
    leave_unsynced(world, rng)
    aim(world, rng, point)
    STEPS["switch file"](world, rng)  # the file made in advance is used up by the first
    STEPS["switch file"](world, rng)


def leave_file(world: World, rng: random.Random, point: str) -> None:
    aim(world, rng, point)
    leave_file_for_next(world, rng)


def leave_file_for_next(world: World, rng: random.Random) -> None:
    """Go over to another file and let the background work be done, twice."""
    STEPS["switch file"](world, rng)
    world.store._engine.settle()
    STEPS["switch file"](world, rng)
    world.store._engine.settle()


def fill_file(world: World, rng: random.Random, point: str) -> None:
    """Publish until the writer goes on in the next file by itself."""
    aim(world, rng, point)
    file_no = world.written_end().file_no
    for _ in range(FILE_GROUPS_MAX):
        leave_unsynced(world, rng)
        if world.written_end().file_no > file_no:
            break
    STEPS["publish one"](world, rng)


def reset(world: World, rng: random.Random, point: str) -> None:
    end_transactions(world)
    STEPS["renew lease"](world, rng)
    leave_unsynced(world, rng)
    aim(world, rng, point)
    STEPS["reset"](world, rng)


def reset_then_open(world: World, rng: random.Random, point: str) -> None:
    end_transactions(world)
    aim(world, rng, rng.choice(RESET_STARTED), point)
    STEPS["reset"](world, rng)


def end_transactions(world: World) -> None:
    """Give up what is in the way of RESET MASTER."""
    while world.groups:
        world.groups.pop().writer.rollback()
    for name in sorted(world.model.prepared(len(world.model.items))):
        with world.sending(Item(Kind.ROLLBACK, world.written_end(), xid=name)):
            world.store.rollback_prepared(name)


def fill_log(world: World, rng: random.Random, point: str) -> None:
    """Write pieces of groups that are given up, until the redo log goes to its other segment."""
    aim(world, rng, point)
    sequence = world.store._engine._redo._sequence
    for _ in range(SEGMENT_GROUPS_MAX):
        roll_back(world, rng, ROLLED_BACK_BYTES)
        if world.store._engine._redo._sequence != sequence:
            break
    STEPS["publish one"](world, rng)


def flush_at_log_end(world: World, rng: random.Random, point: str) -> None:
    """End files until what that takes does not fit in the segment of the redo log any more."""
    redo = world.store._engine._redo
    while redo.fits(LOG_END_BYTES):
        roll_back(world, rng, ROLLED_BACK_BYTES)
    aim(world, rng, point)
    sequence = redo._sequence
    for _ in range(SWITCHES_MAX):
        STEPS["switch file"](world, rng)
        if redo._sequence != sequence:
            break


def roll_back(world: World, rng: random.Random, size: int) -> None:
    """Write pieces of a group that is given up."""
    group = OpenGroup(world.store.begin(), world.sequence)
    group.add(text(world, rng) + "r" * size, rng, statement=False)
    group.writer.rollback()


def free_files(world: World, rng: random.Random) -> None:
    """Let nobody need a file, and have some that can go."""
    end_transactions(world)
    while world.followers:
        world.followers.pop().hold.release()
    while world.holds:
        world.holds.pop().release()
    while world.model.leases:
        STEPS["remove lease"](world, rng)
    for _ in range(3):
        STEPS["switch file"](world, rng)


def purge(world: World, rng: random.Random, point: str) -> None:
    free_files(world, rng)
    aim(world, rng, point)
    world.store.purge_to(world.store.files()[-1].name)


def purge_in_opening(world: World, rng: random.Random, point: str) -> None:
    """Leave the next file to be made, and files that go by themselves once it is there."""
    free_files(world, rng)
    world.options = replace(world.options, max_binlog_total_size=TOTAL_SIZE_LOW)
    world.disk.watch, world.aims = Aim("file create", 1), [Aim(point, rng.choice((1, 2)))]
    leave_file_for_next(world, rng)


def change_lease(world: World, rng: random.Random, point: str) -> None:
    aim(world, rng, point)
    STEPS["renew lease"](world, rng)


def describe_format(world: World, rng: random.Random, point: str) -> None:
    aim(world, rng, point)
    STEPS["format description"](world, rng)


def copy(world: World, rng: random.Random, point: str) -> None:
    aim(world, rng, point)
    STEPS["backup"](world, rng)


def close(world: World, rng: random.Random, point: str) -> None:
    leave_unsynced(world, rng)
    aim(world, rng, point)
    world.restart(world.options)


def open_again(world: World, rng: random.Random, point: str) -> None:
    leave_unsynced(world, rng)
    world.store.sync()
    world.model.all_durable()
    leave_unsynced(world, rng)
    if rng.random() < 0.5:
        world.disk.watch = Aim(point, 1)
        world.end_process()
    else:
        world.aims = [Aim(point, rng.choice((1, 2))), Aim(point, 1)]
        raise PowerLost


def take_over(world: World, rng: random.Random, point: str) -> None:
    aim(world, rng, point)
    world.restart(world.options, without_log=True)


Scene = Callable[[World, random.Random, str], None]

SCENES: dict[Scene, tuple[str, ...]] = {
    publish_some: ("redo append", "page flush"),
    flush: ("FLUSH: redo append", "FLUSH: page flush", "FLUSH: truncate", "FLUSH: file create",
            "FLUSH: file close"),
    leave_file: ("file close", "file create"),
    fill_file: ("switch: file create", "switch: file close", "switch: page flush",
                "switch: redo append"),
    reset: ("RESET: redo append", "RESET: reset marker", "RESET: reset delete",
            "RESET: recovery read", "RESET: redo preparation", "RESET: file create",
            "RESET: redo header", "RESET: page flush", "RESET: partial page flush",
            "RESET: checkpoint sync", "RESET: reset marker removed", "RESET: lease file"),
    reset_then_open: ("opening: reset delete", "opening: file create", "opening: page flush",
                      "opening: partial page flush", "opening: redo append",
                      "opening: reset marker removed"),
    fill_log: ("checkpoint: redo append", "checkpoint: page flush", "checkpoint: checkpoint sync",
               "checkpoint: partial page flush", "redo header"),
    flush_at_log_end: ("FLUSH: redo header",),
    purge: ("purge unlink",),
    purge_in_opening: ("opening: purge unlink",),
    change_lease: ("lease file",),
    describe_format: ("sidecar",),
    copy: ("backup",),
    close: ("closing: redo append", "closing: page flush", "closing: partial page flush",
            "closing: checkpoint sync", "closing: redo header"),
    open_again: ("opening: read", "opening: recovery read", "opening: recovery file change",
                 "opening: recovery page write", "opening: recovery clear", "opening: look",
                 "opening: redo preparation", "opening: redo header", "opening: checkpoint sync",
                 "opening: redo append", "opening: sidecar"),
    take_over: ("take-over: file create", "take-over: redo append", "take-over: page flush",
                "take-over: truncate"),
}  # fmt: skip


def _enter(scene: Scene, point: str) -> None:
    def action(world: World, rng: random.Random) -> None:
        world.heal()
        world.disk.crash_at = None
        scene(world, rng, point)
        world.disk.watch, world.aims = None, []

    STEPS[f"{PREFIX}{point}"] = action
    WEIGHTS[f"{PREFIX}{point}"] = WEIGHT * (2 if point in HARD_TO_REACH else 1)


for _scene, _points in SCENES.items():
    for _point in _points:
        _enter(_scene, _point)
