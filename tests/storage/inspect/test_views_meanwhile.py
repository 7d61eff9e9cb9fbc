"""A view of a store that goes on meanwhile lacks nothing, whenever that happens."""

import random
from dataclasses import replace

import pytest

from ibb.storage import Store
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.recovered_view import PAUSES_MAX, look_at_redo
from ibb.storage.inspect.redo import inspect_groups
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.synced_note import LOCK_NAME

from ...faults.sim_disk import SimDisk
from ..verify.verify_rig import SMALL, publish

DIRECTORY = "/s"
LOCK = f"{DIRECTORY}/{LOCK_NAME}"
BEFORE = 12  # groups
ROOMY = replace(SMALL, max_binlog_size=64 * 512)


class Scene(SimDisk):
    """
    A store, and what happens to it at one of the calls of who looks.

    Args:
        at: number of the call.
        work: does it.
        torn: what a read gives during which it happens: the first half from before, the second
            from after; or all from after.
    """

    def __init__(self, at, work, *, torn=False):
        super().__init__()
        self._left, self._work, self._torn = None, work, torn
        self.store = Store.open(DIRECTORY, ROOMY, disk=self)
        self.number = 0
        self.publish(BEFORE)
        self.opening = None
        self.lies = [self._read]
        self._left = at

    @property
    def has_happened(self):
        return self._left is None

    def publish(self, groups, size=0):
        for _ in range(groups):
            self.number += 1
            publish(self.store, self.number, size)

    def open(self, path, *, create=False, read_only=False):
        self._called()
        return super().open(path, create=create, read_only=read_only)

    def exists(self, path):
        self._called()
        return super().exists(path)

    def list(self, path):
        self._called()
        return super().list(path)

    def lock_note(self, path):
        self._called()
        return super().lock_note(path)

    def _read(self, path, offset, data):
        if self._called() and path in self._names:
            half = len(data) // 2 if self._torn else 0
            return data[:half] + self._names[path].current[offset:][half : len(data)]
        return data

    def _called(self):
        if self._left is None:
            return False
        self._left -= 1
        if self._left >= 0:
            return False
        self._left = None
        self._work(self)
        return True

    def go_on(self, _seconds):
        """Let a store that is being opened be open."""
        self.opening.release()
        self.opening = None
        self.store = Store.open(DIRECTORY, ROOMY, disk=self)


def one_group(scene):
    scene.publish(1)


def some_groups(scene):
    scene.publish(5, 300)


def more_than_the_log_has_room_for(scene):
    scene.publish(40, 16_000)


def another_file(scene):
    scene.store.switch_file()
    scene.publish(2)


def the_end_of_the_process(scene):
    scene.end_process()


def a_store_that_is_opened_again(scene):
    scene.end_process()
    scene.opening = scene.lock(LOCK)


def in_order(scene):
    scene.store.close()


WORKS = (
    one_group,
    some_groups,
    more_than_the_log_has_room_for,
    another_file,
    the_end_of_the_process,
    a_store_that_is_opened_again,
    in_order,
)


def shown(scene):
    redo = look_at_redo(scene, DIRECTORY, scene.go_on)
    history = ReadOnlyHistory(redo.disk, DIRECTORY, follow_unsynced=True)
    try:
        return [group.gtid.seq for group in groups_between(history)]
    finally:
        history.close()


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("work", WORKS)
def test_a_view_has_all_that_one_before_it_had(work, torn):
    at, happened = 0, True
    while happened:
        scene = Scene(at, work, torn=torn)
        found = shown(scene)
        assert found[:BEFORE] == list(range(1, BEFORE + 1)), at
        assert found == list(range(1, len(found) + 1)), at
        happened = scene.has_happened
        at += 1
    assert at > 30


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("work", [one_group, some_groups])
def test_nothing_of_a_log_that_grows_is_called_damaged(work, torn):
    at, happened = 0, True
    while happened:
        scene = Scene(at, work, torn=torn)
        assert all(line.end_lsn is not None for line in inspect_groups(scene, DIRECTORY)), at
        happened = scene.has_happened
        at += 1
    assert at > 4


def test_a_store_that_is_opened_for_ever_is_not_waited_for_so_long():
    scene = Scene(10**6, one_group)
    scene.end_process()
    disk = scene.crashed(random.Random(1), keep=1.0)
    disk.lock(LOCK)
    pauses = []
    redo = look_at_redo(disk, DIRECTORY, pauses.append)
    assert len(pauses) == PAUSES_MAX
    assert redo.is_opened_now
