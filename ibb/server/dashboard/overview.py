"""
The server at a glance: how much goes in and out, who is behind and why, and what to look at.

Taken every `SAMPLE_SECONDS`, whether or not somebody watches: rates and plots come of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb import __version__
from ibb.server.dump.readers import bytes_between
from ibb.server.latencies import MICROSECONDS
from ibb.storage.file_name import binlog_name

from .alerts import find_alerts
from .reader_table import ReaderQuery, placed_readers, reader_page
from .samples import Sample
from .statement_rows import statement_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibb.server.server import Server
    from ibb.storage.position import Position

    from .alerts import Alert
    from .reader_table import PlacedReader, ReaderPage
    from .statement_rows import Row

WORST_SHOWN: Final = 8
LOOK_SECONDS_MAX: Final = 0.05  # into the files, for the readers that are furthest behind
LEASES_SECONDS: Final = 30.0  # between looks at the leases: each is looked up in the files
UPSTREAM_SHOWN: Final = (
    "Slave_IO_State",
    "Master_Host",
    "Master_Port",
    "Master_User",
    "Slave_IO_Running",
    "Slave_SQL_Running",
    "Last_IO_Errno",
    "Last_IO_Error",
    "Master_Server_Id",
    "Master_SSL_Cipher",
    "Seconds_Behind_Master",
    "Gtid_IO_Pos",
)
_RATE_MEMORY: Final = 0.5  # of a reader's rate before, in the rate that is shown


class Overview(NamedTuple):
    """
    The server at a moment.

    Attributes:
        sample: what plots are made of.
        server: what it is.
        binlog: SHOW BINLOG STATUS, its GTID position, and what all files take.
        storage: SHOW BINLOG STORAGE, and how long a sync took lately; None where that is not
            measured.
        upstream: of SHOW REPLICA STATUS what `UPSTREAM_SHOWN` names, None without an upstream.
        readers: the readers that are furthest behind.
        alerts: what to look at.
    """

    sample: Sample
    server: Row
    binlog: Row
    storage: Row | None
    upstream: Row | None
    readers: ReaderPage
    alerts: list[Alert]


class _Counts(NamedTuple):
    """What rates are differences of."""

    at: float
    end: Position
    groups: int
    sent: int
    generation: int


class Observer:
    """
    Takes overviews of one server, one after the other.

    Args:
        server: whose.
        reasons: codes and texts of why it is not ready.
    """

    def __init__(self, server: Server, reasons: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._server = server
        self._reasons = reasons
        self._before: _Counts | None = None
        self._sent: dict[int, int] = {}  # bytes by connection id, at the last look
        self._syncs = (0, 0)  # of the redo log, and microseconds that they took, at the last look
        self._leases: tuple[float, list[Row]] = (float("-inf"), [])
        self.rates: dict[int, float] = {}  # bytes a second by connection id
        self.readers: list[PlacedReader] = []  # all of them

    def look(self) -> Overview:
        """Return how the server is now; blocking."""
        server = self._server
        self._measure_readers()
        self.readers = placed_readers(server, self.rates)
        worst = reader_page(
            server, self.readers, ReaderQuery(limit=WORST_SHOWN), seconds=LOOK_SECONDS_MAX
        )
        upstream = self._upstream()
        alerts = find_alerts(server, self._reasons(), worst.rows, upstream, self._lease_rows())
        sample = self._sample(worst, upstream)
        about, binlog, storage = self._about(), self._binlog(), self._storage()
        return Overview(sample, about, binlog, storage, upstream, worst, alerts)

    def _measure_readers(self) -> None:
        now = time.monotonic()
        seconds = 0.0 if self._before is None else now - self._before.at
        sent = {session.id: session.traffic[1] for session in self._server.sessions}
        rates = {}
        for number, size in sent.items():
            before = self._sent.get(number)
            if before is not None and seconds > 0:
                rate = (size - before) / seconds
                old = self.rates.get(number, rate)
                rates[number] = rate and rate * (1 - _RATE_MEMORY) + old * _RATE_MEMORY
        self._sent, self.rates = sent, rates

    def _sample(self, worst: ReaderPage, upstream: Row | None) -> Sample:
        """Return the sample of now; the first has no rates."""
        server = self._server
        history = server.history
        groups = sum(gtid.seq for gtid in history.state().position())
        now = _Counts(
            time.monotonic(), history.end(), groups, server.traffic()[1], history.generation
        )
        before, self._before = self._before, now
        rates = (0.0, 0.0, 0.0)
        if before is not None and before.at < now.at:
            seconds = now.at - before.at
            sizes = {file.file_no: file.size for file in history.files()}
            is_same = before.generation == now.generation
            written = bytes_between(before.end, now.end, sizes) if is_same else 0
            rates = (
                written / seconds,
                max(0, now.groups - before.groups) / seconds,
                max(0, now.sent - before.sent) / seconds,
            )
        first = worst.rows[0] if worst.rows else {}
        seconds_behind = None if upstream is None else upstream["Seconds_Behind_Master"]
        return Sample(
            server.now(),
            *rates,
            worst.total,
            sum(reader.is_late for reader in self.readers),
            max((reader.bytes_behind for reader in self.readers), default=0),
            _integer(first.get("Seconds_behind", 0)),
            _integer(seconds_behind),
        )

    def _about(self) -> Row:
        server = self._server
        return {
            "version": server.config.server_version,
            "ibb_version": __version__,
            "server_id": server.server_id,
            "hostname": server.host_name(),
            "port": server.port(),
            "Uptime": int(server.uptime()),
            "Threads_connected": len(server.sessions),
        }

    def _binlog(self) -> Row:
        history = self._server.history
        files = history.files()
        file_no, offset = history.end()
        return {
            "File": binlog_name(file_no),
            "Position": offset,
            "gtid_binlog_pos": str(history.state().position()),
            "files": len(files),
            "bytes": sum(file.size for file in files),
        }

    def _storage(self) -> Row | None:
        line = self._server.storage_line()
        if line is None:
            return None
        (syncs, microseconds), self._syncs = self._syncs, (line.syncs, line.sync_time)
        new = line.syncs - syncs
        return {
            **{name.capitalize(): value for name, value in line._asdict().items()},
            "sync_seconds": (line.sync_time - microseconds) / MICROSECONDS / new if new else None,
        }

    def _upstream(self) -> Row | None:
        row = self._server.replica_status()
        if row is None:
            return None
        shown: Row = {}
        for name in UPSTREAM_SHOWN:
            value = row[name]
            shown[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
        return shown

    def _lease_rows(self) -> list[Row]:
        found_at, rows = self._leases
        if time.monotonic() - found_at > LEASES_SECONDS:
            rows = statement_rows(self._server, "SHOW BINLOG LEASES")
            self._leases = (time.monotonic(), rows)
        return rows


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None
