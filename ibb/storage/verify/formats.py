"""The sidecar of format descriptions against the records. Source: `format_catalogue.py`."""

from collections.abc import Iterator
from contextlib import suppress

from ibb.protocol.errors import FormatError
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError
from ibb.storage.format_catalogue import SIDECAR_NAME, read_sidecar
from ibb.storage.position import Position

from .finding import Finding, Kind, Place
from .losses import Losses

LOOKS_MAX = 100  # at a sidecar that does not tell of a record; each look reads all of it


class FormatsCheck:
    """
    Learns of each format description record.

    Args:
        disk: where the directory is.
        directory: its path.
        losses: takes findings.
    """

    def __init__(self, disk: Disk, directory: str, losses: Losses) -> None:
        self._disk = disk
        self._path = f"{directory}/{SIDECAR_NAME}"
        self._losses = losses
        self._looks = 0
        self._entries: dict[Position, bytes] = {}
        self._complete_from: Position | None = None
        try:
            self._read(Position(0, 0))
        except FormatError as error:
            losses.report(Finding(kind=Kind.SIDECAR, text=error.what, file=SIDECAR_NAME))

    def seen(self, place: Place, event: bytes) -> None:
        """Compare a record with the entry for its place."""
        if self._tells(place.position, event):
            return
        if self._looks < LOOKS_MAX:
            self._looks += 1
            with suppress(FormatError, DiskError):  # what was read before is the last word then
                self._read(place.position)  # its writer may have noted this one since
            if self._tells(place.position, event):
                return
        text = f"{SIDECAR_NAME} does not tell of this format description"
        self._losses.report(Finding.at(Kind.SIDECAR, place, text))

    def _tells(self, position: Position, event: bytes) -> bool:
        if self._complete_from is None or position < self._complete_from:
            return True
        return self._entries.pop(position, None) == event

    def _read(self, start: Position) -> None:
        """Take what the sidecar says by now of *start* and what lies behind it."""
        try:
            stored = read_sidecar(self._disk, self._path)
        except DiskError as error:
            if not error.missing:
                raise
            stored = None  # removed meanwhile
        entries, self._complete_from = ([], None) if stored is None else stored
        before = {place: event for place, event in self._entries.items() if place < start}
        self._entries = before | {place: event for place, event in entries if place >= start}

    def unmatched(self, first_file: int) -> Iterator[Finding]:
        """Yield the entries without a record in the files that exist."""
        for position in self._entries:
            if position.file_no >= first_file:
                text = f"no format description record is at {position}: the entry is ignored"
                yield Finding(kind=Kind.SIDECAR_ENTRY, text=text, file=SIDECAR_NAME)
