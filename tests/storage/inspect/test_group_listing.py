"""Files that are purged while their groups are listed are no damage; the rest is listed."""

import os

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.errors import BegunAnewError
from ibb.storage.file_name import binlog_name
from ibb.storage.inspect.group_listing import list_groups
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from ..events import transaction
from ..test_purge import fill_to, options

NEWEST = 6
WRITTEN = 5  # the last group of this file may go on in the newest


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Groups of server 1, then of server 2, in seven files, of which readers have one open."""
    monkeypatch.setattr("ibb.storage.open_files.OPEN_FILES_MAX", 1)
    with Store.open(tmp_path / "store", options()) as store:
        seq = 0
        while store.end().file_no < NEWEST:
            seq += 1
            with store.begin() as group:
                group.write(transaction(f"group {seq}", 300))
                group.commit(Gtid(0, 1 if store.end().file_no < 3 else 2, seq))
        yield store


class Listing:
    """One run of `list_groups` over a store, and what it told of."""

    def __init__(self, store, directory, start=None, until=None):
        self.stored = [(group.gtid, group.position) for group in store.reader() if group.gtid]
        self.told = []
        self.history = ReadOnlyHistory(OsDisk(), str(directory), follow_unsynced=True)
        start, until = (text and GtidPosition.parse(text) for text in (start, until))
        self.found = list_groups(self.history, start, until, None, self.told.append)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.history.close()

    def left(self, file_no):
        """Return the groups of a file and later ones, as far as they are written for certain."""
        return [gtid for gtid, place in self.stored if file_no <= place.file_no < WRITTEN]


@pytest.mark.parametrize("start", [None, "0-1-3"])
def test_the_listing_goes_on_behind_files_that_were_purged(start, store, tmp_path):
    with Listing(store, tmp_path / "store", start) as listing:
        assert next(listing.found).gtid.seq == (1 if start is None else 4)
        assert store.purge_to(binlog_name(4)).kept is None
        rest = [group for group in listing.found if group.position.file_no < WRITTEN]
        head = [group.gtid.seq for group in rest if group.position.file_no < 4]
        first = 2 if start is None else 5
        assert head == list(range(first, first + len(head)))
        assert [group.gtid for group in rest if group.position.file_no >= 4] == listing.left(4)
        (text,) = listing.told
        assert text.startswith("files up to binlog-000003.ibb were purged meanwhile")


def test_a_listing_of_which_the_end_was_purged_ends(store, tmp_path):
    with Listing(store, tmp_path / "store", until="0-1-30") as listing:
        next(listing.found)
        store.purge_to(binlog_name(4))
        assert {group.gtid.server for group in listing.found} == {1}
        assert len(listing.told) == 1


def test_damage_behind_purged_files_is_told_and_nothing_is_listed_twice(store, tmp_path):
    with Listing(store, tmp_path / "store") as listing:
        found = []
        while not found or found[-1].position.file_no < 3:
            found.append(next(listing.found))
        store.purge_to(binlog_name(3))
        os.truncate(tmp_path / "store" / binlog_name(4), 1024)
        with pytest.raises(FormatError) as caught:
            found.extend(listing.found)
        assert caught.value.file == binlog_name(4)
        seqs = [group.gtid.seq for group in found]
        assert seqs == list(range(1, len(seqs) + 1))
        assert listing.told == []


def test_files_that_were_begun_anew_are_no_damage(store, tmp_path):
    with Listing(store, tmp_path / "store") as listing:
        next(listing.found)
        store.reset()
        with pytest.raises(BegunAnewError):
            list(listing.found)
        assert listing.told == []


def test_a_listing_goes_on_when_all_files_of_its_beginning_were_purged(store, tmp_path):
    with Listing(store, tmp_path / "store") as listing:
        next(listing.found)
        fill_to(store, 9)
        assert store.purge_to(binlog_name(8)).kept is None
        assert {group.position.file_no for group in listing.found if group.position.file_no > 6}
        assert len(listing.told) == 1
