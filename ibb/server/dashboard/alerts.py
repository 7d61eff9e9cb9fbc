"""What somebody should look at: each alert says what, where, and what can be done."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.storage.store import Store

from .reader_table import KEEPS_UP, LATE_ON_PURPOSE, duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ibb.server.server import Server

    from .statement_rows import Row

LAG_SECONDS: Final = 60  # behind which somebody is late
FILES_OF_ROOM_MIN: Final = 2  # of max_binlog_size, that the disk should have
ALERTS_MAX: Final = 50
ERROR: Final = "error"
WARNING: Final = "warning"
_ADVICE: Final = {
    "history_damaged": "ibb verify tells where, and what is lost",
    "disk_hangs": "see the disk, and what else uses it",
    "store_stopped": "mend the disk, then restart",
    "disk_full": "make room or purge: the relay goes on by itself",
    "upstream_stopped": "see the upstream's error, then START SLAVE",
    "upstream_lost": "it is tried again and again",
}


class Alert(NamedTuple):
    """
    One alert.

    Attributes:
        level: `ERROR` or `WARNING`.
        about: upstream, history, store, disk, purge, lease, reader, semi-sync or connections.
        text: what is wrong, and what to do.
    """

    level: str
    about: str
    text: str


def find_alerts(
    server: Server,
    reasons: Iterable[tuple[str, str]],
    readers: Iterable[Row],
    upstream: Row | None,
    leases: Iterable[Row],
) -> list[Alert]:
    """
    Return what should be looked at, errors first; blocking.

    Args:
        server: whose.
        reasons: codes and texts of why it is not ready.
        readers: those that are furthest behind.
        upstream: SHOW REPLICA STATUS, None without an upstream.
        leases: SHOW BINLOG LEASES.
    """
    found = [
        *_of_readiness(reasons),
        *_of_upstream(upstream),
        *_of_healed_reads(server),
        *_of_disk(server),
        *_of_purge(server),
        *_of_leases(leases),
        *_of_readers(readers),
        *_of_refused(server),
        *_of_server(server),
    ]
    return sorted(found, key=lambda alert: alert.level != ERROR)[:ALERTS_MAX]


def _of_readiness(reasons: Iterable[tuple[str, str]]) -> Iterator[Alert]:
    for code, text in reasons:
        about = code.partition("_")[0]
        advice = _ADVICE.get(code)
        yield Alert(ERROR, about, text if advice is None else f"{text}; {advice}")


def _of_upstream(upstream: Row | None) -> Iterator[Alert]:
    behind = None if upstream is None else upstream["Seconds_Behind_Master"]
    if upstream is not None and isinstance(behind, int) and behind > LAG_SECONDS:
        name = f"{upstream['Master_Host']}:{upstream['Master_Port']}"
        yield Alert(WARNING, "upstream", f"the relay is {duration(behind)} behind {name}")


def _of_healed_reads(server: Server) -> Iterator[Alert]:
    healed = server.history.pages.healed.count
    if healed:
        text = f"{healed} pages were wrong when read first and right the second time"
        yield Alert(WARNING, "disk", f"{text}: the disk or its memory may be failing")


def _of_disk(server: Server) -> Iterator[Alert]:
    if not server.place or not isinstance(server.history, Store):
        return
    try:
        free = shutil.disk_usage(server.place).free
    except OSError as error:
        yield Alert(ERROR, "disk", f"{server.place}: {error.strerror}")
        return
    file_size = server.config.max_binlog_size
    if free < FILES_OF_ROOM_MIN * file_size:
        level = ERROR if free < file_size else WARNING
        text = f"{free >> 20} MiB are free at {server.place}, a binlog file takes"
        yield Alert(level, "disk", f"{text} {file_size >> 20} MiB: purge, or make room")


def _of_purge(server: Server) -> Iterator[Alert]:
    store = server.history
    result = store.purger.last_automatic if isinstance(store, Store) else None
    if result is None:
        return
    if result.failure is not None:
        yield Alert(ERROR, "purge", f"files could not go by themselves: {result.failure}")
    elif result.kept is not None and result.lasting:
        reasons = "; ".join(result.lasting[:3])
        yield Alert(WARNING, "purge", f"{result.kept} should be gone, but {reasons}")


def _of_leases(leases: Iterable[Row]) -> Iterator[Alert]:
    for lease in leases:
        if lease["Lapsed"] == "Yes":
            text = f"lease '{lease['Name']}' has lapsed and holds nothing: renew it or drop it"
            yield Alert(WARNING, "lease", text)


def _of_readers(readers: Iterable[Row]) -> Iterator[Alert]:
    for row in readers:
        behind, why = row["Seconds_behind"], str(row["Why"])
        if why in (KEEPS_UP, LATE_ON_PURPOSE):
            continue
        if isinstance(behind, int) and behind > LAG_SECONDS:
            name = f"server {row['Server_id']} at {row['Host']}"
            yield Alert(WARNING, "reader", f"{name} is {duration(behind)} behind: {why}")


def _of_refused(server: Server) -> Iterator[Alert]:
    now = time.time()
    for refused in server.refused_dumps.lately(now):
        name = f"server {refused.server_id} at {refused.peer}"
        text = f"{name} was refused {duration(now - refused.at)} ago and stands still"
        yield Alert(ERROR, "reader", f"{text}: {refused.text}")


def _of_server(server: Server) -> Iterator[Alert]:
    semi_sync = server.semi_sync
    if semi_sync.enabled and semi_sync.status()["Rpl_semi_sync_master_status"] != "ON":
        text = "commits do not wait for replicas, though they should: no replica acknowledges"
        yield Alert(WARNING, "semi-sync", text)
    taken, room = len(server.sessions), server.config.max_connections
    if taken >= room * 0.9:
        text = f"{taken} of {room} connections are taken: raise max_connections"
        yield Alert(WARNING, "connections", text)
