"""ibb: a replication master over MariaDB's page-based binlog (`.ibb` files)."""

from importlib.metadata import PackageNotFoundError, version

from .kernels import choose_side

choose_side()

try:
    __version__ = version("ibb")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"
