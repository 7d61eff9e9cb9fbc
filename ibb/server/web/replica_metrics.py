"""Metrics of replicas that are refused, and of readers that are served late on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.server.dashboard.reader_table import by_place, placed_readers

from .families import gauges
from .reader_metrics import READERS_MAX, reader_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from ibb.server.server import Server

    from .reader_metrics import Labels


def replica_metrics(server: Server) -> Iterator[Metric]:
    """Yield them."""
    refused = server.refused_dumps.lately(server.now())
    yield gauges(
        "ibb_replica_refused",
        "1 for each replica that got error 1236 within a day and is not served again.",
        ("server_id",),
        [((str(one.server_id),), 1) for one in refused],
    )
    late: dict[Labels, float] = {}
    for reader in sorted(placed_readers(server, {}), key=by_place, reverse=True):
        if reader.progress.delay and len(late) < READERS_MAX:
            late.setdefault(reader_labels(reader), reader.progress.delay)
    yield gauges(
        "ibb_reader_delay_seconds",
        "What dump_delay or its account keeps a reader behind; no line for who has no delay.",
        ("server_id", "user", "host"),
        late.items(),
    )
