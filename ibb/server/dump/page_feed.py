"""Pages for an encoder, as it wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import event_packets

if TYPE_CHECKING:
    from ibb.storage.file_header import FileHeader
    from ibb.storage.page_runs import PageRun, PageRuns

    from .run_encoder import RunEncoder


class PageFeed:
    """
    What one encoder has of its file.

    Args:
        runs: the pages of the history.

    Attributes:
        known: the pages that it has; None: none, or none that are known here.
    """

    def __init__(self, runs: PageRuns) -> None:
        self._runs = runs
        self.known: PageRun | None = None

    def run(
        self, encoder: RunEncoder, header: FileHeader, out: bytearray, wanted: int, seq: int
    ) -> int:
        """
        Run an encoder until it is full or cannot go on; return FULL, ODD, or NEED if no page helps.

        Args:
            encoder: is run.
            header: of the file that it is in.
            out: a buffer, the same until what is in it was taken.
            wanted: bytes of packets.
            seq: sequence id of the first packet in *out*.
        """
        while (code := encoder.run(out, wanted, seq)) == event_packets.NEED:
            page, known = encoder.walker.wanted_page(header.page_size), self.known
            known_end = known.first + known.pages if known and known.first <= page else 0
            known = self._runs.load(header, page, known_end if page < known_end else 0)
            if known is None or not encoder.walker.load(*known):
                break
            self.known = known
        return code
