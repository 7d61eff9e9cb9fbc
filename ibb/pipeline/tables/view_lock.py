"""
What keeps a MariaDB at one GTID position while the transactions of a view begin.

BACKUP STAGE BLOCK_COMMIT waits for commits that are under way, not for statements: a long UPDATE
goes on. Servers that lack it get FLUSH TABLES WITH READ LOCK, which waits for all statements that
write, while all others wait for it. Neither may wait for long: it is given up, and tried again.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pymysql

from .errors import PipelineError
from .source_tables import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK_WAIT_SECONDS: Final = 2  # so long writers may wait for it in vain
PAUSE_SECONDS: Final = 8.0  # to the next attempt
ATTEMPTS_MAX: Final = 60  # ten minutes
_STAGES: Final = ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT")
_TIMED_OUT: Final = 1205
# A server that has no such statement, or does not let the account use it.
_NO_STAGES: Final = frozenset({1064, 1227, 1235})


class _InTheWay(Exception):  # noqa: N818 - it is tried again
    """Others did not let go of a lock in time."""


@contextmanager
def held_still(
    connection: pymysql.Connection[Any], pause: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """
    Have nothing committed at the server meanwhile.

    Args:
        connection: which holds the lock.
        pause: waits for so many seconds.

    Raises:
        PipelineError: the server refuses, or others were in the way at each attempt.
    """
    rows_of(connection, f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            release = _lock(connection)
            break
        except _InTheWay as error:
            if attempt == ATTEMPTS_MAX:
                raise PipelineError(
                    f"the server cannot be held still for a moment: {error}, at {attempt} attempts."
                    f"{_longest(connection)} Try again when it has ended"
                ) from error
            logging.getLogger(__name__).warning(
                "the snapshot waits for a moment without commits: %s.%s Once more in %.0f s",
                *(error, _longest(connection), PAUSE_SECONDS),
            )
            pause(PAUSE_SECONDS)
    try:
        yield
    finally:
        rows_of(connection, release)
        rows_of(connection, "SET SESSION lock_wait_timeout = DEFAULT")


def _lock(connection: pymysql.Connection[Any]) -> str:
    """Take the lock; return the statement that releases it."""
    try:
        _ask(connection, f"BACKUP STAGE {_STAGES[0]}")
    except pymysql.Error as error:
        if error.args[0] not in _NO_STAGES:
            raise PipelineError(f"the server refused BACKUP STAGE: {error.args[-1]}") from error
        statements, release = ["FLUSH TABLES WITH READ LOCK"], "UNLOCK TABLES"
    else:
        statements, release = [f"BACKUP STAGE {stage}" for stage in _STAGES[1:]], "BACKUP STAGE END"
    try:
        for statement in statements:
            _ask(connection, statement)
    except pymysql.Error as error:
        raise PipelineError(f"the server refused {statement!r}: {error.args[-1]}") from error
    except _InTheWay:
        rows_of(connection, release)
        raise
    return release


def _ask(connection: pymysql.Connection[Any], statement: str) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except pymysql.Error as error:
        if error.args[0] == _TIMED_OUT:
            raise _InTheWay(f"{statement} waited for {LOCK_WAIT_SECONDS} s in vain") from error
        raise


def _longest(connection: pymysql.Connection[Any]) -> str:
    """Say which statement has run for the longest, without its text, as far as can be seen."""
    found = rows_of(
        connection,
        "SELECT ID, USER, HOST, TIME FROM information_schema.PROCESSLIST WHERE COMMAND IN "
        "('Query', 'Execute') AND ID <> CONNECTION_ID() ORDER BY TIME_MS DESC LIMIT 1",
    )
    if not found:
        return ""
    ((number, user, host, seconds),) = found
    return f" Thread {number} of {user}@{host} has run a statement for {seconds} s."
