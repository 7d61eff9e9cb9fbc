"""
What comes at the end of the history, made once and sent to all who wait there.

A reader that has everything costs little while it waits, and little more when a group comes: no
thread is woken for it, and its packets are a copy of what was made for the first. All members of a
tail are behind the same group. Who has not taken what it was sent when the next is due leaves, and
is served by a thread again, from behind that on; so do all when what comes is much. What is not for
the kernel, as the beginning of a file, the stream of one of them makes for all.

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
from .tail_place import TailPlace, end_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ibb.protocol.fields import Buffer
    from ibb.server.connections.connection import Connection
    from ibb.storage.history import History
    from ibb.storage.page_runs import PageRuns

    from .dump_batch import Place
    from .tail_stream import TailStream
    from .tail_turns import TailTurns

    Put = Callable[[TailMember, bytearray, Taken], None]  # sends to one, who was so far before

REACH_BYTES: Final = 4 * TAIL_BYTES  # of history to its end; beyond, threads are better at it,
REACH_BYTES_MAX: Final = 16 * TAIL_BYTES  # but for many readers, who wait long for a thread each
MEMBER_REACH_BYTES: Final = TAIL_BYTES // 16


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
        self._nothing_before: Position | None = None  # nothing could be made of what is there
        self._late: set[TailMember] = set()  # that had not taken all at once
        self.reached: dict[int, Gtid] = {}
        self.members: set[TailMember] = set()
        self.seq = self.event_bytes = self.served = 0
        self.served_at = 0.0
        self.at = end_place(place.header, place.encoder)

    def admit(
        self, place: TailPlace, stream: TailStream, connection: Connection
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
            member.owe(Taken(before, dict.fromkeys(caught_up)))
        return member

    def dismiss(self, member: TailMember, stream: TailStream) -> None:
        """Let a member go, with its stream behind what it was sent."""
        if not stream.is_ahead:
            member.note()
            stream.go_on(self._place(), self.at)
        self.members.discard(member)
        self._late.discard(member)

    def _place(self) -> TailPlace:
        return TailPlace(self._kind, self._generation, self._header, self._encoder)

    def serve(self) -> bool:
        """Send what is new to all who may have it; return whether there is more to do soon."""
        late, self._late = self._late, set()
        for member in late:
            member.settle()
        end, is_still = self._history.end(), self._history.is_still(self._generation)
        if is_still and (self._has_all() or end == self._nothing_before):
            return bool(self._late)
        for member in [member for member in self.members if not member.may_be_served]:
            member.leave()
        if self.members and not (is_still and self._is_served(end)):
            self.disband()
        return bool(self._late) or (bool(self.members) and not self._has_all())

    def _is_served(self, end: Position) -> bool:
        """Send what is new; return whether there may be more for who is here."""
        if not self._is_near(end):
            return False
        served = self.served
        if end.file_no == self._file_no and self._make_and_send(end, TailMember.write):
            return True
        if self.served > served:
            return True  # what is behind that waits until it is seen who has not taken it
        return bool(self.members) and self._have_one_make(end)

    def serve_at_once(self) -> bool:
        """Send what is new, by any thread; return whether all members have been sent all of it."""
        end = self._history.end()
        is_here = end.file_no == self._file_no and self._is_near(end)
        if not is_here or not self._history.is_still(self._generation):
            return False
        if not self.members or not all(member.takes_at_once for member in self.members):
            return False
        if end.offset > self._encoder.border and not self._make_and_send(end, self._send_at_once):
            return False
        return self._has_all()

    def _is_near(self, end: Position) -> bool:
        """Tell whether all that is new may be looked through here, again and again if need be."""
        reach = min(max(len(self.members) * MEMBER_REACH_BYTES, REACH_BYTES), REACH_BYTES_MAX)
        behind = end.offset - self._encoder.border
        if end.file_no == self._file_no + 1:
            behind += self._runs.size(self._file_no)
        elif end.file_no != self._file_no:
            return False
        return behind <= reach

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
        reached = {gtid.domain: gtid for gtid in groups}
        taken = self._pass(at, event_bytes, reached, is_sent=size > 0)
        if size:
            self.seq = seq
            self._send(memoryview(buffer)[:size], 0, taken, put)
        if code == event_packets.FULL:
            return size > 0
        return code == event_packets.NEED and Position(self._file_no, encoder.border) >= end

    def _have_one_make(self, end: Position) -> bool:
        """Send what one member's stream makes for all; return whether they stay."""
        one = next(iter(self.members))
        one.note()
        one.stream.go_on(self._place(), self.at)
        made = one.stream.make_for_all(TAIL_BYTES)
        one.stream.be_sent_by_another()
        if made is None:
            self._nothing_before = end
            return not one.stream.is_ahead
        place = made.place
        at = end_place(place.header, place.encoder)
        taken = self._pass(at, made.event_bytes, made.sent, is_sent=len(made.data) > 0)
        self.seq = (self.seq + made.packets) & 255
        one.has_made(made.event_bytes)
        if place.header.file_no != self._file_no:
            for member in self.members:
                member.stream.hold_from(place.header.file_no)
        self._header, self._file_no = place.header, place.header.file_no
        self._encoder.seek(self._file_no, place.encoder.border)
        encoder_state.copy_state(self._encoder, place.encoder)
        self._begun_at = place.encoder.border
        self._feed.forget()
        if made.data:
            self._send(made.data, -one.shift & 255, taken, TailMember.write)
        one.stream.forget_batch()
        return True

    def _pass(
        self, at: Place, event_bytes: int, reached: Mapping[int, Gtid], *, is_sent: bool
    ) -> Taken:
        """Be behind what was made, of which something *is_sent* next; return where all are."""
        taken = Taken(self.at, {domain: self.reached.get(domain) for domain in reached})
        if is_sent:
            for member in self.members:
                member.expect(taken)
            self.served += 1
            self.served_at = time.monotonic()
        self.event_bytes += event_bytes
        self.reached.update(reached)
        self.at = at
        return taken

    def _send(self, packets: Buffer, shift: int, taken: Taken, put: Put) -> None:
        """
        Send packets to all members, to each by its own count.

        Args:
            packets: whole ones.
            shift: between their sequence ids and the tail's.
            taken: how far all are without them.
            put: sends to one.
        """
        copies: dict[int, bytearray] = {}
        for member in list(self.members):
            copy = copies.get(member.shift)
            if copy is None:
                copy = copies[member.shift] = bytearray(len(packets))
                renumber(packets, member.shift + shift & 255, memoryview(copy))
            put(member, copy, taken)

    def wait_for(self, member: TailMember) -> None:
        """Have a member stay that has not taken all, until the next is due."""
        self._late.add(member)

    def _send_at_once(self, member: TailMember, data: bytearray, taken: Taken) -> None:
        """Send something in any thread's turn; what the member does not take is the loop's."""
        size = member.send(data)
        if size < len(data):
            self.turns.leave(partial(member.write, memoryview(data)[size:], taken))

    def _catch_up(
        self, place: TailPlace, stream: TailStream, connection: Connection
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
