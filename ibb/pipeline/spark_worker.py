"""What a Python worker of Spark is spared."""

from __future__ import annotations

import gc
import sys
from functools import cache
from typing import Final

_DAEMON: Final = "pyspark.daemon"


@cache  # `gc.get_freeze_count` would count all of them, at each task
def spare_collections() -> None:
    """
    Take what was imported out of garbage collections, once in a worker of Spark; else do nothing.

    Spark's daemon has a worker collect all garbage behind each task, which takes a look at each of
    the 90,000 objects that are there for as long as it lives: 8 % of the time of a read in bulk.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if getattr(spec, "name", "") == _DAEMON:
        gc.collect()  # what is garbage already is not kept
        gc.freeze()
