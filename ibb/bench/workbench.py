"""What all rows measure with: sizes, data sets, the two sides, and who is first when."""

from __future__ import annotations

import signal
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from ibb.demo.installation import Installation

from .data_set import DataSet, Recipe, data_set
from .errors import BenchError
from .peer import Peer, ibb_peer, mariadb_peer
from .readers import ReadResult, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

Result = TypeVar("Result")
_SIGNALLED = 128  # exit status of who ends by a signal, as shells have it, less its number


@dataclass(frozen=True)
class Scale:
    """
    How much is measured.

    Args:
        name: of the scale.
        bulk, one_row, mixed, huge, history: bytes of the data sets.
        live_seconds: of a load at a steady rate.
        idle_seconds: for which idle readers are watched.
        seeks: a round.
        sparse_files: numbers of files to seek in.
        idle_readers: connected at a time.
        tail_readers: likewise, at the end of a live load.
        crowd: likewise, in the row that is about many.
        file_bytes: of each `.ibb` file that is written.
    """

    name: str
    bulk: int
    one_row: int
    mixed: int
    huge: int
    history: int
    live_seconds: float
    idle_seconds: float
    seeks: int
    sparse_files: tuple[int, ...]
    idle_readers: int
    tail_readers: int
    crowd: int
    file_bytes: int


MIB = 1 << 20
GIB = 1 << 30
FULL = Scale(
    name="full",
    bulk=GIB,
    one_row=1000 * MIB,
    mixed=256 * MIB,
    huge=2 * GIB,
    history=3900 * MIB,
    live_seconds=10.0,
    idle_seconds=20.0,
    seeks=100,
    sparse_files=(10, 100, 1000, 10_000),
    idle_readers=1000,
    tail_readers=64,
    crowd=1000,
    file_bytes=GIB,
)
QUICK = Scale(
    name="quick",
    bulk=96 * MIB,
    one_row=26 * MIB,
    mixed=16 * MIB,
    huge=64 * MIB,
    history=64 * MIB,
    live_seconds=2.0,
    idle_seconds=3.0,
    seeks=10,
    sparse_files=(10, 100),
    idle_readers=100,
    tail_readers=16,
    crowd=100,
    file_bytes=128 * MIB,
)
TINY = Scale(
    name="tiny",
    bulk=2 * MIB,
    one_row=MIB // 4,
    mixed=MIB,
    huge=4 * MIB,
    history=4 * MIB,
    live_seconds=0.2,
    idle_seconds=0.3,
    seeks=2,
    sparse_files=(2, 64),
    idle_readers=5,
    tail_readers=2,
    crowd=5,
    file_bytes=8 * MIB,
)
SCALES = {scale.name: scale for scale in (FULL, QUICK, TINY)}


class Workbench:
    """
    One run of the suite; a context manager that ends its servers and removes their folders.

    Args:
        scale: how much.
        folder: where data sets are kept and servers work; None: a temporary one.
        installation: of MariaDB; None: this side is measured alone.
        tell: told what is going on, for people.
    """

    def __init__(
        self,
        scale: Scale,
        folder: Path | None = None,
        installation: Installation | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.scale = scale
        self.installation = installation
        self.tell = tell
        self._kept = folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._until_terminated()
        if self._kept is not None:
            self._kept.mkdir(parents=True, exist_ok=True)
        # Servers work beside the data sets, so that both sides use the same disk.
        work = tempfile.TemporaryDirectory(prefix="ibb-bench-", dir=self._kept)
        self.folder = Path(self._stack.enter_context(work))
        self._data = self._kept or self.folder
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _until_terminated(self) -> None:
        """Let SIGTERM end the block in order: the servers have sessions of their own and stay."""

        def end(number: int, _: FrameType | None) -> None:
            raise SystemExit(_SIGNALLED + number)

        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, end)
            self._stack.callback(signal.signal, signal.SIGTERM, before)

    def data(self, kind: str) -> DataSet:
        """Return the data set of a kind, made if it is not there yet; each row begins warm."""
        size = getattr(self.scale, kind.replace("-", "_"))
        return self.sized("bulk" if kind == "history" else kind, size)

    def sized(self, kind: str, size: int) -> DataSet:
        """Return the data set of a kind with about *size* bytes."""
        recipe = Recipe(kind, size, self.scale.file_bytes)

        def progress(share: float) -> None:
            self.tell(f"making {recipe.kind} data, {share:.0%}")

        made = data_set(recipe, self._data, progress)
        self.tell(f"reading {recipe.kind} data")
        made.warm()
        return made

    def ibb(self, directory: Path, *arguments: str) -> AbstractContextManager[Peer]:
        """Run `ibb serve` over a directory with files of the scale's size."""
        size = f"--max-binlog-size={self.scale.file_bytes}"
        return ibb_peer(directory, self.folder, [size, *arguments])

    @contextmanager
    def both(self, data: DataSet) -> Iterator[tuple[Peer, Peer | None]]:
        """
        Run both sides over a data set, and let a reader compare each byte of what they send.

        That reading is also what warms both sides alike: figures behind it are warm.

        Raises:
            BenchError: a side sends something else than was stored.
        """
        with ExitStack() as stack:
            ours = stack.enter_context(self.ibb(data.store))
            theirs = None
            if self.installation is not None:
                theirs = stack.enter_context(mariadb_peer(self.installation, self.folder, data))
            for peer in (ours, theirs):
                if peer is not None:
                    self.tell(f"comparing what {peer.name} sends")
                    check(peer, read(peer, content=True), data, content=True)
            yield ours, theirs

    @contextmanager
    def mariadb(self) -> Iterator[Peer]:
        """
        Run an empty mariadbd.

        Raises:
            BenchError: none is installed.
        """
        if self.installation is None:
            raise BenchError("this row needs a mariadbd, and none is installed")
        with mariadb_peer(self.installation, self.folder) as peer:
            yield peer


def check(peer: Peer, result: ReadResult, data: DataSet, *, content: bool = False) -> None:
    """
    Refuse what is not the whole data set, for each reader.

    Raises:
        BenchError: bytes, events, groups or their shape differ; with *content*, any byte.
    """
    facts = data.facts
    wanted = (facts.size, facts.events, facts.groups, facts.shape)
    for one in result.outcomes:
        got = (one.size, one.events, one.groups, one.shape)
        if got != wanted or (content and one.content != facts.content):
            raise BenchError(
                f"{peer.name} sent {one.groups} groups, {one.events} events, {one.size} bytes "
                f"where {facts.groups}, {facts.events}, {facts.size} were due, or other bytes"
            )


def in_turn(
    turn: int, ours: Callable[[], Result], theirs: Callable[[], Result] | None
) -> tuple[Result, Result | None]:
    """Measure both sides one after the other; who is first changes with each *turn*."""
    if theirs is None:
        return ours(), None
    if turn % 2:
        other = theirs()
        return ours(), other
    own = ours()
    return own, theirs()
