"""Syncs beside what is stored: one at a time, and none is forgotten."""

import threading
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.relay.commit_sync import CommitSync
from ibb.storage import Store
from ibb.storage.errors import StoreFailed

from ...tiny import SMALL
from .fake_primary import stored

SECONDS = 20.0


class Syncs:
    """What is waited for, each time until it may be done."""

    def __init__(self, store, monkeypatch):
        self.begun, self.may_end, self.threads = [], threading.Event(), set()
        self.has_begun = threading.Semaphore(0)
        self.error = None
        self._wait_for = store.wait_for
        monkeypatch.setattr(store, "wait_for", self._wait)

    def _wait(self, position):
        self.begun.append(position)
        self.threads.add(threading.get_ident())
        self.has_begun.release()
        assert self.may_end.wait(SECONDS)
        if self.error is not None:
            raise self.error
        self._wait_for(position)


@pytest.fixture
def syncs(target, monkeypatch):
    return Syncs(target, monkeypatch)


@pytest.fixture
def sync(target):
    one = CommitSync(target)
    yield one
    one.close()


def commit(store, seq):
    with store.begin() as group:
        group.write(stored(Gtid(0, 1, seq))[38:])
        return group.commit(Gtid(0, 1, seq), wait=False)


def test_while_there_is_more_nobody_waits_and_one_sync_goes_on(target, syncs, sync):
    first, second, third = (commit(target, seq) for seq in (1, 2, 3))
    assert sync.settle(first, has_more=True) is None
    assert syncs.has_begun.acquire(timeout=SECONDS)
    assert sync.settle(second, has_more=True) is None
    assert sync.settle(third, has_more=True) is None
    assert sync.settle(None, has_more=True) is None
    assert syncs.begun == [first]
    assert len(target.state()) == 0
    syncs.may_end.set()
    assert sync.settle(None, has_more=False) >= 0
    assert syncs.begun == [first, third]
    assert target.state().contains(Gtid(0, 1, 3))
    assert len(syncs.threads) == 2


def test_the_next_sync_has_all_that_came_meanwhile(target, syncs, sync):
    syncs.may_end.set()
    positions = [commit(target, seq) for seq in range(1, 30)]
    took = [sync.settle(position, has_more=True) for position in positions]
    sync.settle(None, has_more=False)
    assert syncs.begun[-1] == positions[-1]
    assert syncs.begun == sorted(syncs.begun)
    assert target.state().contains(Gtid(0, 1, 29))
    assert all(one is None or one >= 0 for one in took)


def test_without_more_the_caller_syncs_and_nothing_is_woken(target, syncs, sync):
    syncs.may_end.set()
    threads = threading.active_count()
    for seq in (1, 2):
        assert sync.settle(commit(target, seq), has_more=False) >= 0
        assert target.state().contains(Gtid(0, 1, seq))
    assert sync.settle(None, has_more=False) is None
    assert syncs.threads == {threading.get_ident()}
    assert threading.active_count() == threads


@pytest.mark.parametrize("has_more", [True, False])
def test_a_sync_that_fails_beside_is_told_by_the_next_call(target, syncs, sync, has_more):
    syncs.error = StoreFailed(OSError("lost"))
    sync.settle(commit(target, 1), has_more=True)
    syncs.may_end.set()
    assert syncs.has_begun.acquire(timeout=SECONDS)
    sync._beside.exception(SECONDS)
    with pytest.raises(StoreFailed, match="lost"):
        sync.settle(None, has_more=has_more)


def test_who_closes_leaves_nothing_unsynced_and_no_thread(target, syncs):
    threads = threading.active_count()
    sync = CommitSync(target)
    first, second = commit(target, 1), commit(target, 2)
    sync.settle(first, has_more=True)
    assert syncs.has_begun.acquire(timeout=SECONDS)
    sync.settle(second, has_more=True)
    syncs.may_end.set()
    sync.close()
    assert syncs.begun == [first, second]
    assert target.state().contains(Gtid(0, 1, 2))
    assert threading.active_count() == threads


def test_who_closes_behind_a_failure_is_told_nothing_more(target, syncs):
    sync = CommitSync(target)
    sync.settle(commit(target, 1), has_more=True)
    syncs.error = StoreFailed(OSError("lost"))
    syncs.may_end.set()
    sync.close()
    assert len(target.state()) == 0


@pytest.mark.parametrize("mode", [0, 2])
def test_where_commits_are_not_synced_there_is_nothing_beside(tmp_path, mode):
    options = replace(SMALL, format_description="upstream", flush_log_at_commit=mode)
    with Store.open(tmp_path / "s", options) as store:
        sync, threads = CommitSync(store), threading.active_count()
        assert sync.settle(commit(store, 1), has_more=True) >= 0
        assert threading.active_count() == threads
        sync.close()


def test_what_a_replica_is_to_acknowledge_is_waited_for(target, syncs, sync, monkeypatch):
    syncs.may_end.set()
    monkeypatch.setattr(target.commits, "gate", object())
    assert not sync._may_go_beside()
    monkeypatch.setattr(target.commits, "gate", None)
    assert sync._may_go_beside()
