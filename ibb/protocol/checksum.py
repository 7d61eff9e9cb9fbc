"""
The two checksums: CRC-32C for pages (ibb-format 3.3) and CRC-32 for events (dump-protocol 4.2).

Both take bytes in pieces: hand the value of the bytes before as *value*. The check values, of the
nine digits `123456789`, are e3069283 and cbf43926.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import google_crc32c
from crcmod.predefined import mkPredefinedCrcFun

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKSUM_SIZE: Final = 4  # bytes, of either


def choose_crc32c(*, compiled: bool) -> Callable[[bytes, int], int]:
    """
    Return CRC-32C as a function of (data, value of the bytes before).

    Args:
        compiled: take google_crc32c's C code (hardware instructions, but it takes only bytes
            objects); else crcmod, which needs no compiled module and is slow without its own.
    """
    if compiled:
        extend = google_crc32c.extend
        return lambda data, value: int(extend(value, data))
    update = mkPredefinedCrcFun("crc-32c")
    return lambda data, value: int(update(data, value))


_crc32c = choose_crc32c(compiled=google_crc32c.implementation == "c")


def crc32c(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of *data* behind bytes whose CRC-32C is *value*."""
    return _crc32c(data if isinstance(data, bytes) else bytes(data), value)


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32 (IEEE 802.3) of *data* behind bytes whose CRC-32 is *value*."""
    return zlib.crc32(data, value)
