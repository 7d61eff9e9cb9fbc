"""
Whether a store can be meant by the directory that `ibb serve` is told of; asked before it is made.

A path that was mistyped must not be filled with files of a store, nor one that MariaDB writes.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ibb.storage.belongings import contents_of
from ibb.storage.errors import DiskError

from .config import ConfigError
from .log import get_log

if TYPE_CHECKING:
    from ibb.storage.disk import Disk

STRANGERS_SHOWN: Final = 5
_LOCKED_BY_MARIADB: Final = ("ibdata1", "aria_log_control")  # while it runs
# Who may not read these may not write that server's binlog either; or it is no file at all.
_CANNOT_BE_TOLD: Final = (errno.EACCES, errno.EPERM, errno.EINVAL)


def check_store(disk: Disk, directory: str) -> None:
    """
    Refuse a directory that is not for a store; warn of one that others use as well.

    Raises:
        ConfigError: a database server has its data there, and no binlog, or writes it just now.
        DiskError: it cannot be looked at.
    """
    if not disk.exists(directory):
        return
    contents = contents_of(disk, directory)
    if contents.server_data and not contents.binlog:
        raise ConfigError(
            f"{directory} holds the data of a database server "
            f"({', '.join(contents.server_data)}): a store wants a directory of its own"
        )
    if _mariadb_runs_on(disk, directory):
        raise ConfigError(
            f"a MariaDB server is running on {directory}: serve it with --read-only, or end that "
            "server before its binlog is taken over"
        )
    if (others := contents.strangers) and not contents.binlog:
        shown, more = others[:STRANGERS_SHOWN], len(others) - STRANGERS_SHOWN
        get_log().warning(
            "store_beside_others", directory=directory, names=shown, more=max(0, more)
        )


def _mariadb_runs_on(disk: Disk, directory: str) -> bool:
    """Tell whether a server holds the locks that one holds on its data, in or above a directory."""
    for folder in (directory, f"{directory}/.."):  # MariaDB's `binlog_directory` may lie inside
        for name in _LOCKED_BY_MARIADB:
            try:
                if disk.lock_note(f"{folder}/{name}") is not None:
                    return True
            except DiskError as error:
                if error.errno not in _CANNOT_BE_TOLD:
                    raise
    return False
