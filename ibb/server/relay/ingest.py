"""
From the bytes of an upstream's dump to groups in the store: blocking, for one storage thread.

Each event's checksum is verified and taken off; a group is staged while it comes and committed
as one, so that what was received of it vanishes if the rest never comes. Commits that came
together are made durable by one sync. Memory holds an event of up to 64 KiB, or a piece of a
larger one. Source: dump-protocol 8; ibb-format 5.1.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.protocol.checksum import CHECKSUM_SIZE, crc32
from ibb.protocol.command import SEMI_SYNC_ACK
from ibb.protocol.error_codes import SLAVE_INCIDENT
from ibb.protocol.errors import FormatError, IbbError, ProtocolError
from ibb.protocol.event import HEADER_SIZE, LENGTH_OFFSET, EventHeader, EventType, type_name
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.fields import U32
from ibb.protocol.format_description import CHECKSUM_CRC32, FormatDescription
from ibb.protocol.group_run import GroupRun
from ibb.protocol.incident import Incident
from ibb.protocol.packet import HEADER_BYTES, PacketStream, packet_size
from ibb.protocol.rotate import Rotate
from ibb.server.log import get_log

from .commit_sync import CommitSync
from .dump_end import STATUS_EVENT, what_ended
from .large_event import LargeEvent, check_crc
from .relay_lag import RelayLag
from .staged_events import StagedEvents
from .stored_numbers import StoredNumbers
from .upstream_place import UpstreamPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.protocol.command import SemiSyncAck
    from ibb.protocol.event_splitter import EventPart
    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.protocol.packet import PacketFragment
    from ibb.storage.commit_position import CommitPosition
    from ibb.storage.group_writer import GroupWriter
    from ibb.storage.store import Store

_SEMI_SYNC: Final = bytes([SEMI_SYNC_ACK])  # begins the marks of a packet, as it begins replies
_ASKING: Final = b"\1"  # a semi-synchronous packet that is to be acknowledged


class NotAscending(IbbError):  # noqa: N818 - a state of the world
    """In strict mode: a GTID that is not above its domain's newest."""

    def __init__(self, gtid: Gtid, newest: Gtid) -> None:
        super().__init__(
            f"upstream sent {gtid} although {newest} is stored, and gtid_strict_mode is on"
        )


class Ingest:
    """
    Takes one dump of an upstream.

    Args:
        store: where groups go.
        has_checksum: events before the first format description carry a CRC-32.
        strict: raise `NotAscending` for a number that is not above its domain's newest.
        semi_sync: the upstream takes acknowledgements, and asks for them in each packet.
        skip_incidents: go on behind what the upstream says to have lost.
        lag: where to note how late groups come; its own by default.

    Attributes:
        groups: stored so far.
        skipped: groups so far that the store held already.
        written: where the newest group ends; None before the first.
        synced_in: seconds that the last wait for the disk took; None if there was none.
    """

    def __init__(
        self,
        store: Store,
        *,
        has_checksum: bool,
        strict: bool,
        semi_sync: bool = False,
        skip_incidents: bool = False,
        lag: RelayLag | None = None,
    ) -> None:
        self.groups = 0
        self.skipped = 0
        self.written: CommitPosition | None = None
        self.synced_in: float | None = None
        self._lag = lag or RelayLag()
        self._sync = CommitSync(store)
        self._store = store
        self._strict = strict
        self._skip_incidents = skip_incidents
        self._has_checksum = has_checksum
        self._state = store.state()
        self._numbers = StoredNumbers(store)
        in_force = store.formats.in_force(store.end())
        self._format = (
            None if in_force is None else FormatDescription.parse(in_force, has_checksum=False)
        )
        self._packets = PacketStream(None if semi_sync else 1)  # being asked, it begins anew
        self._place = UpstreamPlace() if semi_sync else None
        self._marks_size = 2 if semi_sync else 0  # bytes between the status and the event
        self._marks = b""  # of the packet that comes in, as far as it has come
        self._asked: SemiSyncAck | None = None  # for this, by what has come
        self._run = GroupRun()
        self._splitter = EventSplitter()
        self._tracker = GroupTracker()
        self._gtid: Gtid | None = None  # of the group that comes in
        self._writer: GroupWriter | None = None  # None while its events are not wanted
        self._committed: CommitPosition | None = None  # the last one that nobody has waited for
        self._staged = StagedEvents()
        self._large = LargeEvent()

    def feed(
        self, pieces: Sequence[Buffer], has_more: Callable[[], bool] = bool
    ) -> SemiSyncAck | None:
        """
        Take what was received; on return every group that it completed is as safe as the store's
        `flush_log_at_commit` promises, or will be soon.

        Args:
            pieces: cut anywhere; they may change behind this call.
            has_more: tells, at the end, whether this is called again at once: no need to wait.

        Returns:
            What to tell the upstream, if it asked for that: everything so far is durable.

        Raises:
            FormatError: a wrong checksum, or events that are none; nothing of it was stored.
            ProtocolError: packets that are none.
            SqlError: the upstream ended the dump with this error; 1590, it reports an incident.
            UpstreamEnded: it ended it with EOF.
            NotAscending: see *strict*.
            StoreFull, StoreFailed, DiskError: the store cannot take it.
        """
        self.synced_in, is_taken = None, False
        try:
            for piece in pieces:
                self._take_piece(memoryview(piece))
            is_taken = True
        finally:
            committed, self._committed = self._committed, None
            self.written = committed or self.written
            self.synced_in = self._sync.settle(committed, has_more=is_taken and has_more())
        if self._tracker.gtid is None:
            self._lag.stored(time.time())
        asked, self._asked = self._asked, None
        if asked is not None:
            self._store.sync()
        return asked

    def close(self) -> None:
        """Give up what has come of an unfinished group; what was committed is synced first."""
        self._sync.close()
        self._give_up_group()

    def _give_up_group(self) -> None:
        self._staged.clear()
        if self._writer is not None:
            self._writer.rollback()
            self._writer = None

    def _take_piece(self, piece: memoryview) -> None:
        """Take many groups or events at once where they are ordinary, else packet by packet."""
        at, size = 0, len(piece)
        while at < size:
            if self._place is None and self._packets.at_boundary:
                at = self._take_run(piece, at)
            end = at + (self._packets.wanted or packet_size(piece[at : at + HEADER_BYTES]))
            for fragment in self._packets.feed(piece[at:end]):
                self._take(fragment)
            at = end

    def _take_run(self, piece: memoryview, at: int) -> int:
        """Take what is ordinary from a packet's beginning on; return where it ends."""
        run, seq = self._run, self._packets.expected_seq
        assert seq is not None
        checksum = CHECKSUM_SIZE if self._has_checksum else 0
        while True:
            if self._tracker.gtid is None:
                end = run.take(piece, at, seq, checksum, self._store.piece_size - 1)
                if run.count:
                    self._store_run(run)
            elif self._tracker.in_transaction:
                end = run.take_events(piece, at, seq, checksum)
                if self._writer is not None and run.used:
                    self._staged.add(run.data[: run.used], self._writer)
            else:
                return at
            if end == at:
                return at
            at, seq = end, run.seq
            self._packets.expected_seq = seq

    def _store_run(self, run: GroupRun) -> None:
        """Store whole groups."""
        self._lag.begin(run.timestamp)
        if self._is_ascending(run):
            self._committed = self._store.commit_run(run)
            self._state.load(run.newest(0, run.count).entries())
            self._numbers.note_run(run)
            self.groups += run.count
            return
        for index in range(run.count):
            self._begin(run.gtid(index))
            if self._writer is not None:
                self._writer.write(run.data[run.bounds[index] : run.bounds[index + 1]])
                self._commit()

    def _is_ascending(self, run: GroupRun) -> bool:
        """Tell whether every group is above all of its domain before it."""
        newest: dict[int, int] = {}
        for start, stop, domain, _ in run.stretches():
            known = self._state.newest(domain)
            if run.seqs[start] <= newest.get(domain, known.seq if known is not None else 0):
                return False
            newest[domain] = run.seqs[stop - 1]
        return True

    def _take(self, fragment: PacketFragment) -> None:
        data = memoryview(fragment.data)
        if fragment.first:
            if not data:
                raise ProtocolError("the upstream sent an empty packet")
            status = data[0]
            if status != STATUS_EVENT:
                raise what_ended(status, data)
            data = data[1:]
            self._marks = b""
        if len(self._marks) < self._marks_size:
            data = self._take_marks(data)
        if fragment.first and fragment.last:
            self._whole_event(data)
        else:
            for part in self._splitter.feed(data):
                if part.first and part.last:
                    self._whole_event(memoryview(part.data))
                else:
                    self._large_event(part)
            if fragment.last and not self._splitter.at_boundary:
                raise FormatError("an event says another length than its packet has")
        if fragment.last and self._place is not None and self._marks[1:] == _ASKING:
            self._note_request(self._place)

    def _take_marks(self, data: memoryview) -> memoryview:
        """Take off what a semi-synchronous packet has before its event."""
        wanted = self._marks_size - len(self._marks)
        self._marks += data[:wanted]
        if self._marks[:1] not in (b"", _SEMI_SYNC):
            raise ProtocolError("the upstream sent a packet without the mark of semi-sync")
        return data[wanted:]

    def _note_request(self, place: UpstreamPlace) -> None:
        """Have everything so far acknowledged, unless it ends inside a group."""
        if self._tracker.gtid is None:
            self._asked = place.acknowledgement()

    def _whole_event(self, event: memoryview) -> None:
        header = EventHeader.unpack(event)
        if header.length != len(event):
            raise FormatError(
                f"{type_name(header.type)} event says {header.length} bytes and has {len(event)}"
            )
        if self._place is not None:
            self._place.count(header)
        if header.type == EventType.FORMAT_DESCRIPTION:
            body = event[HEADER_SIZE:]
            if self._tracker.add(header, body, checksum_size=CHECKSUM_SIZE) is GroupStep.CUT_OFF:
                get_log().warning("group_abandoned", gtid=str(self._gtid))
                self._give_up_group()
            self._take_format(FormatDescription.parse(event, has_checksum=True))
            return
        if not self._has_checksum:
            self._group_event(header, bytes(event))
            return
        size = len(event) - CHECKSUM_SIZE
        if size < HEADER_SIZE:
            raise FormatError(f"event of {len(event)} bytes has no room for a checksum")
        check_crc(header, crc32(event[:size]), event[size:])
        bare = bytearray(event[:size])
        U32.pack_into(bare, LENGTH_OFFSET, size)
        self._group_event(header._replace(length=size), bytes(bare))

    def _group_event(self, header: EventHeader, event: bytes) -> None:
        """Take one whole event that is checked and has no checksum any more."""
        step = self._tracker.add(header, memoryview(event)[HEADER_SIZE:])
        if step is GroupStep.OUTSIDE:
            if self._place is not None and header.type == EventType.ROTATE:
                self._place.enter(Rotate.parse(event))
            if header.type == EventType.INCIDENT:
                self._meet_incident(event)
            if header.type == EventType.HEARTBEAT and self._tracker.gtid is None:
                self._lag.heard_heartbeat()
            return
        if step is GroupStep.BEGIN:
            self._lag.begin(header.timestamp)
            self._begin(self._tracker.gtid)
        if self._writer is not None:
            self._staged.add(event, self._writer)
        if step is GroupStep.END:
            self._commit()

    def _meet_incident(self, event: bytes) -> None:
        """
        Stop at an incident that belongs to no group.

        It has no GTID by which it could be stored and served to those who are before it, and to
        leave it out would let replicas differ from the primary without anybody knowing.
        """
        incident = Incident.parse(event)
        if not self._skip_incidents:
            raise SLAVE_INCIDENT.error(
                incident.name,
                f"{incident.message}. This is behind {self._state.position()}, and replicas lack "
                "what was lost: rebuild them from the primary, then start once with skip_incidents",
            )
        get_log().warning("incident_skipped", kind=incident.name, message=incident.message)

    def _large_event(self, part: EventPart) -> None:
        header = part.header
        if part.first:
            if self._place is not None:
                self._place.count(header)
            checksum_size = CHECKSUM_SIZE if self._has_checksum else 0
            prefix = memoryview(part.data)[HEADER_SIZE:]
            step = self._tracker.add(header, prefix, checksum_size=checksum_size)
            if step in (GroupStep.OUTSIDE, GroupStep.BEGIN):
                raise FormatError(
                    f"{type_name(header.type)} event of {header.length} bytes is impossible"
                )
            self._large = LargeEvent(header, checksum_size, ends_group=step is GroupStep.END)
            if self._writer is not None:
                self._staged.hand_over(self._writer)
        data = self._large.take(part)
        if self._writer is not None and len(data):
            self._writer.write(data)
        if part.last and self._large.ends_group:
            self._commit()

    def _begin(self, gtid: Gtid | None) -> None:
        """Begin a group, unless it is one that the store holds."""
        assert gtid is not None
        self._gtid = gtid
        newest = self._state.newest(gtid.domain)
        if newest is not None and gtid.seq <= newest.seq:
            if self._strict:
                raise NotAscending(gtid, newest)
            known = self._state.seq(gtid.domain, gtid.server)
            if known is not None and (known == gtid.seq or self._numbers.holds(gtid)):
                get_log().warning("group_skipped", gtid=str(gtid), newest=str(newest))
                self.skipped += 1
                return
        self._writer = self._store.begin()

    def _commit(self) -> None:
        if self._writer is None:
            return
        self._staged.hand_over(self._writer)
        assert self._gtid is not None
        self._committed = self._writer.commit(self._gtid, wait=False)
        self._writer = None
        self._state.update(self._gtid)
        self._numbers.note(self._gtid)
        self.groups += 1

    def _take_format(self, described: FormatDescription) -> None:
        """
        Follow the stream's format; store it if it is another one, or if the upstream restarted.

        A primary sends the description of an older file again when we connect again, so an
        earlier start of the same server is no news.
        """
        self._has_checksum = described.checksum_alg == CHECKSUM_CRC32
        known = self._format
        restarted = described.created != 0 and (
            known is None
            or described.server_id != known.server_id
            or described.created > known.created
        )
        differs = (
            known is None
            or described.server_version != known.server_version
            or described.post_header_lengths != known.post_header_lengths
        )
        if not restarted and not differs:
            return
        if not restarted:
            described = replace(described, created=0)
        self._store.write_format_description(described.to_store())
        self._store.sync()
        self._format = described
