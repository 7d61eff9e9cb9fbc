"""What a replica has received, as its relay logs hold it, read while it does not run."""

from collections.abc import Iterator
from pathlib import Path

from ibb.protocol.event import HEADER_SIZE, EventHeader, EventType
from ibb.protocol.event_group import GroupStep, GroupTracker

MAGIC_BYTES = 4
CHECKSUM_BYTES = 4
PATTERN = "*relay-bin.[0-9]*"


def received_gtids(data: Path) -> set[str]:
    """Return the GTIDs of the groups that are whole in the relay logs below *data*."""
    received = set()
    for path in sorted(data.glob(PATTERN)):
        tracker = GroupTracker()
        gtid = ""
        for header, body in _events(path.read_bytes()):
            if header.type == EventType.GTID:
                tracker = GroupTracker()  # a file begins anew, and so may a group after a cut
            elif tracker.gtid is None:
                continue
            step = tracker.add(header, body, checksum_size=CHECKSUM_BYTES)
            if step is GroupStep.BEGIN:
                gtid = str(tracker.gtid)
            elif step is GroupStep.END:
                received.add(gtid)
    return received


def _events(data: bytes) -> Iterator[tuple[EventHeader, bytes]]:
    offset = MAGIC_BYTES
    while offset + HEADER_SIZE <= len(data):
        header = EventHeader.unpack(data, offset)
        if offset + header.length > len(data):
            return  # cut off when the replica was killed
        yield header, data[offset + HEADER_SIZE : offset + header.length - CHECKSUM_BYTES]
        offset += header.length
