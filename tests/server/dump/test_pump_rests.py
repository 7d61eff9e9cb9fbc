"""Runs that wait for their clients: others work meanwhile, and it does not last."""

import errno
import os
import threading
import time
from contextlib import ExitStack
from itertools import product

import pytest

from ibb.server.dump.event_packets import FULL, NEED
from ibb.server.dump.run_encoder import BEYOND_BYTES, REST_SECONDS
from ibb.server.dump.shared_pump import SharedPump
from ibb.server.work_permits import WorkPermits

from ...integration.waiting import wait_until
from .made_streams import Client
from .test_pump import HOUR, LARGEST, File, count_packets, opened, ring_of
from .test_shared_pump import GRID_BYTES, Sent, shelf_of

pytestmark = pytest.mark.kernel
SECONDS = 20.0
PIECE_BYTES = 9000
KINDS = ["alone", "made for others", "made by others"]
OUT_BYTES = BEYOND_BYTES + (1 << 17)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = File(tmp_path_factory.mktemp("rests"))
    yield file
    os.close(file.descriptor)


class Run(threading.Thread):
    """A run of a whole file, in a thread that has the only permit, to a client that may read."""

    def __init__(self, file, kind, *, nanoseconds=HOUR, wanted=PIECE_BYTES, resting_max=1):
        super().__init__(daemon=True)
        self.permits, self.code = WorkPermits(1, resting_max), None
        self.encoder, self._ring, self._file = file.encoder(), ring_of(64), file
        self.out, self.data = memoryview(bytearray(OUT_BYTES)), bytearray()
        self._terms, self._wanted, self._pump = (1 << 30, nanoseconds), wanted, None
        if kind != "alone":
            shelf = shelf_of(400)
            if kind == "made by others":
                Sent(file, shelf, sizes=(wanted, GRID_BYTES)).run()
            self._pump = SharedPump(shelf, 0, 0, wanted, GRID_BYTES)
        self.client = Client(1 << 14)

    def run(self):
        self.permits.take()
        self.code = self.client.lend(self._send)
        self.permits.give()

    def _send(self, descriptor):
        assert opened(self._ring, self.encoder, self._file)
        terms = self._ring, descriptor, *self._terms
        if self._pump is None:
            return self.encoder.pump(self.out, self._wanted, 1, *terms, self.permits)
        return self._pump.run(self.encoder, self.out, 1, *terms, True, 0, self.permits)

    def begin(self):
        """Begin it; return when it waits for its client."""
        self.start()
        wait_until(lambda: self.encoder.is_resting, SECONDS)
        assert (self.permits.free, self.permits.resting) == (1, 1)

    def read(self):
        self.data += self.client.received()

    def read_what_is_there(self):
        """Read no more than was sent when this begins, though room is filled again meanwhile."""
        self.data += self.client.received(self.encoder.sent)

    def finish(self):
        """Read what is sent until it ends; return what it says."""
        deadline = time.monotonic() + SECONDS
        while self.is_alive():
            self.read()
            self.join(0.001)
            assert time.monotonic() < deadline
        self.read()
        return self.code

    @property
    def left(self):
        """What was made and not sent."""
        return self.out[self.encoder.kept : self.encoder.packets.used]

    def check(self):
        """What was sent and what is left are the beginning of everything."""
        assert len(self.data) == self.encoder.sent
        whole = bytes(self.data) + self.left
        assert whole == self._file.data[: len(whole)]

    def end_group(self):
        """Make the rest of the group that it is inside of."""
        self.data += self.left
        seq = self.encoder.packets.seq
        self.encoder.take()
        assert opened(self._ring, self.encoder, self._file)
        code = self.encoder.pump(self.out, 1 << 17, seq, self._ring, -1, 0, 0)
        self.data += self.left
        return code


@pytest.fixture
def runs():
    """Return a function that makes runs, whose connections end with the test."""
    with ExitStack() as stack:

        def make(*terms, **more):
            run = Run(*terms, **more)
            stack.enter_context(run.client)
            return run

        yield make


@pytest.mark.parametrize(
    ("kind", "wanted"), [*product(KINDS, (300, PIECE_BYTES)), ("alone", 1 << 17)]
)
def test_who_waits_for_a_client_sends_everything_in_one_turn(file, runs, kind, wanted):
    run = runs(file, kind, wanted=wanted)
    run.start()
    assert run.finish() == NEED
    run.check()
    event_bytes = run.encoder.sent_bytes + run.encoder.packets.event_bytes
    assert event_bytes == len(file.data) - 5 * count_packets(file.data)
    assert len(run.left) < wanted + LARGEST * 2
    assert len(run.data) + len(run.left) == len(file.data)
    assert run.encoder.rested > 0
    assert (run.permits.free, run.permits.resting) == (1, 0)
    if kind == "alone":
        assert {domain: number for domain, _, number in run.encoder.take()} == file.groups
        assert run.encoder.rested == 0


@pytest.mark.parametrize("kind", KINDS)
def test_others_work_while_a_run_waits_for_its_client(file, runs, kind):
    run = runs(file, kind)
    run.begin()
    sent = run.encoder.sent
    run.permits.take()
    run.read()  # now there is room
    assert len(run.data) == sent
    wait_until(lambda: run.permits.resting == 0, SECONDS)
    assert (run.encoder.sent, run.encoder.is_resting) == (sent, False)
    assert run.is_alive()  # but it does not work
    run.permits.give()
    assert run.finish() == NEED
    run.check()
    assert not run.encoder.is_resting


def test_a_run_rests_for_no_longer_than_it_may(file, runs):
    """One client takes nothing, one something in between; one takes it when others work long."""
    one, other, late = (runs(file, kind) for kind in KINDS)
    begun = time.monotonic()
    for run in (one, other, late):
        run.begin()
    all_rest = time.monotonic()
    late.permits.take()
    late.read()
    wait_until(lambda: time.monotonic() > begun + 0.8 * REST_SECONDS, SECONDS)
    other.read_what_is_there()
    taken = len(other.data)
    wait_until(lambda: late.permits.resting == 0, SECONDS)
    wait_until(lambda: time.monotonic() > all_rest + REST_SECONDS, SECONDS)
    late.permits.give()
    for run in (one, other, late):
        run.join(SECONDS)
        assert REST_SECONDS <= run.encoder.rested / 1e9 < 1.7 * REST_SECONDS
        assert (run.code, run.encoder.error) == (FULL, 0)
        assert run.left  # perhaps a whole piece
        run.read()
        run.check()
    assert len(other.data) > taken > 0


@pytest.mark.parametrize("kind", KINDS)
def test_while_a_run_rests_its_time_does_not_pass(file, runs, kind):
    """Be it that the client takes no more, or that others work when it does."""
    seconds = 0.3
    run = runs(file, kind, nanoseconds=round(seconds * 1e9))
    run.begin()
    begun = time.monotonic()
    run.permits.take()
    run.read()
    wait_until(lambda: time.monotonic() > begun + seconds, SECONDS)
    piece_end = run.encoder.sent + len(run.left)
    run.permits.give()
    run.finish()
    assert run.encoder.rested >= seconds * 1e9
    assert run.encoder.sent > piece_end  # another one was begun
    run.check()


def test_a_run_waits_for_no_client_while_enough_others_do(file, runs):
    run = runs(file, "alone", resting_max=0)
    run.start()
    run.join(SECONDS)
    assert (run.code, run.encoder.rested) == (FULL, 0)
    assert 0 < run.encoder.kept < run.encoder.packets.used
    assert run.permits.free == 1
    run.finish()
    run.check()


@pytest.mark.parametrize("kind", KINDS)
def test_who_waits_for_a_client_that_leaves_is_told_why(file, runs, kind):
    run = runs(file, kind)
    run.begin()
    run.client.leave()
    run.join(SECONDS)
    assert (run.code, run.encoder.error) == (FULL, errno.EPIPE)
    assert (run.permits.free, run.permits.resting) == (1, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_told_to_be_the_last_ends_behind_the_piece_and_then_the_group(
    file, runs, kind
):
    run = runs(file, kind, wanted=300)
    run.begin()
    piece_end = run.encoder.sent + len(run.left)
    run.encoder.is_last = True
    assert run.finish() == FULL
    assert run.encoder.sent == piece_end
    assert not run.left
    run.check()
    assert run.end_group() == FULL
    assert not run.encoder.in_group
    assert run.data == file.data[: len(run.data)]
    assert run.end_group() == FULL
    assert not run.left  # there is no other group
    assert len(run.data) < len(file.data)
