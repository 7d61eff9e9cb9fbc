"""Copies of files that a recovery sets aside before it overwrites, cuts or deletes anything."""

from .disk import Disk, File
from .page import PAGE_SIZE_MAX, page_is_zero

ASIDE_SUFFIX = ".aside"
_COPY_BYTES = 1 << 20


def holds_something(disk: Disk, path: str) -> bool:
    """Tell whether anything is in a file, also if its header is gone."""
    file = disk.open(path, read_only=True)
    try:
        return is_used_from(file, 0)
    finally:
        file.close()


def is_used_from(file: File, offset: int) -> bool:
    """
    Tell whether anything but zeros lies in a file from byte *offset* on.

    Pages that were written without a sync may have outlived a power loss in any order, with
    empty ones before them; what was only reserved is not read.
    """
    size = file.size()
    while offset < size:
        # What a cache holds counts as data, and each read brings in what follows: it would be all.
        file.forget_cached(offset, size - offset)
        found = file.next_data(offset)
        data = b"" if found is None else file.read_at(found, PAGE_SIZE_MAX)
        if not page_is_zero(data):
            return True
        if found is None or not data:
            break
        offset = found + len(data)
    return False


def discard(disk: Disk, path: str) -> list[str]:
    """Delete a file; return the copy that was set aside, if it held something."""
    copies = [set_aside(disk, path)] if holds_something(disk, path) else []
    disk.unlink(path)
    return copies


def set_aside(disk: Disk, path: str) -> str:
    """
    Copy a file to a name that is not taken, unless there is such a copy; return its name.

    The copy outlives a power loss, before which the file may be cut already.
    """
    number = 0
    while disk.exists(copy := f"{path}{ASIDE_SUFFIX}-{number}"):
        if _same_contents(disk, path, copy):
            break  # perhaps left by an opening that was killed before it was synced
        number += 1
    source, target = disk.open(path, read_only=True), disk.open(copy, create=True)
    try:
        offset = target.size()
        while data := source.read_at(offset, _COPY_BYTES):
            target.write_at(offset, data)
            offset += len(data)
        target.sync()
    finally:
        source.close()
        target.close()
    disk.sync_dir(path.rpartition("/")[0])
    return copy


def _same_contents(disk: Disk, path: str, copy: str) -> bool:
    one, other = disk.open(path, read_only=True), disk.open(copy, read_only=True)
    try:
        size = one.size()
        return size == other.size() and all(
            one.read_at(offset, _COPY_BYTES) == other.read_at(offset, _COPY_BYTES)
            for offset in range(0, size, _COPY_BYTES)
        )
    finally:
        one.close()
        other.close()
