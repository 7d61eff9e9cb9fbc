"""Whoever comes in between finds a whole view of a directory."""

import threading
from dataclasses import replace

import pytest

from ibb.storage import Store, listing
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.format_catalogue import FormatCatalogue
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_source import PageStatus
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from .preempted_store import OPTIONS, Scene
from .preemption import HANG_SECONDS, KEPT_OUT_SECONDS, Meeting, Stopped, meet_everywhere


def looked_at():
    scene = Scene()
    return scene, ReadOnlyHistory(scene.disk, "/s", follow_unsynced=True)


def two_looks_at_what_is_new():
    scene, view = looked_at()
    scene.commit(0, 3)
    scene.store.close()

    def check():
        assert str(view.state()) == "0-1-3"

    return Meeting(view.refresh, view.refresh, check)


def a_state_and_a_look_at_what_is_new():
    scene, view = looked_at()
    scene.commit(0, 3)
    scene.commit(1, 1)
    scene.store.close()
    states = []

    def check():
        assert str(states[0]) in ("0-1-1", "0-1-3,1-1-1")  # what was in the files before, or all

    return Meeting(view.refresh, lambda: states.append(view.state()), check)


def a_read_and_a_look_at_what_is_new():
    scene = Scene()
    scene.store.close()
    directory = BinlogDirectory(scene.disk, "/s")
    directory._used.pop(0, None)
    return Meeting(directory.refresh, lambda: directory.read_page(0, 1), lambda: None)


def two_looks_at_a_directory_that_lost_files():
    scene = Scene()
    directory = BinlogDirectory(scene.disk, "/s")
    scene.store.switch_file()
    scene.store.purge_to("binlog-000002.ibb")
    scene.store.close()

    def check():
        assert directory.first_file() == directory.last_file() == 2
        assert directory.header(1) is None

    return Meeting(directory.refresh, directory.refresh, check)


def a_read_and_a_look_at_what_was_begun_anew():
    """How far a file of the old history was used says nothing of the new one of its name."""
    directory, check = begun_anew()
    first = directory.first_file()
    directory._used.pop(first)
    directory._headers.pop(first)
    read = lambda: unless_begun_anew(lambda: directory.read_page(first, 2))  # noqa: E731
    return Meeting(read, directory.refresh, check)


def a_look_at_what_was_begun_anew_and_a_read():
    """A page of the old history, read when the look is under way, is not kept for the new one."""
    directory, check = begun_anew()
    first = directory.first_file()
    read = lambda: unless_begun_anew(lambda: directory.read_page(first, 2))  # noqa: E731
    return Meeting(directory.refresh, read, check)


def begun_anew_with_other_pages():
    """Return who reads the last page of the new history by a header of the old one, and a look."""
    scene = Scene()
    scene.store.close()
    directory = BinlogDirectory(scene.disk, "/s")
    directory.read_page(0, 1)
    pages = replace(OPTIONS, page_size=1024, max_binlog_size=1024 * 24)
    with Store.open("/s", pages, disk=scene.disk) as scene.store:
        scene.store.reset()
        for seq in range(21, 27):
            scene.commit(0, seq)
    last_page = BinlogDirectory(scene.disk, "/s").listing.last_page
    read = lambda: unless_begun_anew(lambda: directory.read_page(0, last_page))  # noqa: E731
    return read, directory.refresh


def a_look_at_what_was_begun_anew_with_other_pages_and_a_read():
    read, look = begun_anew_with_other_pages()
    return Meeting(look, read, lambda: None)


def test_who_reads_by_an_old_header_is_not_told_of_damage(monkeypatch):
    """Not even while somebody has found most of a history that was begun anew."""

    def modified_at(*arguments):  # called when all but the generation has changed
        in_the_middle.set()
        may_go_on.wait(HANG_SECONDS)
        return listing.modified_at(*arguments)

    counted = Stopped(begun_anew_with_other_pages()[0], 0, ("/directory.py",))
    counted.thread.join(HANG_SECONDS)
    assert counted.instructions > 50
    for at in range(1, counted.instructions + 1):
        read, look = begun_anew_with_other_pages()
        in_the_middle, may_go_on = threading.Event(), threading.Event()
        monkeypatch.setattr("ibb.storage.directory.modified_at", modified_at)
        reader = Stopped(read, at, ("/directory.py",))
        assert reader.has_stopped.wait(HANG_SECONDS)
        looker = Stopped(look, None)
        in_the_middle.wait(KEPT_OUT_SECONDS)  # unless the reader keeps it out
        reader.may_go_on.set()
        reader.thread.join(KEPT_OUT_SECONDS)
        may_go_on.set()
        for one in (reader, looker):
            one.thread.join(HANG_SECONDS)
            assert not one.thread.is_alive()
            assert not one.failures, (at, one.failures)
        monkeypatch.undo()


def unless_begun_anew(read):
    """Read, if need be up to where the files are seen to be others."""
    try:
        read()
    except DiskError as error:
        if not error.begun_anew:
            raise


def begun_anew():
    scene = Scene()
    scene.store.reset()
    for seq in range(1, 12):
        scene.commit(0, seq)
    scene.store.switch_file()
    scene.commit(0, 12)
    scene.store.close()
    directory = BinlogDirectory(scene.disk, "/s")
    first = directory.first_file()
    directory.read_page(first, 1)
    with Store.open("/s", OPTIONS, disk=scene.disk) as scene.store:
        scene.store.reset()
        for seq in range(21, 41):  # its first file has more pages, and others behind it, too
            scene.commit(0, seq)
        scene.store.switch_file()
        scene.commit(0, 41)

    def check():
        fresh = BinlogDirectory(scene.disk, "/s")
        assert fresh.first_file() == first
        assert directory.header(first) == fresh.header(first)
        for page_no in range(1, 24):
            assert directory.read_page(first, page_no) == fresh.read_page(first, page_no)

    return directory, check


def a_look_at_what_was_begun_anew_and_one_who_reads_what_is_synced():
    """How much of the old history was synced says nothing of the new one."""
    scene = Scene()
    scene.store.close()
    view = ReadOnlyHistory(scene.disk, "/s")
    old, seen = list(all_groups(view)), []
    with Store.open("/s", OPTIONS, disk=scene.disk) as scene.store:
        scene.store.reset()
        for seq in range(21, 25):
            scene.commit(0, seq)

    def check():
        assert set(seen) <= set(old)
        assert list(all_groups(view)) == []  # that much is written, and surely synced is nothing

    read = lambda: unless_begun_anew(lambda: seen.extend(all_groups(view)))  # noqa: E731
    return Meeting(view.refresh, read, check)


def all_groups(view):
    reader = GroupReader(view.pages, Position(0, 0))
    return (group.gtid for group in iter(reader.next, None) if group.gtid is not None)


def follower_of_a_file_that_others_pass(follow_unsynced, page_no):
    """Another follower looks when the file has grown and is passed: it ends behind that only."""
    scene = Scene()
    scene.store.close()
    view = ReadOnlyHistory(scene.disk, "/s", follow_unsynced=follow_unsynced)
    file_no, last_page = view.pages.listing.last, view.pages.listing.last_page
    reads = []

    def write_on():
        with Store.open("/s", OPTIONS, disk=scene.disk) as store:
            scene.store = store
            for seq in range(3, 9):
                scene.commit(0, seq)
                if seq % 2 == 0:
                    store.switch_file()
        view.refresh()

    def check():
        fresh = BinlogDirectory(scene.disk, "/s").read_page(file_no, last_page + page_no)
        (read,) = reads
        assert fresh.end
        if read.status is PageStatus.END_OF_FILE:
            assert read == fresh
        assert not view.pages.oddities.found

    view.pages.read_page(file_no, 1)
    return Meeting(
        lambda: reads.append(view.pages.read_page(file_no, last_page + page_no)), write_on, check
    )


def a_last_page_at_rest_and_those_who_pass_it():
    return follower_of_a_file_that_others_pass(False, 0)


def a_last_page_and_those_who_pass_it():
    return follower_of_a_file_that_others_pass(True, 0)


def the_page_behind_the_last_and_those_who_pass_it():
    return follower_of_a_file_that_others_pass(True, 1)


def two_questions_for_a_format():
    scene = Scene()
    catalogue = FormatCatalogue(scene.store.pages)
    end = scene.store.end()
    catalogue.in_force(end)
    scene.store._engine.settle()
    scene.store.purge_to("binlog-000001.ibb")
    ask = lambda: catalogue.in_force(end)  # noqa: E731
    return Meeting(ask, ask, lambda: None)


VIEWS = [
    two_looks_at_what_is_new,
    a_state_and_a_look_at_what_is_new,
    a_read_and_a_look_at_what_is_new,
    two_looks_at_a_directory_that_lost_files,
    a_read_and_a_look_at_what_was_begun_anew,
    a_look_at_what_was_begun_anew_and_a_read,
    a_look_at_what_was_begun_anew_with_other_pages_and_a_read,
    a_look_at_what_was_begun_anew_and_one_who_reads_what_is_synced,
    a_last_page_at_rest_and_those_who_pass_it,
    a_last_page_and_those_who_pass_it,
    the_page_behind_the_last_and_those_who_pass_it,
    two_questions_for_a_format,
]


@pytest.mark.parametrize("scene", VIEWS, ids=lambda scene: scene.__name__)
def test_views_are_whole(scene):
    modules = ("/read_only.py", "/directory.py", "/format_catalogue.py")
    assert meet_everywhere(scene, stops=250, within=modules) > 0
