"""Which names in a directory belong to a binlog, for who is told of a directory by a person."""

from typing import Final

from .aside import ASIDE_SUFFIX
from .backup import UNFINISHED_NAME
from .disk import Disk
from .errors import NoBinlog
from .file_name import is_misspelt, parse_binlog_name
from .format_catalogue import SIDECAR_NAME
from .leases import LEASES_NAME
from .redo_segment import SEGMENT_NAMES
from .reset_marker import MARKER_NAME
from .small_file import NEW_SUFFIX
from .synced_note import LOCK_NAME

_HISTORY: Final = frozenset((*SEGMENT_NAMES, MARKER_NAME, UNFINISHED_NAME))
_BESIDE: Final = frozenset((LOCK_NAME, SIDECAR_NAME, LEASES_NAME))
_EVERYWHERE: Final = "lost+found"  # at the top of a file system
# What every directory of MariaDB's or MySQL's data has one of.
_DATA_OF_A_SERVER: Final = frozenset(("ibdata1", "aria_log_control", "auto.cnf"))


def holds_binlog(disk: Disk, directory: str) -> bool:
    """
    Tell whether a binlog is in a directory, if only what a crash left of one.

    Raises:
        DiskError: it cannot be looked at.
    """
    return any(_is_history(name) for name in disk.list(directory))


def check_holds_binlog(disk: Disk, directory: str) -> None:
    """
    Refuse to read a directory without a binlog, which would look like an empty one.

    Raises:
        NoBinlog: none is there.
        DiskError: it cannot be looked at.
    """
    if not holds_binlog(disk, directory):
        raise NoBinlog(directory)


def server_data(disk: Disk, directory: str) -> list[str]:
    """
    Return what shows that a directory without a binlog is that of a database server's data.

    Raises:
        DiskError: it cannot be looked at.
    """
    names = disk.list(directory)
    return [] if any(map(_is_history, names)) else sorted(_DATA_OF_A_SERVER.intersection(names))


def strangers(disk: Disk, directory: str) -> list[str]:
    """
    Return the names in a directory that no binlog has, but for hidden ones and lost+found.

    Raises:
        DiskError: it cannot be looked at.
    """
    return [
        name
        for name in disk.list(directory)
        if not (_is_history(name) or f"{ASIDE_SUFFIX}-" in name or name.startswith("."))
        and name.removesuffix(NEW_SUFFIX) not in (*_BESIDE, _EVERYWHERE)
    ]


def _is_history(name: str) -> bool:
    name = name.removesuffix(NEW_SUFFIX)
    return name in _HISTORY or parse_binlog_name(name) is not None or is_misspelt(name)
