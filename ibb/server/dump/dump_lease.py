"""
The lease that a dump keeps for its replica: what it may still need outlives the connection.

A replica that starts anew begins at what it has applied, which lies behind what it was sent. So
what was sent counts as had only when half of the lease's time has passed, and a replica that lags
less than that finds everything when it comes back within the other half.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.storage.leases import Renewal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ibb.protocol.gtid import GtidPosition
    from ibb.storage.leases import Leases

    from .lease_renewals import LeaseRenewals
    from .readers import Progress

LAG_SECONDS_MAX: Final = 86_400.0  # that a replica may have of a lease with a longer time
_ACCOUNT: Final = re.compile(r"(?<=\breplica )(?P<id>\d+) of .+?(?=' needs it$|$)")


class LeaseTerms(NamedTuple):
    """
    What a replica's lease is to be.

    Attributes:
        name: of the lease.
        age_limit: seconds after which it lapses once the replica has gone; None: never.
        owner: the replica's account; of leases that people made it stays empty.
    """

    name: str
    age_limit: float | None
    owner: str


def lease_name(user: str, server_id: int) -> str:
    """Return what the lease of a replica is called."""
    return f"replica {server_id} of {user}"


def logged_name(text: str) -> str:
    """Return the name of a lease, or a reason with one in it, as the log has it: no account."""
    return _ACCOUNT.sub(r"\g<id>", text)


def terms_for(leases: Leases, user: str, server_id: int, seconds: int) -> LeaseTerms | None:
    """
    Return what lease a replica is to have, or None.

    Args:
        leases: those there are: one that people made for it goes before the settings.
        user: the replica's account.
        server_id: its own; tools have 0 and get none.
        seconds: what the settings say; 0: none.
    """
    if not server_id:
        return None
    own_name = lease_name(user, server_id)
    for name in (own_name, f"replica {server_id}"):
        lease = leases.get(name)
        if lease is not None and not lease.owner:
            return LeaseTerms(name, lease.age_limit, user)
    return LeaseTerms(own_name, float(seconds), user) if seconds else None


class DumpLease:
    """
    One replica's lease, while its dump runs.

    Args:
        terms: what it is to be.
        start: what the replica said that it has.
        progress: tells what was sent.
        renewals: renews it.
        sleep: waits some seconds; for tests.

    Attributes:
        name: of the lease.
        dropped: somebody ended it, or a later dump keeps it: it is not renewed any more.
    """

    def __init__(
        self,
        terms: LeaseTerms,
        start: GtidPosition,
        *,
        progress: Callable[[], Progress],
        renewals: LeaseRenewals,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = terms.name
        self.dropped = False
        self._terms = terms
        self._had = start
        self._progress = progress
        self._renewals = renewals
        self._sleep = sleep

    async def keep(self) -> None:
        """Renew the lease again and again, until cancelled."""
        lag = min(self._terms.age_limit or LAG_SECONDS_MAX, LAG_SECONDS_MAX) / 2
        while True:
            await self._renewals.renew(self)
            progress = self._progress()
            await self._sleep(lag)
            if progress.at is not None:
                self._had = progress.reached

    def renewal(self) -> Renewal:
        """Return how the lease is to be renewed now."""
        return Renewal(self.name, self._had, self._terms.age_limit, self._terms.owner)
