"""
From runs of whole pages to packets, without an object for a record or an event: a kernel.

What is usual is done here: groups that lie in their commit record, or in one list of out-of-band
records that follow one another in one file; events that a client gets as they were stored, or does
not get at all. Whatever else turns up, damage too, is `ODD`: what was made of that group is taken
back, as far as it has not been handed out, and `DumpStream`, where all rules are, makes it. Bytes
are copied once, from the page to their place in a packet; length, position and checksum are put
right there. Runs as plain Python, too; `run_encoder.pxd` gives it C types. Every length is checked
against what holds it. Source: ibb-format 5.1, 6; dump-protocol 4.1, 4.2.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.checksum import crc32
from ibb.storage import record_walker

OK: Final = 0
NEED: Final = 1  # the page that the walker wants, or more of it
ODD: Final = 2  # what comes is not for here; `skip` bytes of it were handed out
FULL: Final = 3  # there is as much as was wanted

EVENT_BYTES_MAX: Final = 128 << 10  # larger ones are odd
FRAME_BYTES: Final = 5 + 4  # around an event: length, sequence id, status; checksum
DOMAINS_MAX: Final = 32  # in what is handed out at a time, and of those that are passed over
PASSED_MAX: Final = 1 << 16  # groups passed over before the caller is asked again
SEND: Final = 0  # fates of events, by their type
DROP: Final = 1
LEAVE: Final = 2  # is odd

_ok, _need, _odd, _full, _pass = OK, NEED, ODD, FULL, 4
_event_bytes_max, _domains_max, _passed_max = EVENT_BYTES_MAX, DOMAINS_MAX, PASSED_MAX
_between, _in_commit, _in_list = 0, 1, 2  # phases
_send, _drop = SEND, DROP
_header_size, _gtid, _gtid_size_min, _gtid_size_max = 19, 162, 32, 4096


class RunEncoder:
    """
    Makes packets of one kind.

    Args:
        checksum: events carry a CRC-32.
        fates: a byte for each type of event: SEND, DROP or LEAVE.
        marked: flags of events that are dropped whatever their type.

    Attributes:
        walker: where it is; takes pages.
        border: offset in the file behind the last whole group, or other record between groups.
        behind: the same behind the last whole group; 0: none since `seek`.
        used: bytes of packets that lie ready.
        event_bytes: of the events in them.
        seq: sequence id of the next packet.
        skip: with ODD, bytes of the odd group's events that were handed out before.
        is_last: begin no other group; may be set.
    """

    def __init__(self, *, checksum: bool, fates: bytes, marked: int) -> None:
        if len(fates) != 256:
            raise ValueError(f"fates of {len(fates)} types")
        self.walker = record_walker.RecordWalker()
        self._fates = memoryview(fates)
        self._marked = marked
        self._checksum_size = 4 if checksum else 0
        self._out = memoryview(bytearray(1))
        self._wanted = self._phase = self._count = self._first = self._resume = 0
        self._node = self._node_at = self._node_open = 0
        self._event_has = self._event_size = self._fate = self._is_first = 0
        self._domain = self._server = self._number = self._gtids = 0
        self.behind = self.border = self.used = self.event_bytes = self.seq = self.skip = 0
        self.is_last = False
        self._group_used = self._group_bytes = self._group_seq = 0
        self._group_sent = self._starts = self._passed = 0
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
        self.border, self.behind = offset, 0
        self._phase = self._event_has = self._gtids = 0
        self.used = self.event_bytes = self.skip = 0

    def run(self, out: bytearray, wanted: int, seq: int) -> int:
        """
        Add packets to *out* until there are *wanted* bytes; return NEED, FULL or ODD.

        Args:
            out: the same until `take`.
            wanted: bytes; *out* has room for another event behind them.
            seq: sequence id of the first packet in *out*.
        """
        if wanted < 0 or len(out) < wanted + EVENT_BYTES_MAX + FRAME_BYTES:
            raise ValueError(f"{len(out)} bytes for {wanted} and an event")
        if not self.walker.page_size:
            return NEED
        if not self.used:
            self.seq = self._group_seq = seq
        self._out = memoryview(out)
        self._wanted, self._passed = wanted, 0
        with cython.nogil:
            code = self._run()
        self._out = memoryview(bytearray(1))
        return code

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
        if self._phase:
            self._group_sent += self.event_bytes - self._group_bytes
        self._group_used = self._group_bytes = 0
        self._group_seq = self.seq
        self.used = self.event_bytes = self._gtids = 0
        return found

    def _run(self) -> int:
        code = _ok
        while code == _ok:
            if self._phase == _between:
                if self.used >= self._wanted or self._gtids == _domains_max or self.is_last:
                    return _full
                code = self._find_group()
            elif self._phase == _in_commit:
                code = self._feed()
                if code == _ok:
                    code = self._end_commit()
                elif code == _pass:
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
        self._is_first = 1
        self._event_has = 0
        self._group_used, self._group_bytes = self.used, self.event_bytes
        self._group_seq = self.seq
        self._group_sent = 0
        return _ok

    def _end_commit(self) -> int:
        """Go on behind a commit record's contents: to its list, or to the next group."""
        if self._is_first:
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
            if self._start_domains[place] == self._domain:
                is_other = self._start_servers[place] != self._server
                return _pass if is_other or self._number < self._start_numbers[place] else _odd
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
                code = self._feed()
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
        if self._event_has:
            return _odd  # it ends inside an event
        place = 0
        while place < self._gtids and self._domains[place] != self._domain:
            place += 1
        if place == self._gtids:
            if place == _domains_max:
                return _odd
            self._gtids += 1
        self._domains[place], self._servers[place] = self._domain, self._server
        self._numbers[place] = self._number
        self.walker.go(resume)
        self.border = self.behind = resume
        self._phase = _between
        return _ok

    def take_back(self) -> None:
        """Take the present group for odd: forget what was made of it and not handed out."""
        self.skip = 0
        if self._phase != _between:
            if self._group_sent == 0:
                self.used, self.event_bytes = self._group_used, self._group_bytes
                self.seq = self._group_seq
            else:
                self.skip = self._group_sent + self.event_bytes - self._group_bytes
        self._phase = _between
        self._event_has = 0

    def _feed(self) -> int:
        """Take the rest of the present record as events."""
        while True:
            while self.walker.left > 0:
                code = self._take_event()
                if code != _ok:
                    return code
            if self.walker.ends:
                return _ok
            code = self.walker.next_part()
            if code != _ok:
                return code

    def _take_event(self) -> int:
        """Copy as much of the present event as its chunk has."""
        at = self.used + 5
        if self._event_has < _header_size:
            if self._event_has == 0 and self.used >= self._wanted:
                return _full
            self._copy(at + self._event_has, min(_header_size - self._event_has, self.walker.left))
            if self._event_has < _header_size:
                return _ok
            code = self._begin_event(at)
            if code != _ok:
                return code
        size = min(self._event_size - self._event_has, self.walker.left)
        if size > 0:
            self._copy(at + self._event_has, size)
        if self._event_has == self._event_size:
            return self._end_event(at)
        return _ok

    def _copy(self, to: int, size: int) -> None:
        part = self.walker.part
        if cython.compiled:
            memcpy(  # noqa: F821
                cython.address(self._out[to]), cython.address(self.walker.data[part]), size
            )
        else:
            self._out[to : to + size] = self.walker.data[part : part + size]
        self.walker.part = part + size
        self.walker.left -= size
        self._event_has += size

    def _begin_event(self, at: int) -> int:
        """Look at an event's header."""
        kind = self._out[at + 4]
        flags = self._read(at + 17, 2)
        size = self._read(at + 9, 4)
        if size < _header_size or size > _event_bytes_max:
            return _odd
        if self._is_first and (kind != _gtid or size < _gtid_size_min or size > _gtid_size_max):
            return _odd
        self._event_size = size
        self._fate = _drop if flags & self._marked else self._fates[kind]
        return _ok if self._fate == _send or self._fate == _drop else _odd  # noqa: PLR1714

    def _end_event(self, at: int) -> int:
        """Put the event's packet right."""
        size = self._event_size
        if self._is_first:
            self._is_first = 0
            self._server = self._read(at + 5, 4)
            self._domain = self._read(at + 27, 4)
            self._number = self._read(at + 19, 8)
            code = self._judge_group()
            if code != _ok:
                return code
        self._event_has = 0
        if self._fate == _drop:
            return _ok
        wire = size + self._checksum_size
        self._write(at + 9, wire, 4)
        self._write(at + 13, 0, 4)
        self._out[at + 18] &= 0xBF  # ACCEPT_OWN means something inside a replica only
        if self._checksum_size:
            if cython.compiled:
                checksum = crc32_at(cython.address(self._out[at]), size)  # noqa: F821
            else:
                checksum = crc32(self._out[at : at + size])
            self._write(at + size, checksum, 4)
        self._write(at - 5, wire + 1, 3)
        self._write(at - 2, self.seq, 2)  # the status byte is 0
        self.seq = (self.seq + 1) & 255
        self.used += 5 + wire
        self.event_bytes += wire
        return _ok

    def _read(self, at: int, size: int) -> int:
        value, place = 0, at + size
        while place > at:
            place -= 1
            value = value << 8 | self._out[place]
        return value

    def _write(self, at: int, value: int, size: int) -> None:
        for place in range(at, at + size):
            self._out[place] = value & 255
            value >>= 8
