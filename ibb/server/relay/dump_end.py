"""How an upstream ends a dump: a packet that holds no event. Source: dump-protocol 4.1."""

from __future__ import annotations

from typing import Final

from ibb.protocol.errors import IbbError, ProtocolError
from ibb.protocol.reply import EOF_BYTES_MAX, parse_err

STATUS_EVENT: Final = 0x00  # the first byte of a packet with an event
_STATUS_EOF: Final = 0xFE
_STATUS_ERR: Final = 0xFF


class UpstreamEnded(IbbError):  # noqa: N818 - a state of the world
    """The upstream ended the dump with EOF: it stops, or restarts."""


def what_ended(status: int, packet: memoryview) -> IbbError:
    """
    Return the error that a packet without an event stands for.

    Args:
        status: its first byte.
        packet: all of it, or its beginning.
    """
    if status == _STATUS_ERR:
        return parse_err(packet)
    if status == _STATUS_EOF and len(packet) < EOF_BYTES_MAX:
        return UpstreamEnded("the upstream ended the dump")
    return ProtocolError(f"the upstream sent a packet that begins with {status:02x}")
