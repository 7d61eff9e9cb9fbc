"""Dumps that ended with error 1236: a replica stands still behind it until somebody helps."""

from __future__ import annotations

from typing import Final, NamedTuple

KEPT_SECONDS: Final = 86_400  # then nobody seems to miss the replica
KEPT_MAX: Final = 50  # server ids


class RefusedDump(NamedTuple):
    """
    One of them.

    Attributes:
        server_id: of the client.
        peer: its address and port.
        text: of the error.
        at: when, in seconds since 1970.
    """

    server_id: int
    peer: str
    text: str
    at: float


class RefusedDumps:
    """
    Those of one server, the newest of each server id.

    Attributes:
        count: of all, ever.
    """

    def __init__(self) -> None:
        self.count = 0
        self._newest: dict[int, RefusedDump] = {}  # by server id, the oldest first

    def note(self, refused: RefusedDump) -> None:
        """Count one, and keep it if it is of a replica: tools have server id 0, and people see."""
        self.count += 1
        if not refused.server_id:
            return
        self.forget(refused.server_id)
        self._newest[refused.server_id] = refused
        if len(self._newest) > KEPT_MAX:
            del self._newest[next(iter(self._newest))]

    def forget(self, server_id: int) -> None:
        """Know of no trouble with a replica: it is served."""
        self._newest.pop(server_id, None)

    def lately(self, now: float) -> list[RefusedDump]:
        """Return those of `KEPT_SECONDS` whose replicas are not served again, the newest first."""
        found = list(self._newest.values())
        return [one for one in reversed(found) if now - one.at < KEPT_SECONDS]
