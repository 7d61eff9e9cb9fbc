"""
What records contain: from bytes to meaning and back, for both major versions.

The parsers take a record's contents from its beginning. Those of prefixes (commit, oob) return
where the payload begins and raise `Truncated` when more of the record could cure it.
Source: ibb-format 5.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from typing import NamedTuple

from ibb.protocol import compint
from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.gtid import ID_MAX, Gtid
from ibb.protocol.gtid_event import XaId

from .file_header import MAJOR_DRAFT, MAJOR_FINAL
from .position import NOWHERE, Position

COMMIT_PREFIX_BYTES_MAX = 10 * compint.SIZE_MAX
OOB_HEADER_BYTES_MAX = 5 * compint.SIZE_MAX
XID_PART_BYTES_MAX = 64  # of gtrid and of bqual
OOB_LISTS_MAX = 2  # statement list and transaction list

_XID = struct.Struct("<BIBB")  # engines or kind, formatID, length of gtrid, length of bqual
_ROLLBACK = 1
NO_LISTS = compint.encode(0)

Bytes = bytes | bytearray | memoryview


class RecordType(IntEnum):
    """The low six bits of a chunk's type byte."""

    COMMIT = 1
    GTID_STATE = 2
    OOB = 3
    DUMMY = 4
    XA_PREPARE = 5
    XA_COMPLETE = 6


@dataclass(frozen=True, slots=True)
class OobReference:
    """
    A list of out-of-band pieces, as a commit record refers to it.

    Attributes:
        count: nodes that take part.
        first: where node 0 is, for information.
        last: where the last node is: the root from which all are reached.
    """

    count: int
    first: Position
    last: Position


class GtidState(NamedTuple):
    """
    A GTID state record.

    Attributes:
        entries: newest GTID of each pair, a domain's most recent one last.
        xa_file: lowest file number with a pending XA transaction's pieces, or None.
    """

    entries: list[Gtid]
    xa_file: int | None


@dataclass(frozen=True, slots=True)
class OobHeader:
    """
    The links of an out-of-band node.

    Attributes:
        index: the node's number in its list; rollbacks make numbers repeat.
        left: left child of an inner node; `NOWHERE` in a leaf.
        right: right child of an inner node; in a leaf the root of the previous tree, or
            `NOWHERE`.
    """

    index: int
    left: Position
    right: Position

    @property
    def is_leaf(self) -> bool:
        """Leaves have no left child."""
        return self.left == NOWHERE


class Xid(NamedTuple):
    """The name of an XA transaction."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return str(XaId(*self))


class XaPrepare(NamedTuple):
    """An XA prepare record; *engines* is the number of storage engines taking part."""

    engines: int
    xid: Xid
    oob: OobReference


class XaComplete(NamedTuple):
    """An XA complete record."""

    xid: Xid
    rolled_back: bool


def encode_commit_prefix(lists: Sequence[OobReference], major: int = MAJOR_FINAL) -> bytes:
    """
    Return what stands in a commit record before the GTID event.

    Args:
        lists: the lists in use, statement list before transaction list; in the draft at most one.
        major: format version of the file.
    """
    if not lists:
        return NO_LISTS
    assert len(lists) <= (1 if major == MAJOR_DRAFT else OOB_LISTS_MAX)
    assert all(reference.count for reference in lists)
    encoded = [_encode_reference(reference) for reference in lists]
    if major != MAJOR_DRAFT and len(lists) == 1:
        encoded.append(compint.encode(0))
    return b"".join(encoded)


def parse_commit_prefix(
    data: Bytes, major: int = MAJOR_FINAL
) -> tuple[tuple[OobReference, ...], int]:
    """
    Read the prefix of a commit record.

    Returns:
        The lists that are in use, and the offset of the payload.

    Raises:
        Truncated: *data* ends inside the prefix.
        FormatError: a number above 64 bits, or a list without pointers.
    """
    if data and data[0] == 0:
        return (), 1
    lists: list[OobReference] = []
    offset = 0
    for _ in range(1 if major == MAJOR_DRAFT else OOB_LISTS_MAX):
        reference, offset = _parse_reference(data, offset)
        if reference is None:
            break  # in the final format a second count follows only a first that is not 0
        lists.append(reference)
    return tuple(lists), offset


def encode_state(
    entries: Iterable[Gtid], xa_file: int | None = None, major: int = MAJOR_FINAL
) -> bytes:
    """
    Return the contents of a GTID state record.

    Args:
        entries: as `BinlogState.entries` has them.
        xa_file: lowest file number with a pending XA transaction's pieces, or None; the draft
            has no place for it.
        major: format version of the file.
    """
    encode = compint.encode
    gtids = list(entries)
    numbers = [encode(len(gtids))]
    if major != MAJOR_DRAFT:
        numbers.append(encode(0 if xa_file is None else xa_file + 1))
    numbers.extend(encode(number) for number in chain.from_iterable(gtids))
    return b"".join(numbers)


def parse_state(data: Bytes, major: int = MAJOR_FINAL) -> GtidState:
    """
    Read a whole GTID state record; bytes behind the entries are ignored.

    Raises:
        FormatError: fewer entries than counted, an id above 32 bits, a number above 64.
    """
    decode = compint.decode
    count, offset = decode(data, 0)
    xa = 0
    if major != MAJOR_DRAFT:
        xa, offset = decode(data, offset)
    if count > (len(data) - offset) // 3:  # before anything that large is built
        raise FormatError(f"GTID state record of {len(data)} bytes counts {count} entries")
    entries: list[Gtid] = []
    for _ in range(count):
        domain, offset = decode(data, offset)
        server, offset = decode(data, offset)
        seq, offset = decode(data, offset)
        if domain > ID_MAX or server > ID_MAX:
            raise FormatError(f"GTID state record holds {domain}-{server}-{seq}")
        entries.append(Gtid(domain, server, seq))
    return GtidState(entries, xa - 1 if xa else None)


def encode_oob_header(header: OobHeader) -> bytes:
    """Return what stands in an oob record before its piece."""
    return _encode_numbers(header.index, *header.left, *header.right)


def parse_oob_header(data: Bytes) -> tuple[OobHeader, int]:
    """
    Read the header of an oob record; return it and the offset of the piece.

    Raises:
        Truncated: *data* ends inside the header.
        FormatError: a number above 64 bits.
    """
    (index, left_file, left_offset, right_file, right_offset), offset = _parse_numbers(data, 0, 5)
    left, right = Position(left_file, left_offset), Position(right_file, right_offset)
    return OobHeader(index, left, right), offset


def encode_xa_prepare(record: XaPrepare) -> bytes:
    """Return the contents of an XA prepare record."""
    reference = record.oob
    return _encode_xid(record.engines, record.xid) + _encode_numbers(
        reference.count, *reference.first, *reference.last
    )


def parse_xa_prepare(data: Bytes) -> XaPrepare:
    """
    Read a whole XA prepare record.

    Raises:
        FormatError: too short, or XID lengths above 64.
    """
    engines, xid, offset = _parse_xid(data, "prepare")
    (count, *places), _ = _parse_numbers(data, offset, 5)
    return XaPrepare(
        engines, xid, OobReference(count, Position(*places[:2]), Position(*places[2:]))
    )


def encode_xa_complete(record: XaComplete) -> bytes:
    """Return the contents of an XA complete record."""
    return _encode_xid(_ROLLBACK if record.rolled_back else 0, record.xid)


def parse_xa_complete(data: Bytes) -> XaComplete:
    """
    Read a whole XA complete record.

    Raises:
        FormatError: too short, or XID lengths above 64.
    """
    kind, xid, _ = _parse_xid(data, "complete")
    return XaComplete(xid, bool(kind & _ROLLBACK))


def _encode_numbers(*numbers: int) -> bytes:
    return b"".join(map(compint.encode, numbers))


def _parse_numbers(data: Bytes, offset: int, count: int) -> tuple[list[int], int]:
    numbers: list[int] = []
    for _ in range(count):
        number, offset = compint.decode(data, offset)
        numbers.append(number)
    return numbers, offset


def _encode_reference(reference: OobReference) -> bytes:
    return _encode_numbers(reference.count, *reference.first, *reference.last)


def _parse_reference(data: Bytes, offset: int) -> tuple[OobReference | None, int]:
    """Read a count and, unless it is 0, the four numbers behind it."""
    count, offset = compint.decode(data, offset)
    if count == 0:
        return None, offset
    places, offset = _parse_numbers(data, offset, 4)
    first, last = Position(*places[:2]), Position(*places[2:])
    if NOWHERE in (first, last):
        raise FormatError(f"commit record counts {count} oob records and points to none")
    return OobReference(count, first, last), offset


def _encode_xid(first_byte: int, xid: Xid) -> bytes:
    assert len(xid.gtrid) <= XID_PART_BYTES_MAX
    assert len(xid.bqual) <= XID_PART_BYTES_MAX
    lengths = len(xid.gtrid), len(xid.bqual)
    return _XID.pack(first_byte, xid.format_id, *lengths) + xid.gtrid + xid.bqual


def _parse_xid(data: Bytes, what: str) -> tuple[int, Xid, int]:
    """Read the byte before an XID, the XID, and return the offset behind it."""
    if len(data) < _XID.size:
        raise Truncated(f"XA {what} record of only {len(data)} bytes")
    first_byte, format_id, gtrid_size, bqual_size = _XID.unpack_from(data)
    if gtrid_size > XID_PART_BYTES_MAX or bqual_size > XID_PART_BYTES_MAX:
        raise FormatError(f"Corrupt {what} record found, invalid XID lengths")
    middle = _XID.size + gtrid_size
    end = middle + bqual_size
    if len(data) < end:
        raise Truncated(f"XA {what} record of {len(data)} bytes, {end} wanted")
    return first_byte, Xid(format_id, bytes(data[_XID.size : middle]), bytes(data[middle:end])), end
