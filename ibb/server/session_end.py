"""
How a session ends against its client's will: what it is still told, and what is said of it.

A failed login is logged as such, and may block the address; what ends a session behind its login
is logged under other names. Source: dump-protocol 10, traps 10, 17, 20.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.protocol import error_codes as codes
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.reply import err_of

from .connections.broken_packets import end_of
from .connections.connection import Connection, PeerGone
from .connections.tls_channel import TlsFailed
from .log import get_log
from .login.login import AccessDenied
from .login.login_guard import NOBODY

if TYPE_CHECKING:
    from .session_host import SessionHost


class SessionEnd:
    """
    The end of one session.

    Args:
        host: the server around it.
        connection: the client's, which is left open.
        connection_id: what KILL takes.
    """

    def __init__(self, host: SessionHost, connection: Connection, connection_id: int) -> None:
        self._host = host
        self._connection = connection
        self._id = connection_id
        self._log = get_log().bind(connection_id=connection_id, peer=connection.peer)

    async def by(self, error: Exception, *, logged_in: bool) -> bool:
        """
        Tell client and log of an error; return whether the connection ends in order.

        Args:
            error: what the session ended with.
            logged_in: whether there was a user, who was not about to be another one.
        """
        match error:
            case PeerGone():
                if not logged_in:
                    self._refused(str(error))
                return False
            case TlsFailed():
                self._gave_up(str(error), logged_in=logged_in)
                return True  # so that the client gets the alert
            case TimeoutError():
                self._gave_up(str(error) or "login took too long", logged_in=logged_in)
                return False
            case AccessDenied():
                self._refused(str(error), error.user)
                return await self._tell(error.error)
            case SqlError():
                if not logged_in:
                    self._refused(f"error {error.code}")
                return await self._tell(error)
            case ProtocolError() | FormatError():
                self._gave_up(str(error), NOBODY, logged_in=logged_in)
                return await self._tell(end_of(error, logged_in=logged_in))
            case OSError():
                if logged_in:
                    self._log.info("connection_lost", error=str(error))
                else:
                    self._refused(f"connection lost: {error}")
                return False
        # A bug must not take the other sessions along.
        self._log.exception("session_failed", error=repr(error), exc_info=error)
        return await self._tell(codes.UNKNOWN_ERROR.error("internal error, see the log"))

    async def _tell(self, error: SqlError) -> bool:
        """Send *error* as the last packet; return whether that was possible."""
        self._host.access_denied_errors += error.code in codes.DENIALS
        try:
            await self._connection.send([err_of(error)])
        except (OSError, TimeoutError):
            return False
        return True

    def _gave_up(self, reason: str, failed_as: str | None = None, *, logged_in: bool) -> None:
        """Log why the session ends, whether or not its client had logged in."""
        if logged_in:
            self._log.warning("session_ended", reason=reason)
        else:
            self._refused(reason, failed_as)

    def _refused(self, reason: str, failed_as: str | None = None) -> None:
        """Log why a login failed; failing to log in as somebody may block the address."""
        self._host.aborted_connects += 1
        connection = self._connection
        tell, key, peer = self._host.refusals.tell, connection.limit_key, connection.peer
        tell(key, "client_refused", connection_id=self._id, peer=peer, reason=reason)
        if failed_as is not None and (seconds := self._host.guard.failed(key, failed_as)):
            tell(key, "address_blocked", address=key, seconds=seconds)
