"""
The table of steps, and what programs do to a store: publish, prepare, read.

A step is a function of the world and a generator of random numbers of its own, so that leaving
other steps out does not change what it draws. What it cannot do now it leaves.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage.errors import DiskError, StoreFailed, StoreFull
from ibb.storage.gtid_search import TooOld
from ibb.storage.position import Position
from ibb.storage.record import Xid

from ..storage.events import query, xid
from ..storage.runs import run_of
from .follower import Follower
from .model import Item, Kind, WrongError
from .open_group import GTID_FLAGS, OpenGroup
from .reading import read_all
from .world import World

Action = Callable[[World, random.Random], None]

STEPS: dict[str, Action] = {}
WEIGHTS: dict[str, float] = {}

GROUPS_MAX = 6  # open at a time
FOLLOWERS_MAX = 4
BULK_BYTES = 10_000
EVENT_SIZES = (0, 10, 60, 250, 480, 1200, 4000)


def step(weight: float) -> Callable[[Action], Action]:
    """Enter a step; *weight* is how often it is drawn."""

    def enter(action: Action) -> Action:
        name = action.__name__.replace("_", " ")
        STEPS[name] = action
        WEIGHTS[name] = weight
        return action

    return enter


def new_gtid(world: World, rng: random.Random) -> Gtid:
    world.sequence += 1
    return Gtid(rng.randrange(3), rng.randrange(1, 3), world.sequence)


def text(world: World, rng: random.Random) -> str:
    world.sequence += 1
    return f"{world.sequence} " + "abcdefghij"[rng.randrange(10)] * rng.choice(EVENT_SIZES)


def refuse(world: World, group: OpenGroup) -> None:
    """The store has no room, or the disk failed: give the group up."""
    if group in world.groups:
        world.groups.remove(group)
    group.writer.rollback()


def publish(world: World, rng: random.Random, group: OpenGroup, *, wait: bool) -> None:
    """Finish a group and commit it."""
    mode = world.options.flush_log_at_commit
    synced_at = world.store._engine._log_syncer._synced_at
    before = world.written_end()
    gtid = group.gtid or new_gtid(world, rng)
    world.said = f"{group.number} as {gtid} wait={wait}"
    try:
        group.finish()
        item = Item(Kind.GROUP, world.written_end(), gtid, group.data)
        with world.sending(item):
            position = group.writer.commit(gtid, wait=False)
        if Position(position.file_no, position.offset) != item.end:
            raise WrongError(f"commit of {gtid} answers {position}, wrote up to {item.end}")
        if wait:
            world.store._engine.wait_for(position.lsn)
    except (StoreFull, DiskError, StoreFailed):
        refuse(world, group)
        raise
    if group in world.groups:
        world.groups.remove(group)
    if wait and mode == 1:
        world.model.all_durable()
    elif wait and mode == 2:
        world.model.kept = len(world.model.items)
    due = synced_at + world.options.flush_log_interval <= world.clock.now()
    if due and mode != 1 and world.store.end() < before:
        raise WrongError(f"the log was not synced for {world.options.flush_log_interval} s")


@step(7)
def begin(world: World, rng: random.Random) -> None:
    if len(world.groups) < GROUPS_MAX:
        world.sequence += 1
        world.said = f"{world.sequence}"
        world.groups.append(OpenGroup(world.store.begin(), world.sequence))


@step(24)
def write(world: World, rng: random.Random) -> None:
    if world.groups:
        group = rng.choice(world.groups)
        world.said = f"{group.number}"
        statement = rng.random() < 0.25
        try:
            group.add(text(world, rng), rng, statement=statement)
        except (StoreFull, DiskError, StoreFailed):
            refuse(world, group)
            raise


@step(3)
def savepoint(world: World, rng: random.Random) -> None:
    if world.groups:
        group = rng.choice(world.groups)
        world.said = f"{group.number}"
        try:
            group.save()
        except (StoreFull, DiskError, StoreFailed):
            refuse(world, group)
            raise


@step(3)
def rollback_to(world: World, rng: random.Random) -> None:
    groups = [group for group in world.groups if group.marks]
    if groups:
        group = rng.choice(groups)
        world.said = f"{group.number}"
        group.go_back(rng)


@step(16)
def commit(world: World, rng: random.Random) -> None:
    if world.groups:
        group = rng.choice(world.groups)
        publish(world, rng, group, wait=rng.random() < 0.7)


@step(16)
def publish_one(world: World, rng: random.Random) -> None:
    gtid = new_gtid(world, rng)
    world.said = f"{gtid.seq}"
    with_event = rng.random() < 0.3
    group = OpenGroup(world.store.begin(), gtid.seq, gtid if with_event else None)
    try:
        group.add(text(world, rng), rng, statement=False)
    except (StoreFull, DiskError, StoreFailed):
        refuse(world, group)
        raise
    publish(world, rng, group, wait=rng.random() < 0.7)


@step(6)
def commit_run(world: World, rng: random.Random) -> None:
    """Publish whole groups as a relay does, many at a time."""
    groups = []
    for _ in range(rng.choice((1, 2, 3, 10, 40))):
        gtid = new_gtid(world, rng)
        groups.append((gtid, query(text(world, rng)) + xid(7)))
    run = run_of(
        (GtidEvent(gtid, 5, GTID_FLAGS).encode() + data for gtid, data in groups),
        world.store.piece_size - 1,
    )
    world.said = f"{run.count} groups from {groups[0][0]} on"
    groups = groups[: run.count]
    before = world.written_end()
    items = [Item(Kind.GROUP, before, gtid, data) for gtid, data in groups]
    if not items:
        return
    for item in items:
        world.model.send(item)
    try:
        position = world.store.commit_run(run)
    except (StoreFull, DiskError, StoreFailed):
        if not world.has_failed:
            written = world.store._engine.writer.state_without(frozenset())
            world.take_back(items, len([gtid for gtid, _ in groups if is_in(written, gtid)]))
        raise
    world.take_back(items, len(items))
    if Position(position.file_no, position.offset) != items[-1].end:
        raise WrongError(f"commit of {groups[-1][0]} answers {position}, not {items[-1].end}")
    if rng.random() < 0.7:
        world.store.wait_for(position)
        if world.options.flush_log_at_commit == 1:
            world.model.all_durable()
        elif world.options.flush_log_at_commit == 2:
            world.model.kept = len(world.model.items)


def is_in(state: list[Gtid], gtid: Gtid) -> bool:
    """Tell whether a state has a number, where all numbers ascend."""
    return any(known[:2] == gtid[:2] and known.seq >= gtid.seq for known in state)


@step(0.4)
def publish_many(world: World, rng: random.Random) -> None:
    """Write so much that the log goes over to its other segment now and then."""
    for _ in range(rng.choice((5, 20))):
        group = OpenGroup(world.store.begin(), world.sequence)
        try:
            group.add(text(world, rng) + "m" * BULK_BYTES, rng, statement=False)
        except (StoreFull, DiskError, StoreFailed):
            refuse(world, group)
            raise
        publish(world, rng, group, wait=rng.random() < 0.3)


@step(2)
def rollback(world: World, rng: random.Random) -> None:
    if world.groups:
        group = world.groups.pop(rng.randrange(len(world.groups)))
        world.said = f"{group.number}"
        group.writer.rollback()


@step(3)
def prepare(world: World, rng: random.Random) -> None:
    groups = [
        group
        for group in world.groups
        if group.transaction and not group.statement and group.gtid is None
    ]
    if not groups:
        return
    group = rng.choice(groups)
    world.sequence += 1
    item = Item(Kind.PREPARE, world.written_end(), xid=Xid(1, b"%d" % world.sequence, b"b"))
    world.said = f"{item.xid}"
    try:
        group.finish()
        item.data = group.data
        with world.sending(item):
            group.writer.prepare(item.xid)
    except (StoreFull, DiskError, StoreFailed):
        refuse(world, group)
        raise
    world.groups.remove(group)
    if world.options.flush_log_at_commit == 1:
        world.model.all_durable()


@step(3)
def commit_prepared(world: World, rng: random.Random) -> None:
    prepared = world.model.prepared(len(world.model.items))
    if prepared:
        name = rng.choice(sorted(prepared))
        gtid = new_gtid(world, rng)
        world.said = f"{name} as {gtid}"
        event = GtidEvent(gtid, 5, GTID_FLAGS).encode() if rng.random() < 0.3 else None
        with world.sending(Item(Kind.GROUP, world.written_end(), gtid, prepared[name], name)):
            world.store.commit_prepared(name, gtid, gtid_event=event)
        if world.options.flush_log_at_commit == 1:
            world.model.all_durable()


@step(1)
def rollback_prepared(world: World, rng: random.Random) -> None:
    prepared = world.model.prepared(len(world.model.items))
    if prepared:
        name = rng.choice(sorted(prepared))
        world.said = f"{name}"
        with world.sending(Item(Kind.ROLLBACK, world.written_end(), xid=name)):
            world.store.rollback_prepared(name)
        if world.options.flush_log_at_commit == 1:
            world.model.all_durable()


@step(1)
def format_description(world: World, rng: random.Random) -> None:
    world.sequence += 1
    event = FormatDescription.default("11.8.2-MariaDB", world.sequence, 5).to_store()
    with world.sending(Item(Kind.FORMAT, world.written_end(), data=event)):
        world.store.write_format_description(event)


@step(3)
def sync(world: World, rng: random.Random) -> None:
    world.store.sync()
    world.model.all_durable()


@step(3)
def start_reader(world: World, rng: random.Random) -> None:
    world.store.sync()
    world.model.all_durable()
    count = rng.randrange(len(world.model.items) + 1)
    world.said = f"at item {count}, '{world.model.state(count)}'"
    try:
        follower = Follower(world.store, world.model, count)
    except TooOld:
        first = world.store.pages.first_file()
        is_there = world.model.first_left(first) <= count and rested(world, first, count)
        if is_there and not lacks_pieces(world, count):
            raise WrongError(f"item {count} is there, but its reader is too old") from None
        return
    world.followers.append(follower)
    if len(world.followers) > FOLLOWERS_MAX:
        world.followers.pop(0).hold.release()


def lacks_pieces(world: World, count: int) -> bool:
    """Tell whether a group behind item *count* has lost pieces to a purge."""
    return any(
        seen.data is None and seen.gtid is not None and world.model.index(seen.gtid) >= count
        for seen in read_all(world.store.pages)
    )


def rested(world: World, first: int, count: int) -> bool:
    """Tell whether item *count* surely lies behind the full state of the oldest file."""
    items = world.model.items
    return any(item.after.file_no > first for item in items[:count]) or (
        first == 0 and not len(world.model.base)
    )


@step(12)
def read(world: World, rng: random.Random) -> None:
    if world.followers:
        if rng.random() < 0.3:
            world.store.refresh()
            world.store._engine.check()  # after a failure there is no more for it
            if world.store.end() < world.written_end():
                raise WrongError("a reader at the end has not got what was written")
        world.note_durable()
        rng.choice(world.followers).read(rng.choice((1, 5, 100)))


@step(1)
def stop_reader(world: World, rng: random.Random) -> None:
    if world.followers:
        world.followers.pop(rng.randrange(len(world.followers))).hold.release()
