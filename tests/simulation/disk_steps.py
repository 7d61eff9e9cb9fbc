"""What the disk does to a store: power, failures, no room, lies and damage."""

from __future__ import annotations

import errno
import random
from dataclasses import replace

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.errors import RecoveryError
from ibb.storage.file_header import FileHeader
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position
from ibb.storage.redo_segment import SEGMENT_NAMES

from ..faults.sim_disk import Fault, Op, SimDisk
from ..storage.events import transaction
from .model import Found, Seen, WrongError
from .reading import is_own, oracle_problems, read_all, read_group
from .steps import step
from .world import STORE, World

FAULT_KINDS = ("open", "read", "write", "truncate", "allocate", "sync", "rename", "unlink",
               "sync_dir")  # fmt: skip
SECTOR = 512
TAKEN_OVER = Gtid(9, 9, 1)  # of no group that a step publishes


@step(0.7)
def lose_power_soon(world: World, rng: random.Random) -> None:
    """Lose the power at an operation not far away; at once if that was said before."""
    more = rng.choice((1, 3, 10, 30, 100))
    world.said = f"in {more} operations"
    if world.disk.crash_at is not None:
        world.disk.crash_at = world.disk.operations + 1
        world.store.sync()
        world.store.switch_file()
    world.disk.crash_at = world.disk.operations + more


@step(1.5)
def fault(world: World, rng: random.Random) -> None:
    kind = rng.choice(FAULT_KINDS)
    code = rng.choice((errno.EIO, errno.EIO, errno.ENOSPC))
    if kind in ("read", "sync", "unlink", "sync_dir"):
        code = errno.EIO
    if kind == "open":
        code = rng.choice((errno.EIO, errno.ENOSPC, errno.EMFILE))
    times = rng.choice((1, 1, 3, 1000))
    nth = rng.choice((1, 2, 5, 20))
    world.said = f"{errno.errorcode[code]} on {kind} {nth}, {times} times"

    def matches(op: Op) -> bool:
        return op.kind == kind

    world.disk.faults.append(Fault(matches, code, nth, times))


@step(1)
def disk_works(world: World, rng: random.Random) -> None:
    world.heal()


@step(0.5)
def disk_full(world: World, rng: random.Random) -> None:
    world.disk.capacity = world.disk.used + rng.choice((0, 2000, 10_000))


@step(1)
def room_again(world: World, rng: random.Random) -> None:
    world.disk.capacity = None


@step(1)
def lying_read(world: World, rng: random.Random) -> None:
    """Change what a follower's next reads return: it must notice, and go on when they are true."""
    if not world.followers:
        return
    world.note_durable()
    follower = rng.choice(world.followers)
    bit, short = rng.random(), rng.random() < 0.3

    def lie(path: str, offset: int, data: bytes) -> bytes:
        if not path.endswith(".ibb") or not data:
            return data
        at = int(bit * len(data))
        if short:
            return data[:at]
        return data[:at] + bytes([data[at] ^ 1 << int(bit * 997) % 8]) + data[at + 1 :]

    world.disk.lies.append(lie)
    try:
        follower.read_one()
    except FormatError as error:
        if error.file is None:
            raise WrongError(f"damage without a file: {error}") from error
        world.said = "noticed"
    finally:
        world.disk.lies.clear()


@step(0.6)
def damage_at_rest(world: World, rng: random.Random) -> None:
    """Open a damaged copy of the closed store: all of it is there, or it is told."""
    copy = world.disk.crashed(rng, 1.0, under=STORE)
    copy.capacity = None
    world.note_durable()
    Store.open(STORE, world.options, disk=copy, clock=world.clock).close()
    names = [name for name in copy.list(STORE) if name.endswith((".ibb", ".log"))]
    path = f"{STORE}/{rng.choice(names)}"
    contents = copy.contents(path)
    used = len(contents.rstrip(b"\0"))
    if not used:
        return
    at = rng.randrange(used)
    if rng.random() < 0.5:
        data = bytes([contents[at] ^ 1 << rng.randrange(8)])
    else:
        at -= at % SECTOR
        data = bytes(len(contents[at : at + SECTOR]))
    if contents[at : at + len(data)] == data:
        return
    world.said = f"{path} at {at}: {len(data)} bytes"
    copy.damage(path, at, data)
    try:
        store = Store.open(STORE, world.options, disk=copy, clock=world.clock)
    except (FormatError, RecoveryError):
        return
    check_damaged(world, store, path)


def check_damaged(world: World, store: Store, path: str) -> None:
    """Read each file from its beginning; what is not the truth must be an error with a name."""
    told = bool(store.copies_set_aside)
    stream: list[Seen] = []
    pages, model = store.pages, world.model
    for file_no in range(pages.first_file(), pages.last_file() + 1):
        reader = GroupReader(pages, Position(file_no, 0))
        try:
            while (group := reader.next()) is not None and group.position < (file_no + 1, 0):
                one = read_group(group, pages.first_file())
                if not is_own(group):
                    stream.append(one)
        except FormatError as error:
            told = True
            if error.file is None and "file" not in str(error):
                raise WrongError(f"damage without a file: {error}") from error
    for one in stream:
        if None not in (one.gtid, one.data) and model.items[model.index(one.gtid)].data != one.data:
            raise WrongError(f"damaged {path}: group {one.gtid} has other contents")
    found = {one.gtid for one in stream}
    first = pages.first_file()
    for item in model.items[model.first_left(first) : model.safe]:
        if item.gtid is not None and item.gtid not in found and not told:
            raise WrongError(f"damaged {path}: {item.gtid} is lost and nobody is told")


@step(0.5)
def take_over_torn(world: World, rng: random.Random) -> None:
    """Go on in a copy of the files as they are now, without log, perhaps without the last pages."""
    copy = world.disk.crashed(rng, 1.0, under=STORE)
    copy.capacity = None
    for name in SEGMENT_NAMES:
        copy.remove(f"{STORE}/{name}")
    options = replace(world.options, binlog_expire_logs_seconds=0, max_binlog_total_size=0)
    count = rng.choice((0, 0, 1, 1, 2, 5))
    world.said = f"without {count} pages"
    lose_last_pages(copy, count)
    try:
        Store.open(STORE, options, disk=copy, clock=world.clock).close()
    except FormatError as error:
        if "GTID state is not known" in str(error) or "beginning is gone" in str(error):
            return  # only the log had the oldest state, or what follows the rest of a record
        raise
    with Store.open(STORE, options, disk=copy, clock=world.clock) as store:
        found = found_in(store)
        kept = world.model.survivors(found, 0, torn=True)
        world.said += f": {kept} of {len(world.model.items)} items"
        with store.begin() as group:
            group.write(transaction("taken over"))
            group.commit(TAKEN_OVER)
        store.sync()
        *before, last = read_all(store.pages)
        if before != found.stream or last.gtid != TAKEN_OVER:
            raise WrongError(f"taken over with {found.stream}, then there are {before} and {last}")
    with Store.open(STORE, options, disk=copy, clock=world.clock) as store:
        if store.copies_set_aside:
            raise WrongError(f"something was left behind the end: {store.copies_set_aside}")
        if read_all(store.pages) != [*found.stream, last]:
            raise WrongError("the files taken over are others when opened again")
    forgets = any(item.domains for item in world.model.items)
    problems = oracle_problems(copy, STORE, states=not forgets)
    # A header names what is prepared by a record that goes on in its file, and may be lost there.
    problems = [one for one in problems if "prepared are []" not in one]
    if problems:
        raise WrongError(f"the files taken over break the format's rules: {problems[0]}")


def lose_last_pages(disk: SimDisk, count: int) -> None:
    """Make the last pages of the newest file zeros; not its header, nor the oldest state."""
    names = [name for name in disk.list(STORE) if name.endswith(".ibb")]
    used = [name for name in names if any(disk.contents(f"{STORE}/{name}")[:64])]
    if used:
        path = f"{STORE}/{used[-1]}"
        data = disk.contents(path)
        size = FileHeader.parse(data, int(used[-1][7:13])).page_size
        pages = -(-len(data.rstrip(b"\0")) // size)
        first = max(pages - count, 2 if len(used) == 1 else 1)
        disk.damage(path, first * size, bytes(max(pages - first, 0) * size))


def found_in(store: Store) -> Found:
    prepared = frozenset(one.xid for one in store.prepared())
    pages = store.pages
    return Found(pages.first_file(), read_all(pages), store.state(), prepared)
