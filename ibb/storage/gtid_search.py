"""
Where a replica's stream begins: the newest state record that is not after its position.

Inside the file that `file_search` finds, the differential states are bisected, by guesses where
they help. The groups behind that place are everything the position needs, and at most an interval's
worth that it does not; where one server alone has logged these, and they are not large, not even
that. Source: ibb-format 8.3, 8.4.
"""

from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError, IbbError
from ibb.protocol.gtid import Gtid, GtidPosition

from .errors import DiskError
from .file_search import learn_state, search_files
from .first_page import find_on_first_page
from .group_head import read_head
from .page_search import GUESSES_MAX, are_large, find_behind
from .page_source import PageSource
from .position import Position
from .record import RecordType
from .record_reader import RecordReader
from .state_scan import read_state


class TooOld(IbbError):  # noqa: N818 - a state of the world
    """Groups that the position needs were in files that have been purged."""

    def __init__(self, position: GtidPosition, first_file: int) -> None:
        super().__init__(f"position '{position}' needs groups from before file {first_file}")


class StartPlace(NamedTuple):
    """Where to read from, and the state there: what was logged before that place."""

    position: Position
    state: BinlogState


class Newest(NamedTuple):
    """
    What was the newest a moment ago.

    Attributes:
        end: of the history of our own writer.
        state: of all before that end, and perhaps of more; taken behind it.
    """

    end: Position
    state: BinlogState


def find_start(
    source: PageSource, position: GtidPosition, newest: Newest | None = None
) -> StartPlace:
    """
    Find the place from which everything that *position* needs can be read.

    Args:
        source: the pages.
        position: what the reader has.
        newest: what there was a moment ago, if it is known.

    Files that are damaged or cannot be read are stepped over backward like those without a full
    state; whoever reads from the place found meets the damage when it is due.

    Raises:
        TooOld: files that it needs have been purged.
        FormatError, DiskError: it would be found, were it not for this damage.
    """
    first, oldest = source.first_file(), find_oldest(source).file_no
    near: tuple[Position, BinlogState] | None = None

    def is_certain(file_no: int, base: BinlogState) -> bool:
        nonlocal near
        near = find_on_first_page(source, file_no, base, position)
        return near is not None

    found = search_files(source, position, is_certain)
    if found is None:
        if source.last_file() < first:
            return StartPlace(Position(first, 0), BinlogState())
        raise TooOld(position, first)
    file_no, base = found
    if base is None:
        return StartPlace(Position(file_no, _page_size(source, file_no)), BinlogState())
    if near is None or near[0].file_no != file_no:  # of a search that was begun again, perhaps
        near = find_on_first_page(source, file_no, base, position)
    if near is not None:
        place = StartPlace(*near)
    else:
        place = _search_file(source, file_no, base.copy(), position, newest)
    if file_no < oldest and _lacks_pieces(source, place, position, oldest):
        raise TooOld(position, oldest)
    return place


def _lacks_pieces(
    source: PageSource, place: StartPlace, position: GtidPosition, oldest: int
) -> bool:
    """Tell whether a group that a position needs, from a file before *oldest*, has lost pieces."""
    first, records = source.first_file(), RecordReader(source, place.position)
    try:
        while (record := records.next()) is not None and record.position.file_no < oldest:
            head = read_head(record) if record.type == RecordType.COMMIT else None
            if head is None or head.gtid is None:
                continue
            had = position.get(head.gtid.domain)
            is_needed = had is None or head.gtid.seq > had.seq
            if is_needed and any(events.first.file_no < first for events in head.lists):
                return True
    except (FormatError, DiskError):
        pass  # whoever reads from there meets the damage
    return False


def is_there(source: PageSource, position: GtidPosition) -> bool:
    """Tell whether nothing that a position needs was purged; what cannot be read tells nothing."""
    try:
        find_start(source, position)
    except TooOld:
        return False
    except (FormatError, DiskError):
        pass
    return True


def find_oldest(source: PageSource) -> Position:
    """
    Return the place behind which nothing of any group has been purged.

    The oldest files may have been kept only for pieces that groups of later files have in them;
    then groups that end in them may have lost their own beginning. Source: ibb-format 12.4.
    """
    first = source.first_file()
    try:
        for file_no in range(first, source.last_file() + 1):
            header = source.header(file_no)
            if header is None or header.lowest_oob_file >= first:
                return Position(first, 0) if file_no == first else find_file_start(source, file_no)
    except (FormatError, DiskError):
        pass  # whoever reads from the beginning meets the damage when it is due
    return Position(first, 0)


def find_file_start(source: PageSource, file_no: int) -> Position:
    """
    Return where a reader meets first the groups whose commit record begins in that file.

    Args:
        source: the pages.
        file_no: a file that exists; it may be empty still.

    Raises:
        FormatError: its header is damaged.
    """
    return Position(file_no, _page_size(source, file_no))


def _page_size(source: PageSource, file_no: int) -> int:
    """Return the offset of page 1; 0, which readers take for it, while the header is not there."""
    header = source.header(file_no)
    return 0 if header is None else header.page_size


def _search_file(
    source: PageSource,
    file_no: int,
    base: BinlogState,
    position: GtidPosition,
    newest: Newest | None,
) -> StartPlace:
    """Search a file whose full state, *base*, is early enough."""
    header = source.header(file_no)
    assert header is not None  # its page 1 was read
    if newest is not None and newest.end.file_no != file_no:
        newest = None
    late, count = _state_behind(source, file_no, newest), header.page_count
    if newest is not None:
        count = min(newest.end.offset // header.page_size + 1, count)
    pages, end = range(1, count), None if newest is None else newest.end
    has_states = 0 < header.state_interval < count
    near = _nearer(source, file_no, pages, (base, late), position, end, even_large=not has_states)
    if near is not None:
        return near
    stretch, state, behind = _bisect_states(source, file_no, pages, (base, late), position)
    place = StartPlace(Position(file_no, stretch.start * header.page_size), state)
    if stretch == pages:
        return place
    return _nearer(source, file_no, stretch, (state, behind), position, end) or place


def _bisect_states(
    source: PageSource,
    file_no: int,
    pages: range,
    states: tuple[BinlogState, BinlogState | None],
    position: GtidPosition,
) -> tuple[range, BinlogState, BinlogState | None]:
    """
    Return those of some pages that lie between the state before *position* and the next, and both.

    Args:
        source: the pages of all files.
        file_no: of the file.
        pages: of it.
        states: before those pages, and behind them; None: unknown, as in what is returned.
        position: what the reader has, which is not before the first state.
    """
    header = source.header(file_no)
    assert header is not None
    interval, found, stop, probes = header.state_interval, 1, pages.stop, 0
    (state, late), base = states, states[0]
    low, high = 0, pages.stop // interval + 1 if interval else 0  # in intervals
    floor = low  # no state up to there is still to be looked at
    middle = guess = _guess(low, floor, high, 0, _share(state, late, position))
    while guess > floor:
        page_no = middle * interval
        entries = _differential(source, file_no, page_no) if page_no > 1 else None
        if entries is None and _is_there(source, file_no, page_no):
            middle -= 1  # left out there: the one before will do
            if middle > floor:
                continue
            floor = guess
        elif entries is None:
            high, stop = middle, page_no
        else:
            candidate = base.copy()
            candidate.load(entries)
            if candidate.is_before(position):
                low, floor, found, state = middle, guess, page_no, candidate
            else:
                high, stop, late = middle, page_no, candidate
        probes += 1
        middle = guess = _guess(low, floor, high, probes, _share(state, late, position))
    return range(found, stop), state, late


def _guess(low: int, floor: int, high: int, probes: int, share: float | None) -> int:
    """
    Return which interval to look at next.

    Args:
        low: behind which the place is.
        floor: behind which there is one to look at; it is returned if there is none.
        high: before which the place is.
        probes: that were looked at already.
        share: of what lies between *low* and *high*, before the place; None: unknown.
    """
    is_middle_due = probes >= GUESSES_MAX and probes % 2 == 0
    if share is None or is_middle_due or high - floor < 2:
        return (floor + high) // 2
    return min(max(low + int((high - low) * share), floor + 1), high - 1)


def _share(state: BinlogState, late: BinlogState | None, position: GtidPosition) -> float | None:
    """Return about how much of what was logged between two states a position has, if it tells."""
    shares: list[float] = []
    if late is None:
        return None
    for domain, server, seq in position:
        before, last = state.seq(domain, server) or 0, late.seq(domain, server) or 0
        if last > before:
            # Of whom it has nothing new, what comes next is what is behind it.
            shares.append((max(seq, before + 1) - before) / (last - before))
    return min(shares, default=None)


def _nearer(
    source: PageSource,
    file_no: int,
    pages: range,
    states: tuple[BinlogState, BinlogState | None],
    position: GtidPosition,
    end: Position | None,
    *,
    even_large: bool = False,
) -> StartPlace | None:
    """
    Return the place behind the position's own group, if it can be found in some pages.

    Args:
        source: the pages of all files.
        file_no: of the file.
        pages: those of it that are searched.
        states: before them, and behind them if it is known.
        position: what the reader has, which is not before the first state.
        end: up to where the second state surely holds everything; None: in all those pages.
        even_large: look for it among large groups, too, of which most looks meet no end.
    """
    state, late = states
    if late is None:
        return None
    logged = [gtid for gtid in late.entries() if state.seq(gtid.domain, gtid.server) != gtid.seq]
    if len(logged) != 1:
        return None
    wanted = position.get(logged[0].domain)
    if wanted is None or wanted.server != logged[0].server or wanted == state.newest(wanted.domain):
        return None
    if not late.contains(wanted):
        return None  # others may have logged before it, behind that state
    numbers = state.seq(wanted.domain, wanted.server), logged[0].seq
    if not even_large and are_large(pages, *numbers):
        return None
    behind = find_behind(source, file_no, pages, wanted, numbers)
    if behind is None or (end is not None and behind > end):
        return None
    there = state.copy()
    there.update(wanted)
    return StartPlace(behind, there)


def _state_behind(source: PageSource, file_no: int, newest: Newest | None) -> BinlogState | None:
    """Return a state that holds all that a file has, and nothing of later ones if there are any."""
    if file_no == source.last_file():
        return None if newest is None else newest.state
    return learn_state(source, file_no + 1)


def _differential(source: PageSource, file_no: int, page_no: int) -> list[Gtid] | None:
    """Return the entries of the state on a page; None if there is none that can be read."""
    try:
        record = read_state(source, file_no, page_no)
    except (FormatError, DiskError):
        return None
    return None if record is None else record.entries


def _is_there(source: PageSource, file_no: int, page_no: int) -> bool:
    """Tell whether a page holds data, damaged or not."""
    try:
        return source.read_page(file_no, page_no).end > 0
    except (FormatError, DiskError):
        return True
