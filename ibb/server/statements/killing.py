"""KILL: what another connection does, or that connection itself, is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol import error_codes as codes
from ibb.server.login.privileges import CONNECTION_ADMIN
from ibb.server.sql.types import as_number

if TYPE_CHECKING:
    from ibb.server.session import Session
    from ibb.server.session_host import SessionHost
    from ibb.server.sql.ast import Kill
    from ibb.server.sql.types import SqlValue

_THREAD_IDS: Final = 1 << 64
_THREAD_ID_MAX: Final = (1 << 63) - 1


def kill(statement: Kill, wanted: int, host: SessionHost, session: Session) -> None:
    """
    Do KILL for *session*; *wanted* is the connection that it names, if it names one.

    Raises:
        SqlError: as `kill_connection`.
    """
    if statement.user is not None:
        _kill_user(statement.user, host, session, query_only=statement.query_only)
    elif statement.query_id:
        raise codes.NO_SUCH_QUERY.error(wanted)
    else:
        kill_connection(wanted, host, session, query_only=statement.query_only)


def kill_connection(
    connection_id: int, host: SessionHost, session: Session, *, query_only: bool = False
) -> None:
    """
    End a connection, or with *query_only* what it does; a dump ends its connection with it.

    Raises:
        SqlError: 1094 there is none, 1095 not one's own; it is *session* itself: 1317 with
            *query_only*, else 1927, which ends it.
    """
    victim = host.sessions.get(connection_id)
    if victim is None:
        raise codes.NO_SUCH_THREAD.error(connection_id)
    _check_may_kill(victim, session)
    if victim is session and query_only:
        raise codes.QUERY_INTERRUPTED.error()
    if victim is session:
        session.leave()
        raise codes.CONNECTION_KILLED.error()
    if query_only:
        victim.interrupt()
    else:
        victim.end(codes.CONNECTION_KILLED.error())


def _kill_user(user: str, host: SessionHost, session: Session, *, query_only: bool) -> None:
    """End what all connections of a user do, or those; one's own gets its answer first."""
    victims = [
        victim
        for victim in host.sessions
        if victim.account is not None and victim.account.user == user
    ]
    for victim in victims:
        _check_may_kill(victim, session)
    for victim in victims:
        if victim is session:
            if not query_only:
                victim.leave()
        elif query_only:
            victim.interrupt()
        else:
            victim.end(codes.CONNECTION_KILLED.error())


def _check_may_kill(victim: Session, session: Session) -> None:
    """Raise SqlError 1095 for who is neither of the same user nor to be killed by everybody."""
    own = session.account
    assert own is not None
    is_own = victim.account is not None and victim.account.user == own.user
    if not is_own and not own.may(CONNECTION_ADMIN):
        raise codes.KILL_DENIED_ERROR.error(victim.id)


def thread_id(value: SqlValue) -> int:
    """Return a value as KILL takes it: negative ones from the other end, as MariaDB does."""
    number = as_number(value) or 0
    return int(number) % _THREAD_IDS if number < 0 else min(int(number), _THREAD_ID_MAX)
