"""How a store is laid out and how much memory it may take: every number has a name and bounds."""

from dataclasses import dataclass

from ibb.protocol.format_description import SERVER_VERSION_SIZE
from ibb.protocol.gtid import ID_MAX

from .file_shape import FileShape
from .page import PAGE_SIZE_MAX, PAGE_SIZE_MIN

FILE_PAGES_MIN = 4
FILE_PAGES_MAX = (1 << 32) - 1
OOB_PIECE_SIZE_MIN = 256  # bytes: a piece must outweigh its own header
STATE_BYTES_MAX = 768 << 10  # bytes of one GTID state record, some 41,000 pairs
STATE_INTERVAL_MAX = 1 << 63  # bytes
REDO_SEGMENT_SIZE_MIN = 256 << 10  # bytes: several redo groups of pieces must fit
REDO_SEGMENT_SIZE_MAX = (1 << 32) - 1  # bytes: as its header can say
FIFO_PAGES_MAX = 1 << 20
FLUSH_LOG_INTERVAL_MAX = 1e9  # seconds: a wait can be as long everywhere

_BOUNDS = {  # of whole numbers
    "page_size": (PAGE_SIZE_MIN, PAGE_SIZE_MAX),
    "max_binlog_size": (FILE_PAGES_MIN * PAGE_SIZE_MIN, FILE_PAGES_MAX * PAGE_SIZE_MAX),
    "state_interval": (PAGE_SIZE_MIN, STATE_INTERVAL_MAX),
    "fifo_pages_max": (FILE_PAGES_MIN, FIFO_PAGES_MAX),
    "redo_segment_size": (REDO_SEGMENT_SIZE_MIN, REDO_SEGMENT_SIZE_MAX),
    "oob_piece_size": (OOB_PIECE_SIZE_MIN, REDO_SEGMENT_SIZE_MIN // 4),
    "flush_log_at_commit": (0, 2),
    "binlog_expire_logs_seconds": (0, (1 << 32) - 1),
    "max_binlog_total_size": (0, (1 << 64) - 1),
    "slave_connections_needed_for_purge": (0, (1 << 32) - 1),
    "server_id": (0, ID_MAX),
}


@dataclass(frozen=True)
class StoreOptions:
    """
    The settings of a store.

    Args:
        page_size: bytes a page of the files that are written, a power of two.
        max_binlog_size: bytes a file, rounded down to whole pages.
        state_interval: bytes between GTID state records (`innodb_binlog_state_interval`), a
            power of two and at least a page.
        fifo_pages_max: pages that may wait in memory for the disk.
        redo_segment_size: bytes of each of the two redo log segments.
        oob_piece_size: bytes of a group kept in memory before they leave as an out-of-band record.
        flush_log_at_commit: what a commit waits for (`innodb_flush_log_at_trx_commit`): 1 that it
            is durable; 2 that the operating system has it; 0 nothing.
        flush_log_interval: seconds after which the log is synced in modes 0 and 2.
        binlog_expire_logs_seconds: age at which files go by themselves; 0: never.
        max_binlog_total_size: bytes of all files above which the oldest go; 0: no limit.
        slave_connections_needed_for_purge: connected replicas that must have got past a file before
            it goes by itself.
        server_id: server id of the events that the store itself makes.
        server_version: version in the format description that the store itself makes.
        format_description: `own` writes a format description at each opening, as a server does
            when it starts; `upstream` leaves that to whoever relays another server's events.
        background: write full pages and make the next file in a thread of its own, sync the log
            in another; without them the committing thread does all, which makes a run repeatable.

    Raises:
        ValueError: a number is outside its bounds; the message names it.
    """

    page_size: int = 16 << 10
    max_binlog_size: int = 1 << 30
    state_interval: int = 2 << 20
    fifo_pages_max: int = 512
    redo_segment_size: int = 64 << 20
    oob_piece_size: int = 32 << 10
    flush_log_at_commit: int = 1
    flush_log_interval: float = 1.0
    binlog_expire_logs_seconds: int = 0
    max_binlog_total_size: int = 0
    slave_connections_needed_for_purge: int = 1
    server_id: int = 0
    server_version: str = "10.11.99-MariaDB-ibb"
    format_description: str = "own"
    background: bool = True

    def __post_init__(self) -> None:
        for name, (lowest, highest) in _BOUNDS.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not lowest <= value <= highest:
                raise ValueError(
                    f"{name} must be a whole number from {lowest} to {highest}, not {value!r}"
                )
        if self.page_size & (self.page_size - 1):
            raise ValueError("page_size must be a power of two")
        if not FILE_PAGES_MIN <= self.file_pages <= FILE_PAGES_MAX:
            raise ValueError(
                f"max_binlog_size must be {FILE_PAGES_MIN} to {FILE_PAGES_MAX} times page_size"
            )
        interval = self.state_interval
        if interval < self.page_size or interval & (interval - 1):
            raise ValueError("state_interval must be a power of two and at least page_size")
        if not 0 < self.flush_log_interval <= FLUSH_LOG_INTERVAL_MAX:
            raise ValueError(
                f"flush_log_interval must be above 0 and at most {FLUSH_LOG_INTERVAL_MAX:.0f} "
                f"seconds, not {self.flush_log_interval!r}"
            )
        if not _fits_format_description(self.server_version):
            raise ValueError(
                f"server_version must be 1 to {SERVER_VERSION_SIZE} characters of Latin-1, without "
                f"NUL, not {self.server_version[: 2 * SERVER_VERSION_SIZE]!r}"
            )
        if self.format_description not in ("own", "upstream"):
            raise ValueError("format_description must be 'own' or 'upstream'")

    @property
    def file_pages(self) -> int:
        """Pages of a new file."""
        return self.max_binlog_size // self.page_size

    @property
    def interval_pages(self) -> int:
        """Pages between state records of a new file."""
        return self.state_interval // self.page_size

    @property
    def file_shape(self) -> FileShape:
        """What a new file is like."""
        return FileShape(self.file_pages, self.page_size, self.interval_pages)

    @property
    def log_sync_seconds(self) -> float | None:
        """Seconds from one sync of the log to the next; None: commits see to that."""
        return None if self.flush_log_at_commit == 1 else self.flush_log_interval

    @property
    def piece_size(self) -> int:
        """
        Bytes of an out-of-band piece, also where files are tiny.

        A record must stay smaller than a file, with the state records that interrupt it.
        """
        return min(self.oob_piece_size, (self.file_pages - 2) * self.page_size // 4)


def _fits_format_description(version: str) -> bool:
    if not 1 <= len(version) <= SERVER_VERSION_SIZE:
        return False
    return all("\0" < char <= "\xff" for char in version)
