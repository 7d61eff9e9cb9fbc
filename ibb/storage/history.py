"""What the server needs of a store, or of a directory that another program writes."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ibb.protocol.binlog_state import BinlogState

from .format_catalogue import FormatCatalogue
from .holds import Hold, HoldKind
from .page_source import PageSource
from .position import Position
from .rising_note import RisingNote


class BinlogFileInfo(NamedTuple):
    """A line of SHOW BINARY LOGS; *size* is the physical one, in bytes."""

    name: str
    file_no: int
    size: int


class PagedHistory(Protocol):
    """A history as far as its pages are concerned. Safe to use from several threads."""

    @property
    def pages(self) -> PageSource:
        """The pages, up to what is durable."""

    @property
    def generation(self) -> int:
        """How often it was begun anew under its readers' hands; then nothing fits what they had."""

    def end(self) -> Position:
        """Return the durable end."""


class History(PagedHistory, Protocol):
    """
    A history of event groups that can be served. Safe to use from several threads.

    Attributes:
        rising_note: of files that searches need not look at; another one when it is begun anew.
    """

    rising_note: RisingNote

    @property
    def formats(self) -> FormatCatalogue:
        """Which format description is in force where."""

    def state(self) -> BinlogState:
        """Return the binlog state of everything durable; a copy."""

    def files(self) -> list[BinlogFileInfo]:
        """Return the files, oldest first, the empty preallocated one too."""

    def is_still(self, generation: int) -> bool:
        """Tell whether all that was read until now was of *generation*, if it was that before."""

    def refresh(self) -> None:
        """Make what was written lately durable, or look for what others wrote: a reader waits."""

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """
        Have *wake* called, from any thread, when there may be more to read; it must not block.

        That is when the durable end has moved, and in a store whose commits do not sync (modes 0
        and 2) also when a group begins to wait for a sync, which `refresh` then makes.

        Returns:
            A function that ends the subscription.
        """

    def hold(self, kind: HoldKind, name: str) -> Hold:
        """Keep all files from purge, until the hold is moved on or released."""
