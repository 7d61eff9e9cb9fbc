"""
Where a replica is in its primary's binlog, in the primary's coordinates: by file and position.

Only semi-synchronous acknowledgements speak them. A replica does not read positions, it counts
bytes from the Rotate event on, and takes over an event's position where that is further.
Source: dump-protocol 4.3, 4.5, 4.8, 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.command import SemiSyncAck
from ibb.protocol.event import EventFlag, EventType

if TYPE_CHECKING:
    from ibb.protocol.event import EventHeader
    from ibb.protocol.rotate import Rotate


class UpstreamPlace:
    """The count of one connection; nothing is known before its first Rotate event."""

    def __init__(self) -> None:
        self._file_name = ""
        self._position = 0

    def enter(self, rotate: Rotate) -> None:
        """Go on where an event of that type says."""
        self._file_name = rotate.file_name
        self._position = rotate.position

    def count(self, header: EventHeader) -> None:
        """Take note of an event, by its header as received."""
        if header.type == EventType.FORMAT_DESCRIPTION:
            counts = header.log_pos != 0
        else:
            counts = header.type != EventType.HEARTBEAT and not header.flags & EventFlag.ARTIFICIAL
        self._position = max(self._position + header.length * counts, header.log_pos)

    def acknowledgement(self) -> SemiSyncAck:
        """Return the word that everything so far is safe here."""
        return SemiSyncAck(self._position, self._file_name)
