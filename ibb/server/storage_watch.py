"""What keeps the files from being read or written, and the log's lines of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ibb.storage.read_only import ReadOnlyHistory

from .background_task import BackgroundTask
from .log import get_log

if TYPE_CHECKING:
    from ibb.protocol.errors import FormatError

    from .server import Server

HISTORY_DAMAGED: Final = "history_damaged"
DISK_HANGS: Final = "disk_hangs"
SYNC_SECONDS_MAX: Final = 10.0  # after which a sync may never come back
LOOK_SECONDS: Final = 1.0


def storage_troubles(server: Server) -> dict[str, str]:
    """Return what keeps the files from being read or written just now, in words by its code."""
    found = {}
    history = server.history
    if isinstance(history, ReadOnlyHistory) and (damage := history.damage) is not None:
        found[HISTORY_DAMAGED] = f"the files cannot be read further: {damage}"
    waited = 0.0 if server.storage is None else server.storage.disk.longest_wait()
    if waited > SYNC_SECONDS_MAX:
        found[DISK_HANGS] = f"a sync has not come back for {waited:.0f} s"
    return found


class StorageWatch:
    """
    Logs each trouble of one server's files when it begins and when it is over.

    Args:
        server: whose.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._told: set[str] = set()  # codes of what goes on
        self._looking = BackgroundTask("storage_watch")

    def start(self) -> None:
        """Look every `LOOK_SECONDS`, and be told of pages that had to be read twice."""
        self._server.history.pages.healed.tell = _log_healed
        self._looking.start(self._look_again())

    async def stop(self) -> None:
        """Look no more."""
        await self._looking.stop()

    async def _look_again(self) -> None:
        while True:
            found = storage_troubles(self._server)
            for code in found.keys() - self._told:
                get_log().error(code, error=found[code])
            for code in self._told - found.keys():
                get_log().info("trouble_over", trouble=code)
            self._told = set(found)
            await asyncio.sleep(LOOK_SECONDS)


def _log_healed(wrong: FormatError) -> None:
    """Warn of a disk that tells the truth only when asked twice."""
    get_log().warning("read_healed", file=wrong.file, page=wrong.page, error=str(wrong))
