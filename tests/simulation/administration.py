"""What administrators do to a store: switch, reset, purge, leases, backups, restarts; and time."""

from __future__ import annotations

import contextlib
import random

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.errors import (
    DiskError,
    DomainInUse,
    LeaseError,
    StateTooLarge,
    StoreBusy,
    StoreFull,
    StoreNotEmpty,
    UnknownFile,
)
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.holds import HoldKind
from ibb.storage.leases import Lease
from ibb.storage.reset_marker import MARKER_NAME

from .model import Found, Item, Kind, WrongError, brief
from .reading import found_at_rest, read_all
from .steps import step
from .world import STORE, World, random_options

CROWD_DOMAIN = 10  # from here on are domains without groups: states that some files cannot hold
CROWDS = (40, 120, 300)
LEASE_NAMES = ("spark", "archive", "night")
HOLDS_MAX = 3
CRASH_AFTER_KILL = 0.4  # chance of a power loss while the store is opened again


@step(2)
def switch_file(world: World, rng: random.Random) -> None:
    with world.sending(Item(Kind.SWITCH, world.written_end())):
        world.store.switch_file()
    world.model.all_durable()


@step(1)
def delete_domain(world: World, rng: random.Random) -> None:
    crowd = sum(gtid.domain >= CROWD_DOMAIN for gtid in world.store.state().entries())
    domain = rng.randrange(3)
    if crowd and rng.random() < 0.5:
        domain = CROWD_DOMAIN + rng.randrange(crowd)
    world.said = f"{domain}"
    item = Item(Kind.SWITCH, world.written_end(), domains=frozenset({domain}))
    with world.sending(item):
        try:
            world.store.switch_file([domain])
        except DomainInUse:
            item.domains = frozenset()
            world.said += " in use"
            return
        except StateTooLarge:
            item.domains = frozenset()
            world.said += " with a state that would be forgotten"
            return
    world.model.all_durable()
    first = world.store.pages.first_file()
    for left in world.model.items[world.model.first_left(first) :]:
        if left.gtid is not None and left.gtid.domain == domain:
            raise WrongError(f"domain {domain} was deleted, but {left.gtid} is in a file")


def random_state(rng: random.Random) -> BinlogState:
    count = rng.randrange(4)
    pairs = [(rng.randrange(3), rng.randrange(1, 3)) for _ in range(count)]
    crowd = rng.choice(CROWDS) if rng.random() < 0.2 else 0
    return BinlogState(
        [Gtid(domain, server, 1) for domain, server in pairs]
        + [Gtid(CROWD_DOMAIN + number, 1, (1 << 50) + number) for number in range(crowd)]
    )


@step(0.4)
def reset(world: World, rng: random.Random) -> None:
    state = random_state(rng)
    world.said = f"to {brief(state)}"
    begin_anew(world, state)


@step(0.4)
def set_binlog_state(world: World, rng: random.Random) -> None:
    state = random_state(rng)
    world.said = f"to {brief(state)}"
    if len(world.model.state(len(world.model.items))):
        with contextlib.suppress(StoreNotEmpty):
            world.store.set_binlog_state(state)
            raise WrongError("the state was set of a store that is not empty")
        return
    begin_anew(world, state, only_state=True)


def begin_anew(world: World, state: BinlogState, *, only_state: bool = False) -> None:
    while world.followers:
        world.followers.pop().hold.release()
    busy = bool(len(world.store._engine.writer.pins) or world.holds)
    if not busy:
        world.model.resets_to = state
        under_way = [lease for _, lease in world.model.leases_under_way if lease is not None]
        leases = [*world.model.leases.values(), *under_way]
        ended = [(lease.name, None) for lease in leases if lease.position]
        world.model.leases_under_way.extend(ended)
    try:
        if only_state:
            world.store.set_binlog_state(state)
        else:
            world.store.reset(state)
    except StoreBusy:
        if not busy:
            raise WrongError("nobody is in the way of RESET MASTER") from None
        return
    except (DiskError, StoreFull):
        if not world.has_failed:  # before it began, or when all but the format description was done
            world.verify(0)
        elif world.disk.exists(f"{STORE}/{MARKER_NAME}"):
            world.disk.harmed += 1  # what was begun is finished by an opening
        raise
    except StateTooLarge:
        world.model.resets_to = None
        del world.model.leases_under_way[len(world.model.leases_under_way) - len(ended) :]
        world.said += " does not fit"
        return
    if busy:
        raise WrongError("RESET MASTER went over a transaction or a reader")
    world.model.begin_anew(state)
    world.verify(0)


@step(3)
def purge_to(world: World, rng: random.Random) -> None:
    files = world.store.files()
    before = reachable_leases(world)
    name = rng.choice(files).name
    try:
        result = world.store.purge_to(name)
    except UnknownFile:
        if name in (file.name for file in world.store.files()):
            raise
        return  # it could not be made whole, nor removed at once, and has gone now
    world.said = f"{result.removed} {result.reasons}"
    after_purge(world, before)


@step(1)
def purge_before(world: World, rng: random.Random) -> None:
    before = reachable_leases(world)
    moment = world.clock.now() - rng.choice((0, 100, 1000))
    world.said = f"{world.store.purge_before(moment).removed}"
    after_purge(world, before)


def reachable_leases(world: World) -> list[Lease]:
    """Return the leases that hold, and whose files are there."""
    world.store.sync()
    world.model.all_durable()
    return [
        lease
        for lease in world.store.leases.all()
        if not lease.lapsed
        and not world.is_old(lease.renewed_at, lease.age_limit)
        and is_reachable(world, lease)
    ]


def is_reachable(world: World, lease: Lease) -> bool:
    try:
        find_start(world.store.pages, GtidPosition.parse(lease.position))
    except TooOld:
        return False
    return True


def after_purge(world: World, before: list[Lease]) -> None:
    check_pins(world)
    for lease in before:
        if not is_reachable(world, lease):
            raise WrongError(f"files that lease {lease.name} needs are gone")
    numbers = [file.file_no for file in world.store.files()]
    if numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise WrongError(f"files are missing between others: {numbers}")
    needed = [hold.file_no for hold in world.holds]
    if needed and numbers[0] > min(needed):
        raise WrongError(f"a file that is held is gone: {numbers[0]} > {min(needed)}")


def check_pins(world: World) -> None:
    """Only groups that are open, and prepared transactions, keep files."""
    owners = {group.writer for group in world.groups} | set(world.store.commits._prepared)
    if stray := set(world.store._engine.writer.pins._pins) - owners:
        raise WrongError(f"files are kept for {stray}, which is gone")


@step(1.5)
def renew_lease(world: World, rng: random.Random) -> None:
    name = rng.choice(LEASE_NAMES)
    world.note_durable()
    position = world.model.state(rng.randrange(world.model.safe + 1)).position()
    limit = rng.choice((None, 50.0, 500.0))
    world.said = f"{name} {limit}"
    lease = Lease(name, str(position), world.clock.now(), limit)
    there = is_reachable(world, lease)
    world.model.leases_under_way.append((name, lease))
    try:
        world.model.leases[name] = world.store.leases.renew(name, position, age_limit=limit)
    except LeaseError:
        world.model.leases_under_way.pop()  # nothing was stored: what failed before may be there
        if there:
            raise
        return
    if not there:
        raise WrongError(f"lease {name} was given for files that are gone")
    world.model.leases_under_way.clear()


@step(0.5)
def remove_lease(world: World, rng: random.Random) -> None:
    if world.model.leases:
        name = rng.choice(sorted(world.model.leases))
        world.model.leases_under_way.append((name, None))
        world.store.leases.remove(name)
        world.model.leases_under_way.clear()
        del world.model.leases[name]


@step(1)
def hold(world: World, rng: random.Random) -> None:
    if len(world.holds) < HOLDS_MAX:
        taken = world.store.hold(HoldKind.REPLICA, "replica")
        taken.move(rng.randint(taken.file_no, world.store.end().file_no))
        world.holds.append(taken)


@step(1.5)
def release_hold(world: World, rng: random.Random) -> None:
    if world.holds:
        world.holds.pop(rng.randrange(len(world.holds))).release()


@step(5)
def time_passes(world: World, rng: random.Random) -> None:
    world.clock.time += rng.choice((0.5, 6.0, 100.0))


@step(0.6)
def backup(world: World, rng: random.Random) -> None:
    """Copy the store; the copy is whole even if the power goes right behind."""
    path = "/backup"
    try:
        world.store.backup(path)
        world.store._engine.check()  # after a failure it holds what was durable, and no more
        world.model.all_durable()
        copy = world.disk.crashed(rng, 0.0, under=path)
        copy.capacity = None
    except DiskError:
        world.disk.faults.clear()
        raise
    finally:
        world.disk.remove_tree(path)
    found = found_at_rest(copy, path)
    world.model.survivors(found, len(world.model.items))
    if rng.random() < 0.5:
        options = random_options(rng, "upstream")
        with Store.open(path, options, disk=copy, clock=world.clock) as store:
            first = store.pages.first_file()
            stream = read_all(store.pages)
            prepared = frozenset(prepared.xid for prepared in store.prepared())
            found = Found(first, stream, store.state(), prepared)
            if not options.max_binlog_total_size and not options.binlog_expire_logs_seconds:
                world.model.survivors(found, len(world.model.items))


@step(0.5)
def compare(world: World, rng: random.Random) -> None:
    world.store.sync()
    world.model.all_durable()
    world.verify(len(world.model.items))


@step(0.7)
def restart(world: World, rng: random.Random) -> None:
    options = random_options(rng, world.format_description)
    mode = options.flush_log_at_commit
    world.said = f"page {options.page_size} file {options.max_binlog_size} mode {mode}"
    world.restart(options)


@step(0.3)
def take_over(world: World, rng: random.Random) -> None:
    """Go on in files that another program might have written: there is no redo log."""
    world.restart(world.options, without_log=True)


@step(0.4)
def kill(world: World, rng: random.Random) -> None:
    if rng.random() < CRASH_AFTER_KILL:
        world.disk.crash_at = world.disk.operations + rng.choice((5, 15, 30))
    world.end_process()
