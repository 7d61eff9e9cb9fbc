"""
GTID event (162): the first event of every group.

    0  u64 seq
    8  u32 domain; the server id of the GTID is the one in the event header
    12 u8  flags2
    .. u64 commit id                                 if flags2 has GROUP_COMMIT_ID
    .. u32 format id, u8 gtrid size, u8 bqual size,
       gtrid, bqual                                  if flags2 has PREPARED_XA or COMPLETED_XA
    .. u8  flags_extra                               if bytes remain, and so on:
    .. u8  number of engines - 1                     if flags_extra has MULTI_ENGINE
    .. u64 seq of the START ALTER group              if it has COMMIT_ALTER or ROLLBACK_ALTER
    .. u32 thread id                                 if it has THREAD_ID

The body is at least 19 bytes long, filled up with zeros.
Source: dump-protocol 4.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from struct import Struct
from typing import Final

from .errors import FormatError
from .event import (
    HEADER_SIZE,
    EventFlag,
    EventType,
    build_event,
    expect_event,
)
from .fields import U32, U64, Buffer, FieldReader
from .gtid import Gtid

BODY_SIZE_MIN: Final = 19  # bytes, as written
FIXED_SIZE: Final = 13  # bytes of the body that every GTID event must have
XID_PART_BYTES_MAX: Final = 64  # of gtrid, and of bqual

_FIXED: Final = Struct("<QIB")
_HEADER_AND_FIXED: Final = Struct("<4xBI10xQIB")  # type, server id, seq, domain, flags2
_XID: Final = Struct("<IBB")
_PLAIN: Final = Struct("<IBIIIHQIB6x")  # header and body, nothing optional
_NOTHING_MORE: Final = BODY_SIZE_MIN - FIXED_SIZE
_ZEROS: Final = bytes(_NOTHING_MORE)
_GTID: Final = int(EventType.GTID)


class GtidFlag(IntFlag):
    """Bits of flags2."""

    STANDALONE = 1  # one event follows, no COMMIT
    GROUP_COMMIT_ID = 2
    TRANSACTIONAL = 4
    ALLOW_PARALLEL = 8
    WAITED = 0x10
    DDL = 0x20
    PREPARED_XA = 0x40
    COMPLETED_XA = 0x80


class GtidExtraFlag(IntFlag):
    """Bits of flags_extra."""

    MULTI_ENGINE = 1
    START_ALTER = 2
    COMMIT_ALTER = 4
    ROLLBACK_ALTER = 8
    THREAD_ID = 16


# Plain integers: operations of IntFlag are slow.
_STANDALONE: Final = int(GtidFlag.STANDALONE)
_HAS_COMMIT_ID: Final = int(GtidFlag.GROUP_COMMIT_ID)
_HAS_XID: Final = int(GtidFlag.PREPARED_XA | GtidFlag.COMPLETED_XA)
_HAS_MORE: Final = _HAS_COMMIT_ID | _HAS_XID
_HAS_ENGINES: Final = int(GtidExtraFlag.MULTI_ENGINE)
_HAS_ALTER_SEQ: Final = int(GtidExtraFlag.COMMIT_ALTER | GtidExtraFlag.ROLLBACK_ALTER)
_HAS_THREAD_ID: Final = int(GtidExtraFlag.THREAD_ID)
_SUPPRESS_USE: Final = int(EventFlag.SUPPRESS_USE)


@dataclass(frozen=True, slots=True)
class XaId:
    """Name of an XA transaction: the client's format id and two parts of at most 64 bytes."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        """As a person writes it in XA COMMIT."""
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class GtidEvent:
    """
    What a GTID event says about its group.

    Args:
        gtid: the group's id.
        timestamp: seconds.
        flags2: `GtidFlag` bits.
        commit_id: equal in groups that were committed together; None without the flag.
        xa_id: None without an XA flag.
        flags_extra: `GtidExtraFlag` bits.
        engines: number of engines - 1 as written; None without the flag.
        alter_seq: seq of the START ALTER group; None without a flag for it.
        thread_id: of the connection that committed; None without the flag.
        rest: bytes behind all that is known here, as they came; no use is made of them.
        log_pos: of the event header.
        flags: of the event header.
    """

    gtid: Gtid
    timestamp: int
    flags2: int
    commit_id: int | None = None
    xa_id: XaId | None = None
    flags_extra: int = 0
    engines: int | None = None
    alter_seq: int | None = None
    thread_id: int | None = None
    rest: bytes = b""
    log_pos: int = 0
    flags: int = _SUPPRESS_USE

    @classmethod
    def parse(cls, event: Buffer) -> GtidEvent:
        """
        Read one whole event without checksum.

        Raises:
            FormatError: wrong type or length, seq 0, an XA id part above 64 bytes, or a part that
                a flag announces is cut off.
        """
        if len(event) == _PLAIN.size and event[-_NOTHING_MORE:] == _ZEROS:  # the usual one
            timestamp, code, server, size, log_pos, flags, seq, domain, flags2 = _PLAIN.unpack(
                event
            )
            if code == _GTID and size == len(event) and seq and not flags2 & _HAS_MORE:
                gtid = Gtid(domain, server, seq)
                return cls(gtid, timestamp, flags2, log_pos=log_pos, flags=flags)
        header = expect_event(event, EventType.GTID, FIXED_SIZE)
        gtid, flags2 = read_gtid(event)
        reader = FieldReader(event, HEADER_SIZE + FIXED_SIZE, what="GTID event")
        commit_id = reader.u64() if flags2 & _HAS_COMMIT_ID else None
        xa_id = _read_xa_id(reader) if flags2 & _HAS_XID else None
        flags_extra = reader.u8() if reader.remaining else 0
        engines = reader.u8() if flags_extra & _HAS_ENGINES else None
        alter_seq = reader.u64() if flags_extra & _HAS_ALTER_SEQ else None
        thread_id = reader.u32() if flags_extra & _HAS_THREAD_ID else None
        rest = reader.rest()
        return cls(
            gtid,
            header.timestamp,
            flags2,
            commit_id,
            xa_id,
            flags_extra,
            engines,
            alter_seq,
            thread_id,
            rest if any(rest) else b"",  # zeros only fill the event up
            header.log_pos,
            header.flags,
        )

    @property
    def standalone(self) -> bool:
        """Whether the group ends with its next event of weight, without COMMIT."""
        return bool(self.flags2 & _STANDALONE)

    def encode(self) -> bytes:
        """Return the event without checksum."""
        assert self.gtid.seq > 0
        parts = [_FIXED.pack(self.gtid.seq, self.gtid.domain, self.flags2)]
        if self.flags2 & _HAS_COMMIT_ID:
            assert self.commit_id is not None
            parts.append(U64.pack(self.commit_id))
        if self.flags2 & _HAS_XID:
            assert self.xa_id is not None
            xa_id = self.xa_id
            parts.append(_XID.pack(xa_id.format_id, len(xa_id.gtrid), len(xa_id.bqual)))
            parts.append(xa_id.gtrid + xa_id.bqual)
        if self.flags_extra or self.rest:
            parts.append(bytes((self.flags_extra,)))
        if self.flags_extra & _HAS_ENGINES:
            assert self.engines is not None
            parts.append(bytes((self.engines,)))
        if self.flags_extra & _HAS_ALTER_SEQ:
            assert self.alter_seq is not None
            parts.append(U64.pack(self.alter_seq))
        if self.flags_extra & _HAS_THREAD_ID:
            assert self.thread_id is not None
            parts.append(U32.pack(self.thread_id))
        parts.append(self.rest)
        return build_event(
            EventType.GTID,
            b"".join(parts).ljust(BODY_SIZE_MIN, b"\0"),
            timestamp=self.timestamp,
            server_id=self.gtid.server,
            log_pos=self.log_pos,
            flags=self.flags,
        )


def encode_gtid_event(gtid: Gtid, timestamp: int, flags2: int) -> bytes:
    """
    Return the GTID event of a plain group, without checksum, quickly.

    Args:
        gtid: the group's id.
        timestamp: seconds.
        flags2: `GtidFlag` bits, none of which announces more fields.
    """
    assert gtid.seq > 0
    assert not flags2 & (_HAS_COMMIT_ID | _HAS_XID)
    domain, server, seq = gtid
    size = HEADER_SIZE + BODY_SIZE_MIN
    return _PLAIN.pack(
        timestamp, EventType.GTID, server, size, 0, _SUPPRESS_USE, seq, domain, flags2
    )


def read_gtid(event: Buffer) -> tuple[Gtid, int]:
    """
    Return the GTID and flags2 of the GTID event that *event* begins with, and look no further.

    Raises:
        FormatError: another type, seq 0, or fewer than 32 bytes.
    """
    if len(event) < _HEADER_AND_FIXED.size:
        raise FormatError(f"GTID event of only {len(event)} bytes")
    code, server, seq, domain, flags2 = _HEADER_AND_FIXED.unpack_from(event)
    if code != EventType.GTID:
        raise FormatError(f"group begins with an event of type {code}, not with a GTID")
    if seq == 0:
        raise FormatError(f"GTID event with sequence number 0 in domain {domain}")
    return Gtid(domain, server, seq), flags2


def _read_xa_id(reader: FieldReader) -> XaId:
    format_id, gtrid_size, bqual_size = reader.u32(), reader.u8(), reader.u8()
    if gtrid_size > XID_PART_BYTES_MAX or bqual_size > XID_PART_BYTES_MAX:
        raise FormatError(f"GTID event with an XA id of {gtrid_size} + {bqual_size} bytes")
    return XaId(format_id, reader.take(gtrid_size), reader.take(bqual_size))
