"""Metrics of what is stored: positions, files, how far back it reaches, what goes by itself."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import IbbError
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_oldest
from ibb.storage.store import Store

from .families import counter, gauge, gauges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from ibb.server.server import Server

DOMAINS_MAX: Final = 64  # with a line of their own; of a sane history there are a few
RECORDS_READ_MAX: Final = 100  # for the oldest group


class HistoryMetrics:
    """The metrics of one server's history; called by one thread at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._oldest: tuple[tuple[int, int], float | None] = ((-1, -1), None)

    def collect(self) -> Iterator[Metric]:
        """Yield them; looks at the disk."""
        history = self._server.history
        end, files = history.end(), history.files()
        yield gauge("ibb_binlog_files", "Binlog files, the one made in advance too.", len(files))
        yield gauge("ibb_binlog_bytes", "Bytes of them all.", sum(file.size for file in files))
        yield gauge(
            "ibb_binlog_preallocated_bytes",
            "Of these, the bytes behind the durable end: made in advance, or not durable yet.",
            sum(file.size for file in files if file.file_no >= end.file_no) - end.offset,
        )
        yield gauge("ibb_binlog_file_number", "Number of the file that is written.", end.file_no)
        yield gauge("ibb_binlog_offset_bytes", "Durable end in that file.", end.offset)
        yield gauge(
            "ibb_binlog_oldest_group_timestamp_seconds",
            "When the oldest group that is whole was written.",
            self._oldest_timestamp(),
        )
        entries = [(domain, history.state().newest(domain)) for domain in history.state().domains()]
        yield gauge("ibb_gtid_domains", "Domains of the GTID state.", len(entries))
        yield gauges(
            "ibb_gtid_sequence_number",
            f"Newest sequence number of a domain that is durable; of {DOMAINS_MAX} at most.",
            ("domain",),
            [((str(one),), gtid.seq) for one, gtid in entries[:DOMAINS_MAX] if gtid is not None],
        )
        yield counter(
            "ibb_healed_reads",
            "Reads that gave other bytes when they were repeated: a sick disk.",
            history.pages.healed.count,
        )
        yield from self._room()
        yield from self._purging()

    def _oldest_timestamp(self) -> float | None:
        history = self._server.history
        key = (history.generation, history.pages.first_file())
        if self._oldest[0] != key or self._oldest[1] is None:
            self._oldest = (key, self._look_for_oldest())
        return self._oldest[1]

    def _look_for_oldest(self) -> float | None:
        pages = self._server.history.pages
        try:
            reader = GroupReader(pages, find_oldest(pages))
            for _ in range(RECORDS_READ_MAX):
                group = reader.next()
                if group is None:
                    return None
                if group.gtid is not None:
                    return float(group.timestamp)
        except IbbError:  # damaged, or purged while we looked: the next look may fare better
            return None
        return None

    def _room(self) -> Iterator[Metric]:
        if not self._server.place:
            return
        try:
            found = shutil.disk_usage(self._server.place)
        except OSError:  # it is not there: the store tells of that
            return
        yield gauge("ibb_filesystem_free_bytes", "Room where the binlog is.", found.free)
        yield gauge("ibb_filesystem_size_bytes", "Size of that file system.", found.total)

    def _purging(self) -> Iterator[Metric]:
        server = self._server
        purging, store = server.purging, server.history
        if not isinstance(store, Store):
            return
        settings = store.purger.settings
        for name, text, value in (
            ("removed_files", "Binlog files that went by themselves.", purging.removed),
            ("freed_bytes", "Bytes of these files.", purging.freed),
            ("failures", "Purges that an error ended.", purging.failures),
        ):
            yield counter(f"ibb_purge_{name}", text, value)
        yield gauge(
            "ibb_purge_held_back",
            "Reasons that keep a file which should have gone by itself.",
            len(purging.held_back),
        )
        yield gauge(
            "ibb_purge_age_limit_seconds",
            "Age at which files go by themselves; 0: never.",
            settings.binlog_expire_logs_seconds,
        )
        yield gauge(
            "ibb_purge_size_limit_bytes",
            "Size of all files above which the oldest go by themselves; 0: any.",
            settings.max_binlog_total_size,
        )
        yield gauge("ibb_leases", "Leases, those that have lapsed too.", len(store.leases.all()))
