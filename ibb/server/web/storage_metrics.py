"""Metrics of what stands between a commit and its binlog file: redo log, page FIFO, syncs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .families import counter, gauge, histograms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from ibb.server.server import Server


def storage_metrics(server: Server) -> Iterator[Metric]:
    """Yield them, if the store is measured; looks at the disk."""
    figures, line = server.storage, server.storage_line()
    if figures is None or line is None:
        return
    for name, text, value in (
        (
            "redo_used_bytes",
            "Bytes of the redo log since its checkpoint: what a restart would read.",
            line.redo_used,
        ),
        (
            "redo_limit_bytes",
            "Bytes that the redo log holds; before it is full comes the next checkpoint.",
            line.redo_limit,
        ),
        (
            "page_fifo_bytes",
            "Bytes of the newest history that are not in their binlog file yet.",
            line.page_fifo,
        ),
        (
            "page_fifo_limit_bytes",
            "Bytes of pages that may wait for the disk; then commits wait, too.",
            line.page_fifo_limit,
        ),
        (
            "binlog_unsynced_bytes",
            "Bytes between the durable end and the end of what was written.",
            line.unsynced,
        ),
        (
            "redo_checkpoint_timestamp_seconds",
            "When the redo log began anew, all before it in the binlog files.",
            figures.disk.checkpoint_at,
        ),
        (
            "disk_sync_waiting_seconds",
            "For how long the oldest sync has gone on that has not come back; 0: none.",
            figures.disk.longest_wait(),
        ),
    ):
        yield gauge(f"ibb_{name}", text, value)
    yield counter(
        "ibb_redo_checkpoints",
        "Times that the redo log began anew, the opening counted.",
        figures.disk.checkpoints,
    )
    yield histograms(
        "ibb_disk_sync_seconds",
        "How long syncs took, by what was synced: the redo log, for commits, or binlog files.",
        ("file",),
        [(("redo",), figures.disk.redo_syncs), (("binlog",), figures.disk.binlog_syncs)],
    )
