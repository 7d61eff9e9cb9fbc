"""What a dump sends, from any primary, in a form in which two primaries can be compared."""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace

from ibb.protocol.command import BinlogDump, DumpFlag
from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventHeader, EventType, type_name, without_checksum
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.reply import is_eof, is_err, parse_err

from ..server.raw_client import RawClient
from .mariadb_server import PASSWORD, USER

# A primary's files have these, and old clients get dummies for them; a store of groups has none.
OF_FILES = (EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT)
DUMMY_NAME = b"!dummyvar"
DUMMY_COMMENT = b"# Dummy event replacing event type %d that slave cannot handle."
COORDINATES = "; the first event "


@dataclass(frozen=True)
class Asked:
    """A dump without waiting: what is set before it, and the command."""

    settings: tuple[str, ...] = ()
    annotate: bool = True
    file_name: str = ""
    position: int = 4
    server_id: int = 0


@dataclass
class Observed:
    """What came: comparable events, and the end as a text."""

    events: list[tuple[object, ...]] = field(default_factory=list)
    end: str = ""


def replica_settings(position: str | None, *more: str, capability: object = 4) -> tuple[str, ...]:
    """Return what a replica that starts at *position* sets."""
    start = () if position is None else (f"SET @slave_connect_state='{position}'",)
    return (
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        f"SET @mariadb_slave_capability={capability}",
        *start,
        *more,
    )


def observe(port: int, asked: Asked) -> Observed:
    """Return what the primary at loopback *port* answers."""
    return asyncio.run(_observe(port, asked))


async def _observe(port: int, asked: Asked) -> Observed:
    server = SimpleNamespace(address=("127.0.0.1", port))
    async with await RawClient.logged_in(server, USER, PASSWORD) as client:
        for setting in asked.settings:
            await client.query(setting)
        flags = DumpFlag.NON_BLOCK | (DumpFlag.SEND_ANNOTATE_ROWS if asked.annotate else 0)
        command = BinlogDump(asked.position, flags, asked.server_id, asked.file_name)
        await client.send(command.encode())
        observed = Observed()
        has_checksum = True
        while True:
            payload = await client.packet()
            if payload is None:
                observed.end = "closed"
                return observed
            if is_err(payload):
                observed.end = _without_coordinates(parse_err(payload))
                return observed
            if is_eof(payload):
                observed.end = "EOF"
                return observed
            event = payload[1:]
            header = EventHeader.unpack(event)
            if header.type == EventType.FORMAT_DESCRIPTION:
                has_checksum = event[-5] == 1
            elif header.type != EventType.ROTATE:
                bare = without_checksum(event) if has_checksum else event
                observed.events += _comparable(header, bare)


def _comparable(header: EventHeader, event: bytes) -> list[tuple[object, ...]]:
    """Return type, time, server, flags and body; nothing of an event that belongs to a file."""
    body = event[19:]
    if header.type == EventType.GTID_LIST and GtidList.parse(event).until_reached:
        return [("until reached",)]
    if header.type in OF_FILES or _replaces_event_of_file(header, body):
        return []
    return [(type_name(header.type), header.timestamp, header.server_id, header.flags, body)]


def _replaces_event_of_file(header: EventHeader, body: bytes) -> bool:
    if header.type == EventType.USER_VAR:
        return DUMMY_NAME.startswith(body[4:-1])
    if header.type != EventType.QUERY:
        return False
    text = body[14:].rstrip()  # of a dummy: its post-header is all zero
    return any(text == (DUMMY_COMMENT % code)[: len(body) - 14].rstrip() for code in OF_FILES)


def _without_coordinates(error: SqlError) -> str:
    return f"{error.code} {error.sqlstate} {error.message.partition(COORDINATES)[0]}"
