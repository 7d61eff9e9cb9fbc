"""
Whether a store can be meant by the directory that `ibb serve` is told of; asked before it is made.

A path that was mistyped must not be filled with files of a store, nor one that MariaDB writes.
"""

from __future__ import annotations

import fcntl
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.storage.belongings import holds_binlog, server_data, strangers

from .config import ConfigError
from .log import get_log

if TYPE_CHECKING:
    from ibb.storage.disk import Disk

STRANGERS_SHOWN: Final = 5
_LOCKED_BY_MARIADB: Final = ("ibdata1", "aria_log_control")  # while it runs


def check_store(disk: Disk, directory: str) -> None:
    """
    Refuse a directory that is not for a store; warn of one that others use as well.

    Raises:
        ConfigError: a database server has its data there, and no binlog, or writes it just now.
        DiskError: it cannot be looked at.
    """
    if not disk.exists(directory):
        return
    if data := server_data(disk, directory):
        raise ConfigError(
            f"{directory} holds the data of a database server ({', '.join(data)}): a store wants "
            "a directory of its own"
        )
    if _mariadb_runs_in(directory):
        raise ConfigError(
            f"a MariaDB server is running on {directory}: serve it with --read-only, or end that "
            "server before its binlog is taken over"
        )
    if not holds_binlog(disk, directory) and (others := strangers(disk, directory)):
        shown, more = others[:STRANGERS_SHOWN], len(others) - STRANGERS_SHOWN
        get_log().warning(
            "store_beside_others", directory=directory, names=shown, more=max(0, more)
        )


def _mariadb_runs_in(directory: str) -> bool:
    """Tell whether a server holds the locks that one holds on its data."""
    for name in _LOCKED_BY_MARIADB:
        # Whoever may not read these files may not write that server's binlog either.
        with suppress(FileNotFoundError, PermissionError), Path(directory, name).open("rb") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False
