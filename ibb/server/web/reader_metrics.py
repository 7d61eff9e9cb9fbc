"""Metrics of who reads: how far behind, how fast. Labels are bounded: the worst come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .families import counter, counters, gauge, gauges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from ibb.server.dump.readers import ReaderLine
    from ibb.server.server import Server

READERS_MAX: Final = 200  # with lines of their own
_LABELS: Final = ("server_id", "user", "host")


def reader_metrics(server: Server) -> Iterator[Metric]:
    """Yield them; looks at the disk."""
    lines = sorted(server.readers(), key=lambda line: -line.bytes_behind)
    shown: dict[tuple[str, ...], ReaderLine] = {}
    for line in lines:  # two with the same labels: the one that is more behind
        if len(shown) < READERS_MAX:
            shown.setdefault(_labels(line), line)
    yield gauge("ibb_readers", "Connections with a dump.", len(lines))
    yield gauge(
        "ibb_readers_unlisted",
        f"Those without lines of their own: beyond {READERS_MAX}, or with the labels of others.",
        len(lines) - len(shown),
    )
    yield counter(
        "ibb_dumps_refused",
        "Dumps that ended with error 1236: a replica stops at it until somebody helps.",
        server.refused_dumps.count,
    )
    for name, text, value in (
        ("groups", "Groups that a reader has not been sent.", _groups),
        ("bytes", "Bytes of the files between a reader and the durable end.", _bytes),
        ("seconds", "Age of the oldest group that a reader has not been sent.", _seconds),
    ):
        values = [(labels, value(line)) for labels, line in shown.items()]
        known = [(labels, number) for labels, number in values if number is not None]
        yield gauges(f"ibb_reader_lag_{name}", text, _LABELS, known)
    sent, acknowledged = [], []
    for labels, line in shown.items():
        session = server.session(line.id)
        if session is None:  # it has gone meanwhile
            continue
        sent.append((labels, session.traffic[1]))
        progress = session.progress()
        if progress is not None and progress.acknowledged_at is not None:
            acknowledged.append((labels, progress.acknowledged_at))
    yield counters("ibb_reader_sent_bytes", "Bytes sent on the reader's connection.", _LABELS, sent)
    yield gauges(
        "ibb_reader_acknowledged_timestamp_seconds",
        "When a semi-synchronous reader acknowledged a group last.",
        _LABELS,
        acknowledged,
    )


def _labels(line: ReaderLine) -> tuple[str, ...]:
    host, colon, port = line.host.rpartition(":")
    return str(line.server_id), line.user, host if colon and port.isdigit() else line.host


def _groups(line: ReaderLine) -> float | None:
    return line.groups_behind


def _bytes(line: ReaderLine) -> float | None:
    return line.bytes_behind


def _seconds(line: ReaderLine) -> float | None:
    return line.seconds_behind
