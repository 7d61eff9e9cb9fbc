"""
The reset marker: RESET MASTER happens wholly or not at all.

Deleting files takes many steps. Before the first one a small file says that all of them have to
go and which GTID state comes after; whoever finds it on opening goes on deleting. It is removed
once the new first file is durable.
"""

from collections.abc import Callable

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .disk import Disk
from .errors import DiskError, StoreFull
from .file_name import binlog_name
from .format_catalogue import SIDECAR_NAME
from .listing import list_files
from .rising_note import NOTE_NAME
from .small_file import read_small_file, replace_small_file

MARKER_NAME = "ibb-reset"


class ResetMarker:
    """
    The marker of one directory.

    Args:
        disk: where the directory is.
        directory: its path.
    """

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{MARKER_NAME}"

    def write(self, state: BinlogState, in_doubt: Callable[[BaseException], None]) -> None:
        """
        Decide, durably, that all files have to go and that *state* comes after.

        Args:
            state: to begin with.
            in_doubt: is told what went wrong where only an opening can tell what is decided.

        Raises:
            StoreFull: there is no room; nothing is decided.
            DiskError: *in_doubt* was told.
        """
        text = str(state).encode()
        try:
            replace_small_file(self._disk, self._path, crc32c(text).to_bytes(4, "little") + text)
        except BaseException as error:
            is_full = isinstance(error, DiskError) and error.full
            if is_full and not self._disk.exists(self._path):
                raise StoreFull(f"no room to note that all is to be deleted: {error}") from error
            in_doubt(error)
            raise

    def read(self) -> BinlogState | None:
        """
        Return the state that comes after, or None if nothing was decided.

        Raises:
            FormatError: the marker is damaged.
        """
        return read_small_file(self._disk, self._path, self._parse)

    def _parse(self, data: bytes) -> BinlogState:
        if len(data) < 4 or crc32c(data[4:]) != int.from_bytes(data[:4], "little"):
            raise FormatError(
                "the reset marker is damaged: remove it to keep the binlog as it is",
                file=self._path,
            )
        return BinlogState.parse(data[4:].decode())

    def finish_deleting(self) -> BinlogState | None:
        """
        Delete all binlog files if that was decided; return the state that comes after, or None.

        Raises:
            FormatError: the marker is damaged.
        """
        state = self.read()
        if state is None:
            return None
        for file_no in list_files(self._disk, self._directory):
            self._disk.unlink(f"{self._directory}/{binlog_name(file_no)}")
        for name in (SIDECAR_NAME, NOTE_NAME):
            if self._disk.exists(f"{self._directory}/{name}"):
                self._disk.unlink(f"{self._directory}/{name}")
        self._disk.sync_dir(self._directory)
        return state

    def remove(self) -> None:
        """The new first file is durable."""
        if self._disk.exists(self._path):
            self._disk.unlink(self._path)
            self._disk.sync_dir(self._directory)
