"""What a relay has done since the program began, whatever connections it took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.server.latencies import Latencies
from ibb.storage.errors import DiskError, StoreFailed, StoreFull

from .dump_end import UpstreamEnded
from .ingest import NotAscending
from .upstream_login import UpstreamRefused

if TYPE_CHECKING:
    from ibb.storage.commit_position import CommitPosition

# The first that fits; what fits none is `other`.
ERROR_KINDS: Final[tuple[tuple[str, type[Exception]], ...]] = (
    ("upstream_ended", UpstreamEnded),
    ("upstream_refused", UpstreamRefused),
    ("not_ascending", NotAscending),
    ("store_full", StoreFull),
    ("store_failed", StoreFailed),
    ("disk", DiskError),
    ("sql", SqlError),
    ("damaged", FormatError),
    ("protocol", ProtocolError),
    ("timeout", TimeoutError),
    ("network", OSError),
)
OTHER: Final = "other"


@dataclass(slots=True)
class RelayFigures:
    """
    Counters, for whoever looks.

    Attributes:
        groups: stored.
        skipped: groups that the store held already.
        received: bytes.
        connects: dumps that the upstream began.
        errors: interruptions by kind, see `ERROR_KINDS`.
        written: the end of what was written last, durable or not yet.
        batches: from taking what was received to its being safe, in seconds.
        syncs: of these, the wait for the disk.
    """

    groups: int = 0
    skipped: int = 0
    received: int = 0
    connects: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    written: CommitPosition | None = None
    batches: Latencies = field(default_factory=Latencies)
    syncs: Latencies = field(default_factory=Latencies)

    def count_error(self, error: Exception) -> None:
        """Count what has interrupted the relay."""
        self.errors[
            next((name for name, kind in ERROR_KINDS if isinstance(error, kind)), OTHER)
        ] += 1
