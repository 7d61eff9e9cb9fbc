"""
A dump whose events say where they are, for clients to which that matters.

Clients below capability 4 keep their place by it, and semi-synchronous replicas acknowledge in
it. For the latter each packet has two more bytes, the second of which asks for an acknowledgement
behind the last event of a group that a commit waits for; the sequence ids then begin anew.
Source: dump-protocol 4.12, 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.event import HEADER_SIZE, EventHeader
from ibb.protocol.event_encoder import CAPABILITY_GTID
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.server.log import get_log

from .asked_groups import AskedGroup, AskedGroups
from .dump_batch import Outcome
from .dump_stream import STATUS, DumpStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.command import SemiSyncAck
    from ibb.protocol.event_encoder import WirePart
    from ibb.protocol.fields import Buffer
    from ibb.server.connections.direct_sender import DirectSender
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.position import Position

    from .dump_batch import Batch
    from .dump_terms import DumpTerms
    from .semi_sync import SemiSync

_SEMI_SYNC: Final = STATUS + b"\xef\0"
_SEMI_SYNC_ASKING: Final = STATUS + b"\xef\1"
_FIRST_SEQ: Final = 1


class CountedStream(DumpStream):
    """
    One dump's packets, with positions.

    Args:
        terms: as for `DumpStream`.
        semi_sync: those who wait for this replica; None: it is not a semi-synchronous one.
    """

    def __init__(self, terms: DumpTerms, *, semi_sync: SemiSync | None) -> None:
        super().__init__(terms)
        request = self._request
        self._encoder = self._new_encoder(self._place)
        self._semi_sync = semi_sync
        self._status = STATUS if semi_sync is None else _SEMI_SYNC
        # Groups behind an UNTIL are passed over, and events that an old client does not know are
        # replaced: such a client cannot vouch for what it did not get.
        self._vouches = (
            semi_sync is not None
            and request.until is None
            and request.capability >= CAPABILITY_GTID
        )
        self._begun: StoredGroup | None = None  # the group last begun
        self._tracker = GroupTracker()
        self._wanted = False  # an answer, behind the group that is being sent
        self._asking = False  # by the event that is being sent
        self._file_numbers = {self._place.name: 0}  # of a GiB each
        self._asked = AskedGroups()

    def next_batch(self, sender: DirectSender | None = None, seconds: float = 0.0) -> Batch:
        """Return the next packets; a client that is at the end from the start has everything."""
        batch = super().next_batch(sender, seconds)
        if batch.outcome is Outcome.IDLE and self._begun is None:
            self._tell_of_start(self._reader.position)
        return batch

    def acknowledged(self, reply: SemiSyncAck) -> None:
        """Take a reply of the client; from another thread than the one that makes batches."""
        file_no = self._file_numbers.get(reply.file_name)
        if file_no is None:
            get_log().debug("acknowledgement_ignored", file=reply.file_name)
            return
        newest = self._asked.answered((file_no, reply.position))
        if newest is not None and self._semi_sync is not None:
            self._semi_sync.reply(newest.gtid, newest.end)

    def _send_parts(self, parts: Iterator[WirePart], wanted: int, out: list[Buffer]) -> int:
        """Add events of the open group until *wanted* bytes are there; return how many came."""
        if self._begun is not self._group:
            self._begin_group(out)
        size = 0
        for part in parts:
            if part.first and self._wanted:
                self._asking = self._is_last(part)
                self._status = _SEMI_SYNC_ASKING if self._asking else _SEMI_SYNC
            self.seq = self._send_piece(part, self.seq, out)
            self._place.position += len(part.data)
            if part.last and self._asking:
                self._note_request()
            size += len(part.data)
            if size >= wanted:
                return size
        self._end_group()
        return size

    def _begin_group(self, out: list[Buffer]) -> None:
        if self._begun is None:
            self._tell_of_start(self._group.position)
        self._begun = self._group
        if self._place.is_full:
            self._place.begin_next_file()
            self._file_numbers[self._place.name] = len(self._file_numbers)
            out.append(self._rotate())
        gtid = self._group.gtid
        assert gtid is not None
        self._tracker = GroupTracker()
        self._wanted = self._vouches and self._semi_sync is not None and self._semi_sync.wants(gtid)

    def _is_last(self, part: WirePart) -> bool:
        """Tell whether *part* begins the last event of its group."""
        header = EventHeader.unpack(part.data)
        checksum_size = 4 if self._request.checksum else 0
        body = memoryview(part.data)[HEADER_SIZE:]
        if part.last and checksum_size:
            body = body[:-checksum_size]
        step = self._tracker.add(header, body, checksum_size=checksum_size)
        return step is GroupStep.END

    def _note_request(self) -> None:
        """Remember what an answer from here will mean, and begin the sequence ids anew."""
        gtid = self._group.gtid
        assert gtid is not None
        here = (len(self._file_numbers) - 1, self._place.position)
        self._asked.add(AskedGroup(here, gtid, self._reader.position))
        self.seq = _FIRST_SEQ
        self._asking = self._wanted = False
        self._status = _SEMI_SYNC

    def _tell_of_start(self, position: Position) -> None:
        """The client has everything before the first group that it gets."""
        if self._vouches and self._semi_sync is not None:
            self._semi_sync.has_all_before(position)
