"""How long a reader waits for its first group, wherever it begins."""

from __future__ import annotations

import random
import statistics
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ibb.bench.errors import BenchError
from ibb.bench.events import DOMAIN, SERVER_ID, one_row_group
from ibb.bench.figures import Sample, value_at_most
from ibb.bench.peer import Peer, mariadb_peer
from ibb.bench.readers import Readers, ReplicaConnection, allow_descriptors
from ibb.bench.row import Row
from ibb.bench.waiting import wait_until
from ibb.bench.workbench import in_turn
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.disk import File
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import Newest, find_start
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.rising_note import NOTE_FILES, NOTE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ibb.bench.workbench import Workbench

APART_SECONDS = 0.003  # of two seeks: a server that lets a reader go has something else to do
NOTE_SECONDS_MAX = 120.0  # until all files of a store were looked at
_FILE_BYTES = 64 << 10  # of each of many files
_GROUPS_A_FILE = 3


def first_groups(peer: Peer, numbers: list[int], *, apart: float = APART_SECONDS) -> list[float]:
    """
    Seek to each group of *numbers* in turn; return milliseconds from the request to the group.

    Args:
        peer: where.
        numbers: which.
        apart: seconds between the goodbye of one reader and the request of the next.

    Raises:
        BenchError: another group came first.
    """
    allow_descriptors(len(numbers))
    connections = [ReplicaConnection(peer, position(number)) for number in numbers]
    with Readers(connections, groups=1, apart=apart) as readers:
        readers.go()
        outcomes = readers.result(expect="full").outcomes
    for number, one in zip(numbers, outcomes, strict=True):
        if one.first_seq != number:
            raise BenchError(f"{peer.name} began with group {one.first_seq} where {number} was due")
    return [(one.first_ns - one.start_ns) / 1e6 for one in outcomes]


def position(number: int) -> str:
    """Return the GTID position behind which group *number* is the first."""
    return "" if number == 1 else str(Gtid(DOMAIN, SERVER_ID, number - 1))


class ReadCountingDisk(OsDisk):
    """The real disk, with a count of the reads of files: `reads`."""

    def __init__(self) -> None:
        self.reads = 0

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> File:
        """Open a file whose reads count."""
        file = super().open(path, create=create, read_only=read_only)
        read_at = file.read_at

        def counted(offset: int, size: int) -> bytes:
            self.reads += 1
            return read_at(offset, size)

        file.read_at = counted  # type: ignore[method-assign]
        return file


class PageReads(NamedTuple):
    """How often files are read for one seek: to find the place, and from there to the group."""

    place: int
    group: int


def page_reads(directory: Path, number: int) -> PageReads:
    """Seek to group *number* with nothing kept but what is the newest, as a server knows it."""
    disk = ReadCountingDisk()
    with closing(ReadOnlyHistory(disk, str(directory))) as history:
        newest = Newest(history.end(), history.state())
        before = disk.reads
        place = find_start(history.pages, GtidPosition.parse(position(number)), newest)
        found = disk.reads
        reader = GroupReader(history.pages, place.position)
        while (group := reader.next()) is not None:
            if group.gtid is not None and group.gtid.seq == number:
                return PageReads(found - before, disk.reads - found)
        raise BenchError(f"group {number} is not in {directory}")


def median_reads(directory: Path, numbers: list[int]) -> tuple[float, float]:
    """Return the medians of `page_reads` over *numbers*."""
    reads = [page_reads(directory, number) for number in numbers]
    return (
        statistics.median(one.place for one in reads),
        statistics.median(one.group for one in reads),
    )


@contextmanager
def _full(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data("one-row")
    source = random.Random(7)  # noqa: S311 - places, not secrets

    def sought(turn: int, numbers: list[int], apart: float) -> tuple[list[float], list[float]]:
        """Seek on both sides, started for it, so that no place is remembered from before."""
        with ExitStack() as stack:
            ours = stack.enter_context(bench.ibb(data.store))
            theirs = None
            if bench.installation is not None:
                theirs = stack.enter_context(mariadb_peer(bench.installation, bench.folder, data))
            own, other = in_turn(
                turn,
                lambda: first_groups(ours, numbers, apart=apart),
                (lambda: first_groups(theirs, numbers, apart=apart)) if theirs else None,
            )
        return own, other or []

    def measure(turn: int) -> list[Sample]:
        numbers = [source.randint(1, data.facts.groups) for _ in range(bench.scale.seeks)]
        samples = []
        for name, apart in (("p50", APART_SECONDS), ("p50 in a row", 0.0)):
            own, other = sought(turn, numbers, apart)
            median = statistics.median(other) if other else None
            samples.append(
                Sample(name, "ms", statistics.median(own), median, value_at_most(0.9, 0.4))
            )
            if apart:
                samples.append(Sample("slowest", "ms", max(own), max(other, default=None)))
        reads = median_reads(data.store, numbers)
        return [
            *samples,
            Sample("reads to find the place", "", reads[0]),
            Sample("reads from there to the group", "", reads[1]),
        ]

    yield measure


def make_sparse(directory: Path, files: int) -> None:
    """Make a store of many files with `_GROUPS_A_FILE` groups in each."""
    template, seq = one_row_group(), 0
    options = StoreOptions(
        max_binlog_size=_FILE_BYTES, state_interval=16 << 10, flush_log_at_commit=0
    )
    with Store.open(directory, options) as store:
        for _ in range(files):
            for _ in range(_GROUPS_A_FILE):
                seq += 1
                with store.begin() as group:
                    group.write(template.piece(seq).data)
                    group.commit(Gtid(DOMAIN, SERVER_ID, seq), wait=False)
            store.switch_file()


def _have_noted(bench: Workbench, directory: Path) -> None:
    """Serve a store for as long as it takes to note that the states of its files rise."""
    with bench.ibb(directory) as peer:

        def is_noted() -> bool:
            peer.query("SELECT 1")  # it is there
            return (directory / NOTE_NAME).exists()

        wait_until(is_noted, NOTE_SECONDS_MAX, f"the files of {directory} were not noted")


@contextmanager
def _files(bench: Workbench) -> Iterator[Callable[[int], list[Sample]]]:
    source = random.Random(8)  # noqa: S311 - as above
    stores = []
    for files in bench.scale.sparse_files:
        bench.tell(f"making {files} files")
        directory = bench.folder / f"files-{files}"
        make_sparse(directory, files)
        if files >= NOTE_FILES:
            _have_noted(bench, directory)
        stores.append((files, directory))

    def measure(turn: int) -> list[Sample]:
        del turn  # mariadbd has no part in it
        samples, medians = [], []
        for files, directory in stores:

            def numbers(files: int = files) -> list[int]:
                last = files * _GROUPS_A_FILE
                return [source.randint(1, last) for _ in range(bench.scale.seeks)]

            alone = numbers()
            with bench.ibb(directory) as peer:
                medians.append(statistics.median(first_groups(peer, alone)))
            with bench.ibb(directory) as peer:
                in_a_row = statistics.median(first_groups(peer, numbers(), apart=0))
            samples += [
                Sample(f"{files} files, p50", "ms", medians[-1]),
                Sample(f"{files} files, p50 in a row", "ms", in_a_row),
                Sample(f"{files} files, reads", "", sum(median_reads(directory, alone))),
            ]
        samples.append(
            Sample(
                "most over fewest files", "x", medians[-1] / medians[0], None, value_at_most(1.5)
            )
        )
        return samples

    yield measure


ROWS = (
    Row(
        "seek-full",
        "time from asking to the first group, anywhere in a full file of one-row groups, by GTID",
        "page cache warm, servers just started",
        _full,
    ),
    Row(
        "seek-files",
        "the same against the number of files, each with a few groups",
        "page cache warm, servers just started, an earlier one has noted files",
        _files,
    ),
)
