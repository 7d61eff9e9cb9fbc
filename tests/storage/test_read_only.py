"""Another program's directory: served whole at rest, and only what is surely synced when not."""

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.format_catalogue import SIDECAR_NAME, FormatCatalogue
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_start
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from .binlog_builder import BinlogBuilder, event
from .test_purge import fill_to, names, options


@pytest.fixture
def growing(tmp_path):
    builder = BinlogBuilder(interval=2, pages=6)
    builder.count = 0

    def add(count=1, *, empty_next=True):
        for _ in range(count):
            builder.count += 1
            builder.commit(Gtid(0, 1, builder.count), event(200))
        builder.write(tmp_path, empty_next=empty_next)

    builder.add, builder.path = add, tmp_path
    return builder


def open_history(path, **options):
    return ReadOnlyHistory(OsDisk(), str(path), **options)


def new_groups(reader):
    return [group.gtid.seq for group in iter(reader.next, None)]


def test_at_rest_all_of_it_is_served(growing):
    growing.add(40)
    history = open_history(growing.path)
    for _ in range(3):
        assert history.end() == growing.position
        assert history.state() == BinlogState([Gtid(0, 1, 40)])
        assert new_groups(GroupReader(history.pages, Position(0, 0))) == list(range(1, 41))
        history.refresh()
    assert not history.is_changing
    assert len(history.files()) == len(growing.files) + 1


@pytest.mark.parametrize("name", ["oob-16k-1", "draft-4k-v0-1", "no-room-1", "starts-late-1"])
def test_a_sample_at_rest_has_its_state_and_files(sample, name):
    found = sample(name)
    history = open_history(found.path)
    assert history.state() == BinlogState(map(Gtid.parse, found.expected["state"]))
    first, last = found.expected["files"]
    assert [info.file_no for info in history.files()] == list(range(first, last + 2))
    assert history.formats.in_force(history.end()) is not None
    history.close()


def test_growth_of_the_newest_page_is_not_served_before_it_is_noticed_or_after(growing):
    growing.add(10)
    history = open_history(growing.path)
    reader = GroupReader(history.pages, Position(0, 0))
    assert new_groups(reader) == list(range(1, 11))
    growing.add(1)
    assert new_groups(reader) == []
    history.refresh()
    assert history.is_changing
    assert new_groups(reader) == []
    assert history.state() == BinlogState([Gtid(0, 1, 10)])


def test_when_files_change_all_but_the_two_newest_used_ones_are_served(growing):
    growing.add(1)
    history = open_history(growing.path)
    at_rest = history.end()
    reader, seen = GroupReader(history.pages, Position(0, 0)), []
    for _ in range(60):
        growing.add(1)
        history.refresh()
        seen += new_groups(reader)
        newest_made = len(growing.files)  # the empty one
        assert seen == list(range(1, len(seen) + 1))
        assert history.end() == max(Position(newest_made - 1, 0), at_rest)
        assert history.state() == BinlogState([Gtid(0, 1, len(seen))] if seen else [])
    assert 20 < len(seen) < 60


def test_what_was_served_stays_served(growing):
    growing.add(40)
    history = open_history(growing.path)
    growing.add(1)
    history.refresh()
    assert history.state() == BinlogState([Gtid(0, 1, 40)])
    start = find_start(history.pages, GtidPosition([Gtid(0, 1, 39)]))
    assert new_groups(GroupReader(history.pages, start.position))[-1] == 40


def test_following_what_is_not_synced_serves_all_that_is_there(growing):
    growing.add(1)
    history = open_history(growing.path, follow_unsynced=True)
    reader = GroupReader(history.pages, Position(0, 0))
    assert new_groups(reader) == [1]
    for count in range(2, 50):
        growing.add(1)
        history.refresh()
        assert new_groups(reader) == [count]
        assert history.state() == BinlogState([Gtid(0, 1, count)])
        assert history.end() == growing.position


def test_a_program_that_only_made_the_next_file_is_seen(growing):
    growing.add(3, empty_next=False)
    history = open_history(growing.path)
    history.refresh()
    assert not history.is_changing
    growing.add(0)
    history.refresh()
    assert history.is_changing


def test_who_waits_is_woken_when_there_is_more_and_only_then(growing):
    growing.add(1)
    history = open_history(growing.path, follow_unsynced=True)
    woken = []
    unsubscribe = history.subscribe(lambda: woken.append(1))
    history.subscribe(lambda: woken.append(2))
    history.refresh()
    assert woken == []
    growing.add(1)
    history.refresh()
    assert woken == [1, 2]
    unsubscribe()
    unsubscribe()
    growing.add(1)
    history.refresh()
    assert woken == [1, 2, 2]


def test_damage_at_the_end_does_not_hide_what_lies_before_it(growing):
    growing.add(40)
    page = growing.place // 512
    file = growing.path / f"binlog-{growing.file_no:06d}.ibb"
    image = bytearray(file.read_bytes())
    image[page * 512 + 9] ^= 1
    file.write_bytes(image)
    history = open_history(growing.path)
    assert history.damage is not None
    assert history.damage.page == page
    served = history.state().newest(0).seq
    assert 30 < served < 40
    assert new_groups_before_damage(history) == list(range(1, served + 1))


def new_groups_before_damage(history):
    reader, seen = GroupReader(history.pages, Position(0, 0)), []
    with pytest.raises(type(history.damage)):
        while (group := reader.next()) is not None:
            b"".join(group.pieces())
            seen.append(group.gtid.seq)
    return seen


def test_a_directory_that_is_still_empty_is_followed_from_its_first_file(tmp_path):
    history = open_history(tmp_path, follow_unsynced=True)
    reader = GroupReader(history.pages, find_start(history.pages, GtidPosition()).position)
    assert reader.next() is None
    builder = BinlogBuilder()
    builder.commit(Gtid(0, 1, 1), event(50))
    builder.write(tmp_path)
    history.refresh()
    assert new_groups(reader) == [1]
    assert history.state() == BinlogState([Gtid(0, 1, 1)])


def test_the_sidecar_of_a_store_is_used(growing):
    growing.add(3)
    source = open_history(growing.path).pages
    data = event(60, event_type=15)
    sidecar = (OsDisk(), f"{growing.path}/{SIDECAR_NAME}")
    catalogue = FormatCatalogue(source, sidecar)
    place = growing.record(1, b"\0" + data)
    growing.add(1)
    catalogue.add(place, data)
    assert open_history(growing.path).formats.in_force(growing.position) == data


@pytest.mark.parametrize("follows", [False, True])
def test_a_history_that_another_process_begins_anew_is_forgotten(tmp_path, follows):
    """Its state would let GTIDs through that nobody has, its end bytes that may not be synced."""

    def write(first, last):
        builder = BinlogBuilder(interval=2, pages=6)
        for number in range(first, last + 1):
            builder.commit(Gtid(0, 1, number), event(200))
        for file in tmp_path.iterdir():
            file.unlink()
        builder.write(tmp_path)
        return builder

    write(1, 60)
    history = open_history(tmp_path, follow_unsynced=follows)
    woken = []
    history.subscribe(lambda: woken.append(history.state()))
    before = history.end()
    write(100, 104)
    history.refresh()
    assert history.state() == BinlogState([Gtid(0, 1, 104)] if follows else [])
    assert history.end() < before
    assert new_groups(GroupReader(history.pages, Position(0, 0))) == (
        list(range(100, 105)) if follows else []
    )
    write(100, 200)
    history.refresh()
    seen = new_groups(GroupReader(history.pages, Position(0, 0)))
    assert seen == list(range(100, 201))[: len(seen)]
    assert history.state() == BinlogState([Gtid(0, 1, seen[-1])])
    assert len(woken) == 1 + follows


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("looks", ["before", "meanwhile"])
def test_a_file_that_an_orderly_restart_of_the_writer_makes_anew_is_read_as_it_is_now(
    tmp_path, follows, looks
):
    """The one made in advance, which a look at the directory opened while it was empty."""
    with Store.open(tmp_path, options()) as store:
        fill_to(store, 1)
        store.purge_to("binlog-000000.ibb")  # brings what is written to the files
        assert names(store) == [0, 1, 2]
        history = open_history(tmp_path, follow_unsynced=follows)
        reader = GroupReader(history.pages, Position(0, 0))
        seen = new_groups(reader)
        history.refresh()
    with Store.open(tmp_path, options()) as store:
        if looks == "meanwhile":
            assert history.pages.header(2) is None
    with Store.open(tmp_path, options()) as store:
        for file_no in range(2, 7):
            fill_to(store, file_no)
            store.purge_to("binlog-000000.ibb")
            history.refresh()
            seen += new_groups(reader)
            assert history.damage is None
        written = store.state().newest(0).seq
    history.refresh()
    seen += new_groups(reader)
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) == written if follows else len(seen) > written // 2
