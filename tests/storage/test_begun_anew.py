"""Who reads a directory that another process begins anew gets one history, and is told."""

import pytest

from ibb.protocol.errors import IbbError
from ibb.storage.errors import BegunAnewError, DiskError
from ibb.storage.held_files import HeldFiles
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.watched_file import WatchedFile

from .begun_anew import DIRECTORY, GROUPS, TwoHistories, mark_of
from .preemption import Meeting, meet_everywhere

TOLD = r"deleted and begun anew \(RESET MASTER\)"


@pytest.mark.parametrize("looks", [False, True], ids=["nobody looks", "somebody looks"])
@pytest.mark.parametrize("within", ["/open_files.py", "/directory.py", "/group_range.py"])
def test_a_listing_of_groups_is_of_one_history(within, looks):
    """Where somebody looks in the middle of a group, the error is at once behind it."""

    def scene():
        both, read, errors = TwoHistories(), [], []
        view = ReadOnlyHistory(both.disk, DIRECTORY, follow_unsynced=True)

        def read_all():
            try:
                read.extend(
                    (group.gtid.domain, b"".join(group.pieces())) for group in groups_between(view)
                )
            except IbbError as error:
                errors.append(error)

        def begin_anew():
            both.begin_anew()
            if looks:
                view.refresh()

        def check():
            if not errors:
                assert len(read) == GROUPS
            elif looks and read:
                read.pop()
            else:
                assert isinstance(errors[0], DiskError)
                assert TOLD.replace("\\", "") in str(errors[0])
            assert len({domain for domain, _ in read}) <= 1
            assert all(mark_of(domain) in events for domain, events in read)
            assert all(mark_of(3 - domain) not in events for domain, events in read)

        return Meeting(read_all, begin_anew, check)

    assert meet_everywhere(scene, stops=40, within=(within,)) > 0


def test_files_that_are_open_are_read_on_and_no_others_are_opened():
    both = TwoHistories()
    view = ReadOnlyHistory(both.disk, DIRECTORY, follow_unsynced=True)
    view.close()
    view.refresh()
    page = view.pages.stored_page(0, 1)
    assert view.is_still(0)
    both.begin_anew()
    assert not view.is_still(0)
    assert view.pages.stored_page(0, 1) == page
    assert mark_of(1) in view.pages.stored_page(0, 2) + view.pages.stored_page(0, 3)
    with pytest.raises(DiskError, match=TOLD):
        view.pages.stored_page(1, 1)
    with pytest.raises(DiskError, match=TOLD):
        view.pages.size(1000)  # it is not there, and nobody knows whether it was
    view.refresh()
    assert not view.is_still(0)
    assert view.is_still(1)
    assert mark_of(2) in view.pages.stored_page(1, 2)


def test_groups_between_says_so_when_all_files_were_open():
    both = TwoHistories()
    view = ReadOnlyHistory(both.disk, DIRECTORY, follow_unsynced=True)
    groups = groups_between(view)
    next(groups)
    for file_no in range(view.pages.first_file(), view.pages.last_file() + 1):
        view.pages.size(file_no)
    both.begin_anew()
    with pytest.raises(BegunAnewError, match=TOLD):
        next(groups)


def test_files_that_are_held_are_all_of_one_history():
    both = TwoHistories()
    held = HeldFiles(both.disk, DIRECTORY)
    held.hold()
    view = ReadOnlyHistory(held, DIRECTORY, follow_unsynced=True)
    both.begin_anew()
    assert view.is_still(0)
    groups = [b"".join(group.pieces()) for group in groups_between(view)]
    assert len(groups) == GROUPS
    assert all(mark_of(1) in events for events in groups)
    held.close()


def test_a_file_that_does_not_tell_any_more_whether_it_is_there_is_lost(monkeypatch):
    both = TwoHistories()
    watched = WatchedFile(both.disk)
    watched.watch(f"{DIRECTORY}/binlog-000000.ibb")
    assert not watched.is_removed
    error = DiskError(5, "I/O error", operation="look at", path="binlog-000000.ibb")
    monkeypatch.setattr(watched._file, "is_removed", lambda: raise_(error))
    assert watched.is_removed


def raise_(error):
    raise error
