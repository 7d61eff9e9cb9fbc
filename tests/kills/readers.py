"""Dump clients that follow a server until it dies."""

from __future__ import annotations

import threading

from ibb.demo.dump_client import DumpClient
from ibb.protocol.errors import FormatError, IbbError, SqlError

REFUSED_CODE = 1236
# What a reader is told that comes too late, or whose next group began in a file that is gone.
PURGED = ("have been purged", "the file is missing")
JOIN_SECONDS_MAX = 60.0


class Reader:
    """
    Follows from *position* in a thread of its own.

    Attributes:
        received: GTID and hash of each whole group.
        was_purged: the server no longer had what it needs.
    """

    def __init__(self, port: int, user: str, password: str, position: str, server_id: int) -> None:
        self.received: list[tuple[str, str]] = []
        self.was_purged = False
        self._failure: Exception | None = None
        self._start = (port, user, password, position, server_id)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        port, user, password, position, server_id = self._start
        try:
            with DumpClient(port, user, password) as client:
                for group in client.groups(position, server_id=server_id, wait=True):
                    self.received.append((str(group.gtid), group.sha256))
        except SqlError as error:
            told = any(text in error.message for text in PURGED)
            self.was_purged = error.code == REFUSED_CODE and told
            self._failure = None if self.was_purged else error
        except FormatError as error:
            self._failure = error
        except (IbbError, OSError):
            return  # the server has gone

    def wait(self, seconds: float) -> None:
        """Let it read for a while, or until the server ends."""
        self._thread.join(seconds)

    def join(self) -> list[tuple[str, str]]:
        """Return what came once the server is dead; raises what was wrong with it."""
        self._thread.join(JOIN_SECONDS_MAX)
        assert not self._thread.is_alive(), "a reader goes on though the server is dead"
        if self._failure is not None:
            raise self._failure
        return self.received


def receive_all(
    port: int, user: str, password: str, position: str, server_id: int
) -> list[tuple[str, str]]:
    """Return GTID and hash of all groups behind *position*."""
    with DumpClient(port, user, password) as client:
        groups = client.groups(position, server_id=server_id, wait=False)
        return [(str(group.gtid), group.sha256) for group in groups]
