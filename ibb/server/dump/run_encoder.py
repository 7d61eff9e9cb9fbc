"""
From runs of whole pages to packets, without an object for a record or a group: a kernel.

What is usual is done here: groups that lie in their commit record, or in one list of out-of-band
records that follow one another in one file; events that a client gets as they were stored, or does
not get at all. Whatever else turns up, damage too, is `ODD`: what was made of that group is taken
back, as far as it has not been handed out, and `DumpStream`, where all rules are, makes it. Runs as
plain Python, too; `run_encoder.pxd` gives it C types. Source: ibb-format 6; dump-protocol 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.storage import record_walker

from . import event_packets
from .event_packets import EVENT_BYTES_MAX, FRAME_BYTES, FULL, HEAD, NEED, ODD, OK

if not cython.compiled:  # else the .pxd names them
    from .timed_poll import can_take, clock

if TYPE_CHECKING:
    from ibb.server.work_permits import WorkPermits
    from ibb.storage.page_ring import PageRing

DOMAINS_MAX: Final = 32  # in what is handed out at a time, and of those that are passed over
NOWHERE: Final = 1 << 62  # behind all offsets
PASSED_MAX: Final = 1 << 16  # groups passed over before the caller is asked again
BEYOND_BYTES: Final = EVENT_BYTES_MAX + FRAME_BYTES  # what is wanted, a buffer must have room for
REST_SECONDS: Final = 1.0  # that one run waits for a client, in all

_ok, _need, _odd, _full, _head, _pass = OK, NEED, ODD, FULL, HEAD, 5
_few_bytes = record_walker.FEW_BYTES
_domains_max, _passed_max, _rest_max = DOMAINS_MAX, PASSED_MAX, round(REST_SECONDS * 1e9)
_between, _in_commit, _in_list = 0, 1, 2  # phases


class RunEncoder:
    """
    Makes packets of one kind.

    Args:
        checksum, fates, marked: as for `EventPackets`.

    Attributes:
        walker: where it is; takes pages.
        packets: what it makes.
        border: offset in the file behind the last whole group, or other record between groups.
        behind: the same behind the last whole group; 0: none since `seek`.
        sent: bytes of packets that a socket has taken since `take`.
        sent_bytes: of the events in the pieces that it has taken whole.
        kept: where in the buffer the rest of the piece begins of which it has taken a part.
        rested: nanoseconds for which it was waited for since `take`, which `is_resting` just now.
        error: the system's number for why it takes no more; 0: it does.
        is_last, stop_at: begin no other group, or none behind one that ends there; may be set.
    """

    def __init__(self, *, checksum: bool, fates: bytes, marked: int) -> None:
        self.walker = record_walker.RecordWalker()
        self.packets = event_packets.EventPackets(checksum=checksum, fates=fates, marked=marked)
        self._phase = self._count = self._first = self._resume = 0
        self._node = self._node_at = self._node_open = self._gtids = 0
        self.behind = self.border = 0
        self.is_last, self.is_resting, self.stop_at = False, False, NOWHERE
        self._starts = self._passed = 0
        self.sent = self.sent_bytes = self.kept = self.error = self.rested = 0
        if not cython.compiled:
            self._domains, self._servers, self._numbers = ([0] * DOMAINS_MAX for _ in range(3))
            self._start_domains, self._start_servers, self._start_numbers = (
                [0] * DOMAINS_MAX for _ in range(3)
            )

    @property
    def in_group(self) -> bool:
        """Whether a group was begun and not ended."""
        return self._phase != 0

    def seek(self, file_no: int, offset: int) -> None:
        """Go to where a record ends in a file; no page of before is known any more."""
        self.walker.seek(file_no, offset)
        self.packets.clear()
        self.border, self.behind = offset, 0
        self._phase = self._gtids = 0

    def run(self, out: memoryview, wanted: int, seq: int) -> int:
        """
        Add packets to *out* until there are *wanted* bytes; return NEED, FULL or ODD.

        Args:
            out: the same until `take`.
            wanted: bytes; *out* has room for `BEYOND_BYTES` more.
            seq: sequence id of the first packet in *out*.
        """
        self.packets.lend(out, wanted, seq)
        code = NEED
        if self.walker.page_size:
            self._passed = 0
            if len(self.walker.data) <= _few_bytes:
                code = self._run()
            else:
                with cython.nogil:
                    code = self._run()
        self.packets.give_back()
        return code

    def pump(
        self,
        out: memoryview,
        wanted: int,
        seq: int,
        ring: PageRing,
        descriptor: int,
        most: int,
        nanoseconds: int,
        permits: WorkPermits | None = None,
    ) -> int:
        """
        Do as `run`, with pages from a ring; send what was made when it is as much as wanted.

        Args:
            out: as for `run`.
            wanted: as for `run`; a piece that is sent has so many bytes.
            seq: as for `run`.
            ring: has the pages.
            descriptor: of a socket, which does not block; -1: nothing is sent.
            most: bytes, behind which no further piece is begun.
            nanoseconds: of work from now on, likewise.
            permits: the thread lends its own while it waits for a full socket; None: it does not.
        """
        self.packets.lend(out, wanted, seq)
        with cython.nogil:
            code = self._pump(ring, descriptor, most, nanoseconds, permits)
        self.packets.give_back()
        return code

    def _pump(
        self,
        ring: PageRing,
        descriptor: int,
        most: int,
        nanoseconds: int,
        permits: WorkPermits | None,
    ) -> int:
        end = clock() + nanoseconds
        while True:
            code = self.fill(ring)
            if code != _full or self.packets.used < self.packets.wanted or descriptor < 0:
                return code
            size = self.packets.offer(descriptor)
            if not self.has_taken(size, descriptor, permits):
                return code
            if self.is_last or self.sent >= most or clock() >= end + self.rested:
                return code

    def fill(self, ring: PageRing) -> int:
        """Do as `run`, with pages from a ring, where a buffer was lent."""
        self._passed = 0
        code = self._run()
        while code == _need and ring.more(self.walker):
            code = self._run()
        return code

    def has_taken(self, size: int, descriptor: int, permits: WorkPermits | None) -> bool:
        """
        Note how much a socket took of what lies ready; tell whether it has taken all.

        Args:
            size: bytes, or an error.
            descriptor: of the socket.
            permits: as for `pump`, where it is offered the rest as well.
        """
        self.kept = 0
        while True:
            if size < 0:
                self.error = -size
                return False
            self.sent += size
            self.kept += size
            if self.kept >= self.packets.used:
                break
            if permits is None or not self._has_room(descriptor, permits):
                return False
            size = self.packets.offer_rest(descriptor, self.kept)
        self.kept = 0
        self.sent_bytes += self.packets.event_bytes
        self.packets.take()
        return True

    def _has_room(self, descriptor: int, permits: WorkPermits) -> bool:
        """Let others work until a socket takes something; tell whether it soon does."""
        if self.rested >= _rest_max or not permits.rest():
            return False
        begun, self.is_resting = clock(), True
        has_room = can_take(descriptor, _rest_max - self.rested)
        self.is_resting = False
        permits.work_on()
        self.rested += clock() - begun
        return has_room

    def pass_over(self, starts: list[tuple[int, int, int]]) -> None:
        """
        Pass over groups from now on that are before some; those, or what is behind them, are odd.

        Args:
            starts: domain, server and number of one group in each of some domains. What another
                server wrote there, or has a lower number, is before it.
        """
        if len(starts) > DOMAINS_MAX:
            raise ValueError(f"{len(starts)} domains")
        for place, (domain, server, number) in enumerate(starts):
            self._start_domains[place], self._start_servers[place] = domain, server
            self._start_numbers[place] = number
        self._starts = len(starts)

    def take(self) -> list[tuple[int, int, int]]:
        """Hand out what lies ready; return the last domain, server and number of each domain."""
        found = [
            (self._domains[place], self._servers[place], self._numbers[place])
            for place in range(self._gtids)
        ]
        self._gtids = 0
        self.sent = self.sent_bytes = self.kept = self.error = self.rested = 0
        self.packets.take()
        return found

    def end_run(self) -> None:
        """Forget what was made behind the last whole group, of which nothing was handed out."""
        if self._phase != _between:
            self.take_back()
        if self.walker.page_size:
            self.walker.go(self.border)

    def _run(self) -> int:
        code = _ok
        while code == _ok:
            if self._phase == _between:
                is_full = self.packets.used >= self.packets.wanted or self.is_last
                if is_full or self.behind >= self.stop_at or self._gtids == _domains_max:
                    return _full
                code = self._find_group()
            elif self._phase == _in_commit:
                code = self.packets.feed(self.walker)
                if code == _ok:
                    code = self._end_commit()
                elif code == _head:
                    code = self._judge_group()
                if code == _pass:
                    code = self._pass_group()
            else:
                code = self._go_through_list()
        if code == _odd:
            self.take_back()
        return code

    def _find_group(self) -> int:
        """Go on to the next commit record, and behind what it says of lists."""
        while True:
            code = self.walker.begin_record()
            if code == _ok:
                if self.walker.type == 1:
                    code = self._begin_group()
                    if code == _ok:
                        return code
                elif self.walker.type == 3:
                    code = self.walker.pass_node()
                else:
                    code = self.walker.skip()
            if code == _ok:
                self.border = self.walker.at()
            else:
                if code == _need:
                    self.walker.go(self.border)
                return code

    def _begin_group(self) -> int:
        """Read what stands before the events; look whether the whole record is there."""
        code = self.walker.read_list()
        if code != _ok:
            return code
        self._count, self._first = self.walker.list_count, self.walker.first
        if not self.walker.ends:
            code = self.walker.look_ahead()
            if code != _ok:
                return code
        self._phase = _in_commit
        self.packets.begin_group()
        return _ok

    def _end_commit(self) -> int:
        """Go on behind a commit record's contents: to its list, or to the next group."""
        if self.packets.is_first:
            return _odd
        if not self._count:
            return self._end_group(self.walker.at())
        self._resume = self.walker.at()
        self.walker.go(self._first)
        self._node_at = self._first
        self._node = self._node_open = 0
        self._phase = _in_list
        return _ok

    def _pass_group(self) -> int:
        """Go behind a group of which nothing is sent; its commit record is all there."""
        self.take_back()
        code = self.walker.skip()
        self.border = self.behind = self.walker.at()
        self._passed += 1
        return _full if self._passed == _passed_max else code

    def _judge_group(self) -> int:
        """Tell whether the group that begins is before the one looked for in its domain."""
        for place in range(self._starts):
            if self._start_domains[place] == self.packets.domain:
                is_other = self._start_servers[place] != self.packets.server
                is_before = is_other or self.packets.number < self._start_numbers[place]
                return _pass if is_before else _odd
        return _ok

    def _go_through_list(self) -> int:
        """Take the out-of-band records that were passed before."""
        while self._node < self._count:
            if not self._node_open:
                code = self._open_node()
                if code == _need:
                    self.walker.go(self._node_at)
                if code != _ok:
                    return code
            if self._node_open:
                code = self.packets.feed(self.walker)
                if code != _ok:
                    return code
                self._node += 1
                self._node_open = 0
            self._node_at = self.walker.at()
        return self._end_group(self._resume)

    def _open_node(self) -> int:
        """Read the links of the next record if it is one of the list; else go over it."""
        code = self.walker.begin_record()
        if code != _ok:
            return code
        if self.walker.begin >= self.border:
            return _odd  # they were before it
        if self.walker.type != 3:
            return self.walker.skip()
        code = self.walker.read_numbers(5)
        if code != _ok:
            return _need if code == _need else _odd
        if self.walker.links[0] != self._node or (self.walker.ends and not self.walker.left):
            return _odd
        self._node_open = 1
        return _ok

    def _end_group(self, resume: int) -> int:
        """Note the group that ends, and go on behind its commit record."""
        if self.packets.in_event:
            return _odd  # it ends inside an event
        place = 0
        while place < self._gtids and self._domains[place] != self.packets.domain:
            place += 1
        if place == self._gtids:
            if place == _domains_max:
                return _odd
            self._gtids += 1
        self._domains[place], self._servers[place] = self.packets.domain, self.packets.server
        self._numbers[place] = self.packets.number
        self.walker.go(resume)
        self.packets.end_group()
        self.border = self.behind = resume
        self._phase = _between
        return _ok

    def take_back(self) -> None:
        """Take the present group for odd: forget what was made of it and not handed out."""
        self.packets.take_back()
        self._phase = _between
