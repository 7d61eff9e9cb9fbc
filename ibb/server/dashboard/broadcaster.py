"""
One stream of messages to many who watch: server-sent events, bounded.

A message is encoded once for all who are shown the same. Each watcher has a short queue; one that
does not keep up is dropped, and its browser comes back by itself. Source: HTML, "Server-sent
events".
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .not_shown import NotShown

WATCHERS_MAX: Final = 64
MESSAGES_WAITING_MAX: Final = 4  # for one watcher: some seconds of them
RETRY_MS: Final = 2000  # after which a browser that was dropped comes back


class TooManyWatchers(IbbError):  # noqa: N818 - a state of the world
    """All places of those who watch are taken."""

    def __init__(self) -> None:
        super().__init__(f"{WATCHERS_MAX} browsers watch already: close one, then reload this one")


class Watcher:
    """
    One who watches; made by `Broadcaster.watching`.

    Attributes:
        not_shown: what its messages leave out.
        dropped: it gets nothing any more.
    """

    def __init__(self, not_shown: NotShown) -> None:
        self.not_shown = not_shown
        self.dropped = False
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()

    def put(self, message: bytes) -> None:
        """Queue a message, or drop the watcher that has too many of them."""
        if len(self._waiting) >= MESSAGES_WAITING_MAX:
            self.drop()
            return
        self._waiting.append(message)
        self._news.set()

    def drop(self) -> None:
        """Send nothing any more, not what waits either."""
        self.dropped = True
        self._waiting.clear()
        self._news.set()

    async def next(self) -> bytes | None:
        """Return the next message, None once the watcher was dropped."""
        while not self._waiting and not self.dropped:
            self._news.clear()
            await self._news.wait()
        return None if self.dropped else self._waiting.popleft()


class Broadcaster:
    """Gives messages to all who watch. Calls come from the event loop."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._last: dict[NotShown, bytes] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._watchers)

    @property
    def is_full(self) -> bool:
        """Whether nobody more can watch."""
        return len(self._watchers) >= WATCHERS_MAX

    def publish(self, name: str, data: Mapping[NotShown, bytes]) -> None:
        """
        Give everybody a message.

        Args:
            name: of the event.
            data: JSON in one line, by what it leaves out.
        """
        assert not any(b"\n" in line for line in data.values())
        self._last = {
            not_shown: b"event: %s\ndata: %s\n\n" % (name.encode(), line)
            for not_shown, line in data.items()
        }
        for watcher in self._watchers:
            watcher.put(self._last[watcher.not_shown])

    @contextmanager
    def watching(self, not_shown: NotShown) -> Iterator[Watcher]:
        """
        Lend a watcher, which gets the last message at once.

        Args:
            not_shown: what its messages leave out.

        Raises:
            TooManyWatchers: there are `WATCHERS_MAX` already.
        """
        if self.is_full:
            raise TooManyWatchers
        watcher = Watcher(not_shown)
        if self._last:
            watcher.put(self._last[not_shown])
        if self._closed:
            watcher.drop()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """Drop everybody who watches, and who comes later."""
        self._closed = True
        for watcher in self._watchers:
            watcher.drop()
