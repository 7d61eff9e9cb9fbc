"""
A GTID position as a cut through the files: which groups are on this side of it, domain by domain.

The domains of a position may be anywhere in the files, so a cut has a place for each. Groups are
told apart by where they are, not by their numbers, which need not ascend; so any part of the
files can be read by itself and nothing comes twice or is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import check_position
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.gtid import GtidPosition
from ibb.storage.group_reader import GroupReader
from ibb.storage.group_runs import places_from
from ibb.storage.gtid_search import StartPlace, find_oldest, find_start
from ibb.storage.position import NOWHERE, Position
from ibb.storage.state_scan import read_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.page_source import PageSource

_UNREACHED: Final = "GTID %s is not in the binlog"
_UNCLEAR: Final = (
    "GTID %s is not where it should be in the binlog: %s comes first. Either it is missing there, "
    "or numbers of this server fall (gtid_strict_mode=1 at the source prevents that)"
)


class Cut(NamedTuple):
    """
    A cut.

    Attributes:
        place: where a reader begins that wants all groups behind the cut.
        behind: by domain the first place behind the cut; a domain that is not listed has nothing
            before it.
    """

    place: Position
    behind: dict[int, Position]

    def is_before(self, domain: int, position: Position) -> bool:
        """Tell whether a group of *domain* that is at *position* lies before the cut."""
        return position < self.behind.get(domain, NOWHERE)

    @property
    def end(self) -> Position:
        """Where all is behind the cut; nowhere if nothing is before it."""
        return max(self.behind.values(), default=NOWHERE)


def cut_at_beginning(pages: PageSource) -> Cut:
    """
    Return the cut before the oldest group that is whole.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    return Cut(find_oldest(pages), {})


def cut_behind(pages: PageSource, state: BinlogState, position: GtidPosition) -> Cut:
    """
    Return the cut behind the groups of *position*.

    Args:
        pages: the files.
        state: at their end.
        position: a domain that the history does not know is left out.

    Raises:
        SqlError: 1236, a GTID is not in the history, or it cannot be told where it is.
        TooOld: files that hold groups behind the position have been purged.
        FormatError: the pages that have to be read are damaged.
    """
    unknown = check_position(state, position)
    known = GtidPosition(gtid for gtid in position if gtid.domain not in unknown)
    return _scanned(pages, find_start(pages, known), known, state)


def cut_of_what_is_left(pages: PageSource, state: BinlogState, position: GtidPosition) -> Cut:
    """
    Return the cut behind *position* as far as it is there still: what was purged counts as had.

    Args:
        pages: the files.
        state: at their end.
        position: a domain that the history does not know is left out.

    Raises:
        SqlError: 1236, a GTID is not there, or it cannot be told where it is.
        FormatError: the pages that have to be read are damaged.
    """
    place = find_oldest(pages)
    known = _full_state(pages, place.file_no)
    left = GtidPosition(
        gtid
        for gtid in position
        if state.newest(gtid.domain) is not None and not known.contains(gtid)
    )
    return _scanned(pages, StartPlace(place, known), left, state)


def position_at_beginning(pages: PageSource) -> GtidPosition:
    """
    Return the position of who had all that was purged, and nothing of what is there.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    return _full_state(pages, find_oldest(pages).file_no).position()


def _full_state(pages: PageSource, file_no: int) -> BinlogState:
    full = read_state(pages, file_no, 1)
    return BinlogState(() if full is None else full.entries)


def _scanned(pages: PageSource, found: StartPlace, known: GtidPosition, state: BinlogState) -> Cut:
    """
    Read on from a place until every domain of a position is reached.

    The newest GTID of a server is surely there: a higher number before it tells that numbers fall
    in this history. Any other may have been passed before the place, so that it stops the search.

    Raises:
        SqlError: 1236, a GTID is not there, or it cannot be told where it is.
        FormatError: the pages that have to be read are damaged.
    """
    behind = {gtid.domain: found.position for gtid in known}
    waiting = {
        gtid.domain: gtid for gtid in known if found.state.seq(gtid.domain, gtid.server) != gtid.seq
    }
    for gtid, place, _ in places_from(pages, found.position) if waiting else ():
        wanted = waiting.get(gtid.domain)
        if wanted is None:
            continue
        if gtid == wanted:
            del waiting[gtid.domain]
        elif (
            gtid.server == wanted.server
            and gtid.seq > wanted.seq
            and state.seq(gtid.domain, gtid.server) != wanted.seq
        ):
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(_UNCLEAR % (wanted, gtid))
        behind[gtid.domain] = just_behind(place)
        if not waiting:
            break
    for gtid in waiting.values():
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(_UNREACHED % (gtid,))
    return Cut(found.position, behind)


def groups_behind(pages: PageSource, cut: Cut) -> Iterator[StoredGroup]:
    """
    Yield the groups behind a cut, oldest first; each must be used before the next is taken.

    Raises:
        FormatError: the pages that have to be read are damaged.
    """
    reader = GroupReader(pages, cut.place)
    while (group := reader.next()) is not None:
        if group.gtid is not None and not cut.is_before(group.gtid.domain, group.position):
            yield group


def just_behind(position: Position) -> Position:
    """Return a place behind the beginning of the record at *position*, and before all others."""
    return Position(position.file_no, position.offset + 1)
