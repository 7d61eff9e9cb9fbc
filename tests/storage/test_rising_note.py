"""Of files whose states were seen to rise few are looked at behind a start, the right one found."""

import itertools
import json
import random
from dataclasses import replace

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, rising_note
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_start
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.rising_note import NOTE_FILES, NOTE_NAME

from ..faults.sim_disk import Fault, PowerLost, SimDisk
from .test_file_search import (
    PLACE,
    TINY,
    looked_at,
    positions_of,
    publish,
    searched,
    walked,
    write_file,
)

NOTE = f"{PLACE}/{NOTE_NAME}"


def opened(disk):
    return Store.open(PLACE, TINY, disk=disk)


def filled(disk, files, first=1):
    """Write so many files with a group in each; return the position behind each group."""
    positions = []
    with opened(disk) as store:
        for number in range(first, first + files):
            publish(store, Gtid(0, 1, number))
            positions.append(store.state().position())
            store.switch_file()
    return positions


def noted(disk):
    """Return which files the note names, as who opens the directory knows it."""
    with opened(disk) as store:
        rising = store.pages.file_states.rising
        assert rising == store.rising_note._noted or len(rising) < 2
        return store.rising_note._noted


def learn(disk):
    with opened(disk) as store:
        assert store.rising_note.extend(lambda: False)


def write_note(disk, text):
    file = disk.open(NOTE, create=True)
    file.truncate(0)
    file.write_at(0, text)
    file.close()


@pytest.mark.parametrize("falls", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_the_file_is_that_of_a_walk_over_all_behind_any_start(seed, falls, monkeypatch):
    monkeypatch.setattr(rising_note, "NOTE_FILES", 1)
    rng, disk, known = random.Random(f"{seed} {falls}"), SimDisk(), []
    states, numbers = [], dict.fromkeys(range(4), 0)
    for _ in range(25):
        with opened(disk) as store:
            known.append(len(store.pages.file_states.rising))
            for position in positions_of(rng.sample(states, min(5, len(states))), rng):
                assert searched(store.pages, position) == walked(store.pages, position)
            for _ in range(rng.randint(1, 4)):
                states += write_file(store, numbers, falls, rng)[0]
            if rng.random() < 0.7:
                looks = itertools.count()
                most = rng.choice((3, 100))
                store.rising_note.extend(lambda: next(looks) >= most)  # noqa: B023 - is over then
        if rng.random() < 0.05:
            with opened(disk) as store:
                store.reset()
            states, numbers = [], dict.fromkeys(range(4), 0)
    assert max(known) > 3


def test_few_files_are_looked_at_behind_a_start(monkeypatch):
    disk = SimDisk()
    positions = filled(disk, 1000)
    learn(disk)
    assert noted(disk) == range(1000)
    for behind in (2, 99, 400, 999):
        with opened(disk) as store:
            numbers = looked_at(store.pages, monkeypatch)
            assert find_start(store.pages, positions[-behind]).position.file_no == 1001 - behind
            assert len(set(numbers)) <= 5


@pytest.mark.parametrize(
    "changed",
    [
        *({"first": first} for first in (-1, 100, "0", None, 0.5)),
        *({"last": last} for last in (98, 100, 10**12, -1, "99", None)),
        *({"last_page": page} for page in ("00000000", 7, None)),
        *({"last_lsn": lsn} for lsn in (0, "0", None)),
    ],
)
def test_a_note_by_hand_names_files_that_are_there(changed):
    disk = SimDisk()
    filled(disk, 100)
    learn(disk)
    content = json.loads(disk.contents(NOTE))
    del content["crc32c"]
    write_note(disk, json.dumps(content).encode())
    assert noted(disk) == range(100)
    write_note(disk, json.dumps(content | changed).encode())
    assert not noted(disk)


def test_who_may_not_write_reads_it_as_well(monkeypatch):
    disk = SimDisk()
    positions = filled(disk, 200)
    learn(disk)
    before = disk.contents(NOTE)
    filled(disk, 200, first=201)
    history = ReadOnlyHistory(disk, PLACE)
    numbers = looked_at(history.pages, monkeypatch)
    assert find_start(history.pages, positions[100]).position.file_no == 101
    assert 200 < len(set(numbers)) < 220  # those behind the note, one by one
    history.rising_note.extend(lambda: False)
    assert history.pages.file_states.rising == range(401)
    history.close()
    assert disk.contents(NOTE) == before


def test_it_is_written_where_many_more_files_are_known():
    disk = SimDisk()
    filled(disk, NOTE_FILES - 1)
    learn(disk)
    assert not disk.exists(NOTE)
    filled(disk, 1, first=NOTE_FILES)
    learn(disk)
    assert noted(disk) == range(NOTE_FILES)
    filled(disk, NOTE_FILES - 1, first=NOTE_FILES + 1)
    learn(disk)
    assert noted(disk) == range(NOTE_FILES)
    filled(disk, 1, first=2 * NOTE_FILES)
    learn(disk)
    assert noted(disk) == range(2 * NOTE_FILES)


def test_it_says_nothing_of_files_before_numbers_fell():
    disk = SimDisk()
    filled(disk, 100)
    filled(disk, 100, first=50)
    learn(disk)
    assert noted(disk) == range(101, 200)
    filled(disk, 10, first=20)
    learn(disk)
    assert noted(disk) == range(101, 200)  # still true, and much


def test_files_that_are_back_join_those_that_are_noted():
    disk = SimDisk()
    filled(disk, 200)
    path = f"{PLACE}/{binlog_name(90)}"
    good = disk.contents(path)[TINY.page_size : 2 * TINY.page_size]
    disk.damage(path, TINY.page_size, bytes(TINY.page_size))
    learn(disk)
    assert noted(disk) == range(91, 200)
    disk.damage(path, TINY.page_size, good)
    learn(disk)
    assert noted(disk) == range(200)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"version": 2}', b"\xff" * 100])
def test_what_is_no_note_is_passed_over_and_replaced(text, caplog):
    caplog.set_level("INFO")
    disk = SimDisk()
    positions = filled(disk, 100)
    write_note(disk, text)
    with opened(disk) as store:
        assert NOTE_NAME in caplog.text
        assert not store.pages.file_states.rising
        assert find_start(store.pages, positions[50]).position.file_no == 51
        store.rising_note.extend(lambda: False)
    assert noted(disk) == range(100)


def test_a_bit_that_flips_makes_it_no_note():
    disk = SimDisk()
    filled(disk, 100)
    learn(disk)
    good = disk.contents(NOTE)
    for at in range(len(good)):
        disk.damage(NOTE, at, bytes([good[at] ^ 1]))
        with opened(disk) as store:
            assert store.pages.file_states.rising in (range(0), range(100))
        disk.damage(NOTE, at, good[at : at + 1])


@pytest.mark.parametrize("files", [60, 100, 140])
def test_it_does_not_count_for_another_history(files):
    """Whoever began it anew did not know of the note; file 99 begins with the same state then."""
    disk = SimDisk()
    filled(disk, 100)
    learn(disk)
    note = disk.contents(NOTE)
    with opened(disk) as store:
        store.reset()
        assert not disk.exists(NOTE)
    with opened(disk) as store:
        for number in range(1, files + 1):
            publish(store, Gtid(0, 1, number * 1000 if number < 50 else number))
            store.switch_file()
    write_note(disk, note)
    assert not noted(disk)


def test_power_that_goes_while_it_is_begun_anew_leaves_no_note_of_what_is_gone(monkeypatch):
    monkeypatch.setattr(rising_note, "NOTE_FILES", 4)
    before, finished = SimDisk(), 0
    filled(before, 10)
    learn(before)
    for seed in itertools.count():
        rng = random.Random(seed)
        disk = before.crashed(rng, 1.0)
        store = Store.open(PLACE, replace(TINY, background=False), disk=disk)
        disk.crash_at = disk.operations + 1 + 2 * seed
        try:
            store.reset()
        except PowerLost:
            pass
        else:
            break
        disk = disk.crashed(rng, rng.choice((0.0, 0.5, 1.0)))
        states = []
        with opened(disk) as store:
            if len(store.state()):
                continue  # it was not begun anew
            finished += 1
            for number in range(1, 13):
                publish(store, Gtid(0, 1, number * 1000 if number < 7 else number))
                store.switch_file()
                states.append(store.state())
        with opened(disk) as store:
            assert 9 not in store.pages.file_states.rising
            for position in positions_of(states, rng):
                assert searched(store.pages, position) == walked(store.pages, position)
    assert finished > 25


def test_nothing_is_noted_of_what_is_gone_or_anothers():
    disk = SimDisk()
    filled(disk, 100)
    with opened(disk) as store:
        note = store.rising_note
        store.reset()
        note.extend(lambda: False)
        assert not disk.exists(NOTE)
    filled(disk, 100)
    with opened(disk) as store:
        note = store.rising_note
    note.extend(lambda: False)
    assert not disk.exists(NOTE)
    store = opened(disk)
    store.disown()
    store.rising_note.extend(lambda: False)
    assert not disk.exists(NOTE)


def test_a_file_that_is_gone_hides_no_other():
    disk = SimDisk()
    positions = filled(disk, 100)
    learn(disk)
    for gone, first in ((25, 26), (50, 51), (75, 76), (62, 76)):
        disk.remove(f"{PLACE}/{binlog_name(gone)}")
        history = ReadOnlyHistory(disk, PLACE)
        for position in positions:
            assert searched(history.pages, position) == walked(history.pages, position)
        history.close()
        assert noted(disk) == range(first, 100)


@pytest.mark.parametrize("is_noted", [False, True])
@pytest.mark.parametrize("at", [0, TINY.page_size + 9])
def test_a_file_that_goes_or_is_damaged_behind_the_start_is_stepped_over(at, is_noted):
    """Its state may be known: what is in it is asked for all the same."""
    disk = SimDisk()
    positions = filled(disk, 100)
    if is_noted:
        learn(disk)
    with opened(disk) as store:
        if not is_noted:
            find_start(store.pages, positions[0])
        disk.remove(f"{PLACE}/{binlog_name(70)}")
        disk.damage(f"{PLACE}/{binlog_name(50)}", at, b"\xff\xff\xff\xff")
        for position in positions:
            start = find_start(store.pages, position).position.file_no
            expected = walked(store.pages, position)
            met = ([50] if at else []) if is_noted else [50, 70]  # when it is due
            assert start == expected or start in met


@pytest.mark.parametrize("at", [10, 50, 99])
def test_a_file_that_cannot_be_read_for_a_while_is_stepped_over_and_not_forgotten(at, monkeypatch):
    disk = SimDisk()
    positions = filled(disk, 100)
    learn(disk)
    path = f"{PLACE}/{binlog_name(at)}"
    with opened(disk) as store:
        disk.faults = [Fault(lambda op: (op.kind, op.path) == ("read", path), times=10**6)]
        for position in positions:
            assert searched(store.pages, position) == walked(store.pages, position)
        disk.faults.clear()
        assert store.pages.file_states.rising == range(101)
        numbers = looked_at(store.pages, monkeypatch)
        assert searched(store.pages, positions[at - 1]) == at
        assert len(set(numbers)) <= 5


def test_a_file_that_goes_hinders_neither_leases_nor_a_purge():
    disk = SimDisk()
    positions = filled(disk, 100)
    learn(disk)
    with opened(disk) as store:
        disk.remove(f"{PLACE}/{binlog_name(70)}")
        for behind in (50, 69, 70, 71):
            store.leases.renew(f"behind {behind}", str(positions[behind - 1]), age_limit=None)
        assert store.purge_to(binlog_name(80)).kept == binlog_name(50)
        for behind in (50, 69):
            store.leases.remove(f"behind {behind}")
        store.purge_to(binlog_name(80))
        assert store.pages.first_file() > 50


def test_who_needs_a_damaged_file_meets_the_damage_and_nobody_else():
    disk = SimDisk()
    positions = filled(disk, 100)
    learn(disk)
    disk.damage(f"{PLACE}/{binlog_name(50)}", TINY.page_size + 9, b"\xff\xff")
    for known in (10, 48, 49, 50, 51, 80):
        history = ReadOnlyHistory(disk, PLACE)
        start, found = find_start(history.pages, positions[known - 1]).position, []
        reader = GroupReader(history.pages, start)
        if known <= 50:  # that is what file 50 begins behind
            with pytest.raises(FormatError):
                found += iter(reader.next, None)
        else:
            found += iter(reader.next, None)
            assert [group.gtid.seq for group in found if group.gtid][-1] == 100
        history.close()


def test_files_that_were_purged_are_not_missed():
    disk = SimDisk()
    positions = filled(disk, 100)
    learn(disk)
    with opened(disk) as store:
        store.purge_to(binlog_name(40))
    with opened(disk) as store:
        assert find_start(store.pages, positions[60]).position.file_no == 61
        assert searched(store.pages, GtidPosition([Gtid(0, 1, 39)])) is None
