"""
The packets of one dump, made in batches: blocking, for a thread of the pool.

    fake Rotate, format description, [GTID list,] groups, ..., [GTID list "until reached"]

A batch is about `BATCH_BYTES` of framed packets. A large event goes through in pieces, so that
neither a group nor an event is ever held. Calls must not overlap.
Source: dump-protocol 3.4, 4.2 to 4.5, 4.8, 5, 6; ibb-format 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.event import with_checksum
from ibb.protocol.event_encoder import EventEncoder
from ibb.protocol.format_description import CHECKSUM_CRC32, CHECKSUM_NONE, FormatDescription
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.gtid_list import GtidList, GtidListFlag
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.packet import CHUNK_BYTES, PacketFramer, frame
from ibb.protocol.rotate import Rotate
from ibb.protocol.stream_position import StreamPosition
from ibb.server.config import BATCH_BYTES, BATCH_GROUPS_MAX, FIRST_BATCH_BYTES, STREAM_NAME
from ibb.server.log import get_log
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import Newest, TooOld, find_start
from ibb.storage.holds import HoldKind

from .dump_batch import Batch, Outcome, Place
from .dump_start import BEGUN_ANEW, PURGED, find_named_start
from .group_age import GroupAge
from .readers import Progress
from .stored_formats import stored_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.event_encoder import WirePart
    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.server.connections.direct_sender import DirectSender
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.gtid_search import StartPlace
    from ibb.storage.holds import Hold
    from ibb.storage.position import Position

    from .dump_terms import DumpTerms

STATUS: Final = b"\0"  # first byte of a packet that holds an event


class DumpStream:
    """
    One dump's packets.

    Args:
        terms: whose, of what, and how it is served.

    Attributes:
        seq: sequence id of the next packet.
        stopping: begin no group any more.
        apart_bytes: of packets that nobody shares, in one batch; 0: they are shared. May be set.
    """

    def __init__(self, terms: DumpTerms) -> None:
        history, request, pace = terms.history, terms.request, terms.pace
        self.seq, self.stopping, self._closed, self.apart_bytes = 1, False, False, 0
        self._sent_size = 0  # bytes of the batch that is being made which are sent already
        self._history, self._request = history, request
        self._terms, self._server_id, self._pace = terms, terms.server_id, pace
        self._checksum_alg = CHECKSUM_CRC32 if request.checksum else CHECKSUM_NONE
        self._place = StreamPosition(request.file_name or STREAM_NAME)  # as the client counts
        self._encoder = self._new_encoder()
        self._hold: Hold | None = None  # keeps from purge what is still to be sent
        self._filter: DumpFilter
        self._reader: GroupReader
        self._sent: dict[int, Gtid] = {}  # by domain, in the batch that is being made
        self._at: Place | None = None  # behind the last batch
        self._begun_at: Position
        self._generation = history.generation  # when the start was looked for
        self._last: StoredGroup | None = None  # that was sent
        self._status, self._most = STATUS, FIRST_BATCH_BYTES  # bytes in a batch
        self._held: StoredGroup | None = None  # looked at already, for its age or its format
        self._age = GroupAge(history, pace, request.server_id)
        self._written_at = 0.0  # the group that is not old enough
        self._parts: Iterator[WirePart] | None = None  # of the group that is being sent
        self._group: StoredGroup
        self._framer: PacketFramer | None = None  # of the large event that is being sent
        self._reached = GtidPosition()  # what the client has, kept up where it is told of it

    def progress(self, at: Place | None, reached: GtidPosition) -> Progress:
        """
        Return how far the dump has come; may be called from any thread.

        Args:
            at: what the client's connection has taken of the batches; None: all of them.
            reached: the same by GTIDs.
        """
        held = self._hold.file_no if self._hold else self._history.pages.first_file()
        return Progress(at or self._at, reached, held, self._request.connect_state)

    def under_way(self) -> tuple[int, bool]:
        """Return how much of a batch a thread has sent, and whether the client takes no more."""
        return 0, False

    @property
    def at_boundary(self) -> bool:
        """Whether the packets so far are whole."""
        return self._framer is None

    @property
    def between_groups(self) -> bool:
        """Whether the groups so far are whole."""
        return self._parts is None

    def stop(self) -> None:
        """Begin no group any more; from any thread."""
        self.stopping = True

    def start(self) -> Batch:
        """Find the start and return the first packets, or END with the reason against it."""
        name = f"server id {self._request.server_id}"
        self._hold = self._history.hold(HoldKind.REPLICA, name)
        if self._closed:  # the client has left while the hold was waited for
            self._hold.release()
            return Batch(b"", Outcome.END)
        return self._checked(self._start)

    def next_batch(self, sender: DirectSender | None = None, seconds: float = 0.0) -> Batch:  # noqa: ARG002
        """Return what follows, less what *sender* took in *seconds*; IDLE: it is not durable."""
        return self._checked(self._next_batch)

    def _checked(self, make: Callable[[], Batch]) -> Batch:
        """Return a batch if all of it is of the history that the dump began in, else the end."""
        seq, framer = self.seq, self._framer
        batch = make()
        if self._sent_size or self._history.is_still(self._generation):
            return batch
        self.seq, self._framer = seq, framer  # nothing of the batch is sent
        return Batch(b"", Outcome.END, MASTER_FATAL_ERROR_READING_BINLOG.error(BEGUN_ANEW))

    def _start(self) -> Batch:
        try:
            preamble = self._preamble(self._find_start())
            return Batch(preamble, Outcome.MORE, sent=self._sent, start=self._at, end=self._at)
        except SqlError as error:
            return Batch(b"", Outcome.END, error)
        except (FormatError, DiskError) as error:
            text = f"Error while looking up GTID position in engine binlog: {error}"
            return self._broken_off([], error, text)

    def _next_batch(self) -> Batch:
        out: list[Buffer] = []
        start, self._sent = self._at, {}
        try:
            outcome = self._fill(out)
            if outcome is Outcome.IDLE and not out:
                self._history.refresh()
                outcome = self._fill(out)
            self._at = self._here()
        except SqlError as error:
            return Batch(b"".join(out), Outcome.END, error, sent=self._sent)
        except FormatError as error:
            error = error if error.file or not self._parts else self._group.error(error.what)
            return self._broken_off(out, error, f"bogus data in log event; {error}")
        except DiskError as error:
            return self._broken_off(out, error, f"I/O error reading log event; {error}")
        if outcome in (Outcome.IDLE, Outcome.YOUNG) and out:
            outcome = Outcome.MORE
        data, end = out[0] if len(out) == 1 else b"".join(out), self._at
        return Batch(data, outcome, None, self._written_at, self._sent, start=start, end=end)

    def forget_batch(self) -> None:
        """Take it that nobody looks at the last batch any more: what it lies in is free again."""

    def close(self) -> None:
        """Let the files that the dump was reading go; from any thread, may wait for a purge."""
        self._closed = True
        if self._hold is not None:
            self._hold.release()

    def close_at_once(self) -> bool:
        """As `close` if that needs no waiting; return whether it did it."""
        self._closed = True
        return self._hold is None or self._hold.release_at_once()

    def heartbeat(self) -> bytes:
        """
        Return a framed heartbeat; only between batches that end at a packet's end.

        Its position is the replica's own count; the form that holds more than 4 GiB is not used
        before it must be, since old clients do not know it.
        """
        assert self.at_boundary
        beat = Heartbeat(self._place.name, self._place.position, self._server_id)
        return self._framed(self._made(beat.encode()))

    def _find_start(self) -> StartPlace:
        """Return where to read from, with the filter set up; raises SqlError 1236."""
        request, history, pages = self._request, self._history, self._history.pages
        if not pages.tail_is_final:  # nobody may have looked for a while
            history.refresh()
        self._generation, position = history.generation, request.connect_state
        empty_domains: frozenset[int] = frozenset()
        try:
            if position is None:
                position = GtidPosition()
                place = find_named_start(history, request.file_name, request.position)
            else:
                newest, ours = Newest(history.end(), history.state()), pages.tail_is_final
                until, duplicates = request.until, request.ignore_duplicates
                empty_domains = check_position(
                    newest.state, position, ignore_duplicates=duplicates, until=until
                )
                # Of another program's files, the state is that of the last look.
                place = find_start(pages, position, newest if ours else None)
        except TooOld as error:
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(PURGED) from error
        self._reached = position.copy()
        self._sent = {gtid.domain: gtid for gtid in position}
        self._filter = DumpFilter(
            position,
            place.state,
            request.until,
            request.until_before,
            request.strict,
            empty_domains=empty_domains,
            state_now=history.state,
        )
        self._reader = GroupReader(self._history.pages, place.position)
        self._move_hold(place.position)
        self._begun_at = place.position
        self._at = Place(place.position, None, self._filter.skipping)
        return place

    def _preamble(self, place: StartPlace) -> bytes:
        """Return what comes before any group; holds the first group that it had to look at."""
        request = self._request
        out, created = [self._rotate()], 0
        # A client that has nothing meets the record at its start: no second one before it.
        first = None if self._reached else self._reader.next()
        if first is not None and first.gtid is None:
            described = stored_format(first.head, "at", first.position)
            created = described.created
        else:
            self._held = first
            if (event := self._history.formats.in_force(place.position)) is not None:
                described = stored_format(event, "in force at", place.position)
            else:
                version, now = self._terms.server_version, self._terms.now
                described = FormatDescription.default(version, self._server_id, now)
        out.append(self._framed(described.to_wire(self._checksum_alg, created)))
        if request.needs_start_list and request.connect_state:
            start_list = GtidList(tuple(request.connect_state), self._terms.now, self._server_id)
            out.append(self._framed(self._made(start_list.encode())))
        return b"".join(out)

    def _fill(self, out: list[Buffer]) -> Outcome:
        """Add packets to *out* until there are enough, or no more."""
        self._check_generation()
        size = looked_at = 0
        self._most = 4 * (wanted := min(BATCH_BYTES, self._most))
        while size < wanted:
            if self._parts is None:
                quick = self._send_run(wanted - size, out)
                if quick is None:
                    break
                size += quick
            if self._parts is None:
                if self._filter.finished:
                    out.append(self._until_reached())
                    return Outcome.END
                if self.stopping or looked_at >= BATCH_GROUPS_MAX:
                    break
                looked_at += 1
                group = self._held or self._reader.next()
                self._held = None
                if group is None:
                    return Outcome.IDLE
                self._move_hold(group.position)
                if self._pace.delay:
                    self._written_at = self._age.written_at(group)
                    if self._pace.too_young(self._written_at) > 0:
                        self._held = group
                        return Outcome.YOUNG
                if group.gtid is None:
                    size += self._forward_format(group, out)
                    continue
                if self._filter.wants(group.gtid) is not Verdict.SEND:
                    continue
                self._group = group
                self._parts = self._encoder.encode_group(group.pieces())
            size += self._send_parts(self._parts, wanted - size, out)
        return Outcome.MORE

    def _check_generation(self) -> None:
        if not self._history.is_still(self._generation):
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(BEGUN_ANEW)

    def _send_run(self, _wanted: int, _out: list[Buffer]) -> int | None:
        """Add what can be made in a quicker way; return its size, None: that can go on."""
        return 0

    def _here(self) -> Place:
        """Return how far the batches so far have come."""
        unsent, position = self._held if self._parts is None else self._group, self._reader.position
        if unsent is not None:  # its first pieces may lie behind the last group that was sent
            position = self._begun_at if self._last is None else self._last.position
        return Place(position, unsent, self._filter.skipping)

    def _move_hold(self, position: Position) -> None:
        assert self._hold is not None
        self._hold.move(position.file_no)

    def _send_parts(self, parts: Iterator[WirePart], wanted: int, out: list[Buffer]) -> int:
        """Add events of the open group until *wanted* bytes are there; return how many came."""
        size, seq = 0, self.seq
        try:
            for part in parts:
                data = part.data
                if part.first and part.last and len(data) < CHUNK_BYTES - 1:
                    # length, sequence id and status byte at once: the high byte is zero
                    out.append((len(data) + 1 | seq << 24).to_bytes(5, "little"))
                    out.append(data)
                    seq = (seq + 1) & 0xFF
                else:
                    seq = self._send_piece(part, seq, out)
                size += len(data)
                if size >= wanted:
                    return size
        finally:
            self.seq = seq
            self._place.position += size
        self._end_group()
        return size

    def _end_group(self) -> None:
        """Note that all of the open group has been sent."""
        self._parts = None
        assert self._group.gtid is not None
        self._filter.after(self._group.gtid)
        self._sent[self._group.gtid.domain] = self._group.gtid
        self._last = self._group
        if self._request.until is not None:
            self._reached.set(self._group.gtid)

    def _send_piece(self, part: WirePart, seq: int, out: list[Buffer]) -> int:
        """Add a piece of an event that is not sent as one; return the next sequence id."""
        if part.first:
            status = self._status
            self._framer = PacketFramer(len(status) + part.total_length, seq)
            out += self._framer.feed(status)
        assert self._framer is not None
        out += self._framer.feed(part.data)
        seq = self._framer.next_seq
        if part.last:
            assert self._framer.done
            self._framer = None
        return seq

    def _forward_format(self, group: StoredGroup, out: list[Buffer]) -> int:
        """Tell of a restart upstream, unless the client is still to be brought to its start."""
        if self._filter.skipping:
            return 0
        described = stored_format(group.head, "at", group.position)
        out.append(self._framed(described.to_wire(self._checksum_alg, described.created)))
        return len(out[-1])

    def _until_reached(self) -> bytes:
        """Return the list that tells a replica to stop: without it, it would connect for ever."""
        reached = GtidList.fake(self._reached, self._server_id, GtidListFlag.UNTIL_REACHED)
        return self._framed(self._made(reached.encode()))

    def _made(self, event: bytes) -> bytes:
        return with_checksum(event) if self._request.checksum else event  # as the session wants it

    def _framed(self, event: bytes) -> bytes:
        payload = self._status + event
        packet = frame(payload, self.seq)
        self.seq = (self.seq + 1 + len(payload) // CHUNK_BYTES) & 0xFF
        return packet

    def _rotate(self) -> bytes:  # tells which file comes
        return self._framed(self._made(Rotate.fake(self._place.name, self._server_id).encode()))

    def _new_encoder(self, positions: StreamPosition | None = None) -> EventEncoder:
        request = self._request
        terms = request.checksum, request.annotate, request.capability, request.skip_marked
        return EventEncoder(*terms, join_fragments=request.join_fragments, positions=positions)

    def _broken_off(self, out: list[Buffer], error: FormatError | DiskError, text: str) -> Batch:
        """Return the end of a dump that met damage."""
        get_log().error("dump_failed", error=str(error), stream_server_id=self._request.server_id)
        reason = MASTER_FATAL_ERROR_READING_BINLOG.error(text)
        return Batch(b"".join(out), Outcome.END, reason, sent=self._sent)
