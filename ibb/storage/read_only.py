"""
A directory that another program writes, as a history to serve.

At rest, all of it is served. Once the files are seen to change, only what that program has surely
synced: it makes file N + 1 only when file N - 1 is all on disk. What was served at rest stays
served. With `follow_unsynced` the newest bytes are served too; after a crash of the machine the
program that writes may not have them any more. Source: ibb-format 9.4.
"""

import threading
from collections.abc import Callable

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError

from .backup import check_finished
from .directory import BinlogDirectory
from .disk import Disk
from .errors import DiskError
from .format_catalogue import SIDECAR_NAME, FormatCatalogue
from .history import BinlogFileInfo
from .holds import Hold, HoldKind, Holds
from .listing import Listing
from .position import Position
from .rising_note import RisingNote
from .state_scan import StateFollower


class ReadOnlyHistory:
    """
    The history in a directory. Safe to use from several threads.

    Args:
        disk: where the directory is.
        path: of the directory.
        follow_unsynced: serve also what may not be synced yet.

    Attributes:
        damage: what keeps the state from being followed further, if anything does; readers of
            that place get the same error.
        rising_note: of files that searches need not look at, if there is one.

    Raises:
        DiskError: the directory cannot be read.
    """

    def __init__(self, disk: Disk, path: str, *, follow_unsynced: bool = False) -> None:
        check_finished(disk, path)
        self._follow_unsynced = follow_unsynced
        self._mutex = threading.Lock()
        self._holds = Holds()
        self._changing = False
        self._wakes: dict[object, Callable[[], None]] = {}
        self._pages = BinlogDirectory(disk, path)
        self._end = self._pages.end()  # as of the last look: what waits for more has seen that
        self._pages.limit = None if follow_unsynced else self._end
        self._sidecar = (disk, f"{path}/{SIDECAR_NAME}")
        self._formats = FormatCatalogue(self._pages, self._sidecar)
        self._place = (disk, path)
        self.rising_note = RisingNote(*self._place, self._pages, is_kept=False)
        self._follower = StateFollower(self._pages)
        self.damage: FormatError | DiskError | None = None
        self._follow()

    @property
    def pages(self) -> BinlogDirectory:
        """The pages that are served."""
        return self._pages

    @property
    def formats(self) -> FormatCatalogue:
        """Which format description is in force where."""
        return self._formats

    @property
    def generation(self) -> int:
        """How often another process was seen to have begun the directory anew."""
        return self._pages.generation

    def is_still(self, generation: int) -> bool:
        """Tell whether nobody began the directory anew since then; nobody need have looked."""
        return self._pages.is_still(generation)

    @property
    def is_changing(self) -> bool:
        """Whether the files were seen to change."""
        return self._changing

    def state(self) -> BinlogState:
        """Return the binlog state at the end of what is served; a copy."""
        with self._mutex:
            return self._follower.state.copy()

    def files(self) -> list[BinlogFileInfo]:
        """Return the files, oldest first, the empty preallocated one too."""
        return self._pages.files()

    def end(self) -> Position:
        """Return the end of what is served."""
        return self._pages.end()

    def refresh(self) -> None:
        """
        Look again what there is, and wake those who wait if there is more.

        Raises:
            DiskError: the directory cannot be read.
        """
        with self._mutex:
            before, end, generation = self._pages.listing, self._end, self._pages.generation
            self._pages.refresh()
            listing = self._pages.listing
            is_anew = self._pages.generation != generation
            if is_anew:
                end = Position(0, 0)  # nothing of it was served
            self._changing = self._changing or is_anew or listing != before
            if self._changing and not self._follow_unsynced:
                self._pages.limit = max(end, _surely_synced(listing))
            if is_anew:
                self._formats = FormatCatalogue(self._pages, self._sidecar)
                self.rising_note = RisingNote(*self._place, self._pages, is_kept=False)
                self._follower = StateFollower(self._pages)
            self._follow()
            self._end = self._pages.end()
            wakes = list(self._wakes.values()) if self._end != end else []
        for wake in wakes:
            wake()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have *wake* called when a refresh finds more; return what ends that."""
        token = object()
        with self._mutex:
            self._wakes[token] = wake

        def unsubscribe() -> None:
            with self._mutex:
                self._wakes.pop(token, None)

        return unsubscribe

    def hold(self, kind: HoldKind, name: str) -> Hold:
        """Return a hold that is noted here; the program that writes does not know of it."""
        return self._holds.take(kind, name, self._pages.first_file)

    def close(self) -> None:
        """Close the files."""
        self._pages.close()

    def _follow(self) -> None:
        try:
            self._follower.advance()
            self.damage = None
        except (FormatError, DiskError) as error:
            self.damage = error


def _surely_synced(listing: Listing) -> Position:
    """Return the end of what is on disk for certain: that of file N - 1 once N + 1 exists."""
    newest = listing.numbers[-1] if listing.numbers else 0
    return Position(max(newest - 1, 0), 0)
