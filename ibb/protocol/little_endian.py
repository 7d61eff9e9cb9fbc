"""
Unsigned numbers as files and events have them, lowest byte first: a kernel for the other kernels.

Runs as plain Python, too; `little_endian.pxd` gives it C types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .fields import Buffer


def number_at(data: Buffer, at: int, size: int) -> int:
    """
    Return the number of some bytes; the caller has looked that they are there.

    Args:
        data: what has them.
        at: where they begin.
        size: how many, 8 at most.
    """
    value = 0
    for place in range(size - 1, -1, -1):
        byte = data[at + place]
        value = value << 8 | byte
    return value
