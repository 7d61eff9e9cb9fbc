"""Looks at the state that each file begins with before a replica has to wait for that."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from ibb.storage.errors import DiskError

from .background_task import BackgroundTask
from .log import get_log

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ibb.storage.history import History

LOOK_SECONDS: Final = 1.0
TURN_SECONDS: Final = 0.02  # at a time: replicas that seek meanwhile want the interpreter, too
REST_SECONDS: Final = 0.02


class StateLearner:
    """
    Has the note of files whose states rise tell of all files of one history.

    Args:
        history: whose.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: tuple[object, int] | None = None  # the note, and the last file at that time
        self._has_begun = False  # to look at all, and not done
        self._looking = BackgroundTask("states_learned")

    def start(self, pool: Executor) -> None:
        """Look at all files, and from time to time at new ones, in *pool*."""
        self._looking.start(self._look_again(pool))

    async def stop(self) -> None:
        """Look no more."""
        await self._looking.stop()

    async def _look_again(self, pool: Executor) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                is_done = await loop.run_in_executor(pool, self._look)
            except DiskError as error:
                get_log().warning("file_states_not_learned", error=str(error))
                is_done = True
            except Exception:  # noqa: BLE001 - the next look may fare better, whatever it is
                get_log().exception("file_states_not_learned")
                is_done = True
            await asyncio.sleep(LOOK_SECONDS if is_done else REST_SECONDS)

    def _look(self) -> bool:
        """Look at some files; return whether there are no more."""
        note = self._history.rising_note
        if not self._has_begun:
            last = note, self._history.pages.last_file()
            if last == self._known:
                return True
            self._known = last  # whatever comes of it: what fails is tried again behind the next
        begun: float | None = None  # behind the first file: to list them all may take longer

        def is_over() -> bool:
            nonlocal begun
            now = time.monotonic()
            begun = begun or now
            return now > begun + TURN_SECONDS

        self._has_begun = False  # if that raises
        self._has_begun = not note.extend(is_over)
        return not self._has_begun
