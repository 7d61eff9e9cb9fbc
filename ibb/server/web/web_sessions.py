"""Who is logged in to the pages: by a cookie that only the browser and this process know."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.server.login.accounts import Account, AccountBook

SESSIONS_MAX: Final = 256  # the one that was used longest ago ends first
IDLE_SECONDS_MAX: Final = 3600.0  # without a request, and without a stream that is watched
SESSION_SECONDS_MAX: Final = 12 * 3600.0
TOKEN_BYTES: Final = 32
PRIVILEGE: Final = "BINLOG MONITOR"  # REPLICATION CLIENT: who may see how replication goes


@dataclass(slots=True)
class WebSession:
    """
    One browser that has logged in.

    Attributes:
        account: as it was then.
        hosts: address and names by which the client was known.
        began_at, used_at: seconds of a monotonic clock.
    """

    account: Account
    hosts: tuple[str, ...]
    began_at: float
    used_at: float

    @property
    def user(self) -> str:
        """Name that was logged in by."""
        return self.account.user


class WebSessions:
    """
    The sessions of one server; used from its event loop.

    Args:
        accounts: gives those that are in force now.
        monotonic: the clock, in seconds.
    """

    def __init__(self, accounts: Callable[[], AccountBook], monotonic: Callable[[], float]) -> None:
        self._accounts = accounts
        self._monotonic = monotonic
        self._sessions: OrderedDict[bytes, WebSession] = OrderedDict()  # by the token's digest

    def begin(self, account: Account, hosts: tuple[str, ...]) -> str:
        """Return the token of a new session."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        now = self._monotonic()
        self._sessions[_digest(token)] = WebSession(account, hosts, now, now)
        while len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return token

    def find(self, token: str) -> WebSession | None:
        """Return the session of *token*, None if there is none or it is over."""
        key = _digest(token)
        session = self._sessions.get(key)
        if session is None:
            return None
        if not self._is_good(session):
            del self._sessions[key]
            return None
        self._use(key, session)
        return session

    def holds(self, session: WebSession) -> bool:
        """
        Tell whether a session is still good; what streams asks from time to time.

        Who watches a stream uses the session. It ends with its time all the same, with a logout,
        and when its account is changed or gone.
        """
        key = next((key for key, each in self._sessions.items() if each is session), None)
        if key is None or not self._is_good(session):
            return False
        self._use(key, session)
        return True

    def end(self, token: str) -> None:
        """End the session of *token*, if there is one."""
        self._sessions.pop(_digest(token), None)

    def __len__(self) -> int:
        return len(self._sessions)

    def _use(self, key: bytes, session: WebSession) -> None:
        session.used_at = self._monotonic()
        self._sessions.move_to_end(key)

    def _is_good(self, session: WebSession) -> bool:
        now = self._monotonic()
        if now - session.used_at > IDLE_SECONDS_MAX or now - session.began_at > SESSION_SECONDS_MAX:
            return False
        # What it may see was looked up in the account as it was: it ends when that has changed.
        return self._accounts().find(session.user, session.hosts) == session.account


def _digest(token: str) -> bytes:
    # Looked up by a digest, so that the time of a miss tells nothing of any token.
    return hashlib.sha256(token.encode()).digest()
