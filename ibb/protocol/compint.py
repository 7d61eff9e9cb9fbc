"""
Compressed unsigned integers, 0 to 2**64 - 1 in 1 to 7 bytes, or 9: a kernel for the other kernels.

The bytes are `value << 3 | tag`, little-endian. Tags 0 to 6 mean tag + 1 bytes, so 5, 13, ... 53
bits of value; tag 7 means 9 bytes. No form takes 8. Runs as plain Python, too; `compint.pxd` gives
it C types. Source: ibb-format 2.
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


def put(out: bytearray, at: int, value: int) -> int:
    """
    Write what `encode` returns into a buffer; return the offset behind it.

    Args:
        out: has room for `SIZE_MAX` bytes from *at* on.
        at: where to begin.
        value: 0 to `VALUE_MAX`.
    """
    rest, more = value >> 5, 0
    while rest and more < 7:
        rest >>= 8
        more += 1
    out[at] = (value & 31) << 3 | more
    if more == 7:
        more = 8  # no form takes 8 bytes
    rest = value >> 5
    for place in range(at + 1, at + 1 + more):
        out[place] = rest & 255
        rest >>= 8
    return at + 1 + more


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
