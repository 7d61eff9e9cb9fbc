"""
What a batch read of a server reads: planned from its binlog state and the beginnings of its files.

Domain by domain, each border of a partition is a GTID that the server has, so partitions follow
each other exactly whatever its files are. Where there are too few files, domains are told apart.
"""

from __future__ import annotations

import itertools
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ibb.protocol.dump_filter import check_position
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition

from .errors import OptionError, ServerRefused
from .options import EARLIEST, LATEST
from .server_history import ServerHistory, is_refused_position
from .server_task import ServerTask

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from ibb.protocol.binlog_state import BinlogState
    from ibb.protocol.gtid import Gtid

    from .options import SourceOptions
    from .server_history import ServerFile


def plan_server_read(options: SourceOptions) -> list[ServerTask]:
    """
    Return the tasks of a batch read of a server.

    Raises:
        OptionError: an option does not fit what is there.
        ServerRefused: the server is not there, or not to be read.
    """
    with _planned(options) as (history, newest, start, end):
        tasks = tasks_behind(history, newest, start, end, options)
        if tasks:
            _check_not_purged(history, tasks[0], options.start)
        return tasks


def parts_backwards(options: SourceOptions) -> Iterator[ServerTask]:
    """
    Yield tasks that read what a batch read reads, a file at a time, the newest first.

    Raises:
        OptionError: an option does not fit what is there.
        ServerRefused: the server is not there, or not to be read.
    """
    with _planned(options) as (history, newest, _, end):
        start = history.oldest()
        files = files_between(history, start, end)
        domains = [gtid.domain for gtid in end]
        borders = [start, *(_clamped(place, start, end, domains) for _, place in files), end]
        for first, last in reversed(list(itertools.pairwise(borders))):
            yield _task(options, newest, first, last, domains)


@contextmanager
def _planned(
    options: SourceOptions,
) -> Iterator[tuple[ServerHistory, GtidPosition, GtidPosition, GtidPosition]]:
    """Ask the server; yield its history, where that ends, and the bounds that options want."""
    assert options.server is not None
    with closing(ServerHistory(options.server)) as history:
        state, newest = history.state()
        yield history, newest, *_bounds(history, options, state, newest)


def tasks_behind(
    history: ServerHistory,
    newest: GtidPosition,
    start: GtidPosition,
    end: GtidPosition,
    options: SourceOptions,
) -> list[ServerTask]:
    """
    Return the tasks that read what lies between two positions.

    Args:
        history: of the server.
        newest: a position that it has now.
        start: groups behind it.
        end: groups up to it; a domain that it does not list is left out.
        options: of the read.

    Raises:
        ServerRefused: the server is not there any more.
    """
    domains = [
        gtid.domain
        for gtid in end
        if gtid != start.get(gtid.domain)
        and (not options.domains or gtid.domain in options.domains)
    ]
    if not domains:
        return []
    borders = [start]
    for place in _cuts(history, start, end, options):
        cut = _clamped(place, start, end, domains)
        if any(cut.get(domain) != borders[-1].get(domain) for domain in domains):
            borders.append(cut)
    borders.append(end)
    ranges = list(itertools.pairwise(borders))
    shares = -(-options.partitions_min // len(ranges))  # of the domains of a range
    tasks = []
    for first, last in ranges:
        open_domains = [one for one in domains if first.get(one) != last.get(one)]
        tasks += [
            _task(options, newest, first, last, open_domains[number::shares])
            for number in range(min(shares, len(open_domains)))
        ]
    return tasks


def _task(
    options: SourceOptions,
    newest: GtidPosition,
    start: GtidPosition,
    end: GtidPosition,
    domains: Collection[int],
) -> ServerTask:
    assert options.server is not None
    return ServerTask(
        options.server,
        str(_of(start, domains)),
        str(_of(end, domains)),
        str(GtidPosition(gtid for gtid in newest if gtid.domain not in domains)),
        *options.times,
    )


def _of(position: GtidPosition, domains: Collection[int]) -> GtidPosition:
    return GtidPosition(gtid for gtid in position if gtid.domain in domains)


def _bounds(
    history: ServerHistory, options: SourceOptions, state: BinlogState, newest: GtidPosition
) -> tuple[GtidPosition, GtidPosition]:
    """Return the positions that the options want, checked."""
    start = newest
    if options.start == EARLIEST:
        start = history.oldest()
    elif options.start != LATEST:
        start = GtidPosition.parse(options.start)
        try:
            check_position(state, start)
        except SqlError as error:
            text = f"'{start}' does not fit the history: {error}"
            raise OptionError("startingGtid", text) from error
    if options.end == LATEST:
        return start, newest
    end = GtidPosition.parse(options.end)
    for gtid in end:
        if not state.contains(gtid):
            text = f"{gtid} is not in the history, which ends at {state}"
            raise OptionError("endingGtid", text)
        before = start.get(gtid.domain)
        if before is not None and before != gtid and before.seq >= gtid.seq:
            raise OptionError("endingGtid", f"{gtid} is before {before}, where the read begins")
    return start, end


def _check_not_purged(history: ServerHistory, task: ServerTask, given: str) -> None:
    """Ask the server for the beginning of a read; it refuses what it has purged."""
    position = GtidPosition([*GtidPosition.parse(task.start), *GtidPosition.parse(task.others)])
    try:
        history.first_behind(position)
    except SqlError as error:
        if not is_refused_position(error):
            raise ServerRefused(f"server {task.address}: {error}") from error
        text = f"groups behind '{given}' have been purged; earliest is left: {error}"
        raise OptionError("startingGtid", text) from error


def _cuts(
    history: ServerHistory, start: GtidPosition, end: GtidPosition, options: SourceOptions
) -> Iterator[GtidPosition]:
    """Yield the places where partitions are to begin, but for the first one."""
    files = files_between(history, start, end)
    whole = sum(file.size for file, _ in files)
    wanted = max(min(options.partition_bytes_max, whole // options.partitions_min), 1)
    gone = 0
    for file, place in files:
        if gone >= wanted:
            yield place
            gone = 0
        gone += file.size


def files_between(
    history: ServerHistory, start: GtidPosition, end: GtidPosition
) -> list[tuple[ServerFile, GtidPosition]]:
    """Return the files from the one that holds *start* on, with the position before each."""
    found: list[tuple[ServerFile, GtidPosition]] = []
    for file in reversed(history.files()):
        place = history.position_before(file.name)
        if place is None:
            continue  # it is not one of those that hold groups, or was purged just now
        if all(is_reached(gtid, place) for gtid in end):
            continue
        found.append((file, place))
        if all(is_reached(gtid, start) for gtid in place):
            break
    return found[::-1]


def is_reached(gtid: Gtid, position: GtidPosition) -> bool:
    """Tell by the sequence number whether a position has a GTID."""
    reached = position.get(gtid.domain)
    return reached is not None and reached.seq >= gtid.seq


def _clamped(
    place: GtidPosition, start: GtidPosition, end: GtidPosition, domains: Iterable[int]
) -> GtidPosition:
    """Return a place, but in no domain before the start or behind the end."""
    cut = GtidPosition()
    for domain in domains:
        first, here, last = start.get(domain), place.get(domain), end.get(domain)
        if here is None or (first is not None and here.seq <= first.seq):
            here = first
        elif last is not None and here.seq >= last.seq:
            here = last
        if here is not None:
            cut.set(here)
    return cut
