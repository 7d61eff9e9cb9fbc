"""Pages for an encoder: what a reader has of its own, and that it gives that back."""

import random
import weakref
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import dump_stream, page_feed, page_rings, run_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.packet_buffers import PIECE_BYTES, give_buffer
from ibb.server.dump.page_feed import PageFeed
from ibb.server.dump.run_encoder import BEYOND_BYTES
from ibb.server.dump.run_stream import RunStream
from ibb.storage import Store, StoreOptions
from ibb.storage.page_runs import PageRuns

from ...storage.events import rows_event, xid
from .made_streams import (
    Client,
    by_descriptor,
    made_by,
    packets_of,
    publish_rows,
    pumped,
    request,
    rest_of,
    stream,
)

HOUR = 3600.0
PIECE = 16_000


def test_who_has_everything_keeps_no_room_for_pages(monkeypatch, tmp_path):
    made, real = [], page_rings.PageRing

    def ring(memory, at_a_time):
        made.append(weakref.ref(memory.obj))
        return real(memory, at_a_time)

    monkeypatch.setattr(page_rings, "PageRing", ring)
    monkeypatch.setattr(page_feed, "_rings", page_rings.PageRings())
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one = stream(RunStream, store, request(connect_state=GtidPosition()))
        assert rest_of(one, one.start()).outcome is Outcome.IDLE
        assert len(made) == 1
        assert one._feed._ring is None
        assert not one._feed.has_pages
        assert made[0]() is None  # nor does the kernel have it
        one.close()


def test_who_has_gone_is_sent_nothing_more(tmp_path):
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one = stream(RunStream, store, request(connect_state=GtidPosition()))
        one.start()
        with by_descriptor(), Client(1 << 14) as client:
            while not one.next_batch(client).sent_size:
                pass
            client.leave()
            with pytest.raises(BrokenPipeError):
                one.next_batch(client)
        one.close()


def test_pages_are_read_once_for_who_reads_alone(tmp_path):
    """Also those of a group that is begun in its pieces and read again from its commit record."""
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        before = bytes_read()
        made = made_by(RunStream, store, request())
        read = bytes_read() - before
        assert len(made.data) > 20 << 20
        assert len(made.data) < read < 1.1 * len(made.data)
        assert made == made_by(DumpStream, store, request())


@pytest.mark.parametrize(
    ("seconds", "most", "least"),
    [(HOUR, 64_000, 64_000), (HOUR, 128_000, 128_000), (0.0, 128_000, PIECE)],
)
def test_a_batch_goes_on_as_long_as_it_may_and_for_as_much(
    tmp_path, monkeypatch, seconds, most, least
):
    monkeypatch.setattr(run_stream, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(run_stream, "SENT_BYTES", most)
    options = StoreOptions(max_binlog_size=64 << 20, format_description="upstream")
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one, sizes = stream(RunStream, store, request()), []
        batch = one.start()
        with by_descriptor(), Client(1 << 20) as client:
            while batch.outcome is Outcome.MORE:
                batch = one.next_batch(client, seconds)
                assert len(client.received()) == batch.sent_size
                if batch.sent_size:
                    sizes.append(batch.sent_size + len(batch.data))
        one.close()
        assert least <= max(sizes) <= least + PIECE


def test_who_catches_up_alone_is_sent_large_pieces_which_buffers_have_room_for(tmp_path):
    options, pieces, real = StoreOptions(format_description="upstream"), [], PageFeed.run_alone

    def run_alone(feed, encoder, file, out, wanted, *more, **terms):
        pieces.append((wanted, len(out) - wanted))
        return real(feed, encoder, file, out, wanted, *more, **terms)

    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=120, size=8000)
        one = stream(RunStream, store, request())
        with (
            patch.object(PageFeed, "run_alone", run_alone),
            by_descriptor(),
            Client(1 << 20) as client,
        ):
            rest_of(one, one.start(), client)
        one.close()
    assert max(pieces)[0] == PIECE_BYTES
    assert min(room for _, room in pieces) >= BEYOND_BYTES


def bytes_read():
    """Return how many bytes this thread has read so far."""
    lines = Path("/proc/thread-self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


@pytest.mark.parametrize("seed", range(16))
def test_pages_that_end_anywhere_change_nothing_of_what_is_sent(seed, tmp_path, monkeypatch):
    """They end inside events, whose beginnings were made already, and before odd groups."""
    rng, ends, real = random.Random(seed), [], PageRuns.lent

    @contextmanager
    def lent(runs, header, walker, generation):
        with real(runs, header, walker, generation) as file:
            end = walker.wanted_page(header.page_size) + rng.randrange(1, 60)
            ends.append(end)
            yield file._replace(stop=min(file.stop, end))

    def give(buffer):
        buffer[:] = rng.randbytes(256) * (len(buffer) // 256) + bytes(len(buffer) % 256)
        give_buffer(buffer)

    def lead(one):
        assert one._sent_size == 0  # what is sent was seen to be of one history
        assert not (one._is_odd and one.between_groups)
        lead_by_reader(one)

    lead_by_reader = RunStream._lead_by_reader
    options = StoreOptions(
        max_binlog_size=16 << 20, page_size=4096, format_description="upstream", oob_piece_size=9000
    )
    with Store.open(tmp_path / "store", options) as store:
        for number in range(1, 30):
            with store.begin() as group:
                for _ in range(rng.choice((1, 3, 60))):
                    group.write(any_event(rng, 150_000 if rng.random() < 0.02 else 9000))
                group.write(xid(number))
                group.commit(Gtid(0, 1, number), wait=False)
        store.sync()
        plain = made_by(DumpStream, store, request())
        monkeypatch.setattr(PageRuns, "lent", lent)
        monkeypatch.setattr(run_stream, "give_buffer", give)
        monkeypatch.setattr(dump_stream, "BATCH_BYTES", rng.choice((3000, 40_000)))
        monkeypatch.setattr(RunStream, "_lead_by_reader", lead)
        quick = pumped(store, request(), rng.choice((1 << 12, 1 << 18)))
        assert packets_of(quick.data) == packets_of(plain.data)
        assert quick == plain
        assert len(ends) > 3


def test_the_last_group_is_made_by_the_kernel_although_it_ends_in_a_page_that_grows(tmp_path):
    """Its commit record begins pages before that one, behind pieces that were passed long ago."""
    options = StoreOptions(
        max_binlog_size=64 << 20,
        page_size=4096,
        format_description="upstream",
        oob_piece_size=40_000,
    )
    with Store.open(tmp_path / "store", options) as store:
        publish_rows(store, groups=30, events=58, size=8000)
        store.sync()
        assert store.end().offset % options.page_size > 0
        plain, by_reader = made_by(DumpStream, store, request()), set()
        with patch.object(DumpStream, "_send_parts", noting(by_reader)):
            assert pumped(store, request(), 1 << 20) == plain
    assert by_reader == {1}  # looked at for its format, at the start


def noting(numbers):
    """Return what sends parts of groups and notes their numbers."""
    send_parts = DumpStream._send_parts

    def send(one, parts, wanted, out):
        numbers.add(one._group.gtid.seq)
        return send_parts(one, parts, wanted, out)

    return send


def any_event(rng, size_max):
    """Return a rows event that no other is like."""
    event = bytearray(rows_event(rng.randrange(100, size_max)))
    event[40:] = rng.randbytes(len(event) - 40)
    return bytes(event)
