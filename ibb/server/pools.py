"""The threads that do what blocks, by kind, so that no kind keeps another waiting."""

from __future__ import annotations

from typing import Final

from .dump.socket_pump import RESTING_MAX, PumpTurns
from .worker_threads import WorkerThreads

STATEMENT_THREADS: Final = 4
LONG_STATEMENT_THREADS: Final = 2  # more wait for these; each takes its share from who dumps
LOGIN_THREADS: Final = 1


class Pools:
    """
    Thread pools of one server.

    Args:
        dump_threads: that read and encode for dumps at a time.
        spare: descriptors that nobody else will want.

    Attributes:
        dumps: batches of dump sessions.
        turns: who wants one of those threads.
        logins: slow password hashes.
        statements: SQL that looks at the disk and is done soon; looks at files that others write.
        long_statements: SQL that may take its time, as SHOW BINLOG EVENTS does.
    """

    def __init__(self, dump_threads: int, spare: int = 0) -> None:
        self.turns = PumpTurns(dump_threads, spare)
        self.dumps = WorkerThreads(dump_threads + RESTING_MAX, "dump", self.turns.permits)
        self.logins = WorkerThreads(LOGIN_THREADS, "login")
        self.statements = WorkerThreads(STATEMENT_THREADS, "statement")
        self.long_statements = WorkerThreads(LONG_STATEMENT_THREADS, "long-statement")

    def close(self) -> None:
        """Return when no thread works any more; blocking."""
        for pool in (self.dumps, self.logins, self.statements, self.long_statements):
            pool.shutdown(cancel_futures=True)
