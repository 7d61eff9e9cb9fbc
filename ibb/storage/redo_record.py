"""
Redo groups: the unit in which changes of pages are made certain.

A group holds everything that one binlog record changed, so that recovery brings back whole
records or none. It lies at its LSN in a redo segment:

    offset  size
    0       4     magic "RdG1"
    4       4     bytes of payload
    8       8     LSN of this group
    16      8     LSN up to which the log was synced when this group was appended
    24      4     CRC-32C over bytes 0..23 and the payload
    28      ...   payload: changes, one behind the other

    change: u64 file number, u32 page, u16 offset, u16 length, then the new bytes

The synced LSN tells a torn tail from damage: a valid group behind a bad one proves damage when it
says that the bad one had been synced before.
"""

import struct
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

MAGIC = b"RdG1"
_HEAD = struct.Struct("<4sIQQ")
_CRC = struct.Struct("<I")
_WHOLE_HEAD = struct.Struct("<4sIQQI")
_CHANGE = struct.Struct("<QIHH")
unpack_change_header = _CHANGE.unpack_from  # file number, page, offset, length; unchecked
GROUP_HEADER_SIZE = _HEAD.size + _CRC.size
CHANGE_HEADER_SIZE = _CHANGE.size


class Change(NamedTuple):
    """New bytes for a place in a page."""

    file_no: int
    page_no: int
    offset: int
    data: bytes | memoryview


class RedoGroup(NamedTuple):
    """One group as read back."""

    lsn: int
    end_lsn: int
    synced_lsn: int
    payload: bytes

    def changes(self) -> Iterator[Change]:
        """
        Yield the changes in order.

        Raises:
            FormatError: a length passes the end of the group.
        """
        payload, at, size = self.payload, 0, len(self.payload)
        while at < size:
            start = at + CHANGE_HEADER_SIZE
            if start > size:
                raise FormatError(f"redo group {self.lsn} ends inside a change", offset=at)
            file_no, page_no, offset, length = _CHANGE.unpack_from(payload, at)
            at = start + length
            if at > size:
                raise FormatError(f"redo change passes the end of group {self.lsn}", offset=start)
            yield Change(file_no, page_no, offset, payload[start:at])


def group_size(changes: list[Change]) -> int:
    """Return the bytes that a group of these changes takes in the log."""
    return GROUP_HEADER_SIZE + sum(CHANGE_HEADER_SIZE + len(change.data) for change in changes)


def encode_group(lsn: int, synced_lsn: int, changes: list[Change]) -> bytes:
    """Return the bytes of one group at *lsn*."""
    parts: list[bytes | memoryview] = []
    for file_no, page_no, offset, data in changes:
        parts.append(_CHANGE.pack(file_no, page_no, offset, len(data)))
        parts.append(data)
    payload = b"".join(parts)
    head = _HEAD.pack(MAGIC, len(payload), lsn, synced_lsn)
    return b"".join((head, _CRC.pack(crc32c(payload, crc32c(head))), payload))


def encode_single(lsn: int, synced_lsn: int, change: Change) -> bytes:
    """Return the bytes of a group of one change at *lsn*, as `encode_group` does, but faster."""
    file_no, page_no, offset, data = change
    size = len(data)
    payload = _CHANGE.pack(file_no, page_no, offset, size) + data
    head = _HEAD.pack(MAGIC, CHANGE_HEADER_SIZE + size, lsn, synced_lsn)
    return head + _CRC.pack(crc32c(payload, crc32c(head))) + payload


def parse_group(data: bytes, at: int, lsn: int | None) -> RedoGroup | None:
    """
    Read the group at byte *at*, or return None when no valid one is there.

    Args:
        data: a stretch of a segment.
        at: offset in *data*.
        lsn: the LSN that must be there; None takes any.
    """
    if lsn is None:
        if at + GROUP_HEADER_SIZE > len(data):
            return None
        lsn = _HEAD.unpack_from(data, at)[2]
    return next(parse_groups(data, at, lsn), None)


def parse_groups(data: bytes, at: int, lsn: int) -> Iterator[RedoGroup]:
    """
    Yield the groups one behind the other from byte *at* on, up to the first place without one.

    Args:
        data: a stretch of a segment.
        at: offset in *data*.
        lsn: the LSN that must be there.
    """
    # Half a million groups fit in a segment, and a restart waits for this loop.
    new_group = partial(tuple.__new__, RedoGroup)  # its own constructor is a Python function
    size, checked, unpack = len(data), _HEAD.size, _WHOLE_HEAD.unpack_from
    while (start := at + GROUP_HEADER_SIZE) <= size:
        magic, length, found, synced_lsn, crc = unpack(data, at)
        end = start + length
        if magic != MAGIC or found != lsn or end > size:
            return
        payload = data[start:end]
        if crc32c(data[at : at + checked] + payload) != crc:
            return
        lsn += end - at
        yield new_group((found, lsn, synced_lsn, payload))
        at = end
