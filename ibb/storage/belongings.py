"""Which names in a directory belong to a binlog, for who is told of a directory by a person."""

from typing import Final, NamedTuple

from .aside import ASIDE_SUFFIX
from .backup import UNFINISHED_NAME
from .disk import Disk
from .errors import NoBinlog
from .file_name import is_misspelt, parse_binlog_name
from .format_catalogue import SIDECAR_NAME
from .leases import LEASES_NAME
from .redo_segment import SEGMENT_NAMES
from .reset_marker import MARKER_NAME
from .rising_note import NOTE_NAME
from .small_file import NEW_SUFFIX
from .synced_note import LOCK_NAME

_HISTORY: Final = frozenset((*SEGMENT_NAMES, MARKER_NAME, UNFINISHED_NAME))
_BESIDE: Final = frozenset((LOCK_NAME, SIDECAR_NAME, LEASES_NAME, NOTE_NAME))
_EVERYWHERE: Final = "lost+found"  # at the top of a file system
# What every directory of MariaDB's or MySQL's data has one of.
_DATA_OF_A_SERVER: Final = frozenset(("ibdata1", "aria_log_control", "auto.cnf"))


class Contents(NamedTuple):
    """
    What a directory holds, by its names.

    Attributes:
        binlog: there is one, if only what a crash has left of it.
        server_data: names that show it to be that of a database server's data.
        strangers: names that no binlog has, but for hidden ones and lost+found.
    """

    binlog: bool
    server_data: list[str]
    strangers: list[str]


def contents_of(disk: Disk, directory: str) -> Contents:
    """
    Return what a directory holds.

    Raises:
        DiskError: it cannot be looked at.
    """
    names = disk.list(directory)
    return Contents(
        any(map(_is_history, names)),
        sorted(_DATA_OF_A_SERVER.intersection(names)),
        [name for name in names if not (_is_history(name) or _is_beside(name))],
    )


def check_holds_binlog(disk: Disk, directory: str) -> None:
    """
    Refuse to read a directory without a binlog, which would look like an empty one.

    Raises:
        NoBinlog: none is there.
        DiskError: it cannot be looked at.
    """
    if not contents_of(disk, directory).binlog:
        raise NoBinlog(directory)


def _is_history(name: str) -> bool:
    name = name.removesuffix(NEW_SUFFIX)
    return name in _HISTORY or parse_binlog_name(name) is not None or is_misspelt(name)


def _is_beside(name: str) -> bool:
    if f"{ASIDE_SUFFIX}-" in name or name.startswith(".") or name == _EVERYWHERE:
        return True
    return name.removesuffix(NEW_SUFFIX) in _BESIDE
