"""
The directories that the option path names, and what may be read of each.

A directory that a store of ours writes tells by its redo log what is synced, and what its files
lack yet. One that another program writes is taken as `ReadOnlyHistory` takes it: at rest when it
is looked at first, and once it was seen to change only what is surely synced. Source: ibb-format
9.4.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.storage.backup import check_finished
from ibb.storage.directory import BinlogDirectory
from ibb.storage.disk import Disk
from ibb.storage.errors import DiskError
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.inspect.recovered_view import LOOKS_MAX, look_at_redo, recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.state_scan import find_state

from .errors import OptionError
from .fsspec_disk import FsspecDisk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ibb.protocol.binlog_state import BinlogState
    from ibb.storage.position import Position

DIRECTORIES_MAX: Final = 10_000
_GLOB: Final = frozenset("*?[")
_LOCAL: Final = "file://"


class NamedDirectory(NamedTuple):
    """
    A directory, or some of its files.

    Attributes:
        path: local, or a URL.
        files: numbers of those that were named; None: all.
    """

    path: str
    files: frozenset[int] | None


class DirectoryView(NamedTuple):
    """
    A directory as it is now.

    Attributes:
        pages: to be closed by who opened the view.
        state: the binlog state at their end.
        in_files: pages up to there are in the files themselves; None: all are.
    """

    pages: BinlogDirectory
    state: BinlogState
    in_files: Position | None

    def known_page_in_files(self) -> tuple[int, int]:
        """Return a page that is used in the files themselves, as `BinlogDirectory` has it."""
        if self.in_files is None:
            return self.pages.known_page
        file_no, offset = self.in_files
        header = self.pages.header(file_no)
        pages_before = 0 if header is None else offset // header.page_size
        return min(self.pages.known_page, (file_no, max(pages_before - 1, 0)))


def disk_of(path: str) -> tuple[Disk, str]:
    """
    Return where a directory is, and its path there.

    Raises:
        DiskError: there is no package for this kind of URL.
    """
    if "://" not in path:
        return OsDisk(), path
    if path.startswith(_LOCAL):
        return OsDisk(), path.removeprefix(_LOCAL)
    return FsspecDisk(path), path.rstrip("/")


def named_directories(paths: Iterable[str]) -> list[NamedDirectory]:
    """
    Return the directories that the entries of option path name, each once, in that order.

    Raises:
        OptionError: an entry names nothing that is there, or no binlog files.
    """
    found: dict[str, set[int] | None] = {}
    for entry in paths:
        names = _expanded(entry) if _GLOB & set(entry) else [entry]
        if not names:
            raise OptionError("path", f"'{entry}' matches nothing")
        for name in names:
            directory, _, last = name.rstrip("/").rpartition("/")
            file_no = parse_binlog_name(last)
            if file_no is None:
                found[name.rstrip("/") or "/"] = None
            elif (files := found.setdefault(directory or ".", set())) is not None:
                files.add(file_no)
    if len(found) > DIRECTORIES_MAX:
        raise OptionError("path", f"more than {DIRECTORIES_MAX} directories")
    return [
        NamedDirectory(path, None if files is None else frozenset(files))
        for path, files in found.items()
    ]


def open_view(path: str, known: tuple[int, int] = (0, 0)) -> DirectoryView:
    """
    Look at a directory as it is now, its redo log applied.

    Args:
        path: local, or a URL.
        known: a page that was used when it was looked at before, as `BinlogDirectory` has it.

    Raises:
        OptionError: there is no such directory, or it holds no binlog files.
        DiskError, FormatError: it cannot be read.
    """
    disk, where = disk_of(path)
    check_finished(disk, where)
    for _ in range(LOOKS_MAX):
        redo = look_at_redo(disk, where)
        pages = _open(redo.disk, where, known)
        try:
            if not pages.listing.numbers:
                raise OptionError("path", f"there are no binlog files in {path}")
            view = DirectoryView(
                pages, find_state(pages).state, redo.begun_at if redo.found else None
            )
            if not redo.begun_anew():
                return view
        except BaseException as error:
            pages.close()
            if isinstance(error, DiskError) and error.begun_anew:
                continue
            raise
        pages.close()
    raise FormatError(f"{path} is begun anew (RESET MASTER) again and again")


def open_for_task(path: str, *, recovered: bool, known: tuple[int, int]) -> BinlogDirectory:
    """
    Open a directory of which a part is to be read.

    Args:
        path: local, or a URL.
        recovered: apply its redo log.
        known: a page that is used, as `BinlogDirectory` has it.

    Raises:
        OptionError: it is not there, where this runs.
        DiskError, FormatError: it cannot be read.
    """
    disk, where = disk_of(path)
    return _open(recovered_view(disk, where) if recovered else disk, where, known)


def _open(disk: Disk, path: str, known: tuple[int, int] = (0, 0)) -> BinlogDirectory:
    try:
        return BinlogDirectory(disk, path, known)
    except DiskError as error:
        if error.missing:
            raise OptionError("path", f"there is no directory {path}") from error
        raise


def check_not_begun_anew(pages: BinlogDirectory, file_no: int, lsn: int) -> None:
    """
    Check that a file is the one that a plan was made from.

    Raises:
        FormatError: another history is there by now.
    """
    header = pages.header(file_no)
    if header is None or header.lsn != lsn:
        raise FormatError(
            f"file {file_no} is gone, or of another history, since this read was planned"
        )


def _expanded(pattern: str) -> list[str]:
    if "://" in pattern and not pattern.startswith(_LOCAL):
        import fsspec  # noqa: PLC0415 - only who reads from far needs it

        fs, inner = fsspec.core.url_to_fs(pattern)
        found = {
            fs.unstrip_protocol(name): told["type"] == "directory"
            for name, told in fs.glob(inner, detail=True).items()
        }
    else:
        names = glob.glob(pattern.removeprefix(_LOCAL))  # noqa: PTH207 - absolute ones, too
        found = {name: Path(name).is_dir() for name in names}
    return sorted(
        name
        for name, is_folder in found.items()
        if is_folder or parse_binlog_name(Path(name).name) is not None
    )
