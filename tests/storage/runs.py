"""Runs of groups, as a relay gets them off the wire."""

from collections.abc import Iterable

from ibb.protocol.event import with_checksum
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.group_run import GroupRun
from ibb.protocol.packet import frame_all


def events_of(group: bytes) -> list[bytes]:
    """Return the events of a group as they are stored; each comes whole."""
    return [bytes(part.data) for part in EventSplitter().feed(group)]


def packets_of(groups: Iterable[bytes], seq: int = 1) -> bytes:
    """Return groups as they go over the wire, with checksums."""
    events = [event for group in groups for event in events_of(group)]
    return frame_all([b"\0" + with_checksum(event) for event in events], seq)[0]


def run_of(groups: Iterable[bytes], group_bytes_max: int = 1 << 16) -> GroupRun:
    """Return a run of the groups, as far as they go into one."""
    run = GroupRun()
    run.take(packets_of(groups), 0, 1, 4, group_bytes_max)
    return run
