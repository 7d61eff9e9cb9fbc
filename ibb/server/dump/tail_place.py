"""Where a reader is that was sent everything, for whoever makes what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ibb.storage.chunk import last_chunk_start
from ibb.storage.position import Position

from . import event_packets
from .dump_batch import Place
from .run_encoder import RunEncoder

if TYPE_CHECKING:
    from ibb.protocol.event_encoder import EventEncoder
    from ibb.storage.file_header import FileHeader


class PacketKind(NamedTuple):
    """What packets follow from, beside the history: the terms of a `RunEncoder`."""

    checksum: bool
    fates: bytes
    marked: int

    def encoder(self) -> RunEncoder:
        """Return a new encoder of such packets."""
        return RunEncoder(checksum=self.checksum, fates=self.fates, marked=self.marked)


@dataclass(frozen=True, slots=True, eq=False)
class TailPlace:
    """
    A place between two groups, behind which everything is sent.

    Attributes:
        kind: of the packets.
        generation: of the history.
        header: of the file.
        encoder: is there, and has handed out all.
    """

    kind: PacketKind
    generation: int
    header: FileHeader
    encoder: RunEncoder


def fates_of(encoder: EventEncoder) -> bytes:
    """Return what the kernel does with each type of event that an encoder has a rule for."""
    fates = bytearray(256)  # SEND
    for code, fate in encoder._fates.items():  # noqa: SLF001 - the home of these rules
        fates[code] = event_packets.DROP if fate.name == "DROP" else event_packets.LEAVE
    return bytes(fates)


def end_place(header: FileHeader, encoder: RunEncoder) -> Place:
    """Return how far a reader is whose encoder has come to the history's end in a file."""
    at, page_size = encoder.border, header.page_size
    if at % page_size > last_chunk_start(page_size):
        at += page_size - at % page_size  # what comes begins in the next page
    return Place(Position(header.file_no, at))
