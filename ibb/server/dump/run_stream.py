"""
A dump that is made by the kernel as far as what comes is usual, and as ever otherwise.

Between groups the kernel is asked first. What it leaves, a group from its beginning or from where
it stopped inside one, is made by `DumpStream`; then it is asked again. So all rules have one home,
and bytes and errors are the same whoever makes them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventFlag
from ibb.protocol.gtid import Gtid
from ibb.server.config import BATCH_BYTES
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_runs import PageRun, PageRuns
from ibb.storage.position import Position

from . import event_packets, run_encoder
from .dump_batch import Place
from .dump_stream import DumpStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.event_encoder import EventEncoder, WirePart
    from ibb.protocol.fields import Buffer
    from ibb.storage.file_header import FileHeader

    from .dump_batch import Batch
    from .dump_terms import DumpTerms

_BUFFERS_MAX: Final = 8  # kept for whoever makes a batch next
_BUFFER_BYTES: Final = BATCH_BYTES + run_encoder.BEYOND_BYTES
_LENT_BYTES_MIN: Final = 64 << 10  # of a batch that is left where it was made, not copied
_buffers: Final[deque[bytearray]] = deque(maxlen=_BUFFERS_MAX)


class RunStream(DumpStream):
    """
    One dump's packets, where they need no positions.

    Args:
        terms: as for `DumpStream`.
        runs: pages of the history, which its readers share; None: for this one alone.
    """

    def __init__(self, terms: DumpTerms, *, runs: PageRuns | None = None) -> None:
        super().__init__(terms)
        request = self._request
        self._runs = runs or PageRuns(self._history)
        self._runs.join()
        self._has_left = False
        self._known: PageRun | None = None
        self._lent: bytearray | None = None  # where the last batch lies
        self._kernel = run_encoder.RunEncoder(
            checksum=request.checksum,
            fates=_fates_of(self._encoder),
            marked=int(EventFlag.SKIP_REPLICATION) if request.skip_marked else 0,
        )
        self._header: FileHeader | None = None  # of the kernel's file, while it leads
        self._led_from: Position

    @property
    def between_groups(self) -> bool:
        """Whether the groups so far are whole."""
        return self._parts is None and not self._kernel.in_group

    def next_batch(self) -> Batch:
        """Return the next packets; those of the batch before are gone then."""
        if self._lent is not None:
            _buffers.append(self._lent)
            self._lent = None
        return super().next_batch()

    def _send_run(self, wanted: int, out: list[Buffer]) -> int | None:
        """Let the kernel add packets; None: it goes on, else the reader is where it stopped."""
        kernel = self._kernel
        kernel.is_last = self.stopping
        if self._header is not None and self._pace.delay and not kernel.in_group:
            self._lead_by_reader()
        if not kernel.in_group and (self.stopping or not self._begin_run()):
            return None if self._header is not None else 0
        buffer = _take_buffer()
        code = self._run(buffer, wanted)
        size = kernel.packets.used
        if size >= _LENT_BYTES_MIN and not out:
            out.append(memoryview(buffer)[:size])
            self._lent = buffer
        else:
            if size:
                out.append(bytes(memoryview(buffer)[:size]))
            _buffers.append(buffer)
        self.seq = kernel.packets.seq
        self._place.position += kernel.packets.event_bytes
        for domain, server, number in kernel.take():
            self._sent[domain] = Gtid(domain, server, number)
        if code == event_packets.FULL:
            return None
        self._lead_by_reader()
        return size

    def _begin_run(self) -> bool:
        """Have the kernel lead if it can; return whether it does."""
        if self._header is None and self._held is None and self._is_usual():
            position = self._reader.position
            self._header = self._runs.header(position.file_no)
            if self._header is not None:
                self._led_from = position
                self._move_hold(position)
                self._kernel.seek(*position)
        return self._header is not None

    def _is_usual(self) -> bool:
        """Tell whether the reader knows where records begin, and all groups go, or are passed."""
        if not self._reader._records.met_boundary:  # noqa: SLF001 - the start may be inside one
            return False
        if self._request.until is not None or self._pace.delay:
            return False
        starts = list(self._filter._start)  # noqa: SLF001 - where its rule is, `run_encoder` says
        if self._filter._empty_domains or len(starts) > run_encoder.DOMAINS_MAX:  # noqa: SLF001
            return False
        self._kernel.pass_over([(start.domain, start.server, start.seq) for start in starts])
        return True

    def _run(self, buffer: bytearray, wanted: int) -> int:
        """Run the kernel, with pages as it wants them, until it is full or cannot go on."""
        kernel, header = self._kernel, self._header
        assert header is not None
        while (code := kernel.run(buffer, wanted, self.seq)) == event_packets.NEED:
            page, known = kernel.walker.wanted_page(header.page_size), self._known
            known_end = known.first + known.pages if known and known.first <= page else 0
            known = self._runs.load(header, page, known_end if page < known_end else 0)
            if known is None or not kernel.walker.load(*known):
                kernel.take_back()
                break
            self._known = known
        return code

    def _lead_by_reader(self) -> None:
        """Go on as ever, behind the last group that the kernel has sent, or inside the next."""
        kernel, header = self._kernel, self._header
        assert header is not None
        border, skip = Position(header.file_no, kernel.border), kernel.packets.skip
        if kernel.behind:
            self._begun_at, self._last = Position(header.file_no, kernel.behind), None
        self._header = self._known = None
        kernel.seek(*border)  # holds no page any more
        if border == self._led_from and not skip:
            return
        self._reader = GroupReader(self._history.pages, border)
        if skip:
            group = self._reader.next()
            if group is None or group.gtid is None:
                raise FormatError("a group is gone of which a part was sent")
            self._group = group
            self._parts = _behind(self._encoder.encode_group(group.pieces()), skip)

    def close(self) -> None:
        """Let files and pages go; from any thread, may wait for a purge."""
        if not self._has_left:
            self._has_left = True
            self._runs.leave()
        super().close()

    def _here(self) -> Place:
        """Return how far the batches so far have come."""
        if self._header is None:
            return super()._here()
        if self._kernel.behind:
            behind = Position(self._header.file_no, self._kernel.behind)
            return Place(behind, None, self._filter.skipping)
        return Place(self._begun_at, None, self._filter.skipping)

    def _end_group(self) -> None:
        """Note that all of the open group has been sent, and where it ends."""
        super()._end_group()
        self._begun_at, self._last = self._reader.position, None


def _take_buffer() -> bytearray:
    try:
        return _buffers.pop()
    except IndexError:
        return bytearray(_BUFFER_BYTES)


def _fates_of(encoder: EventEncoder) -> bytes:
    """Return what the kernel does with each type of event that an encoder has a rule for."""
    fates = bytearray(256)  # SEND
    for code, fate in encoder._fates.items():  # noqa: SLF001 - the home of these rules
        fates[code] = event_packets.DROP if fate.name == "DROP" else event_packets.LEAVE
    return bytes(fates)


def _behind(parts: Iterator[WirePart], skip: int) -> Iterator[WirePart]:
    """Yield the parts behind *skip* bytes, which are whole events."""
    for part in parts:
        if skip > 0:
            skip -= len(part.data)
        else:
            yield part
