"""The durable offset follows the synced LSN, over whole records and never back."""

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.durable import PENDING_MAX, DurableOffset
from ibb.storage.position import Position


def test_moves_to_the_last_entry_that_is_synced() -> None:
    durable = DurableOffset(Position(0, 16384), BinlogState())
    for number in range(1, 6):
        durable.add(number * 10, Position(0, 16384 + number), Gtid(0, 1, number))
    durable.synced(35)
    assert durable.end == Position(0, 16387)
    assert str(durable.state()) == "0-1-3"
    durable.synced(20)
    assert durable.end == Position(0, 16387)
    durable.synced(50)
    assert durable.end == Position(0, 16389)
    assert str(durable.state()) == "0-1-5"


def test_wakes_those_who_wait_only_when_it_moves() -> None:
    durable = DurableOffset(Position(0, 16384), BinlogState())
    calls: list[str] = []
    leave = durable.subscribe(lambda: calls.append("a"))
    durable.subscribe(lambda: calls.append("b"))
    durable.synced(5)
    assert calls == []
    durable.add(10, Position(1, 20000), None)
    durable.synced(10)
    assert calls == ["a", "b"]
    leave()
    durable.add(20, Position(1, 20001), None)
    durable.synced(20)
    assert calls == ["a", "b", "b"]


def test_what_is_noted_behind_its_sync_is_durable_at_once() -> None:
    """The thread that syncs may be faster than the one that wrote; no other sync may follow."""
    durable = DurableOffset(Position(0, 0), BinlogState(), tells_of_pending=True)
    calls: list[Position] = []
    durable.subscribe(lambda: calls.append(durable.end))
    durable.synced(20)
    durable.add(10, Position(0, 10), Gtid(0, 1, 1))
    durable.add(20, Position(0, 20), Gtid(0, 1, 2))
    assert calls == [Position(0, 10), Position(0, 20)]
    assert str(durable.state()) == "0-1-2"
    durable.add(30, Position(0, 30), Gtid(0, 1, 3))
    assert durable.end == Position(0, 20)


def test_tells_once_of_what_begins_to_wait_for_a_sync() -> None:
    durable = DurableOffset(Position(0, 0), BinlogState(), tells_of_pending=True)
    calls: list[Position] = []
    durable.subscribe(lambda: calls.append(durable.end))
    for number in (10, 20, 30):
        durable.add(number, Position(0, number), None)
    assert calls == [Position(0, 0)]
    durable.synced(20)
    durable.add(40, Position(0, 40), None)
    assert calls == [Position(0, 0), Position(0, 20)]
    durable.synced(40)
    durable.add(50, Position(0, 50), None)
    assert calls == [Position(0, 0), Position(0, 20), Position(0, 40), Position(0, 40)]


def test_a_full_pending_fifo_extends_its_newest_entry() -> None:
    """Nothing becomes durable too early, and no GTID is forgotten."""
    durable = DurableOffset(Position(0, 0), BinlogState())
    last = PENDING_MAX + 500
    for number in range(1, last + 1):
        durable.add(number, Position(0, number), Gtid(number % 3, 1, number))
    durable.synced(PENDING_MAX - 1)
    assert durable.end == Position(0, PENDING_MAX - 1)
    durable.synced(last - 1)
    assert durable.end == Position(0, PENDING_MAX - 1)
    durable.synced(last)
    assert durable.end == Position(0, last)
    newest = {gtid.domain: gtid.seq for gtid in durable.state().position()}
    assert newest == {number % 3: number for number in range(last - 2, last + 1)}


def test_one_who_cannot_be_woken_harms_neither_the_commit_nor_the_others(caplog) -> None:
    durable = DurableOffset(Position(0, 0), BinlogState())
    calls: list[str] = []

    def fail() -> None:
        calls.append("failing")
        raise RuntimeError("Event loop is closed")

    durable.subscribe(fail)
    durable.subscribe(lambda: calls.append("other"))
    for number in (1, 2):
        durable.add(number * 10, Position(0, number), Gtid(0, 1, number))
        durable.synced(number * 10)
    assert calls == ["failing", "other", "other"]  # and is not told any more
    assert str(durable.state()) == "0-1-2"
    assert "Event loop is closed" in caplog.text
