"""Holds that keep files, and who may let go of them without waiting."""

import threading

from ibb.storage.holds import HoldKind, Holds


def taken(holds):
    return holds.take(HoldKind.READER, "one", lambda: 3)


def test_one_that_nobody_stands_in_the_way_of_is_released_at_once():
    holds = Holds()
    first, second = taken(holds), taken(holds)
    assert first.release_at_once()
    assert holds.all() == [second]
    assert first.release_at_once()
    first.release()
    assert holds.all() == [second]
    second.release()
    assert holds.all() == []


def test_while_another_thread_purges_it_stays_and_nobody_waits():
    holds = Holds()
    hold = taken(holds)
    outcome = []
    with holds.frozen():
        other = threading.Thread(target=lambda: outcome.append(hold.release_at_once()))
        other.start()
        other.join(60)
        assert outcome == [False]
        assert holds.all() == [hold]
    assert hold.release_at_once()
    assert holds.all() == []
