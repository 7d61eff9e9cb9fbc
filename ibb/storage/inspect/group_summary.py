"""
What can be told of an event group in a line: size, number of events, hash, tables.

The hash is of the group's bytes as stored, GTID event first, so two directories hold the same
group if and only if the hashes are equal.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, EventType
from ibb.protocol.event_splitter import EventSplitter

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.position import Position

TABLES_MAX: Final = 64  # different tables of a group that are named

_TABLE_MAP_POST_HEADER: Final = 8  # bytes


class GroupSummary(NamedTuple):
    """
    One group.

    Attributes:
        position: the first chunk of its commit record.
        timestamp: seconds since 1970, of the GTID event.
        size: bytes of all events as stored.
        events: their number, the GTID event included.
        sha256: of those bytes, hexadecimal.
        tables: `database.table` of row changes, in order of appearance, at most `TABLES_MAX`.
    """

    gtid: Gtid
    position: Position
    timestamp: int
    size: int
    events: int
    sha256: str
    tables: tuple[str, ...]


def summarise(group: StoredGroup) -> GroupSummary:
    """
    Read all of *group* and return its summary.

    Raises:
        FormatError: the group is damaged.
    """
    assert group.gtid is not None
    digest = hashlib.sha256()
    splitter = EventSplitter()
    tables: dict[str, None] = {}
    size = events = 0
    for piece in group.pieces():
        digest.update(piece)
        size += len(piece)
        for part in splitter.feed(piece):
            events += part.first
            if part.first and part.header.type == EventType.TABLE_MAP and len(tables) < TABLES_MAX:
                tables[_table_name(part.data)] = None
    if not splitter.at_boundary:
        raise FormatError(f"group {group.gtid} at {group.position} ends inside an event")
    return GroupSummary(
        group.gtid,
        group.position,
        group.timestamp,
        size,
        events,
        digest.hexdigest(),
        tuple(tables),
    )


def _table_name(event: Buffer) -> str:
    """Return `database.table` of a table map event. Source: dump-protocol 4.9b."""
    names = []
    at = HEADER_SIZE + _TABLE_MAP_POST_HEADER
    for _ in range(2):
        size = event[at] if at < len(event) else 0
        name = bytes(event[at + 1 : at + 1 + size])
        if not size or len(name) < size:
            raise FormatError("Table_map event ends inside a name", offset=at)
        names.append(name.decode(errors="replace"))
        at += size + 2  # the length before and the NUL behind
    return ".".join(names)
