"""The groups behind a GTID position, for readers inside the program."""

from collections.abc import Iterator

from ibb.protocol.dump_filter import DumpFilter, Verdict, check_position
from ibb.protocol.gtid import GtidPosition

from .group_reader import GroupReader, StoredGroup
from .gtid_search import find_oldest, find_start
from .history import History
from .holds import Hold


def groups_from(
    history: History, start: str | GtidPosition | None, hold: Hold
) -> Iterator[StoredGroup]:
    """
    Yield the groups and format descriptions behind *start* up to the end at the time of asking.

    Args:
        history: where they are.
        start: the last GTID had in each domain; None: from the oldest group that is whole.
        hold: keeps their files meanwhile.

    Raises:
        SqlError: 1236, the position is unknown here.
        TooOld: files that the position needs have been purged.
        FormatError: the binlog is damaged; names file and page.
    """
    wanted: DumpFilter | None = None
    if start is None:
        place = find_oldest(history.pages)
    else:
        position = GtidPosition.parse(start) if isinstance(start, str) else start.copy()
        unknown = check_position(history.state(), position)
        found = find_start(history.pages, position)
        place = found.position
        wanted = DumpFilter(position, found.state, empty_domains=unknown, state_now=history.state)
    hold.move(place.file_no)
    reader, end = GroupReader(history.pages, place), history.end()
    while (group := reader.next()) is not None and group.position < end:
        hold.move(group.position.file_no)
        if group.gtid is None or wanted is None or wanted.wants(group.gtid) is Verdict.SEND:
            yield group
