"""What a Python worker of Spark is spared."""

from __future__ import annotations

import gc
import os
import socket
import sys
from functools import cache
from itertools import islice
from typing import Any, Final

DESCRIPTORS_MAX: Final = 256  # that are looked at; the one to Spark is among a worker's first
_DAEMON: Final = "pyspark.daemon"


@cache  # `gc.get_freeze_count` would count all of them, at each task
def spare_collections() -> None:
    """
    Take what was imported out of garbage collections, once in a worker of Spark; else do nothing.

    Spark's daemon has a worker collect all garbage behind each task, which takes a look at each of
    the 90,000 objects that are there for as long as it lives: 8 % of the time of a read in bulk.
    """
    if _program() == _DAEMON:
        gc.collect()  # what is garbage already is not kept
        gc.freeze()


def acknowledge_at_once() -> None:
    """
    Have a worker of Spark acknowledge what it has received, now; else do nothing.

    Spark sends a task in two writes, first the reader, then the partition, and waits between them
    for an acknowledgement (Nagle's algorithm), which the system delays by 40 ms where the worker
    says nothing. So this is called when a reader has come.
    """
    if sys.platform != "linux" or not _program().startswith("pyspark."):
        return
    try:
        with os.scandir("/proc/self/fd") as entries:
            descriptors = [int(entry.name) for entry in islice(entries, DESCRIPTORS_MAX)]
    except OSError:  # no /proc here: it takes as long as it did
        return
    # With the flag a descriptor stays as it is, where a default timeout would have it not block.
    kind = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    for descriptor in descriptors:
        try:
            connection = socket.socket(type=kind, fileno=descriptor)
        except OSError:  # it is no socket, or what listed them
            continue
        try:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        except OSError:  # of UDP; or it is gone: who uses it will tell
            continue
        finally:
            connection.detach()  # it is another's


class SentReader:
    """A reader that Spark sends to its workers, and its partition behind it."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge_at_once()


def _program() -> str:
    """Return the module that this process runs, as `python -m` names it; empty: none."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return str(getattr(spec, "name", ""))
