"""A steady load of small commits on a real primary, by a program in C that costs it little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.command import Query
from ibb.protocol.packet import frame

from .c_program import compiled
from .connection_program import ConnectionProgram, LoggedIn
from .errors import BenchError

if TYPE_CHECKING:
    from .peer import Peer

CONNECTIONS: Final = 16
SECONDS_MAX: Final = 600.0
STATEMENT: Final = "INSERT INTO bench.orders VALUES (12345678, '" + "n" * 142 + "')"


class Committed(NamedTuple):
    """What a load came to: groups a second, and how long a commit took its client."""

    groups: int
    rate: float
    p50_ms: float
    p99_ms: float


class Committers(ConnectionProgram):
    """
    *groups* commits of a row at *rate* a second.

    Raises:
        BenchError: no compiler is installed.
    """

    def __init__(self, peer: Peer, groups: int, rate: float) -> None:
        program = compiled("committer")
        if program is None:
            raise BenchError("a steady load of commits needs a C compiler: install gcc")
        connections = [LoggedIn(peer.port, peer.user, peer.password) for _ in range(CONNECTIONS)]
        command = frame(Query(STATEMENT).encode(), 0).hex()
        words = [str(program), "--command", command, "--count", str(groups), "--rate", str(rate)]
        super().__init__(words, connections)

    def run(self) -> Committed:
        """
        Make the commits and return when all are answered.

        Raises:
            BenchError: one failed.
        """
        output, errors = self._process.communicate("\n", timeout=SECONDS_MAX)
        lines = output.splitlines()
        if self._process.returncode != 0 or len(lines) != 2:
            raise BenchError(f"the load failed: {errors.strip()}")
        groups, start, end, p50, p99 = map(int, lines[1].split())
        return Committed(groups, groups / (end - start) * 1e9, p50 / 1e6, p99 / 1e6)
