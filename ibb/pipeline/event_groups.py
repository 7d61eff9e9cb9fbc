"""What the rows of the data source are made from: event groups, of files or off a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ibb.protocol.gtid import Gtid
    from ibb.protocol.gtid_event import XaId
    from ibb.storage.group_runs import GroupBlock
    from ibb.storage.position import Position


class EventGroup(Protocol):
    """
    One event group, used before the next is taken.

    Attributes:
        gtid: None for what is no group but describes the format.
        position: in the files; `NOWHERE` off a server.
    """

    gtid: Gtid | None
    position: Position

    @property
    def head(self) -> bytes:
        """The GTID event, without checksum."""

    @property
    def timestamp(self) -> int:
        """Seconds since 1970 in the GTID event's header."""

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Return an iterator over every byte of the group; to be called once."""


class OpenGroups(Protocol):
    """The groups of one partition, open to be read; a context manager that closes them."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(self, *error: object) -> None:
        """Close what is open."""

    def groups(self) -> Generator[EventGroup, None, None]:
        """
        Yield the groups, in order.

        Raises:
            FormatError: something is damaged, or is gone since the read was planned.
            DiskError: a file cannot be read.
        """

    def runs(self) -> Iterator[EventGroup | GroupBlock]:
        """
        Yield the groups, in order, many at a time where that can be.

        Raises:
            FormatError: something is damaged, or is gone since the read was planned.
            DiskError: a file cannot be read.
        """

    def again(self, group: EventGroup) -> EventGroup:
        """Return the group that was yielded last once more, its pieces not taken yet."""

    def prepared(self, before: EventGroup, xa_id: XaId) -> EventGroup | None:
        """Return the last group before one that prepared an XA transaction; None: it is gone."""


class ReadTask(Protocol):
    """One partition: a plan that travels to whoever reads it."""

    @property
    def place(self) -> str | None:
        """The directory of its files, None off a server."""

    def open(self) -> OpenGroups:
        """
        Open what it reads.

        Raises:
            FormatError: it is not what the read was planned for.
            DiskError: a file cannot be read.
            ServerRefused: the server is not there, or not to be read.
        """
