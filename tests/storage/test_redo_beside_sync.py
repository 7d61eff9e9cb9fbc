"""The redo log is written while it is synced, and a sync promises what was written before it."""

import random
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ibb.storage.errors import StoreFailed
from ibb.storage.redo import RedoLog

from ..faults.sim_disk import Fault, SimDisk
from .test_redo import change, log, read


class StoppingDisk(SimDisk):
    """Stops in a sync until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False
        self.entered, self.go_on = threading.Event(), threading.Event()

    def step(self, kind: str, path: str) -> None:
        super().step(kind, path)
        if kind == "sync" and self.armed:
            self.armed = False
            self.entered.set()
            assert self.go_on.wait(20)


class Syncing(NamedTuple):
    """A log of which one group is just being synced by a thread."""

    disk: StoppingDisk
    redo: RedoLog
    thread: threading.Thread
    errors: list[StoreFailed]


@pytest.fixture
def syncing() -> Iterator[Syncing]:
    errors: list[StoreFailed] = []
    disk = StoppingDisk()
    redo = log(disk)
    lsn = redo.append([change(0)])

    def sync() -> None:
        try:
            redo.sync_to(lsn)
        except StoreFailed as error:
            errors.append(error)

    disk.armed = True
    thread = threading.Thread(target=sync)
    thread.start()
    assert disk.entered.wait(20)
    yield Syncing(disk, redo, thread, errors)
    disk.go_on.set()
    thread.join(20)
    assert not thread.is_alive()


def test_more_is_written_while_a_sync_goes_on_which_does_not_promise_it(
    syncing: Syncing,
) -> None:
    disk, redo, _, errors = syncing
    first = redo.next_lsn
    second = redo.append([change(1)])
    redo.write_now()
    assert read(disk) == [change(0), change(1)]  # with the operating system
    redo.write_now()  # of nothing
    third = redo.append([change(2)])
    disk.go_on.set()
    redo.sync_to(first)
    assert first <= redo.synced_lsn < second
    redo.sync_to(third)
    assert redo.synced_lsn == third
    assert read(disk.crashed(random.Random(1), keep=0.0)) == [change(0), change(1), change(2)]
    assert not errors


@pytest.mark.parametrize("seed", range(20))
def test_what_was_synced_outlives_a_crash_whatever_was_written_meanwhile(
    syncing: Syncing, seed: int
) -> None:
    disk, redo = syncing.disk, syncing.redo
    first, rng = redo.next_lsn, random.Random(seed)
    for number in range(1, 5):
        redo.append([change(number)])
        if rng.random() < 0.7:
            redo.write_now()
    disk.go_on.set()
    redo.sync_to(first)
    found = read(disk.crashed(rng, keep=0.5))
    assert found == [change(number) for number in range(len(found))]
    assert found


def test_a_write_that_fails_beside_a_sync_takes_nothing_back(
    syncing: Syncing,
) -> None:
    disk, redo, thread, errors = syncing
    first = redo.next_lsn
    redo.append([change(1)])
    disk.faults.append(Fault(lambda op: op.kind == "write"))
    with pytest.raises(StoreFailed, match="stopped writing"):
        redo.write_now()
    with pytest.raises(StoreFailed):
        redo.append([change(2)])
    disk.go_on.set()
    thread.join(20)
    assert redo.synced_lsn == first
    assert not errors
    assert read(disk.crashed(random.Random(1), keep=0.0)) == [change(0)]
