"""
Where the time goes: one path in this process, asked every few ms of processor time where it is.

The clock is the processor's, so that a busy machine or a slow disk does not show; what C code does
counts for the line of Python that called it.
"""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.gtid import GtidPosition
from ibb.server.config import READ_BYTES, SERVER_VERSION_DEFAULT
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_request import DumpRequest
from ibb.server.dump.dump_terms import DumpTerms
from ibb.server.dump.pacing import Pacing
from ibb.server.dump.run_stream import RunStream
from ibb.server.relay.ingest import Ingest
from ibb.storage import Store, StoreOptions
from ibb.storage.clock import SystemClock
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import verify_directory

from .data_set import stream_head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from .data_set import DataSet
    from .workbench import Workbench

SAMPLE_SECONDS: Final = 0.004  # of processor time; kernels count in ticks of about that
PLACES_MAX: Final = 12  # told of
_SERVER_ID: Final = 3003
_CAPABILITY: Final = 4
_ROOT: Final = Path(__file__).parents[1]


class Share(NamedTuple):
    """One place in the code: which, and its part of the time, 0 to 1."""

    place: str
    share: float


class Profile(NamedTuple):
    """
    What a path came to.

    Attributes:
        processor: seconds for a GB of events.
        modules: where the time went, by module, most first.
        functions: the same by function.
    """

    processor: float
    modules: list[Share]
    functions: list[Share]


class _Samples:
    """Counts of where the main thread was, by (module, function)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def take(self, _: int, frame: FrameType | None) -> None:
        if frame is not None:
            self.counts[_module(frame.f_code.co_filename), frame.f_code.co_qualname] += 1

    def shares(self, key: Callable[[tuple[str, str]], str]) -> list[Share]:
        by_key: Counter[str] = Counter()
        for place, count in self.counts.items():
            by_key[key(place)] += count
        total = max(1, sum(by_key.values()))
        return [Share(place, count / total) for place, count in by_key.most_common(PLACES_MAX)]


def _module(file: str) -> str:
    path = Path(file)
    if file == "<string>":
        return "named tuples"  # made by `collections`, which gives their code no file
    if path.is_relative_to(_ROOT):
        return str(path.relative_to(_ROOT))
    return path.name


@contextmanager
def _sampled() -> Iterator[_Samples]:
    samples = _Samples()
    before = signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _serve(data: DataSet, _: Path) -> None:
    """Make every batch of a dump, as the pool's thread does; nothing is sent."""
    request = DumpRequest(
        file_name="",
        position=4,
        server_id=_SERVER_ID,
        non_block=True,
        annotate=True,
        connect_state=GtidPosition(),
        until=None,
        until_before=False,
        strict=False,
        ignore_duplicates=False,
        capability=_CAPABILITY,
        checksum=True,
        skip_marked=False,
        semi_sync=False,
        needs_start_list=False,
        join_fragments=False,
    )
    terms = DumpTerms(
        ReadOnlyHistory(OsDisk(), str(data.store)),
        request,
        server_id=_SERVER_ID + 1,
        server_version=SERVER_VERSION_DEFAULT,
        now=int(time.time()),
        pace=Pacing(0, 0, SystemClock()).for_reader(),
    )
    stream = RunStream(terms)
    batch = stream.start()
    while batch.outcome is Outcome.MORE:
        batch = stream.next_batch()
    stream.close()


def _ingest(data: DataSet, folder: Path) -> None:
    """Store a stream, synced as it comes, in pieces as large as a relay's reads."""
    directory = folder / "profiled"
    options = StoreOptions(format_description="upstream")
    try:
        with Store.open(directory, options) as store, data.stream().open("rb") as file:
            ingest = Ingest(store, has_checksum=True, strict=False)
            ingest.feed([stream_head()])
            while piece := file.read(READ_BYTES):
                ingest.feed([piece])
            assert ingest.groups == data.facts.groups
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _verify(data: DataSet, _: Path) -> None:
    for _finding in verify_directory(OsDisk(), str(data.store)):
        pass


_PATHS: Final = {"serve": _serve, "ingest": _ingest, "verify": _verify}
PATHS: Final = tuple(f"{path}-{kind}" for path in _PATHS for kind in ("bulk", "one-row"))


def profile(bench: Workbench, name: str) -> Profile:
    """
    Run one of `PATHS` over its data set, and tell where the time went.

    Args:
        bench: entered.
        name: of the path.
    """
    path, _, kind = name.partition("-")
    data = bench.data(kind)
    if path == "ingest":
        data.stream()
    with _sampled() as samples:
        begun = time.process_time()
        _PATHS[path](data, bench.folder)
        used = time.process_time() - begun
    return Profile(
        used / data.facts.size * 1e9,
        samples.shares(lambda place: place[0]),
        samples.shares(lambda place: f"{place[0]} {place[1]}"),
    )
