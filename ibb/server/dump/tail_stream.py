"""
A dump whose client others may serve while it has everything.

    place = stream.tail_place()     None: it goes on by itself
    stream.was_sent(...)            by another, meanwhile
    stream.go_on(...)               by itself, behind that

What no kernel makes, one of those that wait makes for all of them: `make_for_all`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import encoder_state
from .dump_batch import Outcome
from .packet_buffers import SENT_SECONDS
from .run_stream import RunStream
from .tail_place import TailPlace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.server.connections.direct_sender import DirectSender

    from .dump_batch import Batch, Place


class MadeForAll(NamedTuple):
    """
    Packets for all readers of a kind at one place, and the place behind them.

    Attributes:
        data: whole packets, counted as the stream that made them does; they lie there until its
            `forget_batch`.
        packets: how many, modulo 256.
        event_bytes: of the events in them that count for a position.
        sent: the last GTID of each domain whose group ends in them.
        place: behind them.
    """

    data: Buffer
    packets: int
    event_bytes: int
    sent: Mapping[int, Gtid]
    place: TailPlace


class TailStream(RunStream):
    """
    One dump's packets, which others may make at the end of the history.

    Args: as for `RunStream`.
    """

    _kept: Batch | None = None  # made for all, and not for the others after all

    def next_batch(
        self, sender: DirectSender | None = None, seconds: float = SENT_SECONDS
    ) -> Batch:
        """Return the next packets; those of the batch before are gone then."""
        kept, self._kept = self._kept, None
        return super().next_batch(sender, seconds) if kept is None else kept

    @property
    def may_be_served(self) -> bool:
        """Whether it gets whatever is durable at once: no, if it is to end, slowly, or later."""
        return not (self.stopping or self._pace.delay or self._pace.limited)

    def tail_place(self) -> TailPlace | None:
        """Return where it is if all that comes is sent, so that another may make the packets."""
        is_between = self._header is not None and not self._kernel.in_group
        if not is_between or self._is_odd or self._passes_over or not self.may_be_served:
            return None
        assert self._header is not None
        return TailPlace(self._kind, self._generation, self._header, self._kernel)

    def be_sent_by_another(self) -> None:
        """Wait for no packets of other readers, until `go_on`."""
        self._seat.place = None

    def was_sent(self, event_bytes: int, seq: int) -> None:
        """
        Note what its client was sent by another.

        Args:
            event_bytes: of the events, since it was noted last.
            seq: sequence id of the next packet.
        """
        self._place.position += event_bytes
        self.seq = seq

    def hold_from(self, file_no: int) -> None:
        """Keep no file before one from purge."""
        assert self._hold is not None
        self._hold.move(file_no)

    def go_on(self, place: TailPlace, at: Place) -> None:
        """
        Make packets again, behind those that an encoder has made, which has handed out all.

        Args:
            place: of the encoder.
            at: the same, as it is told.
        """
        self._kernel.seek(place.header.file_no, place.encoder.border)  # it knows no group of before
        encoder_state.copy_state(self._kernel, place.encoder)
        self._feed.forget()
        self._header, self._led_from, self._held = place.header, None, None
        self._at, self._begun_at, self._much = at, at.position, 0

    def make_for_all(self, most: int) -> MadeForAll | None:
        """
        Make what comes next for all who wait where this one is, by whatever rules.

        None: there is nothing yet, or it is not for the others; what was made is this one's next
        batch then.

        Args:
            most: bytes, about.
        """
        seq, position, self._most = self.seq, self._place.position, most
        self._may_wait = False
        try:
            batch = super().next_batch()
        finally:
            self._may_wait = True
        place = self.tail_place() if batch.outcome is Outcome.MORE else None
        if place is None:
            if batch.data or batch.outcome is Outcome.END:
                self._kept = batch
            return None
        self._feed.rest(self._kernel)
        packets, event_bytes = (self.seq - seq) & 255, self._place.position - position
        return MadeForAll(batch.data, packets, event_bytes, batch.sent, place)

    @property
    def is_ahead(self) -> bool:
        """Whether it has made what its client was not sent."""
        return self._kept is not None

    def _fill(self, out: list[Buffer]) -> Outcome:
        """Add packets to *out*; look for no more where others wait meanwhile."""
        outcome = super()._fill(out)
        return Outcome.MORE if outcome is Outcome.IDLE and not self._may_wait else outcome
