"""Who waits for an acknowledgement, and what lets them go."""

import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.dump import semi_sync as module
from ibb.server.dump.semi_sync import SemiSync
from ibb.storage.commit_position import CommitPosition
from ibb.storage.position import Position

SECONDS_MAX = 20.0
LONG_MS = 1_000_000


def committed(seq, file_no=0):
    return CommitPosition(Gtid(0, 1, seq), file_no, seq * 100, 0)


def end(position):
    return Position(position.file_no, position.offset)


def write(semi_sync, seq, file_no=0):
    position = committed(seq, file_no)
    semi_sync.expect(position.gtid)
    semi_sync.written(position)
    return position


class Waiting:
    """A commit that waits in a thread of its own."""

    def __init__(self, semi_sync, position):
        self.result = None
        self._semi_sync = semi_sync
        before = int(semi_sync.status()["Rpl_semi_sync_master_wait_sessions"])
        self._thread = threading.Thread(target=self._run, args=(position,))
        self._thread.start()
        while (  # until it waits, or has been let through
            self._thread.is_alive()
            and int(semi_sync.status()["Rpl_semi_sync_master_wait_sessions"]) == before
        ):
            pass

    def _run(self, position):
        self.result = self._semi_sync.was_acknowledged(position)

    @property
    def waits(self):
        return self._thread.is_alive()

    def outcome(self):
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()
        return self.result


def shown(semi_sync, *names):
    status = semi_sync.status()
    return [status[f"Rpl_semi_sync_master_{name}"] for name in names]


@pytest.fixture
def semi_sync():
    return SemiSync(enabled=True, timeout_ms=LONG_MS)


def test_a_commit_waits_for_the_reply_to_its_own_group(semi_sync):
    position = write(semi_sync, 1)
    commit = Waiting(semi_sync, position)
    assert commit.waits
    assert semi_sync.wants(position.gtid)
    semi_sync.reply(position.gtid, end(position))
    assert commit.outcome() is True
    assert shown(semi_sync, "yes_tx", "no_tx", "tx_waits", "get_ack", "request_ack") == [
        *("1", "0", "1", "1", "1")
    ]


def test_a_reply_counts_for_all_groups_before_it_and_none_behind(semi_sync):
    positions = [write(semi_sync, seq) for seq in (1, 2, 3)]
    commits = [Waiting(semi_sync, position) for position in positions]
    semi_sync.reply(positions[1].gtid, end(positions[1]))
    assert [commits[0].outcome(), commits[1].outcome()] == [True, True]
    assert commits[2].waits
    assert [semi_sync.wants(position.gtid) for position in positions] == [False, False, True]
    semi_sync.reply(positions[2].gtid, end(positions[2]))
    assert commits[2].outcome() is True


def test_a_reply_that_comes_before_anybody_waits_counts(semi_sync):
    position = write(semi_sync, 1)
    semi_sync.reply(position.gtid, end(position))
    assert semi_sync.was_acknowledged(position) is True
    assert shown(semi_sync, "yes_tx", "tx_waits") == ["1", "0"]


def test_a_replica_that_connects_with_a_group_has_acknowledged_it(semi_sync):
    first, second = write(semi_sync, 1), write(semi_sync, 2)
    commits = [Waiting(semi_sync, position) for position in (first, second)]
    semi_sync.has_all_before(end(first))
    assert commits[0].outcome() is True
    assert commits[1].waits
    semi_sync.has_all_before(Position(1, 0))
    assert commits[1].outcome() is True


def test_a_timeout_switches_waiting_off_for_all_until_a_replica_has_the_newest():
    semi_sync = SemiSync(enabled=True, timeout_ms=1)
    first = write(semi_sync, 1)
    assert semi_sync.was_acknowledged(first) is False
    assert shown(semi_sync, "status", "no_times", "no_tx") == ["OFF", "1", "1"]
    semi_sync.timeout_ms = LONG_MS
    second = write(semi_sync, 2)
    assert semi_sync.was_acknowledged(second) is False  # at once
    assert not semi_sync.wants(first.gtid)
    assert semi_sync.wants(second.gtid)
    semi_sync.reply(first.gtid, end(first))
    assert shown(semi_sync, "status") == ["OFF"]
    semi_sync.reply(second.gtid, end(second))
    assert shown(semi_sync, "status", "no_tx", "yes_tx") == ["ON", "2", "0"]
    third = write(semi_sync, 3)
    commit = Waiting(semi_sync, third)
    assert commit.waits
    semi_sync.reply(third.gtid, end(third))
    assert commit.outcome() is True


def test_switching_it_off_lets_everybody_go(semi_sync):
    commits = [Waiting(semi_sync, write(semi_sync, seq)) for seq in (1, 2)]
    semi_sync.enabled = False
    assert [commit.outcome() for commit in commits] == [False, False]
    assert not semi_sync.wants(Gtid(0, 1, 1))
    assert semi_sync.was_acknowledged(write(semi_sync, 3)) is False
    semi_sync.enabled = True
    assert shown(semi_sync, "status", "no_times") == ["ON", "1"]


def test_without_replicas_nobody_waits_if_so_told(semi_sync):
    semi_sync.join()
    commit = Waiting(semi_sync, write(semi_sync, 1))
    semi_sync.leave()
    assert commit.waits  # by default it does
    semi_sync.wait_no_slave = False
    assert commit.outcome() is False
    assert shown(semi_sync, "status", "clients") == ["OFF", "0"]


def test_a_group_that_was_not_written_is_forgotten(semi_sync):
    semi_sync.expect(Gtid(0, 1, 1))
    semi_sync.give_up(Gtid(0, 1, 1))
    assert not semi_sync.wants(Gtid(0, 1, 1))
    assert shown(semi_sync, "yes_tx", "no_tx") == ["0", "0"]


def test_nobody_waits_for_a_history_that_was_reset(semi_sync):
    old = write(semi_sync, 5, file_no=7)
    semi_sync.has_all_before(Position(7, 100))
    commit = Waiting(semi_sync, old)
    semi_sync.forget_history()
    assert commit.outcome() is False
    new = Waiting(semi_sync, write(semi_sync, 1))
    assert new.waits  # although its position is below those of before
    semi_sync.reply(Gtid(0, 1, 1), Position(0, 100))
    assert new.outcome() is True


def test_groups_that_nobody_acknowledges_are_bounded(semi_sync, monkeypatch):
    monkeypatch.setattr(module, "NOTED_MAX", 3)
    for seq in range(1, 6):
        write(semi_sync, seq)
    assert [semi_sync.wants(Gtid(0, 1, seq)) for seq in range(1, 6)] == [False] * 2 + [True] * 3
    assert shown(semi_sync, "no_tx") == ["2"]


def test_nobody_waits_while_the_relay_stops(semi_sync):
    commit = Waiting(semi_sync, write(semi_sync, 1))
    with semi_sync.nobody_waits():
        assert commit.outcome() is False
        assert semi_sync.was_acknowledged(write(semi_sync, 2)) is False
    later = Waiting(semi_sync, write(semi_sync, 3))
    assert later.waits
    semi_sync.reply(Gtid(0, 1, 3), Position(9, 0))
    assert later.outcome() is True
