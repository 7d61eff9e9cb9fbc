"""
The two checksums: CRC-32C for pages (ibb-format 3.3) and CRC-32 for events (dump-protocol 4.2).

Both take bytes in pieces: hand the value of the bytes before as *value*. The check values, of the
nine digits `123456789`, are e3069283 and cbf43926.
"""

from __future__ import annotations

import zlib
from typing import Final, Protocol

import google_crc32c
from crcmod.predefined import mkPredefinedCrcFun

CHECKSUM_SIZE: Final = 4  # bytes, of either


class Crc32c(Protocol):
    """How `crc32c` is called."""

    def __call__(self, data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
        """Return the CRC-32C (Castagnoli) of *data* behind bytes whose CRC-32C is *value*."""


def choose_crc32c(*, compiled: bool) -> Crc32c:
    """
    Return the function for CRC-32C; one call deep, since every commit calls it twice.

    Args:
        compiled: take google_crc32c's C code (hardware instructions, but it takes only bytes
            objects); else crcmod, which needs no compiled module and is slow without its own.
    """
    if compiled:
        extend = google_crc32c.extend

        def by_hardware(data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
            checksum: int = extend(value, data if isinstance(data, bytes) else bytes(data))
            return checksum

        return by_hardware
    update = mkPredefinedCrcFun("crc-32c")

    def by_table(data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
        checksum: int = update(data if isinstance(data, bytes) else bytes(data), value)
        return checksum

    return by_table


crc32c: Final = choose_crc32c(compiled=google_crc32c.implementation == "c")


def crc32(data: bytes | bytearray | memoryview, value: int = 0) -> int:
    """Return the CRC-32 (IEEE 802.3) of *data* behind bytes whose CRC-32 is *value*."""
    return zlib.crc32(data, value)
