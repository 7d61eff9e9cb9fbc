"""
The world of one run: a disk, a clock, a store with its users, and the model beside it.

It opens the store, takes its power, and compares what it finds with the model. What the users do
is written in the steps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError, IbbError
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DiskError, GroupError, NoSecondFile, StoreFailed, StoreFull
from ibb.storage.holds import Hold
from ibb.storage.leases import Lease
from ibb.storage.position import Position
from ibb.storage.redo_segment import SEGMENT_NAMES

from ..faults.crash_points import Aim, name_crash_point
from ..faults.one_lie import WAYS, OneLie
from ..faults.sim_disk import PowerLost, SimDisk
from .follower import Follower
from .model import Found, Item, Model, Seen, WrongError
from .open_group import OpenGroup
from .reading import found_at_rest, oracle_problems, read_all

STORE = "/s"
CRASH_AGAIN = 0.3  # chance of a crash in the opening behind a crash
OPENINGS_MAX = 50  # attempts to open after a crash; each crash in between is one


class SimClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def random_options(rng: random.Random, format_description: str) -> StoreOptions:
    page_size = rng.choice((512, 512, 1024, 4096))
    return StoreOptions(
        page_size=page_size,
        max_binlog_size=page_size * rng.choice((4, 6, 8, 13, 32, 200)),
        state_interval=page_size * rng.choice((1, 2, 4, 64)),
        fifo_pages_max=rng.choice((4, 16, 512)),
        redo_segment_size=256 << 10,
        oob_piece_size=rng.choice((256, 1000, 5000)),
        flush_log_at_commit=rng.choice((1, 1, 0, 2)),
        flush_log_interval=5.0,
        binlog_expire_logs_seconds=rng.choice((0, 0, 600)),
        max_binlog_total_size=rng.choice((0, 0, 60_000)),
        slave_connections_needed_for_purge=0,
        format_description=format_description,
        background=False,
    )


class World:
    """
    Everything there is in one run.

    Args:
        rng: draws the settings, and what power losses leave.

    Attributes:
        counts: crashes, faults, openings, and crash points by name.
        said: what the step under way has done, for people.
        aims: where the power goes in the openings to come.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clock = SimClock()
        self.disk = SimDisk(now=self.clock.now)
        self.model = Model()
        self.counts: Counter[str] = Counter()
        self.groups: list[OpenGroup] = []
        self.followers: list[Follower] = []
        self.holds: list[Hold] = []
        self.format_description = rng.choice(("own", "upstream"))
        self.options = random_options(rng, self.format_description)
        self.said = ""
        self.aims: list[Aim] = []
        self.sequence = 1  # of GTIDs, names and contents: no two are the same; a reset sets 1
        self.store: Store
        self._struck = self._harmed = 0
        self.open(at_least=0)

    # The store's life

    def open(self, *, at_least: int) -> None:
        """Open the store, through crashes and failures, and compare it with the model."""
        for _ in range(OPENINGS_MAX):
            try:
                self._open(at_least)
            except PowerLost as lost:
                at_least = min(at_least, self.model.safe)
                self._down(lost)
            except (DiskError, StoreFull, StoreFailed):
                self.excuse()
                self.heal()
                self._end_process()
            else:
                self.disk.watch, self.aims = None, []
                return
        raise WrongError("the store does not open")

    def _open(self, at_least: int) -> None:
        self.counts["openings"] += 1
        lie = self._misread_something()
        try:
            self.store = Store.open(STORE, self.options, disk=self.disk, clock=self.clock)
        finally:
            self.disk.lies.clear()
            self.counts["misreads while opening"] += bool(lie.path)
        self._harmed = self.disk.harmed
        self.counts["recoveries"] += self.store._engine.opened.recovered
        if self.store.copies_set_aside and not self.disk.sync_failed:
            raise WrongError(f"bytes behind the end: {self.store.copies_set_aside}")
        self._find_out_about_leases()
        self.verify(at_least)
        self.disk.sync_failed = False

    def _misread_something(self) -> OneLie:
        """Have one read wrong, perhaps: the opening must read it again."""
        nth = self.rng.choice((0, self.rng.randrange(1, 12), self.rng.randrange(1, 60)))
        lie = OneLie(nth, self.rng.random(), self.rng.choice(WAYS))
        self.disk.lies.append(lie)
        return lie

    def lose_power(self, lost: PowerLost) -> None:
        """Go down at an operation and come up again."""
        self._down(lost)
        self.open(at_least=self.model.safe)

    def _down(self, lost: PowerLost) -> None:
        self.counts["crashes"] += 1
        self.counts[f"at {name_crash_point(lost.__traceback__)}"] += 1
        self._forget_users()
        self.disk = self.disk.crashed(self.rng, keep=self.rng.choice((0.0, 0.5, 0.9)))
        self._struck = 0
        if self.aims:
            self.disk.watch = self.aims.pop(0)
        elif self.rng.random() < CRASH_AGAIN:
            self.disk.crash_at = self.rng.choice((2, 8, 15, 25, 40))

    def end_process(self) -> None:
        """End the process as a kill does, and start it again."""
        self.counts["kills"] += 1
        self._end_process()
        self.open(at_least=self.model.kept)

    def _end_process(self) -> None:
        self._forget_users()
        self.disk.end_process()

    def restart(self, options: StoreOptions, *, without_log: bool = False) -> None:
        """Close in order and open with other settings, perhaps as files of another program."""
        for group in self.groups:
            group.writer.rollback()
        self._forget_users()
        self.store.close()
        self.model.all_durable()
        self.verify_at_rest()
        if without_log:
            for name in SEGMENT_NAMES:
                self.disk.remove(f"{STORE}/{name}")
        self.options = options
        self.open(at_least=len(self.model.items))

    def _forget_users(self) -> None:
        self.groups, self.followers, self.holds = [], [], []

    def excuse(self) -> None:
        """A call has failed; raise `WrongError` unless the disk failed before."""
        if self.disk.struck == self._struck:
            raise WrongError("a call failed though nothing was wrong")
        self._struck = self.disk.struck
        self.counts["faults"] += 1

    @property
    def was_harmed(self) -> bool:
        """The disk did what a store need not outlive; without room it only has to wait."""
        return self.disk.harmed > self._harmed

    def heal(self) -> None:
        """Let the disk work again."""
        self.disk.faults.clear()
        self.disk.capacity = None

    @property
    def has_failed(self) -> bool:
        """The store has stopped writing."""
        try:
            self.store._engine.check()
        except StoreFailed:
            return True
        return False

    # Sending

    def written_end(self) -> Position:
        return self.store._engine.writer.end

    @contextmanager
    def sending(self, item: Item) -> Iterator[None]:
        """Note an item that is written inside, unless it is refused."""
        self.model.send(item)
        try:
            yield
        except (StoreFull, GroupError):
            self.model.take_back(item)
            raise
        except DiskError:
            if not self.has_failed:
                self.model.take_back(item)
            raise
        item.end = self.written_end()

    def take_back(self, items: list[Item], written: int) -> None:
        """Learn that only the first of the *items* that were sent last were written."""
        for item in reversed(items[written:]):
            self.model.take_back(item)
        if written:
            items[written - 1].end = self.written_end()

    def note_durable(self) -> None:
        self.model.durable(self.store.end(), self.store.state())

    # Comparison

    def verify(self, at_least: int) -> None:
        """Compare all that the store holds with the model and go on from there."""
        pages = self.store.pages
        stream = read_all(pages)
        prepared = frozenset(found.xid for found in self.store.prepared())
        found = Found(pages.first_file(), stream, self.store.state(), prepared, self.written_end())
        self._compare(found, at_least)
        self._compare_formats(stream)
        self._compare_leases(self.store.leases.all())
        self.note_durable()

    def _compare(self, found: Found, at_least: int) -> None:
        model = self.model
        if model.resets_to is not None:
            if not found.stream and found.state == model.resets_to and not found.prepared:
                self._forget_history(model.resets_to)
            model.resets_to = None
            model.leases_under_way.clear()
            at_least = min(at_least, len(model.items))
        count = model.survivors(found, at_least)
        reached = model.items[at_least - 1].end if at_least else None
        if reached is not None and self.store.end() < reached:
            raise WrongError(f"the binlog ends at {self.store.end()}, it had reached {reached}")
        model.adopt(count)

    def _forget_history(self, state: BinlogState) -> None:
        """Go on with the one that a reset began; no lease has anything of the one before."""
        was_begun = len(self.model.items) or self.model.base != state
        kept = self.model.leases
        self.model.begin_anew(state)
        if not was_begun:
            self.model.leases = kept  # nobody can tell whether it was done

    def _compare_formats(self, stream: list[Seen]) -> None:
        """The last format description before each place must be found there."""
        last: bytes | None = None
        if self.format_description == "own":
            return  # there are some that nobody here has sent
        for seen in stream:
            if last is not None and self.store.formats.in_force(seen.position) != last:
                raise WrongError(f"another format description is in force at {seen.position}")
            if seen.gtid is None:
                last = seen.data

    def _find_out_about_leases(self) -> None:
        """Learn what became of changes that were under way."""
        found = {lease.name: lease for lease in self.store.leases.all()}
        for name, lease in self.model.leases_under_way:
            there = found.get(name)  # it may have lapsed since
            if (there and there._replace(lapsed=False)) == lease:
                self.model.leases.pop(name, None)
                if lease is not None:
                    self.model.leases[name] = lease
        self.model.leases_under_way.clear()

    def _compare_leases(self, leases: list[Lease]) -> None:
        found = {lease.name: lease for lease in leases}
        for name in found.keys() | self.model.leases.keys():
            mine, theirs = self.model.leases.get(name), found.get(name)
            if mine is None or theirs is None or mine != theirs._replace(lapsed=mine.lapsed):
                raise WrongError(f"lease {name} is {theirs}, expected {mine}")
            if theirs.lapsed < mine.lapsed and not self.is_old(mine.renewed_at, mine.age_limit):
                raise WrongError(f"lease {name} holds again")
            if theirs.lapsed and not self.is_old(theirs.renewed_at, theirs.age_limit):
                raise WrongError(f"lease {name} has lapsed too early")
            self.model.leases[name] = theirs

    def is_old(self, renewed_at: float, age_limit: float | None) -> bool:
        return age_limit is not None and self.clock.now() - renewed_at > age_limit

    def verify_at_rest(self) -> None:
        """Compare the closed directory with the model: our own reader, and the independent one."""
        try:
            found = found_at_rest(self.disk, STORE)
        except FormatError:
            if self.disk.struck == self._struck:
                raise
            self.excuse()  # a page that could not be read was taken for a used one
            return
        self.model.survivors(found, len(self.model.items))
        forgets = any(item.domains for item in self.model.items)
        problems = oracle_problems(self.disk, STORE, states=not forgets)
        if problems:
            raise WrongError(f"the files break the format's rules: {problems[0]}")


@contextmanager
def disk_may_fail(world: World) -> Iterator[None]:
    """Let a call fail if the disk did; a store that has stopped is opened again."""
    try:
        yield
    except (DiskError, StoreFull, StoreFailed) as error:
        world.said += f" -> {type(error).__name__}"
        world.excuse()
        if world.has_failed:
            engine = world.store._engine
            cut_short = isinstance(engine._redo.failure, NoSecondFile)
            if not world.was_harmed and not engine._closed and not cut_short:
                raise WrongError("the store has stopped for want of room") from error
            world.heal()
            with suppress(IbbError):
                world.store.close()
            world.end_process()
