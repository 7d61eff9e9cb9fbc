"""A directory as its store has it, or would have it when opened, without a byte of it changed."""

import time
from collections.abc import Callable

from ibb.storage.disk import Disk
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.reset_marker import ResetMarker
from ibb.storage.verify.files_now import FilesNow
from ibb.storage.verify.redo import RedoCheck, check_redo

LOOKS_MAX = 5  # at a log whose files are begun anew meanwhile
PAUSE_SECONDS = 0.05
PAUSES_MAX = 200  # for a store that is being opened, which takes a second or two


def recovered_view(disk: Disk, directory: str) -> Disk:
    """
    Return a disk on which the redo log has been applied to the files.

    The newest groups of a store that is in use, or that was not closed, are only in its redo log
    until their page is full. Of a store in use, what it has synced is applied; one that is just
    being opened is waited for. Where there is no redo log, or it is damaged, or the files are about
    to be deleted, the files are as they are; also from the moment on in which others have come
    instead of them (RESET MASTER).

    Args:
        disk: where the directory is; it is only read.
        directory: its path.

    Raises:
        FormatError: the reset marker is damaged.
        DiskError: files cannot be read.
    """
    return look_at_redo(disk, directory).disk


def look_at_redo(
    disk: Disk, directory: str, pause: Callable[[float], object] = time.sleep
) -> RedoCheck:
    """
    Return the disk that `recovered_view` does, and what the redo log says; raises the same.

    A look at a store that is just being opened would find less than there was before: *pause*
    waits for so many seconds, and it is looked again.
    """
    looks, pauses = LOOKS_MAX, PAUSES_MAX
    while True:
        redo = _look(disk, directory)
        if redo.is_opened_now and pauses:
            pauses -= 1
            pause(PAUSE_SECONDS)
        elif looks > 1 and redo.begun_anew():
            looks -= 1
        else:
            return redo


def _look(disk: Disk, directory: str) -> RedoCheck:
    files_now = None
    if any(disk.exists(f"{directory}/{name}") for name in SEGMENT_NAMES):
        files_now = FilesNow(disk, directory)
    if ResetMarker(disk, directory).read() is not None or files_now is None:
        return RedoCheck(disk, None, [])
    begun_anew = files_now.are_begun_anew
    return check_redo(disk, directory, begun_anew)._replace(begun_anew=begun_anew)
