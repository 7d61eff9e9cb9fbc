"""How files are looked at before anybody searches: each once, few kept, none that is deleted."""

import itertools
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, file_states, rising_note
from ibb.storage.errors import StateTooLarge
from ibb.storage.file_name import binlog_name

from ..faults.sim_disk import SimDisk
from ..tiny import SMALL
from .test_file_search import PLACE, TINY, looked_at, publish, searched, walked
from .test_rising_note import filled, learn, noted, opened


@pytest.mark.timeout(60)
def test_a_thousand_files_that_are_damaged_are_stepped_over(monkeypatch):
    disk, files = SimDisk(), 1200
    positions = filled(disk, files)
    learn(disk)
    with opened(disk) as store:
        for file_no in range(files - 100):
            disk.damage(f"{PLACE}/{binlog_name(file_no)}", 0, b"\xff")
        for position in (positions[-50], positions[files // 2]):
            try:
                found = searched(store.pages, position)
            except FormatError:
                found = None  # there is none, and damage may be why
            assert found == walked(store.pages, position)


def test_each_file_is_looked_at_once(monkeypatch):
    disk = SimDisk()
    filled(disk, 100)
    for gone in range(20, 80, 3):  # states that nobody can read
        disk.damage(f"{PLACE}/{binlog_name(gone)}", TINY.page_size, b"\xff")
    with opened(disk) as store:
        numbers = looked_at(store.pages, monkeypatch)
        store.rising_note.extend(lambda: False)
        assert set(numbers) >= set(range(100))
        for number in range(200, 203):
            numbers.clear()
            store.switch_file()
            publish(store, Gtid(0, 1, number))
            store.rising_note.extend(lambda: False)
            assert len(numbers) < 5


@pytest.mark.parametrize("pairs", [rising_note.RISING_PAIRS_MAX + 1, 20])
def test_states_that_are_too_large_or_too_many_are_left(pairs, monkeypatch):
    if pairs <= rising_note.RISING_PAIRS_MAX:
        monkeypatch.setattr(file_states, "PAIRS_MAX", 2000)
    disk, options = SimDisk(), replace(SMALL, max_binlog_size=1 << 18)
    with Store.open(PLACE, options, disk=disk) as store:
        for number in range(1, 201):
            for domain in range(pairs if number == 1 else 1):
                publish(store, Gtid(domain, 1, number))
            store.switch_file()
    with Store.open(PLACE, options, disk=disk) as store:
        numbers = looked_at(store.pages, monkeypatch)
        store.rising_note.extend(lambda: False)
        states = store.pages.file_states
        if pairs > rising_note.RISING_PAIRS_MAX:
            assert len(set(numbers)) < 5
        else:
            assert states._pairs <= 2000
            assert states.rising == range(201)  # few of which are kept
            assert len(states._states) < 100
            store.switch_file()
            publish(store, Gtid(0, 1, 300))
            store.rising_note.extend(lambda: False)
            assert states.rising == range(202)
            assert searched(store.pages, GtidPosition([Gtid(0, 1, 99)])) == 0
            entries = [Gtid(domain, 1, 1) for domain in range(1, pairs)]
            position = GtidPosition([Gtid(0, 1, 99), *entries])
            assert searched(store.pages, position) == walked(store.pages, position) == 99


def test_what_is_deleted_is_not_read_any_more(monkeypatch):
    disk = SimDisk()
    filled(disk, 100)
    with opened(disk) as store:
        note, source = store.rising_note, store.pages
        looks = itertools.count()
        assert not note.extend(lambda: next(looks) == 3)
        store.reset()
        numbers = looked_at(source, monkeypatch)
        assert note.extend(lambda: False)
        assert not numbers


def test_where_nothing_was_deleted_it_goes_on():
    disk = SimDisk()
    filled(disk, 100)
    with opened(disk) as store:
        state = BinlogState(Gtid(domain, 1, 1 << 60) for domain in range(2000))
        with pytest.raises(StateTooLarge):
            store.reset(state)
        store.rising_note.extend(lambda: False)
    assert noted(disk) == range(100)
