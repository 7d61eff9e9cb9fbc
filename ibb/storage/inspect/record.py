"""
What a chunk or a record says, in words.

Everything here works on damaged bytes: what cannot be read is said, and never an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from ibb.protocol.errors import FormatError
from ibb.protocol.event import type_name
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.format_description import FormatDescription
from ibb.storage.chunk import CONTINUATION, LAST
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.group_head import parse_head
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import (
    OobReference,
    RecordType,
    Xid,
    parse_oob_header,
    parse_state,
    parse_xa_complete,
    parse_xa_prepare,
)
from ibb.storage.record_reader import Record, RecordReader

from .tree import draw_tree

ENTRIES_SHOWN_MAX = 8  # of a GTID state, on a line
EVENTS_SHOWN_MAX = 1000  # of a group
CONTENTS_BYTES_MAX = 1 << 20  # of a record that are shown
CHUNKS_SHOWN_MAX = 1000  # of a record

GOES_ON = "goes on before it can be told"  # of a record that is not whole

Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """An event of a group; *offset* counts from the beginning of the group."""

    offset: int
    type: str
    length: int
    timestamp: int
    server_id: int
    flags: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """
    A record in full.

    Attributes:
        position: file and offset of its first chunk.
        type: name of its type.
        size: bytes of its contents that were read, at most `CONTENTS_BYTES_MAX`.
        meaning: what it says.
        chunks: how many bytes each of its chunks holds.
        events: of a group, those in out-of-band pieces too.
        trees: drawings of its out-of-band lists.
        hex: the contents.
        damage: why no more of it could be read; None: it is all there.
    """

    position: str
    type: str
    size: int
    meaning: str
    chunks: list[int]
    events: list[EventLine]
    trees: list[list[str]]
    hex: str
    damage: str | None


def type_of(record_type: int) -> str:
    """Return the name of a record type."""
    try:
        return RecordType(record_type).name
    except ValueError:
        return f"TYPE {record_type}"


def part_of(flags: int) -> str:
    """Return which part of its record a chunk is, by its flags."""
    if flags & LAST:
        return "last" if flags & CONTINUATION else "whole"
    return "middle" if flags & CONTINUATION else "first"


def describe(record_type: int, data: Bytes, major: int, *, whole: bool = True) -> str:
    """
    Return what a record says.

    Args:
        record_type: its type.
        data: its contents, or their beginning.
        major: format version of the file where it begins.
        whole: these are all of its contents.
    """
    try:
        if record_type == RecordType.COMMIT:
            return _describe_commit(data, major)
        if record_type == RecordType.GTID_STATE:
            return _describe_state(data, major)
        if record_type == RecordType.OOB:
            return _describe_oob(data, whole=whole)
        if record_type == RecordType.DUMMY:
            return "padding"
        if record_type == RecordType.XA_PREPARE:
            return _describe_prepare(data)
        if record_type == RecordType.XA_COMPLETE:
            complete = parse_xa_complete(data)
            return f"{'rollback' if complete.rolled_back else 'commit'} of {_xid(complete.xid)}"
    except FormatError as error:
        return f"damaged: {error.what}" if whole else GOES_ON
    return "unknown to this program"


def inspect_record(pages: BinlogDirectory, position: Position) -> RecordView:
    """Return all of the record that begins at *position*, out-of-band pieces included."""
    parts: list[Bytes] = []
    record: Record | None = None
    damage = None
    try:
        reader = RecordReader(pages, position)
        record = reader.next()
        if record is None:
            damage = "no whole record begins here"
        elif record.position != position:
            damage = f"no record begins here, the next one begins at {record.position}"
            record = None
        else:
            parts.append(record.first)
            parts.extend(islice(record.rest(), CHUNKS_SHOWN_MAX))
    except (FormatError, DiskError) as error:
        damage = str(error)
    data = b"".join(parts)[:CONTENTS_BYTES_MAX]
    if record is None:
        return RecordView(
            position=str(position), type="", size=0, meaning="", chunks=[], events=[], trees=[],
            hex="", damage=damage,
        )  # fmt: skip
    events: list[EventLine] = []
    if record.type == RecordType.COMMIT:
        events, wrong = _events(pages, position)
        damage = damage or wrong
    trees = [draw_tree(pages, each) for each in _lists(record.type, data, record.major)]
    return RecordView(
        position=str(position),
        type=type_of(record.type),
        size=len(data),
        meaning=describe(record.type, data, record.major),
        chunks=[len(part) for part in parts],
        events=events,
        trees=trees,
        hex=data.hex(),
        damage=damage,
    )


def _describe_commit(data: Bytes, major: int) -> str:
    head = parse_head(data, major)
    if head is None:
        return "neither a group nor a format description"
    if head.gtid is None:
        version = FormatDescription.parse(head.event, has_checksum=False).server_version
        return f"format description, server version {version}"
    lists = "".join(f", {_reference(reference)}" for reference in head.lists)
    return f"group {head.gtid}{lists}"


def _describe_state(data: Bytes, major: int) -> str:
    state = parse_state(data, major)
    shown = ",".join(map(str, state.entries[:ENTRIES_SHOWN_MAX]))
    more = len(state.entries) - ENTRIES_SHOWN_MAX
    text = f"{len(state.entries)} entries"
    text += f": {shown}" if shown else ""
    text += f" and {more} more" if more > 0 else ""
    return text if state.xa_file is None else f"{text}; XA from file {state.xa_file}"


def _describe_oob(data: Bytes, *, whole: bool) -> str:
    header, start = parse_oob_header(data)
    if header.is_leaf:
        links = "leaf"
        links += "" if header.right == NOWHERE else f", tree before it {header.right}"
    else:
        links = f"inner, left {header.left}, right {header.right}"
    size = f"{len(data) - start} bytes" if whole else f"{len(data) - start} bytes here"
    return f"node {header.index}, {links}, {size}"


def _describe_prepare(data: Bytes) -> str:
    prepare = parse_xa_prepare(data)
    text = f"prepare of {_xid(prepare.xid)}, {prepare.engines} engines"
    return f"{text}, {_reference(prepare.oob)}" if prepare.oob.count else text


def _reference(reference: OobReference) -> str:
    return f"{reference.count} pieces from {reference.first} to {reference.last}"


def _xid(xid: Xid) -> str:
    gtrid, bqual = (repr(part)[1:] for part in (xid.gtrid, xid.bqual))
    return f"XID {gtrid},{bqual},{xid.format_id}"


def _lists(record_type: int, data: Bytes, major: int) -> tuple[OobReference, ...]:
    """Return the out-of-band lists that a record refers to; none if it is damaged."""
    try:
        if record_type == RecordType.XA_PREPARE:
            reference = parse_xa_prepare(data).oob
            return (reference,) if reference.count else ()
        if record_type == RecordType.COMMIT and (head := parse_head(data, major)) is not None:
            return head.lists
    except FormatError:
        return ()
    return ()


def _events(pages: BinlogDirectory, position: Position) -> tuple[list[EventLine], str | None]:
    """Return the events of a group, as far as they can be read, and why no further."""
    lines: list[EventLine] = []
    try:
        for line in islice(_walk_events(pages, position), EVENTS_SHOWN_MAX):
            lines.append(line)  # noqa: PERF402 - one by one: those before damage are shown
    except (FormatError, DiskError) as error:
        return lines, str(error)
    return lines, None


def _walk_events(pages: BinlogDirectory, position: Position) -> Iterator[EventLine]:
    group = GroupReader(pages, position).next()
    if group is None or group.position != position:
        return
    splitter, offset = EventSplitter(), 0
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if part.first:
                header = part.header
                yield EventLine(
                    offset=offset,
                    type=type_name(header.type),
                    length=header.length,
                    timestamp=header.timestamp,
                    server_id=header.server_id,
                    flags=header.flags,
                )
                offset += header.length
    if not splitter.at_boundary:
        raise FormatError("the group ends inside an event")
