"""Work that goes on beside the rest of a server until it is stopped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .log import get_log

if TYPE_CHECKING:
    from collections.abc import Coroutine


class BackgroundTask:
    """
    One task of the event loop that nobody awaits until its owner closes; if it fails, it is logged.

    Args:
        name: of the work, for the log.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not ended."""
        return self._task is not None and not self._task.done()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Have *work* done from now on; what was started before must have ended."""
        assert not self.is_running
        self._task = asyncio.create_task(work, name=self._name)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """Have it end soon, and another one be started at once."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def stop(self) -> None:
        """Return when it has ended, if it was started at all."""
        if (task := self._task) is not None:
            task.cancel()  # and is known until it has ended: whoever else stops it waits, too
            await asyncio.gather(task, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            get_log().error("background_task_failed", task=self._name, exc_info=error)
