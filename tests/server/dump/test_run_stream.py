"""What the kernel makes of a history is, byte for byte, what is made of it as ever."""

import random
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from ibb.protocol.event import EventFlag, EventType, build_event
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.config import FIRST_BATCH_BYTES
from ibb.server.dump import dump_stream, event_packets, packet_buffers, run_encoder
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.dump_terms import DumpTerms
from ibb.server.dump.pacing import Pacing
from ibb.server.dump.packet_buffers import BUFFER_BYTES, LONG_BUFFER_BYTES, LONG_BYTES
from ibb.server.dump.run_stream import BATCHES_A_FILE, RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.storage import Store, StoreOptions
from ibb.storage.clock import SystemClock
from ibb.storage.group_reader import GroupReader
from ibb.storage.options import REDO_SEGMENT_SIZE_MIN
from ibb.storage.page_runs import PageRuns
from ibb.storage.page_seal import seal_page
from ibb.storage.read_only import ReadOnlyHistory

from ...faults.sim_disk import SimDisk
from ...storage.events import TIMESTAMP, fragments, query, rows_event, xid
from ...storage.random_history import DIRECTORY, RandomHistory
from .made_streams import (
    assert_same,
    made_by,
    note_quick_bytes,
    often,
    publish_rows,
    request,
    rest_of,
    stream,
)

pytestmark = pytest.mark.kernel

KINDS = [
    request(),
    request(checksum=False),
    request(annotate=False, skip_marked=True),
    request(join_fragments=True),
]
USUAL = (EventType.TABLE_MAP, EventType.WRITE_ROWS_V1, EventType.ANNOTATE_ROWS, EventType.INTVAR)


@pytest.fixture
def quick_bytes(monkeypatch):
    return note_quick_bytes(monkeypatch)


def events_of(rng, size):
    """Return some events of a group, marked or not, below *size* bytes each."""
    found = [query("a")]
    for _ in range(rng.randrange(8)):
        flags = rng.choice((0, 0, EventFlag.ACCEPT_OWN, EventFlag.SKIP_REPLICATION, 0xFFFF))
        found.append(
            build_event(
                rng.choice(USUAL),
                rng.randbytes(8 + rng.choice((0, 1, rng.randrange(size)))),
                timestamp=TIMESTAMP,
                server_id=rng.choice((1, 2**32 - 1)),
                flags=flags,
            )
        )
    rng.shuffle(found)
    return b"".join(found)


def publish(store, rng, number):
    """Publish a group of any shape, some that the kernel leaves alone among them."""
    events, shape = events_of(rng, rng.choice((40, 900, 9000))), rng.random()
    if shape < 0.04:
        events += rows_event(rng.choice((70_000, 131_000, 200_000))) + events_of(rng, 100)
    elif shape < 0.07:
        events += b"".join(fragments(rows_event(3000), 700))
    with store.begin() as group:
        group.write(events + xid(number))
        domain = rng.choice((0, 0, 0, 1, 40))
        group.commit(Gtid(domain, rng.choice((1, 2)), number), wait=False)


@contextmanager
def made_up(disk, rng, page_size, groups, **options):
    """Open a store with so many groups in it."""
    chosen = {
        "page_size": page_size,
        "max_binlog_size": max(64 * page_size, 1 << 20),
        "redo_segment_size": max(REDO_SEGMENT_SIZE_MIN, 4 * page_size * 4),
        "oob_piece_size": rng.choice((400, 8192, 32768)),
        "server_id": 5,
    } | options
    with Store.open(DIRECTORY, StoreOptions(**chosen), disk=disk) as store:
        for number in range(1, groups + 1):
            publish(store, rng, number)
        store.sync()
        yield store


@pytest.mark.parametrize("seed", range(24))
def test_any_history_is_sent_as_ever(seed, monkeypatch):
    life = RandomHistory(seed)
    life.run()
    rng = random.Random(seed)
    history = ReadOnlyHistory(life.disk, DIRECTORY)
    gtids = [gtid for gtid, _, _ in life.diary.published]
    starts = [GtidPosition(), GtidPosition([rng.choice(gtids)]), history.state().position(), None]
    with often(monkeypatch, rng.choice((1, 700, 1 << 18)), rng.choice((1024, 4096, 1 << 18))):
        for start in starts:
            for asked in rng.sample(KINDS, 2):
                found = assert_same(history, replace(asked, connect_state=start))
    assert found.outcome in (Outcome.IDLE, Outcome.END)
    history.close()


@pytest.mark.parametrize("page_size", [512, 1024, 4096, 16384, 65536])
@pytest.mark.parametrize("seed", range(3))
def test_a_store_is_sent_as_ever_while_it_grows(seed, page_size, monkeypatch, quick_bytes):
    rng = random.Random(f"{seed}-{page_size}")
    batch, run = rng.choice((1, 5000, 1 << 18)), rng.choice((4 * page_size, 1 << 18))
    with made_up(SimDisk(), rng, page_size, 60) as store, often(monkeypatch, batch, run):
        for asked in KINDS:
            both = [stream(kind, store, asked) for kind in (DumpStream, RunStream)]
            starts = [one.start() for one in both]
            assert starts[0] == starts[1]
            for number in range(1, 8):
                plain, quick = (rest_of(one) for one in both)
                assert quick == plain
                for _ in range(rng.choice((1, 1, 5))):
                    publish(store, rng, 1000 * KINDS.index(asked) + 100 + number)
            for one in both:
                one.close()
    assert sum(quick_bytes) > 0


@pytest.mark.parametrize("seed", range(40))
def test_damage_ends_a_dump_as_ever(seed, monkeypatch):
    rng = random.Random(seed)
    disk, page_size = SimDisk(), rng.choice((512, 4096, 16384))
    with made_up(disk, rng, page_size, 40):
        pass
    name = f"{DIRECTORY}/{rng.choice([one for one in disk.list(DIRECTORY) if '.ibb' in one])}"
    image = disk.contents(name)
    used = len(image.rstrip(b"\0"))
    at = rng.randrange(page_size, max(used, page_size + 1))
    if seed % 2:  # damage that the page's checksum does not tell
        page = bytearray(image[at - at % page_size :][:page_size])
        page[at % page_size % (page_size - 4)] ^= 1 << rng.randrange(8)
        seal_page(page)
        disk.damage(name, at - at % page_size, bytes(page))
    else:
        disk.damage(name, at, bytes([image[at] ^ 1 << rng.randrange(8)]))
    history = ReadOnlyHistory(disk, DIRECTORY)
    with often(monkeypatch, rng.choice((700, 1 << 18)), rng.choice((4 * page_size, 1 << 18))):
        for asked in KINDS[:2]:
            assert_same(history, asked)
    history.close()


def test_nearly_everything_that_is_usual_is_made_by_the_kernel(quick_bytes):
    rng = random.Random(1)
    with made_up(SimDisk(), rng, 4096, 0) as store:
        for number in range(1, 400):
            with store.begin() as group:
                size = rng.choice((100, 20_000))
                group.write(query("a") + b"".join(rows_event(size) for _ in range(9)) + xid(1))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        made = assert_same(store, request())
    assert sum(quick_bytes) > 0.8 * len(made.data)


@pytest.mark.parametrize("strict", [False, True])
def test_groups_before_the_start_are_passed_over_by_the_kernel(strict, monkeypatch):
    rng, looked_at, read = random.Random(4), [], GroupReader.next
    domains = [(0, 1), (0, 2), (1, 1), (40, 1)]
    with made_up(SimDisk(), rng, 16384, 0) as store:
        for number in range(1, 1200):
            with store.begin() as group:
                group.write(query("a") + xid(number))
                group.commit(Gtid(*rng.choice(domains), number * 3), wait=False)
        store.sync()
        monkeypatch.setattr(GroupReader, "next", lambda self: looked_at.append(1) or read(self))
        for numbers in [(3000, 3000, 3000), (30, 2000, 3591), (3597, 1, 3), (2999, 2998, 2997)]:
            wanted = zip((0, 1, 40), numbers, strict=True)
            start = GtidPosition([Gtid(domain, 1, number) for domain, number in wanted])
            assert_same(store, request(connect_state=start, strict=strict))
        looked_at.clear()
        made_by(RunStream, store, request(connect_state=GtidPosition([Gtid(0, 1, 3500)])))
    assert len(looked_at) < 30


def test_an_event_that_is_too_large_goes_on_where_the_kernel_has_stopped(quick_bytes):
    large = rows_event(event_packets.EVENT_BYTES_MAX)
    long = [*[rows_event(9000)] * 100, large, *[rows_event(90)] * 9]
    with made_up(SimDisk(), random.Random(2), 16384, 0, max_binlog_size=8 << 20) as store:
        for number, events in enumerate(([query("a")], long, [query("b")]), 1):
            with store.begin() as group:
                group.write(b"".join(events) + xid(number))
                group.commit(Gtid(0, 1, number))
        made = assert_same(store, request())
        quick_bytes.clear()
        made_by(RunStream, store, request())
    assert 2 * dump_stream.BATCH_BYTES < sum(quick_bytes) < len(made.data) - len(large)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_who_is_to_stop_ends_behind_the_group(batches, monkeypatch):
    with made_up(SimDisk(), random.Random(3), 4096, 0) as store:
        for number in (1, 2):
            with store.begin() as group:
                group.write(b"".join([rows_event(3000)] * 20 + [xid(number)]))
                group.commit(Gtid(0, 1, number))
        with often(monkeypatch, 10_000, 1 << 18):
            ends = []
            for kind in (DumpStream, RunStream):
                one = stream(kind, store, request(connect_state=GtidPosition([Gtid(0, 1, 1)])))
                one.start()
                data = [one.next_batch().data for _ in range(batches)]
                assert not one.between_groups
                one.stopping = True
                while not one.between_groups:
                    data.append(one.next_batch().data)
                assert one.next_batch().data == b""
                ends.append(b"".join(data))
                one.close()
    assert ends[0] == ends[1]


def test_a_kernel_refuses_what_would_have_it_reach_behind_a_buffer():
    kernel = run_encoder.RunEncoder(checksum=True, fates=bytes(256), marked=0)
    with pytest.raises(ValueError, match="bytes for"):
        kernel.run(bytearray(100), 100, 0)
    for pages, page_size, visible in [(1, 512, 509), (2, 512, 0), (0, 512, 0), (1, 256, 0)]:
        with pytest.raises(ValueError, match="page"):
            kernel.walker.load(bytes(512), page_size, 1, pages, visible)
    with pytest.raises(ValueError, match="fates"):
        run_encoder.RunEncoder(checksum=True, fates=bytes(255), marked=0)


def sizes_of(streams):
    """Let streams make a batch in turns, until each has no more; return the sizes of each."""
    sizes = [[] for _ in streams]
    for one in streams:
        one.start()
    going = list(zip(streams, sizes, strict=True))
    while going:
        made = [(pair, pair[0].next_batch()) for pair in going]
        for (_, found), batch in made:
            found.append(len(batch.data))
        going = [pair for pair, batch in made if batch.outcome is Outcome.MORE]
    for one in streams:
        one.close()
    return sizes


def test_who_reads_alone_as_fast_as_it_can_is_sent_more_at_a_time():
    with made_up(SimDisk(), random.Random(5), 16384, 0, max_binlog_size=32 << 20) as store:
        for number in range(1, 450):
            with store.begin() as group:
                group.write(rows_event(30_000) + xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        blocks, pacing = SharedBlocks(), Pacing(0, 0, SystemClock())

        def reader(**changes):
            pace = pacing.for_reader()
            terms = DumpTerms(store, request(**changes), 9, "10.11.9", now=77, pace=pace)
            return RunStream(terms, blocks=blocks)

        assert_same(store, request())
        ((first, second, *rest),) = sizes_of([reader()])
        assert first < 4 * FIRST_BATCH_BYTES < second < 8 * FIRST_BATCH_BYTES
        for size, next_size in pairwise((second, *rest[:3])):  # who goes soon costs little
            assert 1.5 * size < next_size < 2.5 * size
        assert LONG_BYTES <= max(rest) < LONG_BUFFER_BYTES
        others = sizes_of([reader(), reader(checksum=False)])  # with whom it shares nothing
        assert all(max(one) >= LONG_BYTES for one in others)
        shared = sizes_of([reader(), reader()])
        assert all(max(one) < 2 * dump_stream.BATCH_BYTES for one in shared)
        pacing.rate = 1 << 30
        (limited,) = sizes_of([reader()])
        assert max(limited) < 2 * dump_stream.BATCH_BYTES


def test_who_leaves_after_a_few_groups_has_cost_no_large_buffer(monkeypatch):
    kept = {size: deque() for size in (BUFFER_BYTES, LONG_BUFFER_BYTES)}
    monkeypatch.setattr(packet_buffers, "_buffers", kept)
    with made_up(SimDisk(), random.Random(5), 16384, 0, max_binlog_size=32 << 20) as store:
        publish_rows(store, groups=40, events=1, size=30_000)
        for _ in range(3):
            leaving = stream(RunStream, store, request())
            leaving.start()
            for _ in range(3):
                assert leaving.next_batch().outcome is Outcome.MORE
            assert not kept[BUFFER_BYTES]
            leaving.forget_batch()
            leaving.forget_batch()
            assert {size: len(free) for size, free in kept.items()} == {
                BUFFER_BYTES: 1,
                LONG_BUFFER_BYTES: 0,
            }
            leaving.close()


def test_who_seeks_waits_for_a_few_pages_and_for_the_kernel_alone(monkeypatch, quick_bytes):
    read, real = [], PageRuns._read

    def note(runs, header, first, count, *room):
        read.append(count * header.page_size)
        return real(runs, header, first, count, *room)

    with made_up(SimDisk(), random.Random(6), 16384, 0, max_binlog_size=16 << 20) as store:
        publish_rows(store, groups=1500, events=2, size=3000)
        monkeypatch.setattr(PageRuns, "_read", note)
        for number in (1, 700, 1299, 1480):
            quick_bytes.clear()
            read.clear()
            made = stream(
                RunStream, store, request(connect_state=GtidPosition([Gtid(0, 1, number)]))
            )
            made.start()
            batch = made.next_batch()
            made.close()
            assert FIRST_BATCH_BYTES <= len(batch.data) < FIRST_BATCH_BYTES + 7000
            assert quick_bytes == [len(batch.data)]
            assert sum(read) <= 64 << 10
        made = assert_same(store, request(connect_state=GtidPosition([Gtid(0, 1, 700)])))
        assert len(made.data) > 800 * 6000


def test_what_is_durable_by_its_own_flush_is_sent_although_the_kernel_cannot():
    """It leads at the end, where the reader has seen less of the page than there is by then."""
    options = {"flush_log_at_commit": 0, "flush_log_interval": 1e6}
    with made_up(SimDisk(), random.Random(5), 16384, 3, **options) as store:
        with store.begin() as group:
            group.write(rows_event(200_000) + xid(4))  # too large an event for the kernel
            group.commit(Gtid(0, 1, 4))
        store.sync()
        made = stream(RunStream, store, request())
        made.start()
        while made.next_batch().outcome is Outcome.MORE:
            pass
        store.write_format_description(store.formats.in_force(store.end()))
        with store.begin() as group:
            group.write(rows_event(100) + xid(5))
            group.commit(Gtid(0, 1, 5))
        batch = made.next_batch()
        assert (batch.outcome, list(batch.sent)) == (Outcome.MORE, [0])
        assert batch.sent[0] == Gtid(0, 1, 5)
        made.close()


def test_who_seeks_does_not_wait_for_one_file_after_the_other():
    """Nor for those that the dump of who had sought before goes into when nobody is there."""
    with made_up(SimDisk(), random.Random(5), 512, 0) as store:
        for number in range(1, 121):
            with store.begin() as group:
                group.write(rows_event(20) + xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
            if number % 3 == 0:
                store.switch_file()
        store.sync()
        assert_same(store, request())
        for last in (0, 3, 7, 119):
            position = GtidPosition([Gtid(0, 1, last)] if last else [])
            made = stream(RunStream, store, request(connect_state=position))
            made.start()
            newest = [last]
            while (batch := made.next_batch()).outcome is Outcome.MORE:
                newest.append(batch.sent[0].seq)
            made.close()
            assert newest[-1] == 120
            for place, (seq, later) in enumerate(pairwise(newest)):
                files = place // BATCHES_A_FILE + 1  # to their ends, and no look at the next one
                assert later == min(seq - seq % 3 + 3 * files, 120)
            assert len(newest) < 18  # of 40 files: more and more at a time
