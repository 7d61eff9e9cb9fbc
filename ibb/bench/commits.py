"""
Group commit: durable groups a second, beside a bare loop of writes and syncs on the same disk.

All rounds run in the same minute in the same folder, since a disk's speed changes with the hour.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import uvloop

from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.server.async_commits import AsyncCommits
from ibb.storage import Store, StoreOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.storage.group_writer import GroupWriter

SECONDS_MAX = 600.0  # of a round
COMMITTERS_MAX = 4096
_BARE_BYTES = 400  # about what a one-row group takes in the redo log
_BARE_FILE_BYTES = 1 << 20
_BULK_GROUP_BYTES = 1 << 20
_BULK_EVENT_BYTES = 8192
_THREAD_STACK_BYTES = 256 << 10
_ROW_BYTES = 32


class Round(NamedTuple):
    """
    The figure of one round.

    Attributes:
        name: what was measured.
        per_second: how many.
        unit: of what.
        ratio: to the bare loop of the same run; None where it has no meaning.
    """

    name: str
    per_second: float
    unit: str
    ratio: float | None


def measure_commits(
    folder: str | None, *, seconds: float = 3.0, committers: int = 512
) -> Iterator[Round]:
    """
    Measure and yield one round after the other.

    Args:
        folder: where the stores are made, and removed again; None: the system's temporary folder.
        seconds: of each round.
        committers: how many there are where there are many.

    Raises:
        DiskError: the folder cannot be used.
    """
    assert 0 < seconds <= SECONDS_MAX
    assert 0 < committers <= COMMITTERS_MAX
    with tempfile.TemporaryDirectory(prefix="ibb-bench-", dir=folder) as path:
        place = Path(path)
        bare = bare_syncs(place / "bare", seconds)
        yield Round("bare write and fdatasync", bare, "syncs", 1.0)
        rounds: tuple[tuple[str, Callable[[Store], int]], ...] = (
            ("one committer", lambda store: _one(store, seconds)),
            (f"{committers} tasks", lambda store: uvloop.run(_tasks(store, seconds, committers))),
            (f"{committers} threads", lambda store: _threads(store, seconds, committers)),
        )
        for number, (name, work) in enumerate(rounds):
            rate = _rate(place / str(number), work)
            yield Round(name, rate, "groups", rate / bare)
        rate = _rate(place / "bulk", lambda store: _bulk(store, seconds)) / 1e6
        yield Round("bulk, groups of 1 MiB", rate, "MB", None)


def bare_syncs(path: Path, seconds: float) -> float:
    """Return how often a second a small write and its fdatasync are done, in a new file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, bytes(_BARE_FILE_BYTES), 0)
        os.fsync(descriptor)
        data, done, began = b"x" * _BARE_BYTES, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            os.pwrite(descriptor, data, done * _BARE_BYTES % (_BARE_FILE_BYTES - _BARE_BYTES))
            os.fdatasync(descriptor)
            done += 1
        return done / (time.perf_counter() - began)
    finally:
        os.close(descriptor)


def _rate(path: Path, work: Callable[[Store], int]) -> float:
    with Store.open(path, StoreOptions(max_binlog_size=256 << 20)) as store:
        began = time.perf_counter()
        done = work(store)
        return done / (time.perf_counter() - began)


def _one(store: Store, seconds: float) -> int:
    events, done, end = _row_group(), 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        done += 1
        with store.begin() as group:
            group.write(events)
            group.commit(Gtid(0, 1, done))
    return done


async def _tasks(store: Store, seconds: float, committers: int) -> int:
    events, end = _row_group(), time.perf_counter() + seconds

    async def commit_all(commits: AsyncCommits, domain: int) -> int:
        done = 0
        while time.perf_counter() < end:
            done += 1
            with store.begin() as group:
                group.write(events)
                await commits.commit(group, Gtid(domain, 1, done))
        return done

    with AsyncCommits(store) as commits:
        return sum(await asyncio.gather(*(commit_all(commits, n) for n in range(committers))))


def _threads(store: Store, seconds: float, committers: int) -> int:
    events, end = _row_group(), time.perf_counter() + seconds
    counts = [0] * committers

    def commit_all(domain: int) -> None:
        while time.perf_counter() < end:
            counts[domain] += 1
            with store.begin() as group:
                group.write(events)
                group.commit(Gtid(domain, 1, counts[domain]))

    stack_size = threading.stack_size(_THREAD_STACK_BYTES)
    threads = [threading.Thread(target=commit_all, args=(n,)) for n in range(committers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.stack_size(stack_size)
    return sum(counts)


def _bulk(store: Store, seconds: float) -> int:
    rows = _rows(_BULK_EVENT_BYTES) * (_BULK_GROUP_BYTES // _BULK_EVENT_BYTES)
    done, groups, end = 0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        groups += 1
        with store.begin() as group:
            _write_bulk(group, rows)
            group.commit(Gtid(0, 1, groups))
        done += len(rows)
    return done


def _write_bulk(group: GroupWriter, rows: bytes) -> None:
    group.write(_table_map())
    group.write(rows)
    group.write(_xid())


def _row_group() -> bytes:
    """Return the events of a transaction that inserts one row."""
    return _table_map() + _rows(_ROW_BYTES) + _xid()


def _table_map() -> bytes:
    body = bytes(8) + b"\x04shop\0\x06orders\0\x01\x03\0\0"
    return build_event(EventType.TABLE_MAP, body, timestamp=1, server_id=1)


def _rows(size: int) -> bytes:
    body = bytes(6) + b"\x01\0" + b"\x01\xff" + b"r" * size
    return build_event(EventType.WRITE_ROWS_V1, body, timestamp=1, server_id=1)


def _xid() -> bytes:
    return build_event(EventType.XID, bytes(8), timestamp=1, server_id=1)
