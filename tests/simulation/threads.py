"""
A store under many threads at once: whoever commits, reads, purges and copies, without a pause.

Each thread does its work and checks what it can see by itself; at the end the files are held
against what was acknowledged, and against every rule of the format.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import GroupError, StoreFailed
from ibb.storage.group_reader import GroupReader, StoredGroup
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.holds import HoldKind
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.record import Xid
from ibb.storage.state_scan import find_state
from ibb.storage.verify.directory_check import verify_directory
from ibb.storage.verify.finding import Severity

from ..storage.events import query, transaction

COMMITTERS = 4
ROUNDS = 15  # of each committer, unless the time is up
COMMIT_SECONDS = 6.0
JOIN_SECONDS = 40.0
FOLLOWED_MAX = 100  # groups that a reader takes before it begins elsewhere
SIZES = (0, 40, 300, 900, 2500)
LEASES = ("spark", "archive")


def options(rng: random.Random) -> StoreOptions:
    return StoreOptions(
        page_size=512, max_binlog_size=512 * rng.choice((12, 40)), state_interval=1024,
        fifo_pages_max=rng.choice((4, 16)), redo_segment_size=256 << 10, oob_piece_size=256,
        flush_log_at_commit=rng.choice((1, 1, 2)), flush_log_interval=0.01,
        slave_connections_needed_for_purge=0, format_description="upstream",
    )  # fmt: skip


def events_of(gtid: Gtid) -> bytes:
    """Return the events of a group: they follow from its GTID."""
    size = SIZES[(gtid.seq * 7 + gtid.domain) % len(SIZES)]
    return transaction(f"{gtid} " + chr(97 + gtid.seq % 26) * size)


class Stress:
    """
    One run.

    Args:
        path: an empty directory.
        seed: of what the threads draw; which of them comes first is chance.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.seed = seed
        self.options = options(random.Random(seed))
        self.store = Store.open(path / "store", self.options)
        self.failures: list[BaseException] = []
        self.done = threading.Event()  # the committers have finished
        self.acknowledged: dict[int, int] = {}  # sequence number by domain
        self.wakes = 0

    def run(self) -> None:
        """Let all threads work; raise what went wrong first."""
        commit = [self._thread(self.commit, domain) for domain in range(COMMITTERS)]
        others = [
            self._thread(until_done, number)
            for number, until_done in enumerate(
                (self.read, self.read, self.look, self.switch, self.purge, self.lease,
                 self.hold, self.copy, self.describe, self.subscribe, self.subscribe,
                 self.watch_directory, self.compete),
                COMMITTERS,
            )
        ]  # fmt: skip
        self._wait_for(commit)
        self.done.set()
        self._wait_for(others)
        if self.failures:
            raise self.failures[0]
        self.check_end()

    def _thread(self, work: Callable[[random.Random, int], None], number: int) -> threading.Thread:
        def run() -> None:
            try:
                work(random.Random(f"{self.seed} {number}"), number)
            except BaseException as error:  # noqa: BLE001 - told by `run`
                self.failures.append(error)

        name = getattr(work, "__name__", "helper")
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def _wait_for(self, threads: list[threading.Thread]) -> None:
        for thread in threads:
            thread.join(JOIN_SECONDS)
            if self.failures:
                raise self.failures[0]
            assert not thread.is_alive(), f"{thread.name} hangs"

    def together(self, *works: Callable[[], None]) -> None:
        """Do all of *works* at once and wait for them."""
        self._wait_for([self._thread(lambda *_, work=work: work(), 0) for work in works])

    # Writing

    def commit(self, rng: random.Random, domain: int) -> None:
        """Publish the domain's groups in order, some through XA, some given up first."""
        deadline = time.monotonic() + COMMIT_SECONDS
        for seq in range(1, ROUNDS + 1):
            if time.monotonic() > deadline:
                return
            gtid = Gtid(domain, 1, seq)
            events = events_of(gtid)
            way = rng.random()
            if way < 0.15:
                with self.store.begin() as group:
                    group.write(query("given up" * 200))
            if way > 0.8:
                self.commit_prepared(gtid, events)
                continue
            with self.store.begin() as group:
                cut = rng.randrange(len(events) + 1)
                group.write(events[:cut])
                group.write(events[cut:])
                position = group.commit(gtid, wait=way > 0.3)
            if way <= 0.3:
                self.store.sync()
            self.acknowledge(gtid, Position(position.file_no, position.offset), synced=way <= 0.3)

    def commit_prepared(self, gtid: Gtid, events: bytes) -> None:
        name = Xid(1, str(gtid).encode(), b"b")
        with self.store.begin() as group:
            group.write(events)
            group.prepare(name)
        assert name in {prepared.xid for prepared in self.store.prepared()}
        position = self.store.commit_prepared(name, gtid)
        assert name not in {prepared.xid for prepared in self.store.prepared()}
        self.acknowledge(gtid, Position(position.file_no, position.offset), synced=False)

    def acknowledge(self, gtid: Gtid, end: Position, *, synced: bool) -> None:
        self.acknowledged[gtid.domain] = gtid.seq
        if synced or self.options.flush_log_at_commit == 1:
            assert self.store.end() >= end, f"{gtid} is not durable"
            assert (self.store.state().seq(gtid.domain, 1) or 0) >= gtid.seq

    def describe(self, rng: random.Random, _: int) -> None:
        """Write format descriptions; the one in force at a place is that before it."""
        number = 0
        while not self.done.wait(0.02):
            number += 1
            event = FormatDescription.default("11.8.2-MariaDB", 7, number).to_store()
            position = self.store.write_format_description(event)
            self.store.sync()
            place = Position(position.file_no, position.offset)
            assert self.store.formats.in_force(place) == event

    def compete(self, rng: random.Random, _: int) -> None:
        """Of two who use one name at the same time one must be refused."""
        name = Xid(1, b"rivals", b"b")

        def prepare() -> None:
            with self.store.begin() as group:
                group.write(transaction("rival"))
                group.prepare(name)

        while not self.done.wait(0.02):
            assert self.winners(prepare, prepare) == 1, "two transactions have one name"
            end = partial(self.store.rollback_prepared, name)
            assert self.winners(end, end) == 1, "a transaction has ended twice"
            assert name not in {prepared.xid for prepared in self.store.prepared()}

    def winners(self, *works: Callable[[], None]) -> int:
        """Return how many of those who do something at once are not refused."""
        won: list[None] = []

        def attempt(work: Callable[[], None]) -> None:
            with suppress(GroupError):
                won.append(work())

        self.together(*(partial(attempt, work) for work in works))
        return len(won)

    def switch(self, rng: random.Random, _: int) -> None:
        while not self.done.wait(rng.random() * 0.1):
            before = self.store.end().file_no
            self.store.switch_file()
            assert self.store.end().file_no > before

    # Reading

    def read(self, rng: random.Random, number: int) -> None:
        """Begin somewhere and follow to the end, again and again."""
        while not self.done.wait(0.005):
            self.follow(rng.choice((None, self.store.state().position())))

    def follow(self, start: GtidPosition | None) -> None:
        had = {gtid.domain: gtid.seq for gtid in start or ()}
        pages = self.store.pages
        with self.store.hold(HoldKind.READER, "follower") as hold:
            place = (
                Position(hold.file_no, 0) if start is None else find_start(pages, start).position
            )
            reader = GroupReader(pages, place)
            for _ in range(FOLLOWED_MAX):
                group = reader.next()
                if group is None:
                    self.store.refresh()
                    return
                hold.move(group.position.file_no)
                assert group.position < self.store.end()
                if group.gtid is not None:
                    self.check_group(group, group.gtid, had, gaps=start is None)

    def check_group(
        self, group: StoredGroup, gtid: Gtid, had: dict[int, int], *, gaps: bool
    ) -> None:
        """The next of its domain, with its own events; what a reader has had already is passed."""
        before = had.get(gtid.domain)
        if before is not None and gtid.seq > before:
            assert gtid.seq == before + 1, f"{gtid} was read behind {before}"
        if before is None or gtid.seq > before:
            had[gtid.domain] = gtid.seq
        lowest = min((reference.first.file_no for reference in group.lists), default=1 << 62)
        if gaps and lowest < self.store.pages.first_file():
            return  # its first pieces were purged
        data = b"".join(group.pieces())
        assert data[len(group.head) :] == events_of(gtid), f"{gtid} has other contents"

    def look(self, rng: random.Random, _: int) -> None:
        """The durable end and its state never go back."""
        end, seen = Position(0, 0), {}
        while not self.done.wait(0.002):
            now = self.store.end()
            assert now >= end, f"the end went back from {end} to {now}"
            end = now
            state = self.store.state()
            for domain in range(COMMITTERS):
                seq = state.seq(domain, 1) or 0
                assert seq >= seen.get(domain, 0), f"domain {domain} went back to {seq}"
                seen[domain] = seq
            files = [file.file_no for file in self.store.files()]
            assert files == list(range(files[0], files[-1] + 1)), files

    def watch_directory(self, rng: random.Random, _: int) -> None:
        """Look at the directory as another program would, from two threads at once."""
        view = ReadOnlyHistory(OsDisk(), str(self.path / "store"))

        def look() -> None:
            seen: dict[int, int] = {}
            for _ in range(10):
                view.subscribe(lambda: None)()
                view.refresh()
                for gtid in view.state().position():
                    assert gtid.seq >= seen.get(gtid.domain, 0), f"{gtid} after {seen}"
                    seen[gtid.domain] = gtid.seq

        while not self.done.wait(0.02):
            self.together(look, look)

    def subscribe(self, rng: random.Random, _: int) -> None:
        """Whoever subscribed before a commit is told of it."""
        while not self.done.wait(0.002):
            woken = threading.Event()
            leave = self.store.subscribe(woken.set)
            before = self.store.end()
            if not woken.wait(5) and self.store.end() != before:
                raise AssertionError("the end moved and nobody was told")
            leave()
            self.wakes += 1

    # Administration

    def purge(self, rng: random.Random, _: int) -> None:
        while not self.done.wait(0.01):
            self.store.purge_to(self.store.files()[-1].name)

    def lease(self, rng: random.Random, _: int) -> None:
        """Renew leases from two threads while others lapse; each finds its own, and its files."""

        def renew(name: str) -> None:
            for number in range(20):
                position = self.store.state().position()
                limit = 1e-9 if number % 3 == 0 else None
                made = self.store.leases.renew(f"{name}-{number % 3}", position, age_limit=limit)
                found = {lease.name: lease for lease in self.store.leases.all()}[made.name]
                assert found._replace(lapsed=False) == made
                if limit is not None:
                    continue
                try:
                    find_start(self.store.pages, position)
                except TooOld:
                    raise AssertionError(f"files that lease {name} needs are gone") from None

        while not self.done.wait(0.02):
            self.together(*(partial(renew, name) for name in LEASES))
            names = {lease.name for lease in self.store.leases.all()}
            assert names == {f"{name}-{number}" for name in LEASES for number in range(3)}
            for name in names:
                self.store.leases.remove(name)

    def hold(self, rng: random.Random, _: int) -> None:
        """What is held stays."""
        while not self.done.wait(0.001):
            with self.store.hold(HoldKind.REPLICA, "holder") as hold:
                for _ in range(20):
                    assert self.store.pages.first_file() <= hold.file_no, "a held file is gone"
                    self.store.files()

    def copy(self, rng: random.Random, _: int) -> None:
        """A backup holds exactly what it says."""
        number = 0
        while not self.done.wait(0.05):
            number += 1
            target = self.path / f"copy-{number}"
            backup = self.store.backup(target)
            assert str(find_state(BinlogDirectory(OsDisk(), str(target))).state) == str(
                backup.state
            )

    # The end

    def check_end(self) -> None:
        """Close; all that was acknowledged is there, in order, and no rule is broken."""
        assert not self.store.prepared()
        assert not self.store._engine.writer.pins._pins, "files are kept for groups that are gone"
        assert not self.store._holds.all(), "holds are left"
        engine = self.store._engine
        assert not engine.durable._waiters, "somebody is still waiting"
        engine.settle()
        assert engine._housekeeper.oldest_open == engine.writer.file_no, "files were not closed"
        assert not engine._redo._buffered, "the redo log has lost count"
        self.close_over_commits()
        directory = str(self.path / "store")
        bad = [
            finding
            for finding in verify_directory(OsDisk(), directory)
            if finding.severity is Severity.DAMAGE
        ]
        assert not bad, bad[0]
        with Store.open(directory, self.options) as store:
            state = store.state()
            for domain, seq in self.acknowledged.items():
                found = state.seq(domain, 1) or 0
                is_late = domain >= COMMITTERS
                assert found >= seq if is_late else found == seq, f"{domain}: {state}"
            had: dict[int, int] = {}
            reader = GroupReader(store.pages, Position(store.pages.first_file(), 0))
            while (group := reader.next()) is not None:
                if group.gtid is not None:
                    assert had.get(group.gtid.domain, group.gtid.seq - 1) == group.gtid.seq - 1
                    had[group.gtid.domain] = group.gtid.seq

    def close_over_commits(self) -> None:
        """Close while others commit: they are refused from then on, and what they had is there."""

        def commit(domain: int) -> None:
            with suppress(StoreFailed):
                for seq in range(1, 1000):
                    with self.store.begin() as group:
                        group.write(transaction("late" * 100))
                        group.commit(Gtid(domain, 1, seq))
                    self.acknowledged[domain] = seq

        late = [
            self._thread(lambda _, domain: commit(domain), COMMITTERS + number)
            for number in range(2)
        ]
        while not {COMMITTERS, COMMITTERS + 1} <= self.acknowledged.keys() and not self.failures:
            late[0].join(0.01)
        self.store.close()
        self._wait_for(late)
