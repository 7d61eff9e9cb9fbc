"""A place that page 1 of a file tells is where a walk over all files leads, and costs less."""

import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, gtid_search
from ibb.storage.chunk import LAST
from ibb.storage.file_name import binlog_name
from ibb.storage.file_search import learn_state
from ibb.storage.file_states import FileStates
from ibb.storage.first_page import find_on_first_page
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import TooOld, find_file_start, find_start
from ibb.storage.record import NO_LISTS, RecordType

from ..faults.sim_disk import SimDisk
from .binlog_builder import BinlogBuilder, event, gtid_event
from .test_file_search import PLACE, TINY, looked_at, positions_of, publish, walked, write_file
from .test_gtid_search import InMemory

LARGER = replace(TINY, page_size=1024, state_interval=1024, max_binlog_size=8192)


def forget_states(pages):
    """Know no more than a server that has just started: which states rise, and the last of them."""
    for file_no in reversed(pages.file_numbers()):
        learn_state(pages, file_no)
    known = pages.file_states
    rising = known.rising
    pages.file_states = FileStates()
    pages.file_states.add(rising[-1], known.get(rising[-1]))
    assert pages.file_states.trust(rising)


def groups_before(pages, place):
    """Return the GTIDs of the groups of a file that come before a place in it."""
    reader = GroupReader(pages, find_file_start(pages, place.file_no))
    found = []
    while (group := reader.next()) is not None and group.position < place:
        found.append(group.gtid)
    return found


def logged(pages):
    """Return the GTIDs of all groups that are there, in order."""
    reader = GroupReader(pages, find_file_start(pages, pages.first_file()))
    return [group.gtid for group in iter(reader.next, None)]


def has(position, gtid, log):
    """Tell whether a replica has a group of the log: its own group of that domain is not before."""
    own = position.get(gtid.domain)
    if own in log:
        return log.index(gtid) <= log.index(own)
    return own is not None and own.seq >= gtid.seq


@pytest.mark.parametrize("falls", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_a_position_lacks_is_before_its_place(seed, falls):
    rng, told = random.Random(f"{seed} {falls}"), 0
    with Store.open(PLACE, LARGER, disk=SimDisk()) as store:
        states, numbers, pages = [store.state()], dict.fromkeys(range(4), 0), store.pages
        for _ in range(60):
            states += write_file(store, numbers, falls, rng)[0]
        log = logged(pages)
        for position in positions_of(states, rng):
            if any(log.count(own) > 1 for own in position):
                continue  # nobody knows which one it has
            file_no = walked(pages, position)
            forget_states(pages)
            if file_no is None:
                with pytest.raises(TooOld):
                    find_start(pages, position)
                continue
            start = find_start(pages, position)
            assert start.position.file_no == file_no
            before = groups_before(pages, start.position)
            base = learn_state(pages, file_no)
            if base is not None and find_on_first_page(pages, file_no, base, position):
                told += 1
                assert all(has(position, gtid, log) for gtid in before)
                state = base.copy()
                state.load(before)
                assert start.state == state
    assert told > 20


def test_a_number_that_is_logged_twice_is_that_of_the_later_group():
    with Store.open(PLACE, LARGER, disk=SimDisk()) as store:
        for numbers in ((1, 2, 3), (4, 5, 6), (7, 8, 8), (9, 10, 9), (11, 12, 13), (14, 15)):
            publish(store, *(Gtid(0, 1, number) for number in numbers))
            store.switch_file()
        for number, file_no in ((5, 1), (7, 2), (8, 3), (9, 4), (12, 4), (13, 5)):
            forget_states(store.pages)
            for _ in range(2):
                start = find_start(store.pages, GtidPosition([Gtid(0, 1, number)]))
                assert start.position.file_no == file_no
                for known in store.pages.file_numbers():  # the second time by all states
                    learn_state(store.pages, known)


@pytest.mark.parametrize(
    ("number", "files"), [(301, 1), (302, 1), (303, 2), (304, 1), (305, 1), (1, 1), (2, 1)]
)
def test_one_file_is_looked_at_where_its_first_page_tells(monkeypatch, number, files):
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        for seq in range(1, 901):
            publish(store, Gtid(0, 1, seq))
            if seq % 3 == 0:
                store.switch_file()
        forget_states(store.pages)
        find_start(store.pages, GtidPosition([Gtid(0, 1, 1)]))  # where numbers begin is known, too
        numbers = looked_at(store.pages, monkeypatch)
        start = find_start(store.pages, GtidPosition([Gtid(0, 1, number)]))
        assert start.state.seq(0, 1) == number
        assert start.position.file_no == number // 3
        assert len({*numbers} - {0}) <= files


def test_what_others_have_logged_on_the_page_is_seen():
    with Store.open(PLACE, LARGER, disk=SimDisk()) as store:
        publish(store, Gtid(0, 1, 1), Gtid(1, 1, 1), Gtid(0, 1, 2), Gtid(0, 1, 3))
        store.switch_file()
        publish(store, Gtid(0, 1, 4), Gtid(0, 1, 5), Gtid(1, 1, 2), Gtid(0, 1, 6))
        store.switch_file()
        pages = store.pages
        first, second = learn_state(pages, 0), learn_state(pages, 1)

        def found(file_no, base, position):
            place = find_on_first_page(pages, file_no, base, GtidPosition.parse(position))
            return None if place is None else groups_before(pages, place[0])[-1:]

        assert found(0, first, "0-1-1,1-1-1") is None  # one of domain 1 comes next
        assert found(0, first, "0-1-2,1-1-1") is None  # and one lies before
        assert found(1, second, "0-1-3,1-1-1") == []
        assert found(1, second, "0-1-4,1-1-1") == [Gtid(0, 1, 4)]
        assert found(1, second, "0-1-5,1-1-1") is None
        assert found(1, second, "0-1-6,1-1-2") is None  # it is the last
        assert found(1, second, "0-1-7,1-1-1") is None  # it is not there


@pytest.mark.parametrize("flags", [0, LAST])
def test_a_record_that_goes_on_elsewhere_ends_there(flags):
    builder = BinlogBuilder()
    builder.commit(Gtid(0, 1, 1), event(20))
    builder.chunk(RecordType.COMMIT | flags, NO_LISTS + gtid_event(Gtid(0, 1, 2)))
    builder.commit(Gtid(0, 1, 3), event(20))  # which is no place for it, if there is more
    source = InMemory(builder, page_count=8)
    place = find_on_first_page(source, 0, BinlogState(), GtidPosition.parse("0-1-2"))
    assert (place is None) == (flags == 0)


def test_a_place_in_a_file_that_is_damaged_by_then_is_forgotten(monkeypatch):
    """The search begins again, and ends in the file before it."""
    with Store.open(PLACE, LARGER, disk=SimDisk()) as store:
        for seq in range(1, 31):
            publish(store, Gtid(0, 1, seq))
            if seq % 3 == 0:
                store.switch_file()
        pages, damaged = store.pages, []
        forget_states(pages)
        find_start(pages, GtidPosition([Gtid(0, 1, 1)]))
        header, first_state = pages.header, pages.first_state

        def found(source, file_no, *others):
            place = find_on_first_page(source, file_no, *others)
            if place is not None:
                damaged.append(file_no)
            return place

        def damaged_header(file_no):
            if file_no in damaged:
                raise FormatError("it has just become so", file=binlog_name(file_no))
            return header(file_no)

        monkeypatch.setattr(gtid_search, "find_on_first_page", found)
        monkeypatch.setattr(pages, "header", damaged_header)
        monkeypatch.setattr(
            pages, "first_state", lambda number: None if number in damaged else first_state(number)
        )
        start = find_start(pages, GtidPosition([Gtid(0, 1, 16)]))
        assert damaged == [5]
        assert start.position.file_no == 4
