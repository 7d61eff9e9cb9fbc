"""
Packets copied for a client that counts them from another number: a kernel.

Runs as plain Python, too; `sequence_ids.pxd` gives it C types. Source: dump-protocol 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer


def renumber(packets: Buffer, more: int, to: memoryview) -> None:
    """
    Copy whole packets to the beginning of a buffer, with *more* added to their sequence ids.

    Raises:
        ValueError: they do not fit into it.
    """
    source, target = memoryview(packets), memoryview(to)
    size = len(source)
    if size > len(target):
        raise ValueError(f"{size} bytes of packets for {len(target)}")
    if size:
        with cython.nogil:
            _renumber(source, size, more, target)


def _renumber(source: memoryview, size: int, more: int, target: memoryview) -> None:
    if cython.compiled:
        memcpy(cython.address(target[0]), cython.address(source[0]), size)  # noqa: F821
    else:
        target[:size] = source
    renumber_here(target, size, more)


def renumber_here(packets: memoryview, size: int, more: int) -> None:
    """Add *more* to the sequence ids of whole packets of *size* bytes, where they lie."""
    at = 0
    while at + 4 <= size:
        packets[at + 3] = (packets[at + 3] + more) & 255
        at += 4 + (packets[at] | packets[at + 1] << 8 | packets[at + 2] << 16)
