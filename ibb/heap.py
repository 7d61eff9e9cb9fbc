"""
Heaps, which keep what is freed in them for what comes next.

The C library's: who has used much for a moment and waits then has it give back what it can: a few
milliseconds, in which other threads that ask the heap for memory wait.

delta-rs has one of its own, jemalloc, which gives back by itself. As it comes, each of a hundred
threads keeps a store of what it has freed, and the heap rises for thousands of commits.

Arrow has one, too, mimalloc, which grows by 4 MiB for hours. It can do with the C library's.

Python looks through its objects for garbage. A server has 74,000 of them when it begins, which
stay; to look through them takes 15 to 25 ms, in which it does nothing else.
"""

from __future__ import annotations

import ctypes
import gc
import os
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DELTA_HEAP: Final = "_RJEM_MALLOC_CONF"  # of the environment, read once when delta-rs is loaded
SMALL_DELTA_HEAP: Final = "narenas:2,tcache:false,dirty_decay_ms:200,muzzy_decay_ms:0"
ARROW_HEAP: Final = "ARROW_DEFAULT_MEMORY_POOL"  # as above
SMALL_ARROW_HEAP: Final = "system"


YOUNG_OBJECTS: Final = 10_000  # more of them than there were before garbage is looked for


def keep_what_is_there() -> None:
    """Look for garbage only among what is made from now on, and less often than Python does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


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


def keep_heaps_small() -> None:
    """
    Have the heaps of delta-rs and Arrow stay small, unless the environment says how they are to be.

    To be called before either is loaded. A commit takes a sixth more of the processor.
    """
    os.environ.setdefault(DELTA_HEAP, SMALL_DELTA_HEAP)
    os.environ.setdefault(ARROW_HEAP, SMALL_ARROW_HEAP)
