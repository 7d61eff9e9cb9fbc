"""
What becomes of a store in a forked child: nothing, it belongs to the process that opened it.

The child has a copy of the memory and shares the descriptors, but has none of the threads. Both
would write the same places of the same files from now on, so the child's copy gives itself up.
"""

import os
import weakref
from typing import Protocol


class Disownable(Protocol):
    """What belongs to one process."""

    def disown(self) -> None:
        """Be of no use any more, without a lock: a thread that is not there may hold it."""


def disown_in_children(owned: Disownable) -> None:
    """Have *owned*, which is not kept alive for it, disowned in each child that is forked."""
    _owned.add(owned)


_owned: weakref.WeakSet[Disownable] = weakref.WeakSet()


def _disown_all() -> None:
    for owned in list(_owned):
        owned.disown()


os.register_at_fork(after_in_child=_disown_all)
