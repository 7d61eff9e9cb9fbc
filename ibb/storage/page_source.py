"""Where readers get pages from: files at rest, files another program writes, or our own writer."""

from enum import Enum, auto
from typing import NamedTuple, Protocol

from ibb.protocol.gtid import Gtid

from .file_header import FileHeader
from .file_states import FileStates
from .healed_reads import HealedReads


class PageStatus(Enum):
    """What comes behind `PageRead.end`."""

    PAGE = auto()  # the next page of the file; if `end` is not the chunk area's: nothing yet
    END_OF_FILE = auto()  # page 1 of the next file
    END_OF_DATA = auto()  # nothing yet: ask for this page again later


class PageRead(NamedTuple):
    """
    What can be seen of one page.

    Attributes:
        data: the page image, checked; only `data[:end]` may be looked at, and it may be empty.
        end: first byte that is not chunk area or not visible yet; at most page size - 4.
        status: what follows. A page that ended the data must be thrown away, for it can grow.
    """

    data: bytes
    end: int
    status: PageStatus


NO_MORE_DATA = PageRead(b"", 0, PageStatus.END_OF_DATA)
NO_MORE_PAGES = PageRead(b"", 0, PageStatus.END_OF_FILE)


class PageSource(Protocol):
    """
    Pages by number, up to some limit that only grows. Safe to use from several threads.

    Attributes:
        tail_is_final: data never ends inside a record, because the writer is in this process.
        healed: pages that were wrong when read first.
        file_states: what files were seen to begin with.
    """

    tail_is_final: bool
    healed: HealedReads
    file_states: FileStates

    def first_file(self) -> int:
        """Return the lowest file number that exists; 0 when there is none."""

    def last_file(self) -> int:
        """Return the highest number that holds data; below `first_file` when none does."""

    def file_numbers(self) -> list[int]:
        """Return those numbers of these bounds of which there is a file, in order."""

    def header(self, file_no: int) -> FileHeader | None:
        """
        Return a file's header, or None if the file is missing or still empty.

        Raises:
            FormatError: it is damaged.
        """

    def first_state(self, file_no: int) -> list[Gtid] | None:
        """Return the entries that a file begins with; None: only its page 1 may tell, see there."""

    def read_page(self, file_no: int, page_no: int) -> PageRead:
        """
        Return page *page_no* (1 or higher) of a file that has a header, or what is in its place.

        Raises:
            FormatError: it is damaged; all zero although a later page is not, too.
        """
