"""One stream to many who watch."""

import asyncio

import pytest

from ibb.server.dashboard.broadcaster import (
    MESSAGES_WAITING_MAX,
    WATCHERS_MAX,
    Broadcaster,
    TooManyWatchers,
)

ALL = frozenset()  # what is left out of it is nothing
LESS = frozenset({"a part"})


async def test_who_comes_later_gets_the_last_message_at_once():
    broadcaster = Broadcaster()
    broadcaster.publish("overview", {ALL: b"1"})
    broadcaster.publish("overview", {ALL: b"2"})
    with broadcaster.watching(ALL) as watcher:
        assert await watcher.next() == b"event: overview\ndata: 2\n\n"
        later = asyncio.create_task(watcher.next())
        broadcaster.publish("overview", {ALL: b"3"})
        assert await later == b"event: overview\ndata: 3\n\n"
    assert len(broadcaster) == 0


async def test_everybody_gets_the_message_that_leaves_out_what_he_is_not_shown():
    broadcaster = Broadcaster()
    with broadcaster.watching(ALL) as one, broadcaster.watching(LESS) as other:
        broadcaster.publish("overview", {ALL: b"1", LESS: b"0"})
        assert await one.next() == b"event: overview\ndata: 1\n\n"
        assert await other.next() == b"event: overview\ndata: 0\n\n"
    with broadcaster.watching(LESS) as later:
        assert await later.next() == b"event: overview\ndata: 0\n\n"


async def test_who_does_not_keep_up_is_dropped_and_the_others_are_not():
    broadcaster = Broadcaster()
    with broadcaster.watching(ALL) as slow, broadcaster.watching(ALL) as quick:
        for number in range(MESSAGES_WAITING_MAX + 1):
            broadcaster.publish("overview", {ALL: b"%d" % number})
            assert await quick.next() is not None
        assert slow.dropped
        assert await slow.next() is None
        assert not quick.dropped


async def test_so_many_may_watch_and_no_more():
    broadcaster = Broadcaster()
    contexts = [broadcaster.watching(ALL) for _ in range(WATCHERS_MAX)]
    for context in contexts:
        context.__enter__()
    assert broadcaster.is_full
    with pytest.raises(TooManyWatchers, match="close one"), broadcaster.watching(ALL):
        pass
    contexts[0].__exit__(None, None, None)
    with broadcaster.watching(ALL):
        assert broadcaster.is_full
    for context in contexts[1:]:
        context.__exit__(None, None, None)


async def test_everybody_is_told_of_the_end():
    broadcaster = Broadcaster()
    with broadcaster.watching(ALL) as watcher:
        waiting = asyncio.create_task(watcher.next())
        await asyncio.sleep(0)
        broadcaster.close()
        assert await waiting is None
    with broadcaster.watching(ALL) as watcher:
        assert await watcher.next() is None
