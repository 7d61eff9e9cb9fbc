"""Group commit: one works on the log, the others wait and are all served."""

import threading
from collections.abc import Callable

import pytest

from ibb.storage import log_turns
from ibb.storage.log_turns import LogTurns, _Waiter

SECONDS = 10


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_until_waiting(turns: LogTurns, count: int) -> None:
    done = threading.Event()
    for _ in range(SECONDS * 1000):
        if len(turns._waiting) == count:
            return
        done.wait(0.001)
    raise AssertionError(f"{len(turns._waiting)} wait, not {count}")


def waiters(
    turns: LogTurns, wanted: list[tuple[int, bool]], *, before: int = 0
) -> tuple[list[threading.Thread], dict[int, bool]]:
    """Start a thread for each (lsn, until_synced); the answers of `enter` come by place."""
    answers: dict[int, bool] = {}
    threads = []
    for place, (lsn, until_synced) in enumerate(wanted):

        def wait(place: int = place, lsn: int = lsn, until_synced: bool = until_synced) -> None:
            answers[place] = turns.enter(lsn, until_synced=until_synced)

        threads.append(started(wait))
        wait_until_waiting(turns, before + place + 1)
    return threads, answers


def test_the_first_leads_and_one_sync_serves_all() -> None:
    turns = LogTurns()
    assert turns.enter(10, until_synced=True)
    threads, answers = waiters(turns, [(lsn, True) for lsn in range(20, 20 + 30)])
    turns.leave(written_lsn=60, synced_lsn=60, failed=False)
    for thread in threads:
        thread.join(SECONDS)
    assert answers == dict.fromkeys(range(30), False)
    assert turns.enter(70, until_synced=True)


def test_who_wants_less_than_a_sync_is_served_by_a_write() -> None:
    turns = LogTurns()
    assert turns.enter(10, until_synced=False)
    threads, answers = waiters(turns, [(30, True), (30, False), (40, False)])
    turns.leave(written_lsn=30, synced_lsn=0, failed=False)
    # The first has its turn to lead, the second has what it wants, the third goes on waiting.
    for thread in threads[:2]:
        thread.join(SECONDS)
    assert answers == {0: False, 1: False}
    assert threads[2].is_alive()
    assert turns.enter(30, until_synced=True)
    turns.leave(written_lsn=40, synced_lsn=40, failed=False)
    threads[2].join(SECONDS)
    assert answers[2] is False


def test_after_a_failure_nobody_waits_any_more() -> None:
    turns = LogTurns()
    assert turns.enter(10, until_synced=True)
    threads, answers = waiters(turns, [(1000 + n, n % 2 == 0) for n in range(20)])
    turns.leave(written_lsn=0, synced_lsn=0, failed=True)
    for thread in threads:
        thread.join(SECONDS)
    assert len(answers) == 20


class _Interrupted(BaseException):
    pass


class _InterruptedWaiter(_Waiter):
    """A waiter whose sleep ends with an exception instead of its turn."""

    def __init__(self, lsn: int, before_raising: Callable[[], None]) -> None:
        super().__init__(lsn, until_synced=True)
        self.turn = _Turn(before_raising)  # type: ignore[assignment]


class _Turn:
    def __init__(self, before_raising: Callable[[], None]) -> None:
        self._times_taken = 0
        self._before_raising = before_raising

    def acquire(self) -> None:
        self._times_taken += 1
        if self._times_taken == 2:
            self._before_raising()
            raise _Interrupted

    def release(self) -> None:
        pass


@pytest.mark.parametrize("reached", [0, 50])
def test_a_wait_that_is_interrupted_holds_up_nobody(
    reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three is interrupted just after it was woken: to lead, or because it may go."""
    monkeypatch.setattr(log_turns, "WOKEN_AT_ONCE", 1)
    turns = LogTurns()
    assert turns.enter(10, until_synced=True)
    threads: list[threading.Thread] = []

    def others_come_and_the_leader_leaves() -> None:
        monkeypatch.setattr(log_turns, "_Waiter", _Waiter)
        threads.extend(waiters(turns, [(20, True), (21, True)], before=1)[0])
        turns.leave(written_lsn=reached, synced_lsn=reached, failed=False)

    monkeypatch.setattr(
        log_turns,
        "_Waiter",
        lambda lsn, **_: _InterruptedWaiter(lsn, others_come_and_the_leader_leaves),
    )
    with pytest.raises(_Interrupted):
        turns.enter(15, until_synced=True)
    threads[0].join(SECONDS)
    assert not threads[0].is_alive()
    if not reached:  # it was woken to lead, and does
        assert turns.enter(20, until_synced=True)
        turns.leave(written_lsn=50, synced_lsn=50, failed=False)
    threads[1].join(SECONDS)
    assert not threads[1].is_alive()


def test_a_wait_that_is_interrupted_before_its_turn_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = LogTurns()
    assert turns.enter(10, until_synced=True)
    with monkeypatch.context() as patched:
        patched.setattr(
            log_turns, "_Waiter", lambda lsn, **_: _InterruptedWaiter(lsn, lambda: None)
        )
        with pytest.raises(_Interrupted):
            turns.enter(15, until_synced=True)
    threads, answers = waiters(turns, [(20, True)])
    turns.leave(written_lsn=0, synced_lsn=0, failed=False)
    threads[0].join(SECONDS)
    assert answers == {0: False}


def test_who_does_not_lead_may_leave_without_harm() -> None:
    """So `leave` can stand in a `finally` that an interruption reaches before `enter` is over."""
    turns = LogTurns()
    turns.leave(written_lsn=0, synced_lsn=0, failed=False)
    assert turns.enter(10, until_synced=True)
    stranger = started(lambda: turns.leave(written_lsn=10, synced_lsn=10, failed=False))
    stranger.join(SECONDS)
    threads, answers = waiters(turns, [(10, True)])  # the first one leads still
    turns.leave(written_lsn=10, synced_lsn=10, failed=False)
    threads[0].join(SECONDS)
    assert answers == {0: False}
