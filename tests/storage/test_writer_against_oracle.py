"""What the store writes, in lives by seed, held against an independent reader of the format."""

import re
from typing import NamedTuple

import pytest

from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

from ..oracle.binlog import Binlog
from ..oracle.chunks import GTID_STATE
from ..oracle.files import NO_XA, Place
from ..oracle.references import check_references
from ..oracle.states import Running, StateCheck
from .random_history import DIRECTORY, Diary, RandomHistory

SEEDS = 240
END_OF_TIME = Place(2**64, 0)
MARKER = re.compile(rb"<(\d+)>")


class Pin(NamedTuple):
    """
    How long a group kept a file referenced.

    Its first piece is at *first*; the file pinned is that piece's, or the one before if the
    writer had not gone over to the new file yet (*earliest_file*). A restart forgets where a
    prepared transaction began and pins the file of the first piece still in use.
    """

    first: Place
    earliest_file: int
    prepared_from: Place
    first_in_use: int
    end: Place


def pins_of(binlog: Binlog, diary: Diary) -> list[Pin]:
    """Return the pins of all groups of which pieces are in the files."""
    first: dict[int, Place] = {}
    for place, node in binlog.nodes.items():
        found = MARKER.search(node.piece)
        if found:
            first.setdefault(int(found[1]), place)
    ends: dict[int, Place] = {number: Place(*place) for number, place in diary.gone.items()}
    for group, (_, number, _) in zip(binlog.groups, diary.published, strict=True):
        ends[number] = group.end
    prepares = {int(xa.xid[1]): (place, xa) for place, xa in binlog.prepares.items()}
    # The state on page 1 is no such record, though it may stand between two that are.
    ordinary = [record.place for record in binlog.records if record.type != GTID_STATE]
    first_of_files = {place.file_no: place for place in reversed(ordinary)}
    pins = []
    for number, place in first.items():
        is_first = first_of_files[place.file_no] == place
        prepared_at, xa = prepares.get(number, (END_OF_TIME, None))
        in_use = xa.reference.first.file_no if xa else place.file_no
        end = ends.get(number, END_OF_TIME)
        pins.append(Pin(place, place.file_no - is_first, prepared_at, in_use, end))
    return pins


def bounds(pins: list[Pin], restarts: list[Position], number: int) -> tuple[int, int]:
    """Return the lowest and the highest reference that the header of file *number* may have."""
    header = Place(number, 0)
    lowest = highest = number
    for pin in pins:
        if pin.end.file_no < number or pin.earliest_file >= number:
            continue
        at_latest, at_earliest = pin.first.file_no, pin.earliest_file
        if any(pin.prepared_from < restart < header for restart in restarts):
            at_latest = at_earliest = pin.first_in_use
        lowest, highest = min(lowest, at_earliest), min(highest, at_latest)
    return lowest, highest


def check_headers(binlog: Binlog, diary: Diary) -> None:
    """Every header names the oldest file that an open group needs, and no older one."""
    pins = pins_of(binlog, diary)
    for number, file in binlog.files.items():
        lowest, highest = bounds(pins, diary.restarts, number)
        assert lowest <= file.header.oob_reference <= highest, (number, file.header)
        perhaps = [pin for pin in pins if pin.prepared_from.file_no <= number]
        sure = [pin for pin in perhaps if pin.prepared_from.file_no < number <= pin.end.file_no]
        reference = file.header.xa_reference
        if reference == NO_XA:
            assert sure == [], number
        else:
            assert bounds(perhaps, diary.restarts, number)[0] <= reference, (number, file.header)
            assert reference <= bounds(sure, diary.restarts, number)[1], (number, file.header)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_published_is_what_the_files_say(seed: int) -> None:
    history = RandomHistory(seed)
    history.run()
    diary, images = history.diary, history.images()
    binlog = Binlog(images)
    states = StateCheck(binlog)
    assert (binlog.problems, states.problems, check_references(binlog)) == ([], [], [])
    check_headers(binlog, diary)

    found = [(str(group.gtid), group.data[len(group.head) :]) for group in binlog.groups]
    assert found == [(str(gtid), events) for gtid, _, events in diary.published]
    told = {str(gtid): normalised(binlog, end) for gtid, end in diary.ends.items()}
    assert told.items() <= {
        (str(group.gtid), normalised(binlog, group.end)) for group in binlog.groups
    }
    deleted = {domain for _, domain in states.deleted}
    assert diary.deleted <= deleted <= diary.deleted | diary.perhaps_deleted
    at_end = Running(tuple(history.final_state.entries()))
    assert at_end.without_order_of_domains() == Running(states.state).without_order_of_domains()

    reader = GroupReader(BinlogDirectory(history.disk, DIRECTORY), Position(0, 0))
    stored = []
    while (group := reader.next()) is not None:
        if group.gtid is not None:
            stored.append((tuple(group.position), b"".join(group.pieces())))
    assert stored == [(tuple(group.place), group.data) for group in binlog.groups]
    assert reader.reports == []


def normalised(binlog: Binlog, end: Position | Place) -> tuple[int, int]:
    """Return where something ends; the end of a page's chunks and the next page are one."""
    file = binlog.files[end.file_no]
    is_page_end = end.offset % file.page_size == file.end
    return end.file_no, end.offset + (4 if is_page_end else 0)


def test_the_lives_meet_what_they_are_meant_to_meet() -> None:
    """Of some lives together; otherwise the test above could come to say nothing."""
    met: dict[str, int] = {}
    for seed in range(24):
        history = RandomHistory(seed)
        history.run()
        binlog = Binlog(history.images())
        states = StateCheck(binlog)
        pins = pins_of(binlog, history.diary)
        for what, count in {
            "states in other records": sum(record.is_nested for record in binlog.records),
            "states over several pages": sum(
                len(record.chunks) > 1 for record in binlog.records if record.place in binlog.states
            ),
            "states left out": len(states.left_out),
            "domains deleted": len(states.deleted),
            "groups of two lists": sum(len(c.lists) == 2 for c in binlog.commits.values()),
            "references to older files": sum(
                bounds(pins, history.diary.restarts, number)[1] < number for number in binlog.files
            ),
            "prepared transactions": len(binlog.prepares),
            "garbage": len(binlog.nodes) - sum(len(group.nodes) for group in binlog.groups),
            "restarts": len(history.diary.restarts) - 1,
            "commits that had returned and were lost": history.diary.losses,
        }.items():
            met[what] = met.get(what, 0) + count
    assert min(met.values()) >= 10, met
