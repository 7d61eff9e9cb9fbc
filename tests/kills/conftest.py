"""The servers of the rig, here too."""

from ..integration.conftest import mariadb_10, mariadb_11, rig

__all__ = ["mariadb_10", "mariadb_11", "rig"]
