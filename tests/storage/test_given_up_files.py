"""A store that takes a directory over serves all groups, of files that were given up early too."""

import random
from itertools import count

import pytest

from ibb.protocol.errors import FormatError
from ibb.storage import Store
from ibb.storage.directory_backup import back_up_directory
from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import verify_directory

from ..faults.sim_disk import PowerLost, SimDisk
from .binlog_builder import BinlogBuilder, event, reseal
from .given_up_file import OPTIONS, PAGE, make, read_at_rest
from .verify.verify_rig import numbered

FIRST = "binlog-000000.ibb"


def gtids(store):
    return [str(group.gtid) for group in store.reader() if group.gtid]


def used_pages(data):
    return max(at // PAGE for at in range(0, len(data), PAGE) if any(data[at : at + PAGE])) + 1


def built(path, *, page_is_full=False, states=True):
    """Build a directory whose first file ends early; return the GTIDs of its groups."""
    first = BinlogBuilder(pages=8)
    for seq in (1, 2, 3):
        first.commit(numbered(seq), event(200))
    if page_is_full:
        first.prepare_page()
        first.chunk(0x44, b"\xff" * (first.room - 3))
    path.mkdir()
    first.write(path, empty_next=False)
    second = BinlogBuilder(pages=8, first=1, states=states)
    if states:
        second.full.update(numbered(3))
        second.files, second.place = [], 0
        second._new_file()
    second.commit(numbered(4), event(200))
    second.write(path)
    return [f"0-1-{seq}" for seq in (1, 2, 3, 4)]


def test_all_groups_are_served_and_copied_after_the_take_over(tmp_path):
    """At once, when the store is opened again, from a copy, and by those who only read."""
    directory, copy = tmp_path / "store", tmp_path / "copy"
    wanted = make(directory)
    given_up = (directory / FIRST).read_bytes()
    for _ in range(2):
        with Store.open(directory, OPTIONS) as store:
            assert gtids(store) == wanted
            assert store.copies_set_aside == []
    with Store.open(directory, OPTIONS) as store:
        store.backup(copy)
    pages = used_pages(given_up)
    closed = (directory / FIRST).read_bytes()
    assert len(closed) == pages * PAGE
    assert closed[: (pages - 1) * PAGE] == given_up[: (pages - 1) * PAGE]
    for path in (directory, copy):
        assert read_at_rest(path) == wanted
        assert list(verify_directory(OsDisk(), str(path))) == []


def test_a_file_whose_last_page_is_full_is_cut_behind_it(tmp_path):
    wanted = built(tmp_path / "store", page_is_full=True)
    given_up = (tmp_path / "store" / FIRST).read_bytes()
    with Store.open(tmp_path / "store", OPTIONS) as store:
        assert gtids(store) == wanted
    closed = (tmp_path / "store" / FIRST).read_bytes()
    assert closed == given_up[: used_pages(given_up) * PAGE]


@pytest.mark.parametrize("left", [1, 2, 3])
def test_bytes_of_the_last_page_in_which_no_record_fits_are_filled_up(left, tmp_path):
    first = BinlogBuilder(pages=8)
    for seq in (1, 2, 3):
        first.commit(numbered(seq), event(200))
    first.prepare_page()
    first.chunk(0x43, bytes(5) + b"x" * (first.room - 8 - left))
    assert first.room == left
    first.write(tmp_path, empty_next=False)
    second = BinlogBuilder(pages=8, first=1)
    second.full.update(numbered(3))
    second.files, second.place = [], 0
    second._new_file()
    second.commit(numbered(4), event(200))
    second.write(tmp_path)
    with Store.open(tmp_path, OPTIONS) as store:
        assert gtids(store) == [f"0-1-{seq}" for seq in (1, 2, 3, 4)]
        store.backup(tmp_path / "copy")
    for directory in (tmp_path, tmp_path / "copy"):
        assert list(verify_directory(OsDisk(), str(directory))) == []
        data = (directory / FIRST).read_bytes()
        assert data[-4 - left : -4] == b"\xff" * left


@pytest.mark.parametrize("copied", [False, True])
def test_a_file_with_nothing_but_a_header_is_no_end(copied, tmp_path):
    directory = tmp_path / "store"
    directory.mkdir()
    first, header, last = (BinlogBuilder(pages=8, first=number) for number in range(3))
    first.commit(numbered(1), event(200))
    first.fill_file()
    first.files.pop()
    last.full.update(numbered(1))
    last.commit(numbered(2), event(200))
    for builder in (first, header, last):
        builder.write(directory, empty_next=builder is last)
    if copied:
        back_up_directory(OsDisk(), str(directory), str(tmp_path / "copy"))
        directory = tmp_path / "copy"
        assert read_at_rest(directory) == ["0-1-1", "0-1-2"]
    with Store.open(directory, OPTIONS) as store:
        assert gtids(store) == ["0-1-1", "0-1-2"]


@pytest.mark.parametrize("place", ["page", "behind"])
def test_what_lies_behind_the_end_of_a_file_is_set_aside(place, tmp_path):
    wanted = built(tmp_path / "store")
    path = tmp_path / "store" / FIRST
    data = path.read_bytes()
    if place == "page":
        reseal(path, used_pages(data) * PAGE - 10, b"x", PAGE)
    else:
        path.write_bytes(data + b"part of a page")
    given_up = path.read_bytes()
    with Store.open(tmp_path / "store", OPTIONS) as store:
        assert gtids(store) == wanted
        (copy,) = store.copies_set_aside
    assert (tmp_path / "store" / copy.rpartition("/")[2]).read_bytes() == given_up


@pytest.mark.parametrize("pages", [1, 3])
def test_a_file_that_lacks_groups_stays_as_it_is_and_reading_it_says_so(pages, tmp_path):
    wanted = make(tmp_path / "store")
    path = tmp_path / "store" / FIRST
    data = bytearray(path.read_bytes())
    used = used_pages(data)
    data[(used - pages) * PAGE :] = bytes(len(data) - (used - pages) * PAGE)
    path.write_bytes(data)
    with Store.open(tmp_path / "store", OPTIONS) as store:
        assert path.read_bytes() == data
        with pytest.raises(FormatError, match=FIRST):
            gtids(store)
        assert str(store.state()) == wanted[-1]


def test_a_file_of_which_no_state_tells_whether_it_has_all_groups_stays_as_it_is(tmp_path):
    built(tmp_path / "store", states=False)
    path = tmp_path / "store" / FIRST
    before = path.read_bytes()
    with Store.open(tmp_path / "store", OPTIONS) as store:
        assert path.read_bytes() == before
        with pytest.raises(FormatError, match=r"although data follows|although it was written"):
            gtids(store)


def test_a_file_that_is_damaged_inside_does_not_keep_the_store_from_being_opened(tmp_path):
    make(tmp_path / "store")
    path = tmp_path / "store" / FIRST
    with path.open("r+b") as file:
        file.seek(40)
        file.write(b"damage")
    before = path.read_bytes()
    with Store.open(tmp_path / "store", OPTIONS):
        assert path.read_bytes() == before


@pytest.mark.parametrize("unused", [2, 3])
def test_more_empty_files_than_there_can_be_are_not_taken_for_unused_ones(unused, tmp_path):
    wanted = make(tmp_path / "store", unused=unused)
    before = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    if unused == 2:
        with Store.open(tmp_path / "store", OPTIONS) as store:
            assert gtids(store) == wanted
        return
    with pytest.raises(FormatError, match=r"Last 3 binlog .* all empty.*binlog-000002.ibb"):
        Store.open(tmp_path / "store", OPTIONS)
    after = {path.name: path.read_bytes() for path in (tmp_path / "store").iterdir()}
    assert before.items() <= after.items()
    assert not [name for name in after if name.startswith("binlog") and name not in before]


@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_power_loss_during_the_take_over_loses_no_group(keep, is_cut, tmp_path):
    """
    Wherever it falls: the empty file that shows an older one as given up goes last.

    Once there is a redo log no file counts as given up any more, so each is full for certain by
    then, be it that its last page was filled or what lies behind that was cut off.
    """
    directory = tmp_path / "store"
    wanted = built(directory, page_is_full=True) if is_cut else make(directory)
    for at in count(1):
        disk = SimDisk()
        for path in sorted(directory.iterdir()):
            file = disk.open(f"/s/{path.name}", create=True)
            file.write_at(0, path.read_bytes())
            file.sync()
        disk.sync_dir("/s")
        disk.crash_at = disk.operations + at
        try:
            Store.open("/s", OPTIONS, disk=disk).close()
        except PowerLost:
            after = disk.crashed(random.Random(at), keep=keep)
        else:
            break
        with Store.open("/s", OPTIONS, disk=after) as store:
            assert gtids(store) == wanted, at
            assert str(store.state()) == wanted[-1]
    assert at > 20
