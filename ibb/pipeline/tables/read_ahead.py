"""
An iterator that runs in a thread of its own, a few items ahead.

delta-rs takes rows from Python on a thread that must not call delta-rs again; a table that is
written from its own rows would.
"""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Item = TypeVar("Item")

AHEAD_MAX: Final = 2  # items
PUT_SECONDS: Final = 0.1  # between looks at whether anybody still wants them


class _End:
    """No more items; *error* ended them."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


@contextmanager
def read_ahead(items: Iterable[Item]) -> Iterator[Iterator[Item]]:
    """Give what *items* yields, made by another thread, which ends with the block."""
    waiting: queue.Queue[Item | _End] = queue.Queue(AHEAD_MAX)
    unwanted = threading.Event()

    def put(item: Item | _End) -> None:
        while not unwanted.is_set():
            try:
                waiting.put(item, timeout=PUT_SECONDS)
            except queue.Full:
                continue
            return

    def run() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                put(item)
                if unwanted.is_set():
                    return
        except BaseException as raised:  # noqa: BLE001 - the reader raises it again
            error = raised
        put(_End(error))

    def taken() -> Iterator[Item]:
        while not isinstance(item := waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error

    thread = threading.Thread(target=run, name="read-ahead", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        unwanted.set()
        thread.join()
