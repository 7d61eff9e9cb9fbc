"""
The C library's heap, which keeps what is freed in it for what comes next.

Who has used much for a moment and waits then has it give back what it can: a few milliseconds, in
which other threads that ask the heap for memory wait.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def malloc_trim() -> Callable[[], object] | None:
    """Return what has the C library give back all that it can, or None where it has no such."""
    library = ctypes.CDLL(None)
    try:
        function = library.malloc_trim
    except AttributeError:  # musl, macOS
        return None
    function.argtypes = [ctypes.c_size_t]
    return lambda: function(0)
