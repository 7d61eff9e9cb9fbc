"""
What sessions keep between commands, in bytes: prepared statements, variables, savepoints.

A session has so much for itself, and more while all together keep within their limit: nobody can
fill the memory, nor keep others from what a replica or driver sets.
"""

from __future__ import annotations

from sys import getsizeof
from threading import Lock
from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import (
    MAX_PREPARED_STMT_COUNT_REACHED,
    OPTION_PREVENTS_STATEMENT,
    OUT_OF_RESOURCES,
)

if TYPE_CHECKING:
    from ibb.server.sql.parser import Parsed
    from ibb.server.sql.types import SqlValue

SESSION_BYTES_MAX: Final = 8 << 20  # a position of 100,000 domains takes 2 MiB
SESSION_BYTES_OWN: Final = 256 << 10  # that every session may keep, whatever others do
SHARED_BYTES_MAX: Final = 256 << 20  # that all sessions keep beyond these
_TOKEN_BYTES: Final = 256  # of what a parser makes of a token, at most
_STATEMENT_BYTES: Final = 2048  # of a prepared statement besides


def value_bytes(value: SqlValue) -> int:
    """Return what a value takes; those that cannot be long count nothing."""
    return getsizeof(value) if isinstance(value, str | bytes) else 0


def statement_bytes(parsed: Parsed) -> int:
    """Return what a prepared statement takes at most."""
    text = 2 * getsizeof(parsed.text)  # literals are copies
    return _STATEMENT_BYTES + text + parsed.tokens * _TOKEN_BYTES


class SharedMemory:
    """
    What the sessions of a server keep together; for any thread.

    Attributes:
        mutex: guards what follows, and what each session notes.
        bytes_kept: beyond what each has for itself.
        statements: prepared statements.
    """

    def __init__(self) -> None:
        self.mutex = Lock()
        self.bytes_kept = 0
        self.statements = 0


class SessionMemory:
    """
    What one session keeps.

    Args:
        shared: what all sessions keep.
    """

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self._bytes = 0
        self._statements = 0
        self._is_gone = False

    def change(self, size: int) -> None:
        """
        Note that so many bytes are kept from now on, or no longer if *size* is negative.

        Raises:
            SqlError: 1290 more than a session may keep, 1041 more than all may; nothing is noted.
        """
        with self._shared.mutex:
            self._change(size)

    def add_statement(self, size: int, most: int) -> None:
        """
        Note a prepared statement.

        Args:
            size: in bytes.
            most: that all sessions may have.

        Raises:
            SqlError: 1461 there are so many, or as `change`; nothing is noted.
        """
        with self._shared.mutex:
            if self._shared.statements >= most:
                raise MAX_PREPARED_STMT_COUNT_REACHED.error(most)
            self._change(size)
            self._count(1)

    def drop_statement(self, size: int) -> None:
        """Note that a prepared statement of so many bytes is gone."""
        with self._shared.mutex:
            self._change(-size)
            self._count(-1)

    def release(self) -> None:
        """Note that all of it is gone, with the session; a thread of its may go on for a while."""
        with self._shared.mutex:
            self._change(-self._bytes)
            self._count(-self._statements)
            self._is_gone = True

    def _change(self, size: int) -> None:
        if self._is_gone:
            return
        kept = self._bytes + size
        assert kept >= 0
        shared = max(0, kept - SESSION_BYTES_OWN) - max(0, self._bytes - SESSION_BYTES_OWN)
        if size > 0 and kept > SESSION_BYTES_MAX:
            raise OPTION_PREVENTS_STATEMENT.error(f"--max-session-mem-used={SESSION_BYTES_MAX}")
        if shared > 0 and self._shared.bytes_kept + shared > SHARED_BYTES_MAX:
            raise OUT_OF_RESOURCES.error()
        self._bytes = kept
        self._shared.bytes_kept += shared

    def _count(self, statements: int) -> None:
        if not self._is_gone:
            self._statements += statements
            self._shared.statements += statements
