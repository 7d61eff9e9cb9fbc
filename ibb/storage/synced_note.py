"""
What an open store tells those who look at its directory: how far its redo log is synced.

What stands in the log behind that may still get lost, so nobody is shown it while the store
lives; when nobody holds the lock, the next opening brings back all of the log. The note stands in
the lock file: u64 LSN, u32 CRC-32C over it. It is never synced, since it matters only to the
processes of this moment, and what it says stays true when the log goes on.
"""

import struct

from ibb.protocol.checksum import crc32c

from .disk import Disk, Lock
from .errors import DiskError

LOCK_NAME = "ibb.lock"
NOTHING_SYNCED = 0  # below every LSN
_LSN = struct.Struct("<Q")
_CRC = struct.Struct("<I")


class SyncedNote:
    """
    The writing side.

    Args:
        lock: of the directory, held.
    """

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._writable = True

    def write(self, lsn: int) -> None:
        """Say that everything before *lsn* is synced."""
        if not self._writable:
            return
        data = _LSN.pack(lsn)
        try:
            self._lock.write_note(data + _CRC.pack(crc32c(data)))
        except DiskError:
            self._writable = False  # others are shown less than there is, and nothing is lost


def certain_lsn(disk: Disk, directory: str) -> int | None:
    """
    Return the LSN up to which a redo log may be shown to others; None: all of it.

    Ask after the newest segment was found: a store that is opened later begins another one.

    Raises:
        DiskError: the lock file cannot be read.
    """
    note = disk.lock_note(f"{directory}/{LOCK_NAME}")
    if note is None:
        return None
    data, crc = note[: _LSN.size], note[_LSN.size :]
    if len(data) < _LSN.size or crc != _CRC.pack(crc32c(data)):
        return NOTHING_SYNCED  # the store is being opened
    lsn: int = _LSN.unpack(data)[0]
    return lsn
