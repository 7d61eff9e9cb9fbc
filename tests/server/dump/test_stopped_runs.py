"""Dumps that are told to end while a thread sends, or waits for the client: behind the group."""

import threading
import time
from contextlib import ExitStack

import pytest

from ibb.server.dump import run_stream, shared_pieces
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.server.work_permits import WorkPermits
from ibb.storage import Store, StoreOptions
from ibb.storage.page_runs import PageRuns

from ...integration.waiting import wait_until
from .made_streams import Client, by_descriptor, made_by, publish_rows, request, stream

pytestmark = pytest.mark.kernel
SECONDS = 20.0
PIECE_BYTES = 10_000
SENT_BYTES = 600_000
GROUP_EVENTS, EVENT_BYTES = 40, 3000


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Return a store of some groups that are many pieces each."""
    monkeypatch.setattr(run_stream, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(run_stream, "SENT_BYTES", SENT_BYTES)
    monkeypatch.setattr(shared_pieces, "GRID_BYTES", 45_000)
    monkeypatch.setattr(shared_pieces, "PIECE_BUFFER_BYTES", 128 << 10)  # many of them
    options = StoreOptions(format_description="upstream", fifo_pages_max=16)
    with Store.open(tmp_path / "store", options) as store, by_descriptor():
        publish_rows(store, groups=40, events=GROUP_EVENTS, size=EVENT_BYTES)
        yield store


class Sending:
    """A dump whose client reads when it is told to, and the permits of its thread."""

    def __init__(self, store, stack, **shared):
        self.permits = WorkPermits(1, 1)
        self.permits.take()
        self.stream = stream(RunStream, store, request(), permits=self.permits, **shared)
        self.client = stack.enter_context(Client(1 << 14))
        stack.callback(self.stream.close)
        self.data, self.batch = bytearray(self.stream.start().data), None

    @property
    def found(self):
        """How many pieces of the last batch others had made."""
        sharing = self.stream._sharing
        return sharing.pump.found if sharing is not None else 0

    def next(self):
        """Have a batch sent while the client reads; return whether the stream sent of it."""
        self.read(self.begin())
        return self.batch.sent_size > 0

    def read(self, sending):
        """Have the client read until a batch is sent."""
        deadline = time.monotonic() + SECONDS
        while sending.is_alive():
            self.data += self.client.received()
            sending.join(0.001)
            assert time.monotonic() < deadline
        self.data += self.client.received() + self.batch.data

    def begin(self):
        """Begin to send a batch; the client does not read."""
        sending = threading.Thread(target=self._send, daemon=True)
        sending.start()
        return sending

    def _send(self):
        self.batch = self.stream.next_batch(self.client, SECONDS)


@pytest.mark.parametrize("finds", [False, True])
def test_who_is_told_to_stop_while_it_waits_for_its_client_ends_behind_the_group(store, finds):
    """Whether it makes what it sends, or finds it made by another one."""
    with ExitStack() as stack:
        shared = {"runs": PageRuns(store), "blocks": SharedBlocks()}
        one = Sending(store, stack, **shared)
        if finds:
            other = Sending(store, stack, **shared)
            while one.stream._sharing is None:
                other.next()
                one.next()
            while len(other.data) < len(one.data) + 2 * SENT_BYTES:
                other.next()
            while not one.found:
                assert one.batch.outcome is Outcome.MORE
                one.next()
        else:
            while not one.next():
                pass
        before, sending = len(one.data), one.begin()
        wait_until(lambda: one.permits.resting, SECONDS)
        piece_end = before + one.stream.under_way()[0] + PIECE_BYTES + EVENT_BYTES
        one.stream.stop()
        one.read(sending)
        assert len(one.data) < piece_end
        assert (one.found > 0) == finds
        while not one.stream.between_groups:
            one.next()
        one.next()
        assert (one.batch.data, one.batch.sent_size, one.batch.outcome) == (b"", 0, Outcome.MORE)
        whole = made_by(DumpStream, store, request()).data
        assert one.data == whole[: len(one.data)]
        assert len(one.data) < piece_end + GROUP_EVENTS * (EVENT_BYTES + 100)
        assert len(one.data) < len(whole) - SENT_BYTES
