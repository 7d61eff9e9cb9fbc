"""Tasks commit side by side: one sync serves many, each is told the truth, no loop waits."""

import asyncio
import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.async_commits import AsyncCommits
from ibb.storage import Store, StoreOptions
from ibb.storage.commit_position import CommitPosition
from ibb.storage.errors import GroupError, StoreFailed

from ..faults.sim_disk import Fault, SimDisk
from ..storage.events import transaction
from .waiting import until

SECONDS = 20


class GatedDisk(SimDisk):
    """A disk whose syncs of the redo log wait at a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.reached = threading.Semaphore(0)
        self.syncs = 0

    def step(self, kind: str, path: str) -> None:
        if kind == "sync" and "redo" in path:
            self.syncs += 1
            self.reached.release()
            assert self.gate.wait(SECONDS)
        super().step(kind, path)


@contextmanager
def opened(disk: SimDisk, mode: int = 1) -> Iterator[tuple[Store, AsyncCommits]]:
    options = StoreOptions(
        redo_segment_size=4 << 20,
        max_binlog_size=1 << 20,
        format_description="upstream",
        flush_log_at_commit=mode,
        flush_log_interval=3600,
        background=False,
    )
    with Store.open("/s", options, disk=disk) as store, AsyncCommits(store) as commits:
        yield store, commits


async def commit(store: Store, commits: AsyncCommits, domain: int, seq: int = 1) -> None:
    with store.begin() as group:
        group.write(transaction(f"insert {domain}-{seq}"))
        position = await commits.commit(group, Gtid(domain, 1, seq))
    assert position.gtid == Gtid(domain, 1, seq)
    assert store.end() >= (position.file_no, position.offset)


async def test_one_sync_serves_all_who_came_meanwhile() -> None:
    disk = GatedDisk()
    with opened(disk) as (store, commits):
        disk.gate.clear()
        while disk.reached.acquire(blocking=False):
            pass
        disk.syncs = 0
        first = asyncio.create_task(commit(store, commits, 0))
        assert await asyncio.to_thread(disk.reached.acquire, timeout=SECONDS)
        others = [asyncio.create_task(commit(store, commits, domain)) for domain in range(1, 300)]
        await asyncio.sleep(0)  # each has appended its group, and waits
        assert not any(task.done() for task in (first, *others))
        assert len(store.state()) == 0
        disk.gate.set()
        await asyncio.wait_for(asyncio.gather(first, *others), SECONDS)
        assert disk.syncs == 2
        assert len(store.state()) == 300


async def test_a_failed_sync_is_told_to_everybody_who_waits() -> None:
    disk = SimDisk()
    with pytest.raises(StoreFailed), opened(disk) as (store, commits):
        await commit(store, commits, 0)
        disk.faults.append(
            Fault(lambda op: op.kind == "sync" and "redo" in op.path, code=errno.EIO)
        )
        results = await asyncio.gather(
            *(commit(store, commits, domain) for domain in range(1, 50)), return_exceptions=True
        )
        assert {type(result) for result in results} == {StoreFailed}
        assert str(store.state()) == "0-1-1"
        disk.faults.clear()
        await commit(store, commits, 0, 2)


class BrokenGate:
    """Stands behind commits, and breaks on the first."""

    def __init__(self) -> None:
        self.waits = 0

    def expect(self, gtid: Gtid) -> None:
        """Nothing to prepare."""

    def give_up(self, gtid: Gtid) -> None:
        raise AssertionError(f"{gtid} was written")

    def written(self, position: CommitPosition) -> None:
        """Nothing to note."""

    def wait(self, position: CommitPosition) -> None:
        self.waits += 1
        if self.waits == 1:
            raise RuntimeError("out of threads")


async def test_whatever_goes_wrong_is_told_and_the_next_is_served() -> None:
    with opened(SimDisk()) as (store, commits):
        store.commits.gate = BrokenGate()
        with pytest.raises(StoreFailed, match="out of threads"):
            await asyncio.wait_for(commit(store, commits, 0), SECONDS)
        await asyncio.wait_for(commit(store, commits, 0, 2), SECONDS)
        assert str(store.state()) == "0-1-2"


async def test_a_cancelled_wait_leaves_the_commit_and_the_others_alone() -> None:
    disk = GatedDisk()
    with opened(disk) as (store, commits):
        disk.gate.clear()
        tasks = [asyncio.create_task(commit(store, commits, domain)) for domain in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        disk.gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [
            type(None),
            asyncio.CancelledError,
            type(None),
        ]
        assert len(store.state()) == 3


async def test_what_is_no_group_is_refused_at_once() -> None:
    with opened(SimDisk()) as (store, commits), store.begin() as group:
        group.write(transaction("x")[:-1])
        with pytest.raises(GroupError, match="inside an event"):
            await commits.commit(group, Gtid(0, 1, 1))
        assert len(store.state()) == 0


@pytest.mark.parametrize("mode", [0, 2])
async def test_other_modes_wait_for_no_sync(mode: int) -> None:
    disk = GatedDisk()
    with opened(disk, mode) as (store, commits):
        disk.syncs = 0
        for seq in range(1, 20):
            with store.begin() as group:
                group.write(transaction("x"))
                await commits.commit(group, Gtid(0, 1, seq))
        assert disk.syncs == 0
        store.sync()
        assert str(store.state()) == "0-1-19"


async def test_close_serves_who_waits_and_later_commits_wait_by_themselves() -> None:
    disk = GatedDisk()
    with opened(disk) as (store, commits):
        disk.gate.clear()
        task = asyncio.create_task(commit(store, commits, 0))
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(commits.close))
        disk.gate.set()
        await asyncio.wait_for(asyncio.gather(task, closing), SECONDS)
        await commit(store, commits, 1)
        assert str(store.state()) == "0-1-1,1-1-1"


def test_a_loop_that_is_gone_holds_up_no_other() -> None:
    disk = GatedDisk()
    with opened(disk) as (store, commits):
        disk.gate.clear()

        async def leave() -> None:
            task = asyncio.create_task(commit(store, commits, 0))
            await asyncio.sleep(0)
            task.cancel()

        asyncio.run(leave())
        disk.gate.set()
        asyncio.run(commit(store, commits, 1))
        assert str(store.state()) == "0-1-1,1-1-1"


class ReplicaGate:
    """A gate that lets commits go when it is told to; `waited` for these."""

    def __init__(self) -> None:
        self.waited: list[Gtid | None] = []
        self.open = threading.Event()

    def expect(self, gtid: Gtid) -> None:
        """Take any."""

    def give_up(self, gtid: Gtid) -> None:
        raise AssertionError(gtid)

    def written(self, position: CommitPosition) -> None:
        """Take any."""

    def wait(self, position: CommitPosition) -> None:
        self.waited.append(position.gtid)
        assert self.open.wait(SECONDS)


async def test_tasks_wait_for_the_gate_too_whatever_else_was_written_behind_their_groups() -> None:
    with opened(SimDisk()) as (store, commits):
        gate = ReplicaGate()
        store.commits.gate = gate
        commits._at_work = True  # so that what follows is taken together
        waiting = [asyncio.create_task(commit(store, commits, domain)) for domain in (1, 2)]
        await until(lambda: len(commits._pending) == 2)
        newest = max(position.lsn for position, _ in commits._pending)
        prepared = CommitPosition(None, 0, 0, newest)  # no group: nobody acknowledges it
        waiting.append(asyncio.create_task(commits.acknowledged(prepared)))
        await until(lambda: len(commits._pending) == 3)
        commits._wanted.release()
        await until(lambda: gate.waited)
        assert not any(task.done() for task in waiting)
        gate.open.set()
        await asyncio.gather(*waiting)
        assert gate.waited == [Gtid(2, 1, 1)]


class HesitantCommits(AsyncCommits):
    """Its thread stops once behind a look that found nothing to do."""

    def __init__(self, store: Store) -> None:
        self.looked = threading.Event()
        self.may_go_on = threading.Event()
        self.stops = False
        super().__init__(store)

    def _take(self) -> list[tuple[CommitPosition, asyncio.Future[None]]]:
        taken = super()._take()
        if not taken and self.stops:
            self.stops = False
            self.looked.set()
            assert self.may_go_on.wait(SECONDS)
        return taken


def test_a_commit_that_was_accepted_just_before_the_end_is_served():
    async def run(store: Store) -> None:
        commits = HesitantCommits(store)
        commits.stops = True
        await commit(store, commits, 0)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, commits.looked.wait, SECONDS)
        late = asyncio.create_task(commit(store, commits, 1))
        await until(lambda: bool(commits._pending))
        closing = loop.run_in_executor(None, commits.close)
        await until(lambda: commits._closed)
        commits.may_go_on.set()
        await closing
        await asyncio.wait_for(late, SECONDS)

    options = StoreOptions(max_binlog_size=1 << 20, redo_segment_size=4 << 20, background=False)
    with Store.open("/s", options, disk=SimDisk()) as store:
        asyncio.run(run(store))
