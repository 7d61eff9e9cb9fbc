"""
Tell a compressed packet from a plain one: some clients compress though nobody offered it.

    compressed  u24 length, u8 sequence id, u24 length before (0: stored as it is), data

Read as a plain packet its payload begins with the length before, and its last three bytes seem to
be missing. Whoever sends it reads no plain answer either, so all that helps is an end.
Source: dump-protocol 1.8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .fields import Buffer

_ZLIB: Final = 0x78  # deflate with a window of 32 KiB, as everybody uses it
_ZLIB_CHECK: Final = 31  # divides the first two bytes of a zlib stream
_PLAIN_HEADER_BYTES: Final = 4


def looks_compressed(payload: Buffer) -> bool:
    """Tell whether the first command behind a login is a compressed packet's data."""
    if len(payload) <= 3 + _PLAIN_HEADER_BYTES:
        return False
    inside = bytes(payload[3:7])
    if any(payload[:3]):
        return inside[0] == _ZLIB and int.from_bytes(inside[:2], "big") % _ZLIB_CHECK == 0
    plain_length = int.from_bytes(inside[:3], "little")
    return plain_length + _PLAIN_HEADER_BYTES == len(payload) and inside[3] == 0
