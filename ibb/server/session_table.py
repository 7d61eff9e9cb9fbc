"""
The sessions that are connected, and how many there are of a kind.

Whoever comes is asked how many others come from its address, have its account, or read by its
server id. That is counted as they come and go: when a crowd comes back at once, each of them would
else look at all that were quicker.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from .login.accounts import Account
    from .session import Session

T = TypeVar("T", bound="Hashable")


class SessionTable:
    """All sessions of a server; for its event loop alone."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._near: Counter[str] = Counter()  # by what limits by address count by
        self._strangers: Counter[str] = Counter()  # of these, who is not logged in
        self._accounts: Counter[tuple[str, str]] = Counter()
        self._dumps: dict[int, dict[int, Session]] = {}  # by the replica's server id

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        """Go through those that are there now, whoever comes or goes meanwhile."""
        return iter(list(self._sessions.values()))

    def get(self, connection_id: int) -> Session | None:
        """Return one, None if it is not connected."""
        return self._sessions.get(connection_id)

    def add(self, session: Session) -> None:
        """Count one that has just connected."""
        self._sessions[session.id] = session
        _add(self._near, session.limit_key, 1)
        self._count_account(session, session.account, 1)

    def remove(self, session: Session) -> None:
        """Count one no more that has ended, with its dump."""
        del self._sessions[session.id]
        _add(self._near, session.limit_key, -1)
        self._count_account(session, session.account, -1)

    def becomes(self, session: Session, account: Account | None) -> None:
        """Count one by the account that it has from now on; None: it is not logged in."""
        self._count_account(session, session.account, -1)
        self._count_account(session, account, 1)

    def begins_dump(self, session: Session, server_id: int) -> None:
        """Note that a replica reads by a session from now on."""
        self._dumps.setdefault(server_id, {})[session.id] = session

    def ends_dump(self, session: Session, server_id: int) -> None:
        """Note that it does not any more."""
        dumps = self._dumps[server_id]
        del dumps[session.id]
        if not dumps:
            del self._dumps[server_id]

    @property
    def has_dumps(self) -> bool:
        """Whether somebody reads the binlog."""
        return bool(self._dumps)

    def dumps_of(self, server_id: int) -> list[Session]:
        """Return the sessions by which a replica reads: one, or more for a moment."""
        return list(self._dumps.get(server_id, {}).values())

    def near(self, limit_key: str) -> tuple[int, int]:
        """Return how many there are from an address, and of these, how many not logged in."""
        return self._near[limit_key], self._strangers[limit_key]

    def with_account(self, account: Account) -> int:
        """Return how many are logged in as an account."""
        return self._accounts[account.user, account.host]

    def _count_account(self, session: Session, account: Account | None, change: int) -> None:
        if account is None:
            _add(self._strangers, session.limit_key, change)
        else:
            _add(self._accounts, (account.user, account.host), change)


def _add(counts: Counter[T], key: T, change: int) -> None:
    """Change a count; what there is none of is not kept."""
    counts[key] += change
    if not counts[key]:
        del counts[key]
