"""
Reading by a file's descriptor, for kernels that have no time for the interpreter: a kernel itself.

`OsFile` does the same, and says what went wrong; here it is only seen that something did. Runs as
plain Python, too; `os_read.pxd` gives it C types.
"""

from __future__ import annotations

import os

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython


def read_into(descriptor: int, room: memoryview, offset: int) -> int:
    """
    Fill *room*; return how far, which is less where the file ends or cannot be read.

    Args:
        descriptor: of the file.
        room: where the bytes go, at least one.
        offset: of the first one.
    """
    size, done = len(room), 0
    while done < size:
        if cython.compiled:
            got = pread(descriptor, cython.address(room[done]), size - done, offset + done)  # noqa: F821
        else:
            got = _pread(descriptor, room[done:], offset + done)
        if got <= 0:
            break
        done += got
    return done


def _pread(descriptor: int, room: memoryview, offset: int) -> int:
    try:
        return os.preadv(descriptor, [room], offset)
    except OSError:
        return -1
