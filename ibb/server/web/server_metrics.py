"""Metrics of the server itself: clients, logins, log lines, semi-sync, readiness, the relay."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from prometheus_client.core import InfoMetricFamily

from ibb import __version__
from ibb.server.latencies import MICROSECONDS
from ibb.server.log import LINES, PROBLEMS
from ibb.server.relay.relay_figures import ERROR_KINDS, OTHER

from .families import counter, counters, gauge, gauges, histogram
from .readiness import REASONS, reasons_not_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from ibb.server.relay.relay_control import RelayControl
    from ibb.server.server import Server

_LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_OF_STATUS: Final = (  # counters that SHOW STATUS has
    ("ibb_connections_accepted", "Connections", "Connections of clients."),
    (
        "ibb_connections_refused",
        "Connection_errors_max_connections",
        "Connections that found all places taken.",
    ),
    ("ibb_login_failures", "Aborted_connects", "Logins that failed, those by web too."),
    ("ibb_sessions_aborted", "Aborted_clients", "Sessions that ended without a goodbye."),
    ("ibb_access_denied", "Access_denied_errors", "Answers that somebody may not do something."),
    ("ibb_commands", "Questions", "Commands of clients."),
    ("ibb_received_bytes", "Bytes_received", "Bytes received from clients."),
    ("ibb_sent_bytes", "Bytes_sent", "Bytes sent to clients."),
)
_OF_SEMI_SYNC: Final = (
    ("ibb_semi_sync_acknowledged", "yes_tx", "Groups that a replica has acknowledged."),
    ("ibb_semi_sync_unacknowledged", "no_tx", "Groups that nobody waited for, or not any more."),
    ("ibb_semi_sync_switched_off", "no_times", "Times that waiting was switched off."),
)


def server_metrics(server: Server) -> Iterator[Metric]:
    """Yield them."""
    build = InfoMetricFamily("ibb_build", "The program.")
    build.add_metric([], {"version": __version__, "python": platform.python_version()})
    yield build
    found = {reason.code for reason in reasons_not_ready(server)}
    yield gauge("ibb_ready", "1: as /readyz says.", not found)
    yield gauges(
        "ibb_not_ready",
        "1 for each reason not to be ready.",
        ("reason",),
        [((code,), code in found) for code in REASONS],
    )
    status = server.status()
    for name, variable, text in _OF_STATUS:
        yield counter(name, text, int(status[variable]))
    yield gauge("ibb_connections", "Clients now.", int(status["Threads_connected"]))
    yield gauge("ibb_connections_limit", "max_connections.", server.config.max_connections)
    yield gauge("ibb_start_time_seconds", "When the server began.", server.start_time)
    yield counters(
        "ibb_log_lines", "Lines of the log.", ("level",), [((one,), LINES[one]) for one in _LEVELS]
    )
    yield counters(
        "ibb_log_problems",
        "Of these, warnings and worse by what they tell of; a line appears with its first one.",
        ("level", "event"),
        sorted(PROBLEMS.copy().items()),
    )
    yield gauge("ibb_semi_sync_wanted", "1: commits should wait.", server.semi_sync.enabled)
    yield from _semi_sync(status)
    if server.upstream is not None and server.upstream.is_configured:
        yield from _relay(server.upstream)


def _semi_sync(status: dict[str, str]) -> Iterator[Metric]:
    prefix = "Rpl_semi_sync_master_"
    yield gauge("ibb_semi_sync_on", "1: commits wait.", status[f"{prefix}status"] == "ON")
    yield gauge(
        "ibb_semi_sync_replicas", "Replicas that acknowledge.", int(status[f"{prefix}clients"])
    )
    yield gauge(
        "ibb_semi_sync_waiting", "Commits that wait now.", int(status[f"{prefix}wait_sessions"])
    )
    for name, variable, text in _OF_SEMI_SYNC:
        yield counter(name, text, int(status[f"{prefix}{variable}"]))
    seconds = int(status[f"{prefix}tx_wait_time"]) / MICROSECONDS
    yield counter("ibb_semi_sync_wait_seconds", "Time that commits have waited.", seconds)


def _relay(relay: RelayControl) -> Iterator[Metric]:
    figures = relay.figures
    yield gauge("ibb_relay_running", "1: it runs, or tries to.", relay.is_running)
    yield gauge("ibb_relay_connected", "1: the upstream is sending.", relay.is_connected)
    yield gauge(
        "ibb_relay_lag_seconds",
        "Age of what is being stored, or was last; 0 once the upstream has nothing more; "
        "none while not connected.",
        relay.seconds_behind(),
    )
    yield counter("ibb_relay_groups", "Groups stored.", figures.groups)
    yield counter("ibb_relay_skipped_groups", "Groups that were there before.", figures.skipped)
    yield counter("ibb_relay_received_bytes", "Bytes received.", figures.received)
    yield counter("ibb_relay_connects", "Dumps that the upstream began.", figures.connects)
    yield counters(
        "ibb_relay_errors",
        "What has interrupted the relay.",
        ("kind",),
        [((kind,), figures.errors[kind]) for kind in (*dict(ERROR_KINDS), OTHER)],
    )
    written = figures.written
    yield gauge(
        "ibb_relay_written_file_number",
        "File that was written last, durable or not.",
        written and written.file_no,
    )
    yield gauge(
        "ibb_relay_written_offset_bytes",
        "End of what was written in that file, durable or not.",
        written and written.offset,
    )
    yield histogram(
        "ibb_relay_batch_seconds",
        "From taking what was received to its being as safe as flush_log_at_commit says.",
        figures.batches,
    )
    yield histogram("ibb_relay_sync_seconds", "Of that, the wait for the disk.", figures.syncs)
