"""An event off the wire that is too large to be kept: its checksum is verified as it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol.checksum import crc32
from ibb.protocol.errors import FormatError
from ibb.protocol.event import LENGTH_OFFSET, EventHeader, type_name
from ibb.protocol.fields import U32

if TYPE_CHECKING:
    from ibb.protocol.event_splitter import EventPart
    from ibb.protocol.fields import Buffer


class LargeEvent:
    """
    Takes the checksum off an event that comes in parts, and verifies it.

    Args:
        header: of the event as received.
        checksum_size: bytes of checksum at its end, 0 or 4.
    """

    def __init__(
        self,
        header: EventHeader | None = None,
        checksum_size: int = 0,
        *,
        ends_group: bool = False,
    ) -> None:
        self.ends_group = ends_group
        self._checksum_size = checksum_size
        self._left = 0 if header is None else header.length - checksum_size  # bytes of event
        self._crc = 0
        self._stored = b""  # the checksum, as far as it has come

    def take(self, part: EventPart) -> Buffer:
        """
        Return the bytes of *part* that belong to the event without checksum.

        Raises:
            FormatError: with its last part: the checksum is wrong.
        """
        data: Buffer = memoryview(part.data)
        body = data[: self._left]
        self._left -= len(body)
        if not self._checksum_size:
            return body
        self._crc = crc32(body, self._crc)
        self._stored += bytes(data[len(body) :])
        if part.last:
            check_crc(part.header, self._crc, self._stored)
        if part.first:
            body = bytearray(body)
            U32.pack_into(body, LENGTH_OFFSET, part.header.length - self._checksum_size)
        return body


def check_crc(header: EventHeader, computed: int, stored: Buffer) -> None:
    """Raise FormatError unless an event has the checksum *computed* over its bytes."""
    (expected,) = U32.unpack(stored)
    if expected != computed:
        raise FormatError(
            f"{type_name(header.type)} event has checksum {expected:08x}, its bytes {computed:08x}"
        )
