"""What the command line uses of this package; importing it needs the extra `spark`."""

from .check import check_tables
from .config import read_config
from .pipeline import Pipeline, Progress

__all__ = ["Pipeline", "Progress", "check_tables", "read_config"]
