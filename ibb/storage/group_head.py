"""
The head of an event group: what its commit record says before the events.

    commit record := pointers to out-of-band lists, first event, (without lists) the other events

The first event is the GTID event; a record that begins with a format description instead is no
group but tells that a server started, or that another format is in force. Source: ibb-format 5.1.
"""

import struct
from typing import NamedTuple

from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.event import HEAD_BYTES_MAX, HEADER_SIZE, EventType, type_name
from ibb.protocol.gtid import ID_MAX, SEQ_MAX, Gtid
from ibb.protocol.gtid_event import XID_PART_BYTES_MAX, GtidEvent

from .errors import GroupError
from .event_list import without_position
from .record import NO_LISTS, OobReference, Xid, parse_commit_prefix
from .record_reader import Record

GTID_EVENT_SIZE_MIN = HEADER_SIZE + 13  # bytes: sequence number, domain, flags

_EVENT_START = struct.Struct("<IBIIIH")
_GTID_START = struct.Struct("<4xxI10xQI")  # server id of the header, sequence number, domain
_TYPED_GTID_START = struct.Struct("<4xBI10xQI")  # with the event's type before these


class GroupHead(NamedTuple):
    """
    The head of a commit record.

    Attributes:
        gtid: None for a format description.
        lists: where the out-of-band pieces are.
        event: the GTID event or the format description, without checksum.
        payload: the event again and what was read of the record behind it.
    """

    gtid: Gtid | None
    lists: tuple[OobReference, ...]
    event: bytes
    payload: bytes | memoryview


def read_head(record: Record) -> GroupHead | None:
    """
    Read the head of a commit record; the rest of it is left to read.

    Returns:
        None if the record begins with any other event: not a group.

    Raises:
        FormatError: the record is too short, or numbers or lengths in it are impossible.
    """
    data: bytes | memoryview = record.first
    rest = record.rest()
    while True:
        try:
            return parse_head(data, record.major)
        except Truncated as error:
            more = next(rest, None)
            if more is None:
                raise record.error(f"Short chunk: {error.what}") from error
            data = b"".join((data, more))
        except FormatError as error:
            raise record.error(error.what) from error


def parse_head(data: bytes | memoryview, major: int) -> GroupHead | None:
    """
    Parse the beginning of a commit record's contents.

    Raises:
        Truncated: the head is not all there.
    """
    lists, start = parse_commit_prefix(data, major)
    available = len(data) - start
    if available < HEADER_SIZE:
        raise Truncated("commit record is shorter than its first event's header")
    _, event_type, _, length, _, _ = _EVENT_START.unpack_from(data, start)
    is_gtid = event_type == EventType.GTID
    if not is_gtid and event_type != EventType.FORMAT_DESCRIPTION:
        return None
    if not (GTID_EVENT_SIZE_MIN if is_gtid else HEADER_SIZE) <= length <= HEAD_BYTES_MAX:
        raise FormatError(f"first event of a commit record says that it has {length} bytes")
    if length > available:
        raise Truncated(f"first event has {length} bytes, the commit record {available}")
    payload = data[start:]
    gtid = None
    if is_gtid:
        server, seq, domain = _GTID_START.unpack_from(payload)
        gtid = Gtid(domain, server, seq)
    return GroupHead(gtid, lists, bytes(payload[:length]), payload)


def peek_gtid(page: bytes, start: int, size: int) -> Gtid | None:
    """
    Return the GTID of a group that lies in its commit record; None: `read_head` is to tell it.

    Args:
        page: the page image.
        start: offset of the record's contents, which are of the final format.
        size: bytes of them in this page.
    """
    if size < len(NO_LISTS) + GTID_EVENT_SIZE_MIN or not page.startswith(NO_LISTS, start):
        return None
    kind, server, seq, domain = _TYPED_GTID_START.unpack_from(page, start + len(NO_LISTS))
    return Gtid(domain, server, seq) if kind == EventType.GTID else None


def transaction_head(gtid: Gtid, event: bytes) -> bytes:
    """
    Return the GTID event of a transaction as it is stored.

    Args:
        gtid: the transaction's id.
        event: as somebody gave it, without checksum.

    Raises:
        GroupError: it is not such an event, or of another GTID, or too long.
    """
    check_head(event)
    try:
        found = GtidEvent.parse(event)
    except FormatError as error:
        raise GroupError(f"not the GTID event of a transaction: {error}") from error
    if found.gtid != gtid:
        raise GroupError(f"the GTID event is not that of {gtid}")
    if found.standalone:
        raise GroupError(f"the GTID event of {gtid} is not that of a transaction")
    return without_position(event)


def check_gtid(gtid: Gtid, *, seq_min: int = 1) -> None:
    """
    Raise unless a GTID is one that can be stored.

    Args:
        gtid: of a group; of a state too, with 0 for *seq_min*.
        seq_min: lowest sequence number.

    Raises:
        GroupError: a number is out of its range.
    """
    domain, server, seq = gtid
    if not (seq_min <= seq <= SEQ_MAX and 0 <= domain <= ID_MAX and 0 <= server <= ID_MAX):
        raise GroupError(
            f"GTID {domain}-{server}-{seq} cannot be stored: domain and server id are 0 to "
            f"{ID_MAX}, sequence numbers {seq_min} to {SEQ_MAX}"
        )


def check_xid(xid: Xid) -> None:
    """
    Raise unless the name of an XA transaction is one that can be stored.

    Raises:
        GroupError: a part of it is out of its range.
    """
    sizes = len(xid.gtrid), len(xid.bqual)
    if max(sizes) > XID_PART_BYTES_MAX or not 0 <= xid.format_id <= ID_MAX:
        raise GroupError(
            f"XA id with format id {xid.format_id} and {sizes[0]} + {sizes[1]} bytes: at most "
            f"{ID_MAX} and {XID_PART_BYTES_MAX} bytes each"
        )


def check_head(event: bytes | memoryview) -> None:
    """
    Raise unless a GTID event or format description is one that readers take.

    Raises:
        GroupError: it is longer than `HEAD_BYTES_MAX`.
    """
    if len(event) > HEAD_BYTES_MAX:
        raise GroupError(
            f"a {type_name(event[4])} event of {len(event)} bytes cannot be stored: at most "
            f"{HEAD_BYTES_MAX} are taken"
        )


assert _EVENT_START.size == HEADER_SIZE
