"""
Renewals of the leases of many dumps, stored together.

All leases are in one file, which is replaced as a whole: while it is, those who want to renew
gather, and the next replacement has all of theirs.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, NamedTuple

from ibb.protocol.errors import IbbError
from ibb.server.log import get_log

from .dump_lease import logged_name, terms_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from ibb.storage.leases import Leases

    from .dump_lease import DumpLease, LeaseTerms


class _Wanted(NamedTuple):
    lease: DumpLease
    stored: asyncio.Future[None]
    behind: Callable[[], None] | None  # what is to be done in the pool once it was tried


class LeaseRenewals:
    """
    Renews leases; calls come from the loop unless they say otherwise.

    Args:
        leases: of the store.
        pool: runs what uses the disk.
    """

    def __init__(self, leases: Leases, pool: Executor) -> None:
        self._leases = leases
        self._pool = pool
        self._waiting: list[_Wanted] = []
        self._working: asyncio.Task[None] | None = None
        self._dropping = threading.Lock()
        self._kept: dict[str, DumpLease] = {}

    async def terms_for(self, user: str, server_id: int, seconds: int) -> LeaseTerms | None:
        """Return what lease a replica is to have, see `dump_lease.terms_for`."""
        loop, arguments = asyncio.get_running_loop(), (self._leases, user, server_id, seconds)
        return await loop.run_in_executor(self._pool, terms_for, *arguments)

    async def renew(self, lease: DumpLease) -> None:
        """
        Have a lease's time count from now; that it could not be stored is only logged.

        The first time, it takes over from an earlier dump of its replica. That one may still be
        about to end, and renews nothing any more: it would move the position back.
        """
        if not lease.dropped:
            before = self._kept.get(lease.name, lease)
            before.dropped = before is not lease
            self._kept[lease.name] = lease
        await self._ask(lease, None)

    def finish(self, lease: DumpLease, behind: Callable[[], None]) -> None:
        """
        Renew a lease for the last time, unless another dump of its replica keeps it by now.

        Args:
            lease: of the dump that ends.
            behind: called in the pool once that was tried.
        """
        if self._kept.get(lease.name) is lease:
            del self._kept[lease.name]
        else:
            lease.dropped = True
        self._ask(lease, behind)

    async def finished(self) -> None:
        """Return when nothing is to be renewed any more."""
        while self._working is not None:
            await asyncio.wait([self._working])

    def drop(self, name: str) -> None:
        """
        End a lease, also if its replica is connected; blocks, from any thread.

        Raises:
            LeaseError: there is none of this name.
            DiskError: it could not be stored.
        """
        with self._dropping:
            self._leases.remove(name)
            kept = self._kept.get(name)
            if kept is not None:
                kept.dropped = True

    def _ask(self, lease: DumpLease, behind: Callable[[], None] | None) -> asyncio.Future[None]:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Wanted(lease, stored, behind))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return stored

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                wanted, self._waiting = self._waiting, []
                try:
                    await loop.run_in_executor(self._pool, self._store, wanted)
                finally:
                    for one in wanted:
                        if not one.stored.done():
                            one.stored.set_result(None)
        finally:
            self._working = None

    def _store(self, wanted: list[_Wanted]) -> None:
        """Renew what is wanted, and do what is to be done behind it, whatever goes wrong."""
        try:
            self._renew_all(wanted)
        except Exception:  # noqa: BLE001 - those who wait behind it must be served, whatever it is
            get_log().exception("leases_not_renewed")
        for one in wanted:
            if one.behind is not None:
                try:
                    one.behind()  # what a reader holds ends there: left out, nothing is purged
                except Exception:  # noqa: BLE001 - it is not that of the others
                    get_log().exception("dump_not_ended")

    def _renew_all(self, wanted: list[_Wanted]) -> None:
        errors: Mapping[str, IbbError] = {}
        try:
            with self._dropping:
                renewals = [one.lease.renewal() for one in wanted if not one.lease.dropped]
                if renewals:
                    errors = self._leases.renew_all(renewals)
        except IbbError as error:
            errors = {one.lease.name: error for one in wanted}
        for name, refused in errors.items():
            _tell(name, refused)


def _tell(name: str, error: IbbError) -> None:
    get_log().error("lease_not_renewed", lease=logged_name(name), error=str(error))
