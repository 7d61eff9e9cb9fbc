"""
What comes at the end of the history, made once and sent to all who wait there.

A reader that has everything costs little while it waits, and little more when a group comes: no
thread is woken for it, and its packets are a copy of what was made for the first. All members of a
tail are behind the same group. Who cannot take what it is sent at once leaves, and is served by a
thread again, from behind that on; so do all when what comes is much, or is not for the kernel.

The event loop makes and sends, or, for few, whoever has made the group durable.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final

from ibb.protocol.gtid import Gtid
from ibb.server.config import TAIL_BYTES
from ibb.storage.position import Position

from . import encoder_state, event_packets
from .packet_buffers import give_buffer, take_buffer
from .page_feed import PageFeed
from .sequence_ids import renumber
from .tail_member import TailMember, Taken
from .tail_place import end_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.protocol.fields import Buffer
    from ibb.server.connections.connection import Connection
    from ibb.storage.history import History
    from ibb.storage.page_runs import PageRuns

    from .run_stream import RunStream
    from .tail_place import TailPlace
    from .tail_turns import TailTurns

    Put = Callable[[TailMember, bytearray, Taken], None]  # sends to one, who was so far before

REACH_BYTES: Final = 4 * TAIL_BYTES  # of history to its end; beyond, threads are better at it


class Tail:
    """
    The readers of one kind that have everything; belongs to who has the turn.

    Args:
        history: what they read.
        runs: its pages.
        place: of the first of them.
        turns: whose it is to serve them.

    Attributes:
        members: they.
        turns: as above.
        seq: sequence id of the next packet, as the tail counts.
        event_bytes: of all events so far.
        served: how often something was sent.
        served_at: when it was last, by the monotonic clock.
        at: how far they are.
        reached: the last group of each domain that was sent.
    """

    def __init__(
        self, history: History, runs: PageRuns, place: TailPlace, turns: TailTurns
    ) -> None:
        self.turns = turns
        self._history = history
        self._kind = place.kind
        self._generation, self._header = place.generation, place.header
        self._file_no = place.header.file_no
        self._encoder = place.kind.encoder()
        encoder_state.copy_state(self._encoder, place.encoder)
        self._runs, self._feed = runs, PageFeed(runs)
        self._begun_at = place.encoder.border
        self.reached: dict[int, Gtid] = {}
        self.members: set[TailMember] = set()
        self.seq = self.event_bytes = self.served = 0
        self.served_at = 0.0
        self.at = end_place(place.header, place.encoder)

    def admit(
        self, place: TailPlace, stream: RunStream, connection: Connection
    ) -> TailMember | None:
        """
        Return a new member, or None: its place is not here.

        One that is a little behind is sent what it lacks.

        Args:
            place: of the stream, which is of the tail's kind.
            stream: the reader's own, which has sent all that it has made.
            connection: takes packets for it.
        """
        encoder, asked = self._encoder, place.encoder
        is_here = (place.generation, place.header.file_no) == (self._generation, self._file_no)
        if not is_here or asked.border > encoder.border:
            return None
        caught_up: dict[int, Gtid] | None = {}
        if not encoder.behind and asked.border < self._begun_at:
            return None  # where the groups end that it lacks is not known
        if asked.border < encoder.behind:
            caught_up = self._catch_up(place, stream, connection)
        if caught_up is None:
            return None
        member = TailMember(self, stream, connection, caught_up)
        self.members.add(member)
        if connection.unsent:
            before = end_place(place.header, place.encoder)
            member.leave(Taken(before, dict.fromkeys(caught_up)))
        return member

    def dismiss(self, member: TailMember, stream: RunStream) -> None:
        """Let a member go, with its stream behind what it was sent."""
        member.note()
        stream.go_on(self._encoder, self.at)
        self.members.discard(member)

    def serve(self) -> bool:
        """Send what is new to all who may have it; return whether there is more of it."""
        end, border = self._history.end(), self._encoder.border
        is_still = self._history.is_still(self._generation)
        if is_still and end == (self._file_no, border):
            return False
        for member in [member for member in self.members if not member.may_be_served]:
            member.leave()
        is_served = False
        if self.members and is_still and self._is_near(end):
            is_served = self._make_and_send(end, TailMember.write)
        if not is_served:
            self.disband()
        return bool(self.members) and not self._has_all()

    def serve_at_once(self) -> bool:
        """Send what is new, by any thread; return whether all members have been sent all of it."""
        end = self._history.end()
        if not self._history.is_still(self._generation) or not self._is_near(end):
            return False
        if not self.members or not all(member.takes_at_once for member in self.members):
            return False
        if end.offset > self._encoder.border and not self._make_and_send(end, self._send_at_once):
            return False
        return self._has_all()

    def _is_near(self, end: Position) -> bool:
        return end.file_no == self._file_no and end.offset - self._encoder.border <= REACH_BYTES

    def _has_all(self) -> bool:
        return self._history.end() == (self._file_no, self._encoder.border)

    def give_up(self) -> None:
        """Drop all members: nobody knows any more what they have."""
        for member in list(self.members):
            member.connection.abort()
            member.leave()

    def open_senders(self) -> None:
        """Have what is new sent to all members by any thread, where that can be."""
        for member in self.members:
            member.open_sender()

    def disband(self) -> None:
        """Let all members go."""
        for member in list(self.members):
            member.leave()

    def _make_and_send(self, end: Position, put: Put) -> bool:
        """Send what is new, as far as it is for here; return whether more may be."""
        buffer = take_buffer()
        try:
            return self._make_and_put(buffer, end, put)
        finally:
            give_buffer(buffer)

    def _make_and_put(self, buffer: memoryview, end: Position, put: Put) -> bool:
        encoder = self._encoder
        code = self._feed.run(encoder, self._header, buffer, TAIL_BYTES, self.seq, end.offset)
        if not self._history.is_still(self._generation):
            return False  # their streams will tell them
        encoder.end_run()
        size, seq = encoder.packets.used, encoder.packets.seq
        at, event_bytes = end_place(self._header, encoder), encoder.packets.event_bytes
        groups = [Gtid(*group) for group in encoder.take()]
        taken = Taken(self.at, {gtid.domain: self.reached.get(gtid.domain) for gtid in groups})
        if size:
            for member in self.members:
                member.expect(taken)
        self.event_bytes += event_bytes
        self.reached.update((gtid.domain, gtid) for gtid in groups)
        self.at = at
        if size:
            self.seq = seq
            self.served += 1
            self.served_at = time.monotonic()
            self._send(memoryview(buffer)[:size], taken, put)
        if code == event_packets.FULL:
            return size > 0
        return code == event_packets.NEED and Position(self._file_no, encoder.border) >= end

    def _send(self, packets: Buffer, taken: Taken, put: Put) -> None:
        """Send packets to all members, to each by its own count."""
        copies: dict[int, bytearray] = {}
        for member in list(self.members):
            copy = copies.get(member.shift)
            if copy is None:
                copy = copies[member.shift] = bytearray(len(packets))
                renumber(packets, member.shift, memoryview(copy))
            put(member, copy, taken)

    def _send_at_once(self, member: TailMember, data: bytearray, taken: Taken) -> None:
        """Send something in any thread's turn; what the member does not take is the loop's."""
        size = member.send(data)
        if size < len(data):
            self.turns.leave(partial(member.write, memoryview(data)[size:], taken))

    def _catch_up(
        self, place: TailPlace, stream: RunStream, connection: Connection
    ) -> dict[int, Gtid] | None:
        """
        Send a reader the groups that it lacks; return the last one of each domain.

        None: that is more than is made at a time, or not for here; nothing was sent.
        """
        encoder = self._kind.encoder()
        encoder_state.copy_state(encoder, place.encoder)
        encoder.stop_at = self._encoder.behind
        buffer = take_buffer()
        try:
            PageFeed(self._runs).run(encoder, self._header, buffer, TAIL_BYTES, stream.seq)
            if encoder.in_group or encoder.behind != self._encoder.behind:
                return None
            packets = encoder.packets
            stream.was_sent(packets.event_bytes, packets.seq)
            connection.write_at_once(bytes(memoryview(buffer)[: packets.used]))
        finally:
            give_buffer(buffer)
        return {domain: Gtid(domain, server, number) for domain, server, number in encoder.take()}
