"""A directory as its store has it, or would have it when opened, without a byte of it changed."""

from ibb.storage.disk import Disk
from ibb.storage.reset_marker import ResetMarker
from ibb.storage.verify.redo import check_redo


def recovered_view(disk: Disk, directory: str) -> Disk:
    """
    Return a disk on which the redo log has been applied to the files.

    The newest groups of a store that is in use, or that was not closed, are only in its redo log
    until their page is full. Of a store in use, what it has synced is applied. Where there is no
    redo log, or it is damaged, or the files are about to be deleted, the files are as they are.

    Args:
        disk: where the directory is; it is only read.
        directory: its path.

    Raises:
        FormatError: the reset marker is damaged.
        DiskError: files cannot be read.
    """
    if ResetMarker(disk, directory).read() is not None:
        return disk
    return check_redo(disk, directory).disk
