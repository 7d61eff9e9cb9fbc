"""What a look at a directory of binlog files showed."""

from collections.abc import Callable
from typing import NamedTuple

from .disk import Disk
from .errors import DiskError
from .file_name import binlog_name, is_misspelt, parse_binlog_name

EMPTY_FILES_MAX = 2  # at the end of a directory that can be recovered. Source: ibb-format 11.1
LISTINGS_MAX = 10  # of a directory whose files vanish meanwhile
NEWEST_EMPTY = "Last 3 binlog tablespace files are all empty"  # MariaDB's words


class Listing(NamedTuple):
    """
    What a look at the directory showed, for telling whether somebody writes there.

    Attributes:
        numbers: of the files, ascending.
        last: highest number that holds data; -1 without any.
        last_page: last used page of that file.
        changed: when the two newest of the files were modified, in seconds since 1970.
    """

    numbers: tuple[int, ...]
    last: int
    last_page: int
    changed: tuple[float, ...]


NOTHING_LISTED = Listing((), -1, 0, ())


def list_files(disk: Disk, directory: str, warn: Callable[[str], None] | None = None) -> list[int]:
    """
    Return the numbers of the binlog files in a directory, in order.

    Args:
        disk: where it is.
        directory: its path.
        warn: told of each name that looks like one of theirs.
    """
    numbers = []
    for name in disk.list(directory):
        number = parse_binlog_name(name)
        if number is not None:
            numbers.append(number)
        elif warn is not None and is_misspelt(name):
            warn(f"{name}: not the canonical spelling of a binlog file's name: ignored")
    return sorted(numbers)


def list_sizes(
    disk: Disk, directory: str, warn: Callable[[str], None] | None = None
) -> list[tuple[int, int]]:
    """
    Return the binlog files in a directory, in order, each with its physical length.

    They are those of one moment: when one vanishes meanwhile, all are looked at once more. While
    many are purged that may never come out even; then those behind the last that vanished count.
    """
    found: list[tuple[int, int]] = []
    for _ in range(LISTINGS_MAX):
        found, vanished = [], False
        for number in list_files(disk, directory, warn):
            try:
                found.append((number, disk.size(f"{directory}/{binlog_name(number)}")))
            except DiskError as error:
                if not error.missing:
                    raise
                found, vanished = [], True
        if not vanished:
            break
    return found


def modified_at(disk: Disk, path: str, file_no: int) -> float:
    """Return when a file of a directory was modified, in seconds since 1970."""
    try:
        return disk.modified_at(f"{path}/{binlog_name(file_no)}")
    except DiskError:
        return 0.0  # it is gone, or who reads it is told
