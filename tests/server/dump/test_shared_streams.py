"""Readers that share what is made for them get, byte for byte, what each of them gets alone."""

import random
import threading

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.storage.group_reader import GroupReader
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_runs import PageRuns
from ibb.storage.read_only import ReadOnlyHistory

from ...storage.events import query, rows_event, xid
from ...storage.random_history import DIRECTORY, RandomHistory
from .crowd import Crowd, any_reader, filled, opened, publish
from .made_streams import made_by, packets_of, publish_rows, request, stream

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("seed", range(16))
def test_any_history_is_sent_to_many_as_to_one(seed, monkeypatch):
    life = RandomHistory(seed)
    life.run()
    rng, history = random.Random(seed), ReadOnlyHistory(life.disk, DIRECTORY)
    gtids = [gtid for gtid, _, _ in life.diary.published]
    crowd = Crowd(history, rng, monkeypatch, rng.choice((1, 20_000, 1 << 20)))
    for _ in range(6):
        any_reader(crowd, rng, gtids)
    crowd.run()
    crowd.check()
    crowd.close()
    history.close()


@pytest.mark.parametrize("seed", range(8))
def test_readers_at_the_tail_share_what_comes(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 120)
        crowd = Crowd(store, rng, monkeypatch, rng.choice((30_000, 1 << 20)))
        for _ in range(6):
            any_reader(crowd, rng, [])
        for number in range(1000, 1000 + 8 * 10, 10):
            crowd.run()
            for more in range(rng.choice((1, 1, 2, 9))):
                publish(store, rng, number + more)
            if rng.random() < 0.7:
                store.sync()
        crowd.run()
        crowd.check()
        crowd.close()
    assert len(crowd.found) > 20


def test_pages_are_read_once_for_all_who_wait_at_the_end_and_not_to_see_that_it_is_there(
    monkeypatch, tmp_path
):
    rng, read, load = random.Random(3), [], PageRuns.load
    with opened(tmp_path, rng) as store:
        filled(store, rng, 20)
        crowd = Crowd(store, rng, monkeypatch, batch=1 << 18)
        for _ in range(5):
            crowd.add().run()
        monkeypatch.setattr(
            PageRuns, "load", lambda self, *a, **k: read.append(a) or load(self, *a, **k)
        )
        monkeypatch.setattr(GroupReader, "next", None)
        for number in range(100, 110):
            for one in crowd.readers:
                one.step()
                assert (one.outcome, one.data[-1]) == (Outcome.IDLE, b"")
                assert not one.stream._feed.has_pages
            with store.begin() as group:
                group.write(query("a") + xid(number))
                group.commit(Gtid(0, 1, number))
            for one in crowd.readers:
                one.step()
                assert one.outcome is Outcome.MORE
        assert len(crowd.found) == 40
        assert len(read) <= 40  # by the first, and to see that there is no more of it
        monkeypatch.undo()
        for one in crowd.readers:
            one.step()
        crowd.check()
        crowd.close()


def test_nothing_that_is_not_durable_is_in_a_block(monkeypatch, tmp_path):
    rng = random.Random(1)
    with opened(tmp_path, rng, flush_log_at_commit=0) as store:
        filled(store, rng, 50)
        crowd = Crowd(store, rng, monkeypatch)
        for _ in range(3):
            crowd.add()
        for number in range(100, 130):
            publish(store, rng, number)
            for one in crowd.readers:
                end = store.end()
                one.step()
                assert one.at is None or one.at.position <= store.end()
            assert all(
                (block.after.walker.file_no, block.after.behind) <= store.end()
                for block in crowd.blocks._kept.values()
            ), end
        crowd.run()
        crowd.check()
        crowd.close()


@pytest.mark.parametrize("seed", range(2))
def test_threads_share_blocks(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 300)
        crowd = Crowd(store, rng, monkeypatch, rng.choice((100_000, 1 << 24)), 1 << 14, 1 << 14)
        for _ in range(8):
            any_reader(crowd, rng, [])
        threads = [threading.Thread(target=one.run) for one in crowd.readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        crowd.check()
        assert crowd.found
        crowd.close()


def test_readers_who_begin_at_different_places_meet(monkeypatch, tmp_path):
    rng = random.Random(5)
    with opened(tmp_path, rng, page_size=4096) as store:
        for number in range(1, 1200):
            with store.begin() as group:
                group.write(query("a") + rows_event(100) + xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 14, 1 << 14)
        crowd.add()
        for number in (3, 50, 77):
            crowd.add(start=GtidPosition([Gtid(0, 1, number)]))
        crowd.run()
        made = crowd.check()
        crowd.close()
    assert sum(len(block.data) for block in crowd.found) > 2 * len(made[0].data)


def test_groups_that_one_reader_has_are_not_missed_by_another(monkeypatch, tmp_path):
    rng = random.Random(7)
    with opened(tmp_path, rng, page_size=4096) as store:
        for number in range(1, 300):
            with store.begin() as group:
                group.write(query("a") + rows_event(100) + xid(number))
                group.commit(Gtid(number % 2 * 7, 1, number), wait=False)
        store.sync()
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 18, 1 << 16)
        monkeypatch.setattr(SharedBlocks, "_behind", lambda *_: 9)  # as if all came at once
        for number in (200, 100, 150):
            crowd.add(start=GtidPosition([Gtid(0, 1, number)]))
        crowd.run()
        crowd.check()
        crowd.close()


def test_who_is_left_behind_goes_on_alone_inside_a_group(monkeypatch, tmp_path):
    rng = random.Random(6)
    with opened(tmp_path, rng, page_size=4096, max_binlog_size=4 << 20) as store:
        publish_rows(store, groups=3, events=60, size=9000)
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, 1 << 18, 1 << 16)
        fast, slow = crowd.add(), crowd.add()
        for _ in range(4):
            fast.step()
            slow.step()
        assert slow.stream._kernel.in_group
        assert crowd.found
        assert not slow.stream._feed.has_pages  # what it got was made by the other
        fast.run()
        found = len(crowd.found)
        assert crowd.blocks._bytes <= 1 << 20
        crowd.blocks._kept.clear()
        crowd.blocks._bytes = 0
        slow.step()
        assert len(crowd.found) == found
        assert slow.stream._feed.has_pages  # nor has it begun the group again
        slow.run()
        crowd.check()
        crowd.close()


@pytest.mark.parametrize("seed", range(10))
def test_damage_is_told_to_each_reader_as_ever(seed, monkeypatch, tmp_path):
    rng = random.Random(seed)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 150)
    file = rng.choice(sorted((tmp_path / "store").glob("*.ibb")))
    image = bytearray(file.read_bytes())
    image[rng.randrange(512, max(len(image.rstrip(b"\0")), 513))] ^= 1 << rng.randrange(8)
    file.write_bytes(image)
    history = ReadOnlyHistory(OsDisk(), str(tmp_path / "store"))
    crowd = Crowd(history, rng, monkeypatch)
    for _ in range(4):
        any_reader(crowd, rng, [])
    crowd.run()
    crowd.check()
    crowd.close()
    history.close()


def test_a_history_that_is_begun_anew_has_no_block_of_the_old_one(monkeypatch, tmp_path):
    rng = random.Random(9)
    with opened(tmp_path, rng) as store:
        for _ in range(2):
            filled(store, rng, 100)
            crowd = Crowd(store, rng, monkeypatch, batch=5000)
            waiting = [
                stream(RunStream, store, request(), runs=crowd.runs, blocks=crowd.blocks)
                for _ in range(2)
            ]
            for _ in range(3):
                crowd.add()
            for one in crowd.readers * 2:
                one.step()
            while not crowd.blocks._kept:
                assert crowd.readers[0].outcome is Outcome.MORE
                crowd.readers[0].step()
            crowd.close()  # though others are about to begin
            assert not crowd.runs._kept
            store.reset()
            publish(store, rng, 1)
            store.sync()
            crowd.readers = []
            for one in waiting:
                one.close()
            for _ in range(2):
                crowd.add()
            crowd.run()
            crowd.check()
            crowd.close()
            store.reset()


def test_files_before_the_readers_can_be_purged(monkeypatch, tmp_path):
    rng = random.Random(11)
    with opened(tmp_path, rng, page_size=4096, max_binlog_size=1 << 19) as store:
        filled(store, rng, 500)
        assert len(store.files()) > 2
        crowd = Crowd(store, rng, monkeypatch)
        first, second = crowd.add(), crowd.add()
        plain = made_by(DumpStream, store, first.asked)
        first.run()
        while second.at.position.file_no < 1:
            second.step()
        store.purge_to(store.files()[1].name)
        assert len(store.files()) > 1
        second.run()
        for one in (first, second):
            assert one.packets() == packets_of(plain.data)
        crowd.close()


def test_one_who_is_alone_keeps_nothing(monkeypatch, tmp_path):
    rng = random.Random(12)
    with opened(tmp_path, rng) as store:
        filled(store, rng, 100)
        crowd = Crowd(store, rng, monkeypatch, 1 << 20, batch=5000)
        crowd.add()
        crowd.add(checksum=False)  # another kind
        kept = []
        monkeypatch.setattr(SharedBlocks, "_behind", lambda *a: kept.append(a) or 0)
        crowd.run()
        crowd.check()
        crowd.close()
    assert not kept
