"""
Headers held against the records that lead out of their file. Source: ibb-format 3.5, 5.5, 6.3.
"""

from itertools import pairwise
from typing import NamedTuple

from .binlog import Binlog, Problem
from .chunks import COMMIT, XA_COMPLETE, XA_PREPARE
from .files import NO_XA, Place

END_OF_TIME = Place(2**64, 0)


def check_references(binlog: Binlog) -> list[Problem]:
    """Return what is wrong with the headers' references and with the lists of commit records."""
    return [
        *_check_headers(binlog),
        *_check_oob(binlog),
        *_check_sharing(binlog),
        *_check_xa(binlog),
    ]


def _check_headers(binlog: Binlog) -> list[Problem]:
    """LSNs may be equal: a record that passes a whole file builds two headers as one unit."""
    headers = [binlog.files[number].header for number in sorted(binlog.files)]
    reversed_ = [
        Problem(Place(header.file_no, 0), f"LSN {header.lsn} after {before.lsn}")
        for before, header in pairwise(headers)
        if header.lsn < before.lsn
    ]
    forward = [
        Problem(Place(header.file_no, 0), f"out-of-band reference {header.oob_reference}")
        for header in headers
        if header.oob_reference > header.file_no
    ]
    return reversed_ + forward


def _check_oob(binlog: Binlog) -> list[Problem]:
    """A header must name the oldest file of every group that is not complete before it."""
    problems = []
    for group in binlog.groups:
        lowest = min((placed.place.file_no for placed in group.nodes), default=group.end.file_no)
        for number in range(lowest + 1, group.end.file_no + 1):
            reference = binlog.files[number].header.oob_reference
            if reference > lowest:
                what = f"group {group.gtid} begins in file {lowest}, the header says {reference}"
                problems.append(Problem(Place(number, 0), what))
    return problems


def _check_sharing(binlog: Binlog) -> list[Problem]:
    """A piece belongs to one group."""
    owners: dict[Place, object] = {}
    return [
        Problem(placed.place, f"piece of {owners[placed.place]} and of {group.gtid}")
        for group in binlog.groups
        for placed in group.nodes
        if owners.setdefault(placed.place, group.gtid) is not group.gtid
    ]


class Prepared(NamedTuple):
    """
    How long an XA transaction was prepared.

    It counts from *first* at the earliest and *surely_from* at the latest, where its record ends,
    until *surely_until* at least and *last* at the most, where its end was written.
    """

    lowest_file: int
    first: Place
    surely_from: Place
    surely_until: Place
    last: Place


def _prepared(binlog: Binlog) -> list[Prepared]:
    records = [record for record in binlog.records if not record.is_nested]
    records = [record for record in records if record.type in (COMMIT, XA_PREPARE, XA_COMPLETE)]
    waiting: dict[object, Prepared] = {}
    done: list[Prepared] = []
    before = Place(0, 0)
    oldest = min(binlog.files, default=0)
    purged = Prepared(oldest - 1, before, before, END_OF_TIME, END_OF_TIME)
    for at, record in enumerate(records):
        if record.place in binlog.prepares:
            xa = binlog.prepares[record.place]
            assert xa.reference is not None
            lowest = xa.reference.first.file_no if xa.reference.count else record.place.file_no
            waiting[xa.xid] = Prepared(lowest, before, record.end, END_OF_TIME, END_OF_TIME)
        elif record.place in binlog.completes:
            xa = binlog.completes[record.place]
            last = record if xa.rolled_back else records[at + 1]
            if oldest > 0:
                waiting.setdefault(xa.xid, purged)
            prepared = waiting.pop(xa.xid)
            done.append(prepared._replace(surely_until=record.place, last=last.end))
        before = record.end
    return done + list(waiting.values())


def _check_xa(binlog: Binlog) -> list[Problem]:
    """
    States and headers must name a file for as long as a transaction is prepared.

    It may be older than the first piece: what was rolled back before that keeps its file too.
    """
    prepared = _prepared(binlog)
    named = [(place, state.xa) for place, state in binlog.states.items()]
    for number, file in binlog.files.items():
        reference = file.header.xa_reference
        if file.header.major:
            named.append((Place(number, 0), None if reference == NO_XA else reference))
    problems = []
    for place, found in named:
        sure = [xa.lowest_file for xa in prepared if xa.surely_from <= place < xa.surely_until]
        perhaps = [xa.lowest_file for xa in prepared if xa.first <= place <= xa.last]
        if (found is None and sure) or (found is not None and found > max(perhaps, default=-1)):
            problems.append(Problem(place, f"XA reference {found}, prepared are {perhaps}"))
        elif found is not None and sure and found > min(sure):
            problems.append(Problem(place, f"XA reference {found}, prepared are {sure}"))
    return problems
