"""Where a writer goes on, and what it needs there: pages and files."""

from typing import NamedTuple, Protocol

from ibb.protocol.binlog_state import BinlogState

from .fifo_page import FifoPage
from .file_header import FileHeader
from .file_shape import FileShape


class WriterPlace(NamedTuple):
    """Where a writer goes on."""

    header: FileHeader
    page_no: int  # the page that takes the next byte; may be one past the file's last
    tail: FifoPage | None  # that page, if it has bytes already
    full: BinlogState  # of everything written
    differential: BinlogState  # what was written behind page 1 of this file


class Pages(Protocol):
    """Takes the writer's pages: the page FIFO."""

    def append(self, file_no: int, page_no: int, page_size: int) -> FifoPage:
        """Add the next page and return it."""


class NextFile(Protocol):
    """Gives the writer its files; implemented by the store."""

    def next_file(self, file_no: int) -> FileShape:
        """
        Return what a file is like, made if it is missing.

        Raises:
            StoreFull: there is no room for it.
        """

    def file_entered(self, file_no: int) -> None:
        """Learn that the writer has gone over to a file."""
