"""Pages for an encoder, as it wants them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ibb.storage.errors import DiskError

from . import encoder_state, event_packets
from .page_rings import PageRings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ibb.server.connections.direct_sender import DirectSender
    from ibb.server.work_permits import WorkPermits
    from ibb.storage.file_header import FileHeader
    from ibb.storage.page_ring import PageRing
    from ibb.storage.page_runs import LentFile, PageRun, PageRuns
    from ibb.storage.record_walker import RecordWalker

    from .run_encoder import RunEncoder
    from .shared_pieces import Sharing

FIRST_BYTES: Final = 64 << 10  # read at first: who seeks waits for them, and perhaps leaves
_rings: Final = PageRings()


class PageFeed:
    """
    What one encoder has of its file.

    Args:
        runs: the pages of the history.

    Attributes:
        has_pages: the encoder has pages that are known here.
    """

    def __init__(self, runs: PageRuns) -> None:
        self._runs = runs
        self.has_pages = False
        self._known: PageRun | None = None  # pages that others may have as well
        self._has_begun = self._has_left = False
        self._ring: tuple[PageRing, memoryview] | None = None  # pages for this one alone

    def forget(self) -> None:
        """Let all pages go."""
        self._known, self.has_pages = None, False

    def lend(self, encoder: RunEncoder) -> None:
        """Let others have the ring, until `run_alone`; the encoder has handed out all."""
        if self._ring is not None:
            encoder_state.copy_state(encoder, encoder)
            self.forget()
            ring, self._ring = self._ring, None
            _rings.give_back(self, *ring)
            if self._has_left:
                _rings.forget(self)

    def rest(self, encoder: RunEncoder) -> None:
        """Keep no page, for a while; the encoder has handed out all."""
        if self.has_pages or self._ring is not None:
            encoder_state.copy_state(encoder, encoder)
        self.forget()
        self._ring = None
        _rings.forget(self)

    def leave(self) -> None:
        """Come back to no ring; from any thread."""
        self._has_left = True
        _rings.forget(self)

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
        if encoder.walker.left and not self.has_pages and not self._attach(encoder, header):
            encoder.take_back()
            return event_packets.ODD
        while (code := encoder.run(out, wanted, seq)) == event_packets.NEED:
            if end is not None and encoder.border >= end and not encoder.in_group:
                break
            known = self._next(header, encoder.walker)
            if known is None:
                break
            self._known, self.has_pages = known, True
        return code

    def run_alone(
        self,
        encoder: RunEncoder,
        file: AbstractContextManager[LentFile],
        out: memoryview,
        wanted: int,
        seq: int,
        most: int,
        seconds: float,
        sender: DirectSender | None,
        sharing: Sharing | None = None,
        permits: WorkPermits | None = None,
    ) -> int:
        """
        As `run`, with pages that nobody else will want, which may be NEED although there are more.

        Args:
            encoder: is run.
            file: that it is in.
            out: as for `run`.
            wanted: as for `run`.
            seq: as for `run`.
            most: bytes that are sent, a piece whenever there is as much as is wanted, before this
                returns FULL; `RunEncoder.pump` says how.
            seconds: for which it does that.
            sender: sends them; None: it returns FULL when there is as much as is wanted.
            sharing: with others who pass the same pages; *wanted* is a whole piece then.
            permits: as for `RunEncoder.pump`.

        Raises:
            OSError: the client has gone.
        """
        self._ring = self._ring or _rings.take(self)
        ring, _ = self._ring
        with file as (file_no, page_size, descriptor, stop):
            if not ring.open(encoder.walker, file_no, page_size, descriptor, stop):
                return event_packets.NEED
            self._known, self.has_pages = None, True
            if sender is None:
                return encoder.pump(out, wanted, seq, ring, -1, 0, 0)
            until = round(seconds * 1e9)
            if sharing is None:
                code = sender.lend(
                    lambda it: encoder.pump(out, wanted, seq, ring, it, most, until, permits)
                )
            else:
                pump, followed, made_max = sharing
                terms = most, until, followed, made_max, permits
                code = sender.lend(lambda it: pump.run(encoder, out, seq, ring, it, *terms))
                self.has_pages = not pump.is_lost
        if encoder.error:
            raise OSError(encoder.error, os.strerror(encoder.error))
        return code

    def _attach(self, encoder: RunEncoder, header: FileHeader) -> bool:
        """Give an encoder the page again that it is inside of, behind a block of another's."""
        known = self._known = self._runs.load(header, encoder.walker.page, 0)
        self.has_pages = known is not None and encoder_state.attach(encoder, *known[:5])
        return self.has_pages

    def _next(self, header: FileHeader, walker: RecordWalker) -> PageRun | None:
        """Have a walker take more pages, from the one that it wants on; return them, or None."""
        page, known = walker.wanted_page(header.page_size), self._known
        known_end = known.first + known.pages if known and known.first <= page else 0
        run = None if self._has_begun else self._first(header, page)
        self._has_begun = True
        if run is None:
            run = self._runs.load(header, page, known_end if page < known_end else 0)
        if run is None or run.give_to(walker):
            return run
        if known is not None or not self.has_pages:
            return None
        run = self._runs.load(header, page, run.first + run.pages)  # it has those, of a ring
        return run if run is not None and run.give_to(walker) else None

    def _first(self, header: FileHeader, page: int) -> PageRun | None:
        """Return a few pages, if they are whole and right."""
        runs, count = self._runs, max(FIRST_BYTES // header.page_size, 1)
        try:
            whole = runs._whole_pages(header, page + count)  # noqa: SLF001 - as the runs are read
            run = runs._read(header, page, count) if whole == page + count else None  # noqa: SLF001
        except DiskError:
            return None  # it is seen again, and told
        return run if run is not None and run.pages == count else None
