"""A directory that a store has to itself, wherever its path leads later."""

import os
from pathlib import Path

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreLocked
from ibb.storage.os_disk import OsDisk
from ibb.storage.taken_directory import TakenDirectory

from .events import transaction

OPTIONS = StoreOptions(
    page_size=512, max_binlog_size=16 * 512, redo_segment_size=256 << 10, state_interval=1024,
    format_description="upstream", background=False,
)  # fmt: skip
GROUPS = 60  # in many files


def publish(store, domain, first, last):
    for number in range(first, last + 1):
        with store.begin() as group:
            group.write(transaction("x", 300))
            group.commit(Gtid(domain, 1, number))


def read(store):
    return [str(group.gtid) for group in store.reader() if group.gtid is not None]


def numbers(domain, last):
    return [f"{domain}-1-{number}" for number in range(1, last + 1)]


def descriptors_open():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def two_places(tmp_path, monkeypatch):
    """Return two directories, the first being the working directory."""
    places = tmp_path / "a", tmp_path / "b"
    for place in places:
        place.mkdir()
    monkeypatch.chdir(places[0])
    return places


@pytest.mark.parametrize("other", ["another store", "a directory", "nothing"])
def test_a_store_stays_where_it_is_when_the_working_directory_changes(two_places, other):
    here, there = two_places
    with Store.open("binlogs", OPTIONS) as store:
        publish(store, 0, 1, 10)
        if other == "another store":
            with Store.open(there / "binlogs", OPTIONS) as second:
                publish(second, 7, 1, 20)
                os.chdir(there)
                publish(store, 0, 11, GROUPS)
                assert read(second) == numbers(7, 20)
                publish(second, 7, 21, GROUPS)
                assert read(second) == numbers(7, GROUPS)
        else:
            if other == "a directory":
                (there / "binlogs").mkdir()
            os.chdir(there)
            publish(store, 0, 11, GROUPS)
        assert read(store) == numbers(0, GROUPS)
        first = store.files()[3].name
        store.purge_to(first)
        store.leases.renew("mine", f"0-1-{GROUPS}")
    with Store.open(here / "binlogs", OPTIONS) as store:
        assert store.files()[0].name == first
        assert [lease.name for lease in store.leases.all()] == ["mine"]
        publish(store, 0, GROUPS + 1, GROUPS + 1)
    if other == "another store":
        with Store.open(there / "binlogs", OPTIONS) as second:
            assert read(second) == numbers(7, GROUPS)
    else:
        assert not (there / "binlogs").exists() or not list((there / "binlogs").iterdir())


def test_two_stores_do_not_meet_when_the_first_is_moved_away(tmp_path):
    path, moved = tmp_path / "binlogs", tmp_path / "old"
    with Store.open(path, OPTIONS) as first:
        publish(first, 0, 1, 10)
        path.rename(moved)
        with pytest.raises(StoreLocked):
            Store.open(moved, OPTIONS)
        with Store.open(path, OPTIONS) as second:
            publish(second, 7, 1, GROUPS)
            publish(first, 0, 11, GROUPS)
            assert (read(first), read(second)) == (numbers(0, GROUPS), numbers(7, GROUPS))
    for place, domain in ((moved, 0), (path, 7)):
        with Store.open(place, OPTIONS) as store:
            assert read(store) == numbers(domain, GROUPS)


def test_it_can_be_given_up_twice_and_taken_again(tmp_path):
    before = descriptors_open()
    taken = TakenDirectory(str(tmp_path))
    with pytest.raises(StoreLocked):
        TakenDirectory(str(tmp_path))
    taken.give_up()
    taken.give_up()
    TakenDirectory(str(tmp_path)).give_up()
    assert descriptors_open() == before


def test_who_comes_second_on_the_same_disk_leaves_the_first_ones_hold(two_places):
    here, there = two_places
    disk = OsDisk()
    with Store.open("binlogs", OPTIONS, disk=disk) as store:
        publish(store, 0, 1, 10)
        before = descriptors_open()
        with pytest.raises(StoreLocked):
            Store.open("binlogs", OPTIONS, disk=disk)
        assert descriptors_open() == before
        os.chdir(there)
        publish(store, 0, 11, GROUPS)
        assert read(store) == numbers(0, GROUPS)
    assert not list(there.iterdir())
    assert (here / "binlogs").is_dir()
