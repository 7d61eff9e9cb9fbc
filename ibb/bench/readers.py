"""Readers of dumps that cost little: connections logged in by Python, read by a program in C."""

from __future__ import annotations

import itertools
import resource
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.command import BinlogDump, DumpFlag, RegisterSlave
from ibb.protocol.packet import frame
from ibb.protocol.rotate import FIRST_POSITION

from .c_program import compiled
from .connection_program import ConnectionProgram, LoggedIn
from .errors import BenchError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .peer import Peer

SILENCE_SECONDS: Final = 60.0  # without a byte for anybody, after which a reading has failed
RESULT_SECONDS_MAX: Final = 3600.0
_DESCRIPTORS_SPARE: Final = 256
_MASTER_POSITION: Final = FIRST_POSITION
_server_ids = itertools.count(70_001)  # of readers; no two of a run share one


class Outcome(NamedTuple):
    """
    What one connection brought; see `reader.c`.

    Attributes:
        status: `end`, `full`, `stopped`, `closed`, `silent` or `error`.
        size: bytes of the events of groups, as sent.
        shape: hash of their types and lengths.
        content: CRC-32 of them as stored; 0 unless asked for.
    """

    status: str
    size: int
    events: int
    groups: int
    shape: int
    content: int
    first_seq: int
    last_seq: int
    start_ns: int
    first_ns: int
    end_ns: int


class ReadResult(NamedTuple):
    """The outcomes of all connections, and the processor seconds that the reader took itself."""

    outcomes: tuple[Outcome, ...]
    reader_seconds: float

    @property
    def size(self) -> int:
        """Bytes of all connections."""
        return sum(one.size for one in self.outcomes)

    @property
    def events(self) -> int:
        """Events of all connections."""
        return sum(one.events for one in self.outcomes)

    @property
    def seconds(self) -> float:
        """From the first connection's beginning to the last one's end."""
        begun = min(one.start_ns for one in self.outcomes)
        return (max(one.end_ns for one in self.outcomes) - begun) / 1e9


class ReplicaConnection(LoggedIn):
    """
    A connection that has said all that a replica says before it asks for a dump.

    Args:
        peer: the server.
        start: GTID position, empty for the very beginning.
        heartbeat_seconds: how often the server is to say that it lives; 0: never.
    """

    def __init__(self, peer: Peer, start: str = "", *, heartbeat_seconds: float = 0.0) -> None:
        super().__init__(peer.port, peer.user, peer.password)
        self.server_id = next(_server_ids)
        self.query("SET @master_binlog_checksum = 'CRC32'")
        self.query("SET @mariadb_slave_capability = 4")
        self.query(f"SET @slave_connect_state = '{start}'")
        if heartbeat_seconds:
            self.query(f"SET @master_heartbeat_period = {round(heartbeat_seconds * 1e9)}")
        self._command(RegisterSlave(self.server_id).encode())
        self._expect_ok()


def dump_packet(count: int, *, wait: bool) -> bytes:
    """
    Return the packet that asks for a dump which waits at the end for more, or ends there.

    Its server id is the first of *count*; the reader gives each connection one.
    """
    first, *_ = itertools.islice(_server_ids, count)
    flags = DumpFlag.SEND_ANNOTATE_ROWS | (DumpFlag(0) if wait else DumpFlag.NON_BLOCK)
    return frame(BinlogDump(_MASTER_POSITION, flags, first, "").encode(), 0)


def allow_descriptors(count: int) -> None:
    """
    Raise the process's limit of open files so that *count* connections fit.

    Raises:
        BenchError: the system does not allow it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _DESCRIPTORS_SPARE
    if soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise BenchError(f"{count} readers need {wanted} open files, `ulimit -Hn` says {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def reader_kind() -> str:
    """Return which reader this machine has: `compiled` or `interpreted`."""
    return "interpreted" if compiled("reader") is None else "compiled"


class Readers(ConnectionProgram):
    """
    A reader process over *connections*.

    Args:
        connections: logged in, none used yet.
        wait: for more at the end of what is stored.
        groups: after which a connection is done; None: at the end of the stream.
        content: compare every checksum and hash all bytes; slow.
        arrivals: file for the time of each group's arrival.
        apart: seconds behind the end of the one before at which a connection begins; None: all
            begin at once.
        silence_seconds: after which the server counts as stuck.
    """

    def __init__(
        self,
        connections: Sequence[ReplicaConnection],
        *,
        wait: bool = False,
        groups: int | None = None,
        content: bool = False,
        arrivals: Path | None = None,
        apart: float | None = None,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        program = compiled("reader")
        words = (
            [str(program)]
            if program
            else [sys.executable, "-m", f"{__package__}.interpreted_reader"]
        )
        words += [
            "--command",
            dump_packet(len(connections), wait=wait).hex(),
            "--silence",
            str(silence_seconds),
        ]
        words += [] if groups is None else ["--groups", str(groups)]
        words += ["--hash"] if content else []
        words += [] if arrivals is None else ["--arrivals", str(arrivals)]
        words += [] if apart is None else ["--apart", str(apart)]
        super().__init__(words, connections)
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise BenchError(f"the reader did not start: {self._process.communicate()[1]}")

    def go(self) -> None:
        """Ask for the dumps."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def result(self, *, expect: str) -> ReadResult:
        """
        Wait for the end and return what came; with *expect* `stopped`, end it now.

        Args:
            expect: the status that each connection must have.

        Raises:
            BenchError: a connection ended in another way.
        """
        if expect != "stopped":
            # Closing its input would stop it: wait for the output first.
            assert self._process.stdout is not None
            output = self._process.stdout.read()
            _, errors = self._process.communicate(timeout=RESULT_SECONDS_MAX)
        else:
            output, errors = self._process.communicate(timeout=RESULT_SECONDS_MAX)
        outcomes, reader_seconds = [], 0.0
        for line in output.splitlines():
            word, *numbers = line.split()
            if word == "cpu":
                reader_seconds = int(numbers[0]) / 1e9
            else:
                outcomes.append(Outcome(word, *map(int, numbers)))
        wrong = [one.status for one in outcomes if one.status != expect]
        if wrong or len(outcomes) != len(self._connections):
            said = errors.strip() or f"of {len(self._connections)} readers {len(outcomes)} told"
            raise BenchError(f"readers ended with {sorted(set(wrong))}, not {expect}: {said}")
        return ReadResult(tuple(outcomes), reader_seconds)


def read(
    peer: Peer,
    count: int = 1,
    *,
    start: str = "",
    content: bool = False,
) -> ReadResult:
    """Have *count* readers read everything behind *start* at once."""
    allow_descriptors(count)
    connections = [ReplicaConnection(peer, start) for _ in range(count)]
    with Readers(connections, content=content) as readers:
        readers.go()
        return readers.result(expect="end")
