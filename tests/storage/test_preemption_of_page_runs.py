"""Whoever comes in between finds the shared pages of a history, and their count, as they are."""

import pytest

from ibb.storage import Store
from ibb.storage.page_runs import PageRuns
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from .preempted_store import OPTIONS, Scene
from .preemption import Meeting, meet_everywhere


class Runs:
    """Pages of two files that are written to the end, and some who read them."""

    def __init__(self, readers, bytes_max=1 << 20):
        scene = Scene()
        scene.store.switch_file()
        scene.store.close()
        self.runs = PageRuns(ReadOnlyHistory(scene.disk, "/s"), bytes_max)
        for _ in range(readers):
            self.runs.join()

    def load(self, file_no):
        run = self.runs.load(self.runs.header(file_no), 1, 0)
        assert run is not None
        return run

    def is_kept(self, file_no):
        return self.load(file_no) is self.load(file_no)

    def check(self, readers):
        """Pages are kept for so many readers, none without one, and no more than is allowed."""
        kept = self.runs._kept.values()
        assert self.runs._bytes == sum(len(run.data) for run in kept) <= self.runs._bytes_max
        for _ in range(readers):
            assert self.is_kept(0)
            self.runs.leave()
        assert not self.is_kept(0)


def two_who_join():
    runs = Runs(0)
    return Meeting(runs.runs.join, runs.runs.join, lambda: runs.check(2))


def two_who_leave():
    runs = Runs(3)
    return Meeting(runs.runs.leave, runs.runs.leave, lambda: runs.check(1))


def one_who_finds_pages_and_the_last_to_leave():
    runs = Runs(1)
    runs.load(0)
    return Meeting(lambda: runs.load(0), runs.runs.leave, lambda: runs.check(0))


def two_who_keep_the_same_pages():
    runs = Runs(1)
    return Meeting(lambda: runs.load(0), lambda: runs.load(0), lambda: runs.check(1))


def two_who_keep_others():
    runs = Runs(1)
    return Meeting(lambda: runs.load(0), lambda: runs.load(1), lambda: runs.check(1))


def two_who_keep_more_than_is_allowed():
    runs = Runs(1, bytes_max=len(Runs(1).load(0).data))
    return Meeting(lambda: runs.load(0), lambda: runs.load(1), lambda: runs.check(1))


def begun_anew():
    """Return pages of which the end is known, and how to begin anew with less of them."""
    scene = Scene()
    scene.store.switch_file()
    scene.store.close()
    view = ReadOnlyHistory(scene.disk, "/s", follow_unsynced=True)
    runs = PageRuns(view)
    runs.join()
    header, old_end = runs.header(0), view.end()

    def begin_anew():
        with Store.open("/s", OPTIONS, disk=scene.disk) as store:
            store.reset()

    return view, runs, header, old_end, begin_anew


def one_who_asks_for_the_end_and_a_history_begun_anew():
    """The end of the history that is gone is not taken for that of the new one."""
    view, runs, header, old_end, begin_anew = begun_anew()
    begin_anew()

    def meanwhile():
        view.refresh()
        runs.load(header, 1, 0)

    def check():
        runs.load(header, 1, 0)
        assert runs._generation == view.generation
        assert runs._end <= view.end() < old_end

    return Meeting(lambda: runs.load(header, 1, 0), meanwhile, check)


def two_who_ask_for_the_end_of_a_new_history():
    """Nobody finds the new history's number beside the end of the one before."""
    view, runs, header, old_end, begin_anew = begun_anew()
    runs.load(header, 1, 0)
    begin_anew()
    view.refresh()
    ends = []

    def check():
        assert ends == [view.end()] * 2
        assert view.end() < old_end

    ask = lambda: ends.append(runs._end_behind(Position(0, 0)))  # noqa: E731
    return Meeting(ask, ask, check)


RUNS = [two_who_join, two_who_leave, one_who_finds_pages_and_the_last_to_leave,
        two_who_keep_the_same_pages, two_who_keep_others,
        two_who_keep_more_than_is_allowed,
        one_who_asks_for_the_end_and_a_history_begun_anew,
        two_who_ask_for_the_end_of_a_new_history]  # fmt: skip


@pytest.mark.parametrize("scene", RUNS, ids=lambda scene: scene.__name__)
def test_pages_are_shared_by_all_who_read(scene):
    assert meet_everywhere(scene, stops=250, within=("/page_runs.py",)) > 0
