"""The threads that do what blocks, by kind, so that no kind keeps another waiting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

STATEMENT_THREADS: Final = 4  # so that a long SHOW keeps none waiting that replicas begin with
LOGIN_THREADS: Final = 1


class Pools:
    """
    Thread pools of one server.

    Args:
        dump_threads: threads that read and encode for dumps.

    Attributes:
        dumps: batches of dump sessions.
        logins: slow password hashes.
        statements: SQL that reads the history, and looks at files that others write.
    """

    def __init__(self, dump_threads: int) -> None:
        self.dumps = ThreadPoolExecutor(dump_threads, thread_name_prefix="dump")
        self.logins = ThreadPoolExecutor(LOGIN_THREADS, thread_name_prefix="login")
        self.statements = ThreadPoolExecutor(STATEMENT_THREADS, thread_name_prefix="statement")

    def close(self) -> None:
        """Return when no thread works any more; blocking."""
        self.dumps.shutdown(cancel_futures=True)
        self.logins.shutdown(cancel_futures=True)
        self.statements.shutdown(cancel_futures=True)
