"""
The search behind the end of a redo log for a group that lies at its LSN: a kernel.

What is left of an earlier use of a segment can be many small groups, none of which lies at its LSN.
Runs as plain Python, too; `redo_scan.pxd` gives it C types. Source: `redo_record`.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from .redo_record import MAGIC

if not cython.compiled:  # else the .pxd names it
    from ibb.protocol.little_endian import number_at

_LSN_AT: Final = 8  # in a group's head
_SYNCED_AT: Final = 16
_HEAD_BYTES: Final = 24

_lsn_at, _synced_at, _head_bytes = _LSN_AT, _SYNCED_AT, _HEAD_BYTES
_first_byte = MAGIC[0]
_magic = int.from_bytes(MAGIC, "little")


def find_due(data: bytes, first: int, lsn: int, synced: int) -> int:
    """
    Return where the head of a redo group is that lies at its LSN; -1: nowhere.

    Args:
        data: a stretch of a segment.
        first: offset from which on it is looked for.
        lsn: of a group that would begin at offset 0.
        synced: the group must say that the log was synced beyond this LSN.
    """
    view, at, end = data, max(first, 0), len(data) - _head_bytes
    while at <= end:
        if cython.compiled:
            found = memchr(cython.address(view[at]), _first_byte, end - at + 1)  # noqa: F821
            if found == cython.NULL:
                return -1
            at += cython.cast("const unsigned char*", found) - cython.address(view[at])
        else:
            at = data.find(MAGIC, at, end + len(MAGIC))
            if at < 0:
                return -1
        is_due = number_at(view, at, 4) == _magic and number_at(view, at + _lsn_at, 8) == lsn + at
        if is_due and number_at(view, at + _synced_at, 8) > synced:
            return at
        at += 1
    return -1
