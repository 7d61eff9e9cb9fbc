"""
Compressed unsigned integers: 0 to 2**64 - 1 in 1 to 7 bytes, or 9.

The bytes are `value << 3 | tag`, little-endian. Tags 0 to 6 mean tag + 1 bytes, so 5, 13, ... 53
bits of value; tag 7 means 9 bytes. No form takes 8.
Source: ibb-format 2.
"""

from __future__ import annotations

from typing import Final

from .errors import FormatError, Truncated

VALUE_MAX: Final = 2**64 - 1
SIZE_MAX: Final = 9  # bytes

_TAG_BITS: Final = 3
_SIZE_OF_TAG: Final = (1, 2, 3, 4, 5, 6, 7, 9)  # bytes


def encode(value: int) -> bytes:
    """
    Return the shortest form of *value*: 1 to 7 bytes, or 9.

    Raises:
        ValueError: *value* is negative or above `VALUE_MAX`.
    """
    if not 0 <= value <= VALUE_MAX:
        raise ValueError(f"not an unsigned 64-bit value: {value}")
    size = (value.bit_length() + _TAG_BITS + 7) // 8
    if size < 8:
        return (value << _TAG_BITS | size - 1).to_bytes(size, "little")
    return (value << _TAG_BITS | 7).to_bytes(SIZE_MAX, "little")


def decode(data: bytes | bytearray | memoryview, offset: int) -> tuple[int, int]:
    """
    Read the integer at byte *offset*; return it and the offset after it.

    A form longer than needed is read like any other, though nobody writes one.

    Raises:
        Truncated: *data* ends first; the caller knows if more can come.
        FormatError: the nine-byte form holds a bit above bit 63.
    """
    assert offset >= 0  # a negative index would read from the far end
    if offset >= len(data):
        raise Truncated("compressed integer has no byte", offset=offset)
    size = _SIZE_OF_TAG[data[offset] & 7]
    end = offset + size
    if end > len(data):
        raise Truncated(
            f"compressed integer of {size} bytes has only {len(data) - offset}", offset=offset
        )
    value = int.from_bytes(data[offset:end], "little") >> _TAG_BITS
    if value > VALUE_MAX:
        raise FormatError("compressed integer is above 64 bits", offset=offset)
    return value, end
