"""
What the dashboard does while the server runs: it looks again and again, and tells who watches.

Looks that people ask for have threads of their own, few, so that no browser slows a replica's
statements down.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from ibb.protocol.errors import IbbError
from ibb.server.background_task import BackgroundTask
from ibb.server.log import get_log

from .broadcaster import Broadcaster
from .file_table import FileTable
from .not_shown import ALL_NOT_SHOWN, shown_overview
from .overview import Observer
from .samples import SAMPLE_SECONDS, Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.server.server import Server

    from .not_shown import NotShown
    from .overview import Overview

LOOK_THREADS: Final = 2
LOOKS_MAX: Final = 32  # that wait for a thread, or have one
T = TypeVar("T")


class TooManyLooks(IbbError):  # noqa: N818 - a state of the world
    """All places of looks into the files are taken."""

    def __init__(self) -> None:
        super().__init__(f"{LOOKS_MAX} looks into the files wait already: try again")


class Dashboard:
    """
    The dashboard of one server; used from its event loop.

    Args:
        server: whose.
        reasons: codes and texts of why it is not ready.

    Attributes:
        samples: of the last hour.
        broadcaster: gives each overview to who watches.
        observer: takes the overviews.
        files: what there is.
    """

    def __init__(self, server: Server, reasons: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self.samples = Samples()
        self.broadcaster = Broadcaster()
        self.observer = Observer(server, reasons)
        self.files = FileTable(server)
        self._looks = 0
        self._watching = BackgroundTask("dashboard")
        self._observing = ThreadPoolExecutor(1, thread_name_prefix="dashboard")
        self._looking = ThreadPoolExecutor(LOOK_THREADS, thread_name_prefix="dashboard-look")

    def start(self) -> None:
        """Begin to look at the server."""
        self._watching.start(self._watch())

    async def stop(self) -> None:
        """Drop who watches, and look no more."""
        self.broadcaster.close()
        await self._watching.stop()
        for pool in (self._observing, self._looking):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def look(self, work: Callable[[], T]) -> T:
        """
        Return what *work* does in a thread for looks.

        Raises:
            TooManyLooks: `LOOKS_MAX` wait or run already.
        """
        if self._looks >= LOOKS_MAX:
            raise TooManyLooks
        self._looks += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._looking, work)
        finally:
            self._looks -= 1

    async def _watch(self) -> None:
        """Take an overview every `SAMPLE_SECONDS`; what goes wrong is logged once until it ends."""
        loop = asyncio.get_running_loop()
        failed = False
        while True:
            began = loop.time()
            try:
                overview = await loop.run_in_executor(self._observing, self.observer.look)
                self.samples.add(overview.sample)
                self.broadcaster.publish("overview", encode_overviews(overview))
                failed = False
            except Exception as error:  # noqa: BLE001 - the next look may fare better
                if not failed:
                    get_log().exception("dashboard_look_failed", error=repr(error))
                failed = True
            await asyncio.sleep(max(0.0, began + SAMPLE_SECONDS - loop.time()))


def encode_overviews(overview: Overview) -> dict[NotShown, bytes]:
    """Return an overview for each kind of who watches, as `encode_overview` does."""
    return {kind: encode_overview(shown_overview(overview, kind)) for kind in ALL_NOT_SHOWN}


def encode_overview(overview: Overview) -> bytes:
    """Return an overview as JSON in one line."""
    shown = overview._asdict()
    shown["sample"] = overview.sample._asdict()
    shown["readers"] = overview.readers._asdict()
    shown["alerts"] = [alert._asdict() for alert in overview.alerts]
    return json.dumps(shown, separators=(",", ":")).encode()
