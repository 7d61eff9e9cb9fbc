"""
How long a store takes to open after its process was killed, with a full redo log.

A process makes some files that are mostly holes, fills others, logs one-row groups until the redo
segment is full, and ends without closing. What it left is opened again and again, each time by a
new process and as it was left, from the page cache and from the disk; then the same without the
older files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.file_name import binlog_name
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from ..storage.events import query, transaction, xid
from .sizes import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.storage.position import Position

BULK_EVENT_BYTES = 8 << 10
BULK_GROUP_BYTES = 256 << 10
REDO_LEFT_BYTES = 64 << 10  # with less than this the next group would begin another segment
SPAWN = multiprocessing.get_context("spawn")


class Left(NamedTuple):
    """
    What the process that was killed left.

    Attributes:
        groups: in the redo log.
        redo_bytes: of them.
        begun: end of the binlog when the log was begun; nothing before it will be changed.
        end: end of the binlog.
    """

    groups: int
    redo_bytes: int
    begun: Position
    end: Position


class Publisher:
    """Publishes groups 0-1-N, without waiting for any."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seq = store.state().seq(0, 1) or 0

    def __call__(self, events: bytes) -> None:
        self._seq += 1
        with self._store.begin() as group:
            group.write(events)
            group.commit(Gtid(0, 1, self._seq), wait=False)


def make_sparse_files(directory: Path, options: StoreOptions, count: int) -> None:
    """Make files with little in them, as long as full ones."""
    with Store.open(directory, options) as store:
        publish = Publisher(store)
        for _ in range(count):
            publish(transaction("insert"))
            store.switch_file()
    for file_no in range(count):
        os.truncate(directory / binlog_name(file_no), options.max_binlog_size)


def fill(directory: Path, options: StoreOptions, end_bytes: int) -> None:
    """Publish bulk groups until the binlog is *end_bytes* long."""
    bulk = query("x" * BULK_EVENT_BYTES) * (BULK_GROUP_BYTES // BULK_EVENT_BYTES) + xid(1)
    with Store.open(directory, options) as store:
        publish = Publisher(store)
        while (end := store.end()).file_no * options.max_binlog_size + end.offset < end_bytes:
            publish(bulk)
            store.sync()


def log_and_die(directory: Path, options: StoreOptions, row: bytes, answer: object) -> None:
    """Fill the redo log and end as a process does that is killed."""
    store = Store.open(directory, options)
    publish, redo, begun, groups = Publisher(store), store._engine._redo, store.end(), 0
    first_lsn = redo.next_lsn
    while redo.fits(REDO_LEFT_BYTES):
        publish(row)
        groups += 1
    store.sync()
    answer.send(Left(groups, redo.next_lsn - first_lsn, begun, store.end()))
    os._exit(9)


class Remains:
    """
    A directory that can be had back as it was.

    Args:
        directory: its path; a folder for copies is made beside it.
        left: what is in it. Of the binlog files only what lies behind `begun` is copied.
    """

    def __init__(self, directory: Path, left: Left) -> None:
        self._directory = directory
        self._copies = directory.with_name(directory.name + ".copies")
        self._copies.mkdir()
        self._names = {path.name for path in directory.iterdir()}
        self._begun, self._size = left.begun, left.end.offset - left.begun.offset + (1 << 20)
        assert left.begun.file_no == left.end.file_no
        for name in self._names:
            if not name.endswith(".ibb"):
                shutil.copy(directory / name, self._copies)
        with self._tail().open("rb") as file:
            file.seek(left.begun.offset)
            self._copy_of_tail().write_bytes(file.read(self._size))

    def _tail(self) -> Path:
        return self._directory / binlog_name(self._begun.file_no)

    def _copy_of_tail(self) -> Path:
        return self._copies / "tail"

    def restore(self) -> None:
        """Make the directory what it was."""
        for path in list(self._directory.iterdir()):
            if path.name not in self._names:
                path.unlink()
            elif not path.name.endswith(".ibb"):
                shutil.copy(self._copies / path.name, path)
        with self._tail().open("r+b") as file:
            file.seek(self._begun.offset)
            file.write(self._copy_of_tail().read_bytes())

    def forget_cached(self) -> None:
        """Have the next reads come from the disk."""
        for path in self._directory.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def open_store(directory: Path, options: StoreOptions) -> None:
    """Open as a writer."""
    Store.open(directory, options)


def open_read_only(directory: Path, _: StoreOptions) -> None:
    """Open as `ibb serve` does for a directory that another program writes."""
    ReadOnlyHistory(OsDisk(), str(directory))


def view(directory: Path, _: StoreOptions) -> None:
    """Open as `ibb groups` and `ibb inspect` do."""
    ReadOnlyHistory(recovered_view(OsDisk(), str(directory)), str(directory))


class Taken(NamedTuple):
    """What an opening took: seconds by the clock, and of the processor."""

    seconds: float
    processor: float


def time_of(
    opening: Callable[[Path, StoreOptions], None], directory: Path, options: StoreOptions
) -> Taken:
    """Open once in this process."""
    begun, processor = time.perf_counter(), time.process_time()
    opening(directory, options)
    return Taken(time.perf_counter() - begun, time.process_time() - processor)


def measure(directory: Path, options: StoreOptions, remains: Remains, rounds: int) -> None:
    """Print what the openings of one directory take."""
    files = len(list(directory.glob("*.ibb")))
    for opening in (open_store, view, open_read_only):
        for cached in (True, False):
            taken = []
            for _ in range(rounds):
                remains.restore()
                if not cached:
                    remains.forget_cached()
                with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
                    taken.append(pool.submit(time_of, opening, directory, options).result())
            place = "page cache" if cached else "disk"
            seconds = [one.seconds for one in taken]
            processor = statistics.median(one.processor for one in taken)
            print(
                f"{opening.__name__:<16}{files:>5} files, from the {place:<12}"
                f"{statistics.median(seconds):7.2f} s   ({min(seconds):.2f} to {max(seconds):.2f})"
                f"   processor {processor:.2f} s",
                flush=True,
            )


def main(arguments: list[str] | None = None) -> Left:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/measure-restart", description=__doc__)
    parser.add_argument("--folder", help="where to work; it needs room for all the files")
    parser.add_argument("--files", type=int, default=4, help="files that are full")
    parser.add_argument("--file-size", type=parse_size, default="1G")
    parser.add_argument("--redo", type=parse_size, default="64M", help="size of a redo segment")
    parser.add_argument("--row", type=parse_size, default="100", help="bytes of a row in the log")
    parser.add_argument("--sparse", type=int, default=100, help="older files that are mostly holes")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    options = StoreOptions(max_binlog_size=given.file_size, redo_segment_size=given.redo)
    with tempfile.TemporaryDirectory(prefix="ibb-restart-", dir=given.folder) as folder:
        directory = Path(folder) / "store"
        make_sparse_files(directory, options, given.sparse)
        total = (given.sparse + given.files) * given.file_size
        fill(directory, replace(options, flush_log_at_commit=0), total - 2 * given.redo)
        receiver, sender = SPAWN.Pipe(duplex=False)
        row = transaction("x" * given.row)
        process = SPAWN.Process(target=log_and_die, args=(directory, options, row, sender))
        process.start()
        sender.close()
        left: Left = receiver.recv()
        process.join()
        print(
            f"{left.groups:,} groups of {len(row)} bytes in {left.redo_bytes / (1 << 20):.1f} MiB "
            f"of redo log; the binlog ends at {left.end}",
            flush=True,
        )
        remains = Remains(directory, left)
        measure(directory, options, remains, given.rounds)
        for file_no in range(given.sparse):
            (directory / binlog_name(file_no)).unlink()
        measure(directory, options, remains, given.rounds)
    return left


if __name__ == "__main__":
    main()
