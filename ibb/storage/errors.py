"""What can go wrong below the format: the disk failed, or the directory belongs to somebody."""

import errno

from ibb.protocol.errors import IbbError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class DiskError(IbbError):
    """
    A call to the disk failed.

    Attributes:
        errno: the operating system's number.
        operation: what was tried, e.g. `read`.
        path: the file or directory.
        offset: byte offset in the file, None where it has no meaning.
        page: number of the page there, None where it is not a matter of pages.
    """

    def __init__(
        self,
        code: int,
        text: str,
        *,
        operation: str,
        path: str,
        offset: int | None = None,
        page: int | None = None,
    ) -> None:
        place = path if page is None else f"{path} page {page}"
        place = place if offset is None else f"{place} at {offset}"
        super().__init__(f"cannot {operation} {place}: {text}")
        self.errno = code
        self.text = text
        self.operation = operation
        self.path = path
        self.offset = offset
        self.page = page

    def at_page(self, page: int, offset: int) -> "DiskError":
        """Return the same error, naming a page and its byte offset in the file too."""
        return DiskError(
            self.errno,
            self.text,
            operation=self.operation,
            path=self.path,
            offset=offset,
            page=page,
        )

    @property
    def missing(self) -> bool:
        """The file or directory is not there."""
        return self.errno == errno.ENOENT

    @property
    def begun_anew(self) -> bool:
        """The file is of a history that was deleted meanwhile."""
        return self.errno == errno.ESTALE

    @property
    def full(self) -> bool:
        """There is no room, or no descriptor or memory for now: it may work later."""
        return self.errno in _FULL or self.errno in _SHORT


class BegunAnewError(DiskError):
    """
    The files were deleted and begun anew while they were read: what comes is another history.

    Args:
        path: the file that was to be read next.
    """

    def __init__(self, path: str) -> None:
        text = "the binlog was deleted and begun anew (RESET MASTER) while it was being read"
        super().__init__(errno.ESTALE, text, operation="read", path=path)


class NoBinlog(IbbError):  # noqa: N818 - a state of the world, named as its user says it
    """
    A directory that is to be read holds no binlog.

    Args:
        directory: its path.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"no binlog is in {directory} (no file binlog-NNNNNN.ibb): is it the right directory, "
            "its file system mounted, and has its server begun to write?"
        )


class StoreLocked(IbbError):  # noqa: N818 - a state of the world, named as its user says it
    """Another process, or another store of this one, writes the directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is locked: another process writes this directory")
        self.path = path


class StoreFailed(IbbError):  # noqa: N818 - as above
    """
    The store cannot write any more: a write or sync failed and is never pretended to have worked.

    Readers go on with what is durable. Opening the store again recovers it.
    """

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"the store has stopped writing: {str(cause) or type(cause).__name__}")


class StoreFull(IbbError):  # noqa: N818 - as above
    """The next file cannot be made now; nothing of the group was written. Try again later."""


class NoSecondFile(StoreFull):
    """
    A record that is begun reaches into a third file, and there is no room to make it.

    Only GTID states that fill whole files make a record so long. Half of it is in memory, so the
    store stops: opened again, with room, it goes on behind the last whole record.
    """


class GroupError(IbbError):
    """A program tried to publish something that is not an event group."""


class RecoveryError(IbbError):
    """
    The redo log and the files contradict each other.

    Pages that the log tells of before that place may have been written to the files, no others.
    """


class StoreBusy(IbbError):  # noqa: N818 - as above
    """Transactions that are open or prepared stand in the way."""


class StoreNotEmpty(IbbError):  # noqa: N818 - as above
    """The GTID state can only be set while nothing was logged."""

    def __init__(self) -> None:
        super().__init__(
            "This operation is not allowed if any GTID has been logged to the binary log. "
            "Run RESET MASTER first to erase the log"
        )


class StateTooLarge(IbbError):  # noqa: N818 - as above
    """A GTID state does not fit into the file that is to begin with it: a restart would miss it."""

    def __init__(self, pairs: int) -> None:
        super().__init__(
            f"a GTID state of {pairs} (domain, server) pairs does not fit into a file of this size"
        )


class DomainInUse(IbbError):  # noqa: N818 - as above
    """A domain cannot be deleted from the GTID state."""

    def __init__(self, domain: int) -> None:
        super().__init__(
            "Could not delete gtid domain. Reason: binlog files may contain gtids from the domain "
            f"('{domain}') being deleted. Make sure to first purge those files."
        )
        self.domain = domain


class UnknownFile(IbbError):  # noqa: N818 - as above
    """A binlog file that was named does not exist (error 1373 of MariaDB)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Target log not found in binlog index: '{name}'")


class LeaseError(IbbError):
    """A lease cannot be made or does not exist."""


class BackupError(IbbError):
    """A backup cannot be made there."""
