"""ibb: a replication master over MariaDB's page-based binlog (`.ibb` files)."""

import os
from importlib.metadata import PackageNotFoundError, version

from .kernels import interpret

if os.environ.get("IBB_INTERPRETED"):
    interpret()

try:
    __version__ = version("ibb")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"
