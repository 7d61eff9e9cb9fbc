"""Small files beside the binlog, replaced as a whole: old or new after a crash, never between."""

from collections.abc import Callable

from .disk import Disk
from .second_reads import Checked, read_checked

SMALL_FILE_BYTES_MAX = 16 << 20
NEW_SUFFIX = ".new"  # of a file that is to take the place of another


def read_small_file(disk: Disk, path: str, parse: Callable[[bytes], Checked]) -> Checked | None:
    """
    Return what a file holds; None: there is no file.

    Args:
        disk: where the file is.
        path: of it.
        parse: makes something of its bytes, at most `SMALL_FILE_BYTES_MAX` and one more; raises
            FormatError if they are not what they should be. They are read again then.

    Raises:
        FormatError: so it was twice.
        DiskError: it cannot be read.
    """
    if not disk.exists(path):
        return None
    file = disk.open(path, read_only=True)
    try:
        return read_checked(file, 0, SMALL_FILE_BYTES_MAX + 1, parse)
    finally:
        file.close()


def replace_small_file(disk: Disk, path: str, data: bytes) -> None:
    """
    Let a file hold *data*, durably when this returns.

    Raises:
        DiskError: it could not be done; the file is as it was, or new.
    """
    assert len(data) <= SMALL_FILE_BYTES_MAX
    temporary = f"{path}{NEW_SUFFIX}"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_dir(path.rpartition("/")[0] or ".")
