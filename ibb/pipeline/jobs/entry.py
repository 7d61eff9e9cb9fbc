"""What the command line uses of this package; importing it needs the extra `spark`."""

from ibb.pipeline.directories import disk_of

from .audit import RowsWanted, changed_rows
from .job_session import DEFAULT_MASTER, job_session
from .job_source import source_options
from .statistics import statistics
from .verify import verify_on

__all__ = [
    "DEFAULT_MASTER",
    "RowsWanted",
    "changed_rows",
    "disk_of",
    "job_session",
    "source_options",
    "statistics",
    "verify_on",
]
