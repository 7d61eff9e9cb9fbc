"""
Memory in large pages of the system, where it has such: who goes through megabytes of it is faster.

Pages of 4 KiB lie anywhere, and the processor looks each one up anew; on a virtual machine that
takes twice as many steps. To read, check and frame groups of small events it is an eighth of all.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

LARGE_PAGE_BYTES: Final = 2 << 20


def large_memory(size: int) -> memoryview:
    """Return *size* bytes of zeros, which nobody else has; they go with the last view of them."""
    whole = _mapped(size + LARGE_PAGE_BYTES)  # what is not used of it is never made
    if whole is None:
        return memoryview(bytearray(size))
    skip = -ctypes.addressof(ctypes.c_char.from_buffer(whole)) % LARGE_PAGE_BYTES
    return memoryview(whole)[skip : skip + size]


def _mapped(size: int) -> mmap.mmap | None:
    if not hasattr(mmap, "MADV_HUGEPAGE"):  # not Linux
        return None
    try:
        whole = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a limit of the process, or a kernel that was built without them
        return None
    return whole
