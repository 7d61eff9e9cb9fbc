"""
GTID list event (163): the binlog state at a place, or the news that UNTIL is reached.

    0 u32      bits 0-27 number of entries, bit 28 UNTIL_REACHED, bit 29 IGN_GTIDS
    4 entries  u32 domain, u32 server id, u64 seq; a domain's most recent entry last
    . 2 bytes  zero, only where there are no entries

Source: dump-protocol 4.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from struct import Struct
from typing import TYPE_CHECKING, Final

from .errors import FormatError
from .event import HEADER_SIZE, EventFlag, EventType, build_event, expect_event
from .fields import U32, Buffer
from .gtid import Gtid

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTRIES_MAX: Final = 2**28 - 1

_ENTRY: Final = Struct("<IIQ")
_EMPTY_PADDING: Final = bytes(2)
_BODY_SIZE_MIN: Final = U32.size + len(_EMPTY_PADDING)


class GtidListFlag(IntFlag):
    """Bits that share a word with the number of entries."""

    UNTIL_REACHED = 1 << 28
    IGN_GTIDS = 1 << 29  # only in relay logs; there a sub id (u64) for each entry follows


@dataclass(frozen=True, slots=True)
class GtidList:
    """
    A list of GTIDs and what it is for.

    Args:
        gtids: the entries, in order.
        timestamp: seconds; 0 in a fake event. `mariadb-binlog` heeds no list with 0.
        server_id: of the sender, or of the writer of a real one.
        list_flags: `GtidListFlag` bits.
        log_pos: of the header; 0 is safe.
        flags: of the event header.
    """

    gtids: tuple[Gtid, ...]
    timestamp: int
    server_id: int
    list_flags: int = 0
    log_pos: int = 0
    flags: int = 0

    @classmethod
    def fake(cls, gtids: Iterable[Gtid], server_id: int, list_flags: int = 0) -> GtidList:
        """Return one made for the stream alone."""
        return cls(tuple(gtids), 0, server_id, list_flags, flags=EventFlag.ARTIFICIAL)

    @classmethod
    def parse(cls, event: Buffer) -> GtidList:
        """
        Read one whole event without checksum; bytes behind the entries are not looked at.

        Raises:
            FormatError: wrong type or length, or fewer entries than announced.
        """
        header = expect_event(event, EventType.GTID_LIST, _BODY_SIZE_MIN)
        (word,) = U32.unpack_from(event, HEADER_SIZE)
        start = HEADER_SIZE + U32.size
        end = start + (word & ENTRIES_MAX) * _ENTRY.size
        if end > len(event):
            raise FormatError(
                f"Gtid_list event of {len(event)} bytes announces {word & ENTRIES_MAX} entries"
            )
        with memoryview(event) as view, view[start:end] as entries:
            gtids = tuple(map(Gtid._make, _ENTRY.iter_unpack(entries)))
        return cls(
            gtids,
            header.timestamp,
            header.server_id,
            word & ~ENTRIES_MAX,
            header.log_pos,
            header.flags,
        )

    @property
    def until_reached(self) -> bool:
        """Whether the list tells the replica to stop."""
        return bool(self.list_flags & GtidListFlag.UNTIL_REACHED)

    def encode(self) -> bytes:
        """Return the event without checksum."""
        assert len(self.gtids) <= ENTRIES_MAX
        assert not self.list_flags & (ENTRIES_MAX | GtidListFlag.IGN_GTIDS)
        body = U32.pack(len(self.gtids) | self.list_flags) + (
            b"".join(_ENTRY.pack(*gtid) for gtid in self.gtids) or _EMPTY_PADDING
        )
        return build_event(
            EventType.GTID_LIST,
            body,
            timestamp=self.timestamp,
            server_id=self.server_id,
            log_pos=self.log_pos,
            flags=self.flags,
        )
