"""
Metrics of who reads: how far behind, how fast. Labels are bounded: the worst come first.

A scrape takes a bounded time, too: where readers are costs nothing, and what they have ahead of
them is looked up of those with lines of their own, as far as there is time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.server.dashboard.reader_table import (
    LOOK_SECONDS_MAX,
    by_place,
    looked_up,
    placed_readers,
)

from .families import counter, counters, gauge, gauges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from ibb.server.dashboard.reader_table import PlacedReader
    from ibb.server.server import Server

Labels: TypeAlias = "tuple[str, ...]"

READERS_MAX: Final = 200  # with lines of their own
_LABELS: Final = ("server_id", "user", "host")


class SentBytes:
    """
    What readers were sent, by labels, from scrape to scrape.

    Of several with the same labels all count, and what was sent to one that leaves stays, so that
    the sum falls only when the last of them has gone.
    """

    def __init__(self) -> None:
        self._counted: dict[int, int] = {}  # bytes by connection id
        self._sums: dict[Labels, int] = {}

    def count(self, readers: Iterable[PlacedReader]) -> dict[Labels, int]:
        """Return the sums; *readers* are all that there are now."""
        counted: dict[int, int] = {}
        sums: dict[Labels, int] = {}
        for reader in readers:
            number, labels, sent = (
                reader.session.id,
                reader_labels(reader),
                reader.session.traffic[1],
            )
            before = sums.get(labels, self._sums.get(labels, 0))
            sums[labels] = before + sent - self._counted.get(number, 0)
            counted[number] = sent
        self._counted, self._sums = counted, sums
        return sums


def reader_metrics(server: Server, sent_bytes: SentBytes) -> Iterator[Metric]:
    """Yield them; looks at the disk."""
    readers = sorted(placed_readers(server, {}), key=by_place, reverse=True)
    shown: dict[Labels, PlacedReader] = {}
    for reader in readers:  # two with the same labels: the one that is more behind
        if len(shown) < READERS_MAX:
            shown.setdefault(reader_labels(reader), reader)
    yield gauge("ibb_readers", "Connections with a dump.", len(readers))
    yield gauge(
        "ibb_readers_unlisted",
        f"Those without lines of their own: beyond {READERS_MAX}, or with the labels of others.",
        len(readers) - len(shown),
    )
    yield counter(
        "ibb_dumps_refused",
        "Dumps that ended with error 1236: a replica stops at it until somebody helps.",
        server.refused_dumps.count,
    )
    found = looked_up(server, shown.values(), LOOK_SECONDS_MAX)
    lines = [
        (labels, found[reader.session.id])
        for labels, reader in shown.items()
        if reader.session.id in found
    ]
    yield gauges(
        "ibb_reader_lag_groups",
        "Groups that a reader has not been sent; only of as many as there is time to look at.",
        _LABELS,
        [(labels, line.groups_behind) for labels, line in lines],
    )
    yield gauges(
        "ibb_reader_lag_bytes",
        "Bytes of the files between a reader and the durable end.",
        _LABELS,
        [(labels, reader.bytes_behind) for labels, reader in shown.items()],
    )
    yield gauges(
        "ibb_reader_lag_seconds",
        "Age of the oldest group that a reader has not been sent; of the same as the groups.",
        _LABELS,
        [
            (labels, line.seconds_behind)
            for labels, line in lines
            if line.seconds_behind is not None
        ],
    )
    sums = sent_bytes.count(readers)
    yield counters(
        "ibb_reader_sent_bytes",
        "Bytes sent on the reader's connection, or on all with its labels.",
        _LABELS,
        [(labels, sums[labels]) for labels in shown],
    )
    yield gauges(
        "ibb_reader_acknowledged_timestamp_seconds",
        "When a semi-synchronous reader acknowledged a group last.",
        _LABELS,
        [
            (labels, reader.progress.acknowledged_at)
            for labels, reader in shown.items()
            if reader.progress.acknowledged_at is not None
        ],
    )


def reader_labels(reader: PlacedReader) -> Labels:
    """Return those of a reader's lines: server_id, user, host."""
    session = reader.session
    host, colon, port = session.host.rpartition(":")
    number = session.dump_server_id or 0
    return str(number), session.user, host if colon and port.isdigit() else session.host
