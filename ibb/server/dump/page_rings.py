"""
Memory that readers have their pages read into, each while it has a thread.

Who comes back finds what it has read, if nobody else has needed the room meanwhile.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.storage.large_memory import large_memory
from ibb.storage.page_ring import PageRing

if TYPE_CHECKING:
    from .page_feed import PageFeed

RING_BYTES: Final = 2 << 20  # so that who goes back from a commit record finds its pieces
SMALL_RING_BYTES: Final = 1 << 20  # of those in a crowd, which share most of what they send
LARGE_RINGS: Final = 8  # that are used at a time, before others are small
READ_BYTES: Final = 256 << 10  # into it at a time: they stay in the processor's caches
RINGS_MAX: Final = 64  # that are kept; there are only as many as have had a thread at a time


class _Free(NamedTuple):
    owner: weakref.ref[PageFeed]
    ring: PageRing
    memory: memoryview


class PageRings:
    """
    Rings that nobody uses just now; safe to use from several threads.

    Args:
        rings_max: how many are kept.
    """

    def __init__(self, rings_max: int = RINGS_MAX) -> None:
        self._rings_max = rings_max
        self._mutex = threading.Lock()
        self._free: list[_Free] = []  # who gave one back last is the last
        self._large: list[weakref.ref[memoryview]] = []
        self._small: memoryview | None = None  # the other half of the last one

    def take(self, owner: PageFeed) -> tuple[PageRing, memoryview]:
        """Return a ring for a feed, its own if that is still here, and the memory it is of."""
        with self._mutex:
            for place, (feed, ring, memory) in enumerate(self._free):
                if feed() is owner:
                    del self._free[place]
                    return ring, memory
            if self._free:
                sizes = [len(free.memory) for free in self._free]
                memory = self._free.pop(sizes.index(max(sizes))).memory
            else:
                memory = self._new_memory()
        return PageRing(memory, READ_BYTES), memory

    def _new_memory(self) -> memoryview:
        self._large = [large for large in self._large if large() is not None]
        if len(self._large) < LARGE_RINGS:
            memory = large_memory(RING_BYTES)
            self._large.append(weakref.ref(memory))
            return memory
        if self._small is None:
            whole = large_memory(2 * SMALL_RING_BYTES)  # that is one page of the system
            self._small = whole[SMALL_RING_BYTES:]
            return whole[:SMALL_RING_BYTES]
        memory, self._small = self._small, None
        return memory

    def give_back(self, owner: PageFeed, ring: PageRing, memory: memoryview) -> None:
        """Take a ring back from a feed, which does not look into it any more."""
        with self._mutex:
            self._free.append(_Free(weakref.ref(owner), ring, memory))
            del self._free[: -self._rings_max]

    def forget(self, owner: PageFeed) -> None:
        """Keep nothing for a feed that will not come back soon, nor for those that are gone."""
        with self._mutex:
            self._free = [one for one in self._free if one.owner() not in {owner, None}]
