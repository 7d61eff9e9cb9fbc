"""
A partition that is read off a server: the groups between two GTID positions, domain by domain.

Whoever reads it has a connection of its own, asks for what is behind the start, and is through when
each domain has come to its end: so a group that is missing at either end is noticed.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.gtid_event import GtidEvent, GtidFlag

from .errors import DataLossError, ServerRefused
from .server_history import ServerHistory, groups_behind, is_refused_position, is_unclear_position

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ibb.protocol.gtid_event import XaId

    from .event_groups import EventGroup
    from .server_address import ServerAddress
    from .server_dump import ReceivedGroup

END_SECONDS_MAX: Final = 60  # until a dump has a group that the server says to have
ASK_AGAIN_SECONDS: Final = 0.1
PREPARED_MAX: Final = 10_000  # transactions of which it is known where they were prepared


@dataclass(frozen=True, slots=True)
class ServerTask:
    """
    One partition.

    Attributes:
        address: the server.
        start: the last GTID had in each domain.
        end: the last one wanted in each; a domain that is not listed is left out.
        others: where domains that are left out are, so that the server leaves them out, too.
        since: seconds since 1970, or None.
        before: seconds since 1970, or None.
    """

    address: ServerAddress
    start: str
    end: str
    others: str
    since: float | None
    before: float | None

    @property
    def place(self) -> str | None:
        """There are no files."""
        return None

    def open(self) -> ServerGroups:
        """Return its groups; the server is reached when they are read."""
        return ServerGroups(self)

    def is_within_times(self, group: ReceivedGroup) -> bool:
        """Tell whether a group is of the time that is wanted."""
        if self.since is not None and group.timestamp < self.since:
            return False
        return self.before is None or group.timestamp < self.before


class ServerGroups:
    """The groups of a partition, as they come; a context manager."""

    def __init__(self, task: ServerTask) -> None:
        self._task = task
        self._reached = GtidPosition.parse(task.start)
        for gtid in GtidPosition.parse(task.others):
            self._reached.set(gtid)
        end = GtidPosition.parse(task.end)
        self._missing = {
            gtid.domain: gtid for gtid in end if gtid != self._reached.get(gtid.domain)
        }
        self._prepared: dict[XaId, str] = {}  # by transaction the position before its group

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._missing.clear()

    def groups(self) -> Generator[EventGroup, None, None]:
        """
        Yield the groups, in the server's order.

        Raises:
            FormatError: what comes is damaged, or is not all that was planned.
            DataLossError: groups were purged since it was planned.
            ServerRefused: the server is not there, or the connection broke.
        """
        deadline = time.monotonic() + END_SECONDS_MAX
        while self._missing:
            for group in self._one_dump():
                deadline = time.monotonic() + END_SECONDS_MAX
                if self._task.is_within_times(group):
                    yield group
            if not self._missing:
                return
            if time.monotonic() > deadline:
                wanted = ", ".join(str(gtid) for gtid in self._missing.values())
                raise FormatError(
                    f"server {self._task.address} ends before {wanted}, which this read was planned"
                    " for: its binlog was begun anew, or its GTIDs are not in ascending order"
                )
            time.sleep(ASK_AGAIN_SECONDS)  # what is committed may show in a dump only later

    def runs(self) -> Iterator[EventGroup]:
        """Yield the same: they come one by one."""
        return self.groups()

    def again(self, group: EventGroup) -> EventGroup:
        """Return the same group: what was received may be read twice."""
        return group

    def prepared(self, before: EventGroup, xa_id: XaId) -> EventGroup | None:
        """
        Return the last group before one that prepared an XA transaction; None: it is gone.

        It is looked for from the beginning of the server's binlog, if not in this partition.
        """
        start = self._prepared.get(xa_id)
        if start is None:
            with closing(ServerHistory(self._task.address)) as history:
                start = str(history.oldest())
        found: ReceivedGroup | None = None
        with closing(groups_behind(self._task.address, GtidPosition.parse(start))) as groups:
            for group in groups:
                if group.gtid == before.gtid:
                    break
                event = GtidEvent.parse(group.head)
                if event.flags2 & GtidFlag.PREPARED_XA and event.xa_id == xa_id:
                    if found is not None:
                        found.close()
                    found = group.kept()
                    if xa_id in self._prepared:
                        break  # it is the last one
        return found

    def _one_dump(self) -> Iterator[ReceivedGroup]:
        """Yield the groups of one dump that are wanted, up to its end or ours."""
        try:
            with closing(groups_behind(self._task.address, self._reached)) as groups:
                for group in groups:
                    gtid = group.gtid
                    assert gtid is not None
                    if gtid.domain not in self._missing:
                        continue  # a domain that has come to its end, or is left out
                    self._note_prepared(group)
                    self._reached.set(gtid)
                    yield group
                    if self._missing[gtid.domain] == gtid:
                        del self._missing[gtid.domain]
                        if not self._missing:
                            return
        except SqlError as error:
            if not is_refused_position(error):
                raise ServerRefused(f"server {self._task.address}: {error}") from error
            lacks = "cannot tell which" if is_unclear_position(error) else "has no"
            raise DataLossError(
                f"server {self._task.address} {lacks} groups are behind '{self._reached}': {error}"
            ) from error

    def _note_prepared(self, group: ReceivedGroup) -> None:
        event = GtidEvent.parse(group.head)
        if event.flags2 & GtidFlag.PREPARED_XA and event.xa_id is not None:
            if len(self._prepared) >= PREPARED_MAX:
                self._prepared.clear()
            self._prepared[event.xa_id] = str(self._reached)
