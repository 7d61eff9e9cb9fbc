"""The sidecar of format descriptions against the records. Source: `format_catalogue.py`."""

from collections.abc import Iterator

from ibb.protocol.errors import FormatError
from ibb.storage.disk import Disk
from ibb.storage.format_catalogue import SIDECAR_NAME, read_sidecar
from ibb.storage.position import Position

from .finding import Finding, Kind, Place
from .losses import Losses


class FormatsCheck:
    """
    Learns of each format description record.

    Args:
        disk: where the directory is.
        directory: its path.
        losses: takes findings.
    """

    def __init__(self, disk: Disk, directory: str, losses: Losses) -> None:
        self._losses = losses
        self._entries: dict[Position, bytes] = {}
        self._complete_from: Position | None = None
        try:
            stored = read_sidecar(disk, f"{directory}/{SIDECAR_NAME}")
        except FormatError as error:
            losses.report(Finding(kind=Kind.SIDECAR, text=error.what, file=SIDECAR_NAME))
        else:
            if stored is not None:
                self._entries = dict(stored[0])
                self._complete_from = stored[1]

    def seen(self, place: Place, event: bytes) -> None:
        """Compare a record with the entry for its place."""
        if self._complete_from is None or place.position < self._complete_from:
            return
        if self._entries.pop(place.position, None) != event:
            text = f"{SIDECAR_NAME} does not tell of this format description"
            self._losses.report(Finding.at(Kind.SIDECAR, place, text))

    def unmatched(self, first_file: int) -> Iterator[Finding]:
        """Yield the entries without a record in the files that exist."""
        for position in self._entries:
            if position.file_no >= first_file:
                text = f"no format description record is at {position}: the entry is ignored"
                yield Finding(kind=Kind.SIDECAR_ENTRY, text=text, file=SIDECAR_NAME)
