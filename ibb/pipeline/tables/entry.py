"""What the command line uses of this package; importing it needs the extra `spark`."""

from .as_of import write_as_of
from .check import check_tables
from .config import read_config
from .history_reading import write_history_as_of
from .pipeline import Pipeline, Progress
from .row_changes import TableName

__all__ = [
    "Pipeline",
    "Progress",
    "TableName",
    "check_tables",
    "read_config",
    "write_as_of",
    "write_history_as_of",
]
