"""
The lease that a dump keeps for its replica: what it may still need outlives the connection.

A replica that starts anew begins at what it has applied, which lies behind what it was sent. So
what was sent counts as had only when half of the lease's time has passed, and a replica that lags
less than that finds everything when it comes back within the other half.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError

from .log import get_log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Executor

    from ibb.protocol.gtid import GtidPosition
    from ibb.storage.leases import Leases

    from .readers import Progress

_ACCOUNT: Final = re.compile(r"(?<=\breplica )(?P<id>\d+) of .+?(?=' needs it$|$)")


def lease_name(user: str, server_id: int) -> str:
    """Return what the lease of a replica is called."""
    return f"replica {server_id} of {user}"


def logged_name(text: str) -> str:
    """Return the name of a lease, or a reason with one in it, as the log has it: no account."""
    return _ACCOUNT.sub(r"\g<id>", text)


class DumpLease:
    """
    One replica's lease, while its dump runs.

    Args:
        leases: of the store.
        name: of the lease.
        start: what the replica said that it has.
        seconds: after which it lapses once the replica has gone.
        progress: tells what was sent.
        pool: runs what uses the disk.
        sleep: waits some seconds; for tests.
    """

    def __init__(
        self,
        leases: Leases,
        name: str,
        start: GtidPosition,
        seconds: int,
        *,
        progress: Callable[[], Progress],
        pool: Executor,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._leases = leases
        self._name = name
        self._had = start
        self._seconds = seconds
        self._progress = progress
        self._pool = pool
        self._sleep = sleep

    async def keep(self) -> None:
        """Renew the lease again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await loop.run_in_executor(self._pool, self.renew)
            progress = self._progress()
            await self._sleep(self._seconds / 2)
            if progress.at is not None:
                self._had = progress.reached

    def renew(self) -> None:
        """Have the lease's time count from now; that it could not be stored is only logged."""
        try:
            self._leases.renew(self._name, self._had, age_limit=float(self._seconds))
        except IbbError as error:
            get_log().error("lease_not_renewed", lease=logged_name(self._name), error=str(error))
