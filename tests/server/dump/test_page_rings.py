"""Rings: each for one reader at a time, its own if nobody else needed it, and few that wait."""

import gc
import random
import weakref
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import pytest

from ibb.server.config import BATCH_BYTES
from ibb.server.dump import page_feed, page_rings, run_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.packet_buffers import PIECE_BYTES
from ibb.server.dump.page_feed import PageFeed
from ibb.server.dump.page_rings import LARGE_RINGS, RING_BYTES, SMALL_RING_BYTES, PageRings
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.storage import Store, StoreOptions
from ibb.storage.large_memory import LARGE_PAGE_BYTES
from ibb.storage.page_runs import PageRuns

from .made_streams import Client, by_descriptor, made_by, publish_rows, request, stream


def owners(count):
    return [PageFeed(None) for _ in range(count)]


def test_who_comes_back_gets_its_own():
    rings, (one, other) = PageRings(), owners(2)
    mine, theirs = rings.take(one), rings.take(other)
    assert mine[1] is not theirs[1]
    rings.give_back(one, *mine)
    rings.give_back(other, *theirs)
    assert rings.take(one)[0] is mine[0]
    assert rings.take(other)[0] is theirs[0]


def test_who_is_new_gets_room_of_who_gave_it_back_first_and_nothing_that_was_read():
    rings, (one, other, third) = PageRings(), owners(3)
    mine, theirs = rings.take(one), rings.take(other)
    rings.give_back(other, *theirs)
    rings.give_back(one, *mine)
    ring, memory = rings.take(third)
    assert memory is theirs[1]
    assert ring is not theirs[0]
    assert rings.take(one)[0] is mine[0]
    assert all(rings.take(other)[1] is not used for used in (mine[1], memory))


def test_no_more_are_kept_than_there_is_use_for():
    rings, feeds = PageRings(2), owners(5)
    taken = [rings.take(feed) for feed in feeds]
    for feed, one in zip(feeds, taken, strict=True):
        rings.give_back(feed, *one)
    assert [id(free.ring) for free in rings._free] == [id(ring) for ring, _ in taken[-2:]]


@pytest.mark.parametrize("is_gone", [True, False])
def test_nothing_is_kept_for_who_will_not_come_back(is_gone):
    rings, feeds = PageRings(), owners(2)
    for feed in feeds:
        rings.give_back(feed, *rings.take(feed))
    other = feeds.pop()
    del feed
    assert len(rings._free) == 1
    rings.give_back(other, *rings.take(other))
    if is_gone:
        del other
        gc.collect()
        rings.forget(feeds[0])
    else:
        rings.forget(other)
    assert [free.owner() for free in rings._free] == []


def sizes_of(taken):
    return [len(memory) for _, memory in taken]


def test_where_many_are_used_at_a_time_the_rest_are_small_and_two_share_one_page():
    rings, feeds = PageRings(), owners(LARGE_RINGS + 4)
    taken = [rings.take(feed) for feed in feeds]
    assert sizes_of(taken) == [RING_BYTES] * LARGE_RINGS + [SMALL_RING_BYTES] * 4
    memory = [memory for _, memory in taken]
    assert 2 * SMALL_RING_BYTES == LARGE_PAGE_BYTES
    assert len({id(one.obj) for one in memory}) == LARGE_RINGS + 2
    for one, other in pairwise(memory[LARGE_RINGS:]):
        one[:], other[:] = b"1" * len(one), b"2" * len(other)
        assert bytes(one) == b"1" * len(one)


def test_who_is_new_gets_the_largest_that_is_free():
    rings, feeds = PageRings(), owners(LARGE_RINGS + 2)
    taken = [rings.take(feed) for feed in feeds]
    for place in (-1, 1, -2, 0):
        rings.give_back(feeds[place], *taken[place])
    new = [rings.take(feed)[1] for feed in owners(4)]
    assert [id(one) for one in new] == [id(taken[place][1]) for place in (1, 0, -1, -2)]
    assert len(rings.take(feeds[0])[1]) == SMALL_RING_BYTES  # as many are used as before


def test_large_ones_that_are_gone_make_room_for_others():
    rings, feeds = PageRings(LARGE_RINGS), owners(LARGE_RINGS + 1)
    taken = [rings.take(feed) for feed in feeds]
    rings.give_back(feeds[2], *taken[2])
    rings.forget(feeds[2])
    del taken[2], taken[5]
    new = [rings.take(feed) for feed in owners(4)]
    assert sizes_of(new) == [RING_BYTES] * 2 + [SMALL_RING_BYTES] * 2
    assert new[2][1].obj is taken[-1][1].obj  # the other half, which nobody has had


@contextmanager
def some_groups(tmp_path, events=20):
    options = StoreOptions(
        max_binlog_size=4 << 20, format_description="upstream", fifo_pages_max=16
    )
    with Store.open(tmp_path / "store", options) as store, by_descriptor():
        publish_rows(store, groups=2400 // events, events=events, size=3000)
        yield store


@pytest.mark.parametrize("seed", range(12))
def test_readers_that_take_turns_with_one_ring_are_sent_what_each_would_get_alone(
    seed, tmp_path, monkeypatch
):
    rng = random.Random(seed)
    monkeypatch.setattr(run_stream, "PIECE_BYTES", rng.choice((5_000, 30_000, 120_000)))
    monkeypatch.setattr(run_stream, "SENT_BYTES", rng.choice((40_000, 400_000)))
    with some_groups(tmp_path, rng.choice((5, 20, 60))) as store, ExitStack() as stack:
        page_feed._rings._rings_max = 1
        expected, going = made_by(DumpStream, store, request()).data, []
        shared = {"runs": PageRuns(store), "blocks": SharedBlocks()}
        for _ in range(3):
            one = stream(RunStream, store, request(), **shared)
            client = stack.enter_context(Client(rng.choice((1 << 14, 1 << 20))))
            going.append((one, client, bytearray(one.start().data)))
        sent, left = 0, list(going)
        while left:
            one, client, found = turn = rng.choice(left)
            sender = client if rng.random() < 0.7 else None
            for _ in range(rng.randrange(1, 4)):  # a turn of so many batches
                batch = one.next_batch(sender)
                found += client.received() + batch.data
                sent += batch.sent_size
                if batch.outcome is not Outcome.MORE:
                    left.remove(turn)
                    break
            one.forget_batch()
        for one, _, found in going:
            assert found == expected
            one.close()
        assert sent > len(expected) // 4
        assert page_feed._rings._free == []  # nobody comes back


def test_nothing_is_kept_for_who_is_sent_what_it_reads_itself(tmp_path):
    blocks = SharedBlocks()
    with some_groups(tmp_path) as store, Client(1 << 20) as client:
        one, other = (stream(RunStream, store, request(), blocks=blocks) for _ in range(2))
        one.start()
        other.start()
        while not one.next_batch(client).sent_size:
            client.received()
        for _ in range(20):
            assert other.next_batch().data
        assert blocks.is_alone(one._seat) is False
        assert not blocks._kept  # although the other is ahead
        one.close()
        other.close()


def test_who_takes_little_holds_no_large_piece(tmp_path):
    """What a client has not taken of a piece waits in memory."""
    left = []
    with some_groups(tmp_path) as store, Client(1 << 14) as client:
        one = stream(RunStream, store, request())
        batch = one.start()
        while batch.outcome is Outcome.MORE:
            batch = one.next_batch(client)
            if client.received():
                left.append(len(batch.data))
        one.close()
    assert len(left) > 10
    assert max(left[1:]) < BATCH_BYTES < PIECE_BYTES  # it is known behind the first one


def test_a_ring_that_comes_back_when_its_reader_has_left_is_not_kept(tmp_path):
    with some_groups(tmp_path) as store, Client(1 << 20) as client:
        one = stream(RunStream, store, request())
        one.start()
        while not one.next_batch(client).sent_size:
            client.received()
        one.close()
        one.forget_batch()
        assert page_feed._rings._free == []


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_ring_that_was_lent_is_known_to_nobody(is_closed, tmp_path, monkeypatch):
    made, real = [], page_rings.large_memory

    def memory_of(size):
        memory = real(size)
        made.append(weakref.ref(memory.obj))
        return memory

    monkeypatch.setattr(page_rings, "large_memory", memory_of)
    with some_groups(tmp_path) as store, Client(1 << 20) as client:
        one = stream(RunStream, store, request())
        one.start()
        while not one.next_batch(client).sent_size:
            client.received()
        assert one._feed.has_pages
        one.forget_batch()
        (free,) = page_feed._rings._free
        assert free.owner() is one._feed
        assert not one._feed.has_pages
        if is_closed:
            one.close()
        else:
            page_feed._rings._free.clear()
        assert page_feed._rings._free == []
        del free
        assert [memory() for memory in made] == [None]  # nor does the kernel look into it
        one.close()


def test_who_was_sent_the_packets_of_others_goes_on_by_itself(tmp_path):
    blocks = SharedBlocks()
    with some_groups(tmp_path) as store, Client(1 << 20) as client:
        one, other = (stream(RunStream, store, request(), blocks=blocks) for _ in range(2))
        for reader in (one, other):
            reader.start()
            assert all(reader.next_batch().data for _ in range(2))  # where it is, is known
        for _ in range(3):
            assert one.next_batch().data
        kept = set(blocks._kept)
        sizes = [other.next_batch(client).sent_size for _ in range(2)]
        assert kept - set(blocks._kept)  # it has had one of those
        assert sizes[0] == 0 < sizes[1]
        one.close()
        other.close()
