"""
The targets by name.

A target takes bytes and lets no exception out but for what is a find. It is given as many
of all executions as its share says: parsers are fast, sessions are slow.
"""

from collections.abc import Callable
from typing import NamedTuple

from .packet_targets import fuzz_events, fuzz_packets, fuzz_statements
from .row_targets import fuzz_rows
from .session_targets import fuzz_sessions, fuzz_upstream
from .storage_targets import fuzz_directories, fuzz_records
from .tls_targets import fuzz_tls


class Target(NamedTuple):
    """What is fuzzed, and its share of all executions in percent."""

    run: Callable[[bytes], None]
    share: int


TARGETS = {
    "packets": Target(fuzz_packets, 30),
    "events": Target(fuzz_events, 16),
    "statements": Target(fuzz_statements, 15),
    "sessions": Target(fuzz_sessions, 4),
    "tls": Target(fuzz_tls, 1),
    "upstream": Target(fuzz_upstream, 8),
    "records": Target(fuzz_records, 17),
    "rows": Target(fuzz_rows, 8),
    "directories": Target(fuzz_directories, 1),
}

assert sum(target.share for target in TARGETS.values()) == 100
