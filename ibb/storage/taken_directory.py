"""A directory that a store has to itself."""

from contextlib import ExitStack

from .backup import check_finished
from .disk import Disk
from .os_disk import OsDisk
from .synced_note import LOCK_NAME


class TakenDirectory:
    """
    A directory that is locked, and stays the one that it was when its path leads elsewhere.

    Args:
        path: of the directory, which is made if it is missing.
        disk: where it is; None: the operating system's file system.

    Attributes:
        path: for messages, and for names on the disk.
        disk: reaches what is in it.
        lock: keeps every other writer out.

    Raises:
        StoreLocked: somebody else writes it.
        BackupError: it is a copy that was not finished.
        DiskError: it cannot be used.
    """

    def __init__(self, path: str, disk: Disk | None = None) -> None:
        disk = disk or OsDisk()
        disk.make_dir(path)
        with ExitStack() as held:
            if isinstance(disk, OsDisk):
                held.callback(disk.let_go, disk.hold(path))
            check_finished(disk, path)
            self.path = path
            self.disk = disk
            self.lock = disk.lock(f"{path}/{LOCK_NAME}")
            held.callback(self.lock.release)
            self._held = held.pop_all()

    def give_up(self) -> None:
        """Let others have it; a second call does nothing."""
        self._held.close()
