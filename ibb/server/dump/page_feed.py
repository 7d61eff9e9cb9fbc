"""Pages for an encoder, as it wants them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ibb.storage.errors import DiskError
from ibb.storage.page_room import PageRoom
from ibb.storage.page_runs import LONG_RUN_BYTES

from . import event_packets

if TYPE_CHECKING:
    from ibb.storage.file_header import FileHeader
    from ibb.storage.page_runs import PageRun, PageRuns

    from .run_encoder import RunEncoder

FIRST_BYTES: Final = 64 << 10  # read at first: who seeks waits for them, and perhaps leaves
RUNS_KEPT: Final = 3  # of an encoder that goes back from a commit record to its pieces


class PageFeed:
    """
    What one encoder has of its file.

    Args:
        runs: the pages of the history.

    Attributes:
        known: the pages that it has; None: none, or none that are known here.
        is_alone: nobody else will want its pages; may be set.
    """

    def __init__(self, runs: PageRuns) -> None:
        self._runs = runs
        self.known: PageRun | None = None
        self.is_alone = False
        self._before: deque[PageRun] = deque(maxlen=RUNS_KEPT)  # where it may go back to
        self._has_begun = False
        self._room: PageRoom | None = None  # for pages that nobody else wants

    def forget(self) -> None:
        """Let all pages go."""
        self.known = None
        self._before.clear()

    def rest(self) -> None:
        """As `forget`, for a while: what pages were read into goes as well."""
        self.forget()
        self._room = None

    def run(
        self,
        encoder: RunEncoder,
        header: FileHeader,
        out: memoryview,
        wanted: int,
        seq: int,
        end: int | None = None,
    ) -> int:
        """
        Run an encoder until it is full or cannot go on; return FULL, ODD, or NEED if no page helps.

        Args:
            encoder: is run.
            header: of the file that it is in.
            out: a buffer, the same until what is in it was taken.
            wanted: bytes of packets.
            seq: sequence id of the first packet in *out*.
            end: offset in the file behind which nothing is looked for; None: there may be more.
        """
        while (code := encoder.run(out, wanted, seq)) == event_packets.NEED:
            if end is not None and encoder.border >= end and not encoder.in_group:
                break
            known = self._next(header, encoder.walker.wanted_page(header.page_size))
            if known is None or not known.give_to(encoder.walker):
                break
            self.known = known
        return code

    def _next(self, header: FileHeader, page: int) -> PageRun | None:
        """Return pages from the one wanted on, more of them than are known."""
        if not self._has_begun:
            self._has_begun = True
            few = self._first(header, page)
            if few is not None:
                return few
        known = self.known
        known_end = known.first + known.pages if known and known.first <= page else 0
        if not self.is_alone:
            self._before.clear()
        elif known is not None and not any(run is known for run in self._before):
            self._before.append(known)
        for run in self._before:
            if run.first <= page < run.first + run.pages and page >= known_end:
                return run
        wanted_end = known_end if page < known_end else 0
        return self._runs.load(header, page, wanted_end, room=self._free_room())

    def _free_room(self) -> memoryview | None:
        """Return where to read to if nobody else will want what is read."""
        if not self.is_alone:
            return None
        if self._room is None:
            self._room = PageRoom(LONG_RUN_BYTES, RUNS_KEPT + 2)
        return self._room.free([*self._before, *filter(None, (self.known,))])

    def _first(self, header: FileHeader, page: int) -> PageRun | None:
        """Return a few pages, if they are whole and right."""
        runs, count = self._runs, max(FIRST_BYTES // header.page_size, 1)
        try:
            whole = runs._whole_pages(header, page + count)  # noqa: SLF001 - as the runs are read
            run = runs._read(header, page, count) if whole == page + count else None  # noqa: SLF001
        except DiskError:
            return None  # it is seen again, and told
        return run if run is not None and run.pages == count else None
