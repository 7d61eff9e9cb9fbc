"""
A dump that is made by the kernel as far as what comes is usual, and as ever otherwise.

Between groups the kernel is asked first. What it leaves, a group from its beginning or from where
it stopped inside one, is made by `DumpStream`; then it is asked again. So all rules have one home,
and bytes and errors are the same whoever makes them.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventFlag
from ibb.protocol.event_encoder import parts_behind
from ibb.protocol.gtid import Gtid
from ibb.server.config import BATCH_BYTES
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_runs import PageRuns
from ibb.storage.position import Position

from . import encoder_state, event_packets, run_encoder
from .dump_batch import Outcome, Place
from .dump_stream import DumpStream
from .packet_buffers import (
    LONG_BYTES,
    PIECE_BYTES,
    SENT_BYTES,
    SENT_SECONDS,
    give_buffer,
    take_buffer,
)
from .page_feed import PageFeed
from .sequence_ids import renumber
from .shared_blocks import Block, BlockPlace, Seat, SharedBlocks
from .tail_place import PacketKind, end_place, fates_of

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer
    from ibb.server.connections.direct_sender import DirectSender
    from ibb.server.work_permits import WorkPermits
    from ibb.storage.file_header import FileHeader

    from .dump_batch import Batch
    from .dump_terms import DumpTerms
    from .shared_pieces import Sharing

GRID_BYTES: Final = 256 << 10  # of a file; whoever comes by begins a block at the same groups
BATCHES_A_FILE: Final = 4  # after so many one goes on into one file more
_LENT_BYTES_MIN: Final = 64 << 10  # of a batch that is left where it was made, not copied


class RunStream(DumpStream):
    """
    One dump's packets, where they need no positions.

    Args:
        terms: as for `DumpStream`.
        runs: pages of the history, which its readers share; None: for this one alone.
        blocks: packets that they share, likewise.
        permits: of the threads, which lend them to wait for a client; None: they do not.
    """

    def __init__(
        self,
        terms: DumpTerms,
        *,
        runs: PageRuns | None = None,
        blocks: SharedBlocks | None = None,
        permits: WorkPermits | None = None,
    ) -> None:
        super().__init__(terms)
        request = self._request
        self._runs = runs or PageRuns(self._history)
        self._feed, self._permits = PageFeed(self._runs), permits
        self._lent: memoryview | Block | None = None  # where the last batch lies
        self._kind = PacketKind(
            request.checksum,
            fates_of(self._encoder),
            int(EventFlag.SKIP_REPLICATION) if request.skip_marked else 0,
        )
        self._kernel = self._kind.encoder()
        self._blocks = blocks or SharedBlocks()
        self._seat = Seat(self._kind)
        self._joining = threading.Lock()
        self._has_joined = self._has_left = False
        self._passes_over = False  # what its client has
        self._may_wait = True  # for packets that others make just then
        self._sender: DirectSender | None = None  # for the batch that is being made
        self._seconds = SENT_SECONDS  # for which it is given what is made
        self._is_slow = False  # it has just taken less than a small piece
        self._is_odd = False  # behind what was sent the reader is to lead
        self._much = 0  # bytes of the batch that was sent just now, if it was large
        self._sharing: Sharing | None = None  # with others, what is sent just now
        self._header: FileHeader | None = None  # of the kernel's file, while it leads
        self._led_from: Position | None = None  # where the reader is meanwhile, if it is up to date
        self._batches = 0  # before this one
        self._last_file = 0  # that the batch goes on into
        self._is_file_over = False  # behind the batch before

    def under_way(self) -> tuple[int, bool]:
        """Return how much of a batch a thread has sent, and whether the client takes no more."""
        return self._kernel.sent, self._kernel.is_resting

    @property
    def between_groups(self) -> bool:
        """Whether the groups so far are whole."""
        return self._parts is None and not (self._kernel.in_group or self._is_odd)

    def stop(self) -> None:
        """Begin no group any more; from any thread."""
        super().stop()
        self._kernel.is_last = True

    def start(self) -> Batch:
        """Find the start and return the first packets, or END with the reason against it."""
        batch = super().start()
        with self._joining:
            if not self._has_left:  # from here on the history is kept as it is: it is held
                self._has_joined = True
                self._runs.join()
                self._blocks.join(self._seat)
        return batch

    def next_batch(
        self, sender: DirectSender | None = None, seconds: float = SENT_SECONDS
    ) -> Batch:
        """Return the next packets; those of the batch before are gone then."""
        self._begin_batch(sender, seconds)
        batch = super().next_batch()
        self._batches += 1
        goes_on = batch.outcome is Outcome.MORE and self._header is not None
        if not goes_on or self._pace.limited:  # this may last
            self._blocks.pieces.leave(self._seat)
        gives_way = self._sharing is not None and self._sharing.made_max > 0  # to those behind
        return replace(batch, sent_size=self._sent_size, gives_way=gives_way)

    def _begin_batch(self, sender: DirectSender | None, seconds: float) -> None:
        """Forget the batch before, and see how far this one may go."""
        self._give_back()
        self._sender, self._sent_size, self._seconds, self._sharing = sender, 0, seconds, None
        assert self._at is not None
        file_no, self._is_file_over = self._at.position.file_no + self._is_file_over, False
        self._last_file = file_no + self._batches // BATCHES_A_FILE

    def forget_batch(self) -> None:
        """Take it that nobody looks at the last batch any more: what it lies in is free again."""
        self._give_back()
        self._feed.lend(self._kernel)

    def _give_back(self) -> None:
        lent, self._lent = self._lent, None
        self._blocks.release(lent)

    def _fill(self, out: list[Buffer]) -> Outcome:
        """Add packets to *out*, unless the kernel is behind all that there is."""
        if self._is_at_end():
            self._check_generation()
            self._led_from = None  # what the reader has of its page will be less than there is
            self._feed.rest(self._kernel)  # this may last: let pages go
            return Outcome.IDLE
        outcome = super()._fill(out)
        return Outcome.IDLE if not out and self._is_at_end() else outcome

    def _is_at_end(self) -> bool:
        """Tell whether the kernel leads, and nothing behind it is durable."""
        header, kernel = self._header, self._kernel
        if header is None or kernel.in_group or self.stopping or self._is_odd:
            return False
        return Position(header.file_no, kernel.border) >= self._history.end()

    def _send_run(self, wanted: int, out: list[Buffer]) -> int | None:
        """Let the kernel add packets; None: it goes on, else the reader is where it stopped."""
        kernel = self._kernel
        if self._is_odd:
            self._lead_by_reader()
            return 0
        kernel.is_last = self.stopping
        if out and self._header is None and self._reader.position.file_no > self._last_file:
            return None  # little for who leaves behind a few groups: a file costs more than they do
        if self._header is not None and self._pace.delay and not kernel.in_group:
            self._lead_by_reader()
        if not kernel.in_group and (self.stopping or not self._begin_run()):
            return None if self._header is not None else 0
        assert self._header is not None
        if self._wants_long(out):
            kernel.stop_at = run_encoder.NOWHERE
            long = self.apart_bytes or LONG_BYTES
            most, piece = (SENT_BYTES, PIECE_BYTES) if self._sender else (long, long)
            much = min(self._much * 2, most)  # little for who leaves behind a few groups
            piece = min(much, piece, BATCH_BYTES if self._is_slow else piece)  # it holds the rest
            return self._send_made(piece, out, take_buffer(piece), much)
        if not self._passes_over:
            kernel.stop_at = kernel.border - kernel.border % GRID_BYTES + GRID_BYTES
        if out or self.stopping or self._passes_over or not self._may_wait:
            return self._send_made(wanted, out, take_buffer())
        block = self._blocks.find(self._seat, self._block_place(self._header))
        if block is not None:
            return self._send_block(block, out)
        more = wanted // 2 if self._batches else 0
        return self._send_made(wanted + more, out, take_buffer())

    def _wants_long(self, out: list[Buffer]) -> bool:
        """Tell whether to make much at a time, for nobody else: for who catches up at its speed."""
        is_free = not out and not self.stopping and not self._pace.limited
        has_own = self._sender is not None or self.apart_bytes > 0
        return is_free and self._much > 0 and (has_own or self._blocks.is_alone(self._seat))

    def _send_made(
        self, wanted: int, out: list[Buffer], buffer: memoryview, alone: int = 0
    ) -> int | None:
        """Make packets, and keep them for others; for who is *alone* send up to so much of them."""
        kernel, block, before = self._kernel, None, self.seq
        try:
            code = self._run(buffer, wanted, alone)
            self._sent_size += kernel.sent
            if not kernel.kept:  # else the client lacks the rest of a packet
                if kernel.sent:
                    self.seq = buffer[3] if kernel.packets.used else kernel.packets.seq
                self._check_generation()
            event_bytes = kernel.sent_bytes + kernel.packets.event_bytes
            data: Buffer = memoryview(buffer)[kernel.kept : kernel.packets.used]
            size, sent = len(data), kernel.sent
            has_left = alone > 0 and size > 0 and self._sender is not None
            self._is_slow = sent < BATCH_BYTES and (self._is_slow or has_left)
            is_lent = size >= _LENT_BYTES_MIN and not out
            self._much = sent + size if sent + size >= _LENT_BYTES_MIN and not out else 0
            if not is_lent:
                data = bytes(data)
            self.seq = kernel.packets.seq
            if size:
                out.append(data)
            groups = kernel.take()
            if self._sharing is not None:
                groups = self._sharing.pump.take() + groups
            if size and self._seat.making is not None:
                after = self._kind.encoder()
                encoder_state.copy_state(after, kernel)
                lent = buffer if is_lent else None
                block = Block(
                    data, before, self.seq - before, event_bytes, groups, code, after, lent
                )
        finally:
            self._blocks.keep(self._seat, block)
        if not is_lent:
            give_buffer(buffer)
        else:
            self._lent = block or buffer
        self._note(event_bytes, groups)
        if alone:
            self._seat.place = None  # it waits for no block of others
        if code == event_packets.FULL or (code == event_packets.NEED and self._is_at_end()):
            return None
        place = self._seat.place  # none of who is alone, and is sent much of many files
        is_last_file = place is not None and place.file_no >= self._last_file
        self._is_file_over = code == event_packets.NEED and bool(out) and is_last_file
        if sent or self._is_file_over:
            self._is_odd = True  # the next batch goes on, once it is seen whose history there is
            return None
        self._lead_by_reader()
        return size

    def _send_block(self, block: Block, out: list[Buffer]) -> int | None:
        """Add packets that another reader of the same kind has made; the kernel is behind them."""
        encoder_state.copy_state(self._kernel, block.after)
        self._feed.forget()
        size, more = len(block.data), (self.seq - block.seq) & 255
        self._much = size if size >= _LENT_BYTES_MIN else 0
        if not more:
            out.append(block.data)
            self._lent = block
        else:
            buffer = take_buffer()
            renumber(block.data, more, buffer)
            self._blocks.release(block)
            out.append(memoryview(buffer)[:size])
            self._lent = buffer
        self.seq = (self.seq + block.packets) & 255
        self._note(block.event_bytes, block.groups)
        if block.code != event_packets.ODD:
            return None  # there may be more by now
        self._lead_by_reader()
        return size

    def _block_place(self, header: FileHeader) -> BlockPlace:
        return BlockPlace(self._generation, header.file_no, *encoder_state.place_of(self._kernel))

    def _note(self, event_bytes: int, groups: list[tuple[int, int, int]]) -> None:
        """Note what was added."""
        assert self._header is not None
        self._seat.place = self._block_place(self._header)
        self._place.position += event_bytes
        for domain, server, number in groups:
            self._sent[domain] = Gtid(domain, server, number)

    def _begin_run(self) -> bool:
        """Have the kernel lead if it can; return whether it does."""
        if self._header is None and self._held is None:
            position = self._reader.position
            header = self._runs.header(position.file_no)
            if header is not None and self._is_usual(header, position):
                self._header, self._led_from = header, position
                self._move_hold(position)
                self._kernel.seek(*position)
        return self._header is not None

    def _is_usual(self, header: FileHeader, at: Position) -> bool:
        """Tell whether the reader is where a record begins, and all groups go, or are passed."""
        is_inside_page = at.offset > header.page_size and at.offset % header.page_size > 0
        if not is_inside_page and not self._reader.met_boundary:
            return False  # the page may begin inside a record
        if self._request.until is not None or self._pace.delay:
            return False
        starts = list(self._filter._start)  # noqa: SLF001 - where its rule is, `run_encoder` says
        self._passes_over = bool(starts)
        if self._filter._empty_domains or len(starts) > run_encoder.DOMAINS_MAX:  # noqa: SLF001
            return False
        self._kernel.pass_over([(start.domain, start.server, start.seq) for start in starts])
        return True

    def _run(self, buffer: memoryview, wanted: int, alone: int) -> int:
        """Run the kernel until it is full or cannot go on."""
        kernel, header, code = self._kernel, self._header, event_packets.NEED
        assert header is not None
        if alone:
            crowded = self._seconds < SENT_SECONDS  # for which its turn is short
            if self._sender is not None and wanted == PIECE_BYTES and not self._passes_over:
                place = self._block_place(header)
                with self._joining:
                    if not self._has_left:
                        self._sharing = self._blocks.pieces.begin(
                            self._seat, place, wanted, crowded=crowded
                        )
            lent = self._runs.lent(header, kernel.walker, self._generation)
            terms = alone, self._seconds, self._sender, self._sharing, self._permits
            code = self._feed.run_alone(kernel, lent, buffer, wanted, self.seq, *terms)
        if code == event_packets.NEED:  # perhaps inside an event, which lies in the buffer
            seq = kernel.packets.seq if kernel.sent else self.seq
            code = self._feed.run(kernel, header, buffer, wanted, seq)
        if code == event_packets.NEED and kernel.in_group:
            kernel.take_back()
            return event_packets.ODD
        return code

    def _lead_by_reader(self) -> None:
        """Go on as ever, behind the last group that the kernel has sent, or inside the next."""
        kernel, header = self._kernel, self._header
        assert header is not None
        border, skip = Position(header.file_no, kernel.border), kernel.packets.skip
        if kernel.behind:
            self._begun_at, self._last = Position(header.file_no, kernel.behind), None
        self._header, self._is_odd = None, False
        self._feed.forget()
        kernel.seek(*border)  # holds no page any more
        if border == self._led_from and not skip:
            return
        self._reader = GroupReader(self._history.pages, border)
        if skip:
            group = self._reader.next()
            if group is None or group.gtid is None:
                raise FormatError("a group is gone of which a part was sent")
            self._group = group
            self._parts = parts_behind(self._encoder.encode_group(group.pieces()), skip)

    def close(self) -> None:
        """Let files and pages go; from any thread, may wait for a purge."""
        self._leave()
        super().close()

    def close_at_once(self) -> bool:
        """As `close` if that needs no waiting; return whether it did it."""
        self._leave()
        return super().close_at_once()

    def _leave(self) -> None:
        """Use nothing any more that readers share."""
        with self._joining:
            if self._has_joined and not self._has_left:
                self._runs.leave()
                self._blocks.leave(self._seat)
            self._has_left = True
            self._feed.leave()
            self._blocks.pieces.leave(self._seat)

    def _here(self) -> Place:
        """Return how far the batches so far have come."""
        if self._header is None:
            return super()._here()
        if self._is_at_end():
            return end_place(self._header, self._kernel)._replace(skipping=self._filter.skipping)
        behind = self._kernel.behind
        at = Position(self._header.file_no, behind) if behind else self._begun_at
        return Place(at, None, self._filter.skipping)

    def _end_group(self) -> None:
        """Note that all of the open group has been sent, and where it ends."""
        super()._end_group()
        self._begun_at, self._last = self._reader.position, None
