"""Turns of a dump that sends where it makes: how much goes out in one, and when it ends."""

import os
import socket
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.connections.connection import PeerGone
from ibb.server.connections.direct_sender import DirectSender
from ibb.server.dump import packet_buffers, socket_pump
from ibb.server.dump.dump_batch import Batch, Outcome
from ibb.server.dump.run_encoder import REST_SECONDS
from ibb.server.dump.socket_pump import PumpTurns, SocketPump

from ...integration.waiting import wait_until
from ..conftest import publish
from ..raw_client import RawClient, dumping, until_sessions
from ..waiting import until

BATCH_BYTES = 100_000
LARGE = 64 << 20  # more than the system keeps for a client
SECONDS = 20.0


class Batches:
    """A stream that makes batches of one size, each of other bytes in the same place."""

    def __init__(self, count, size=BATCH_BYTES, last=Outcome.IDLE):
        self.left, self.made, self.last, self.forgotten = count, 0, last, 0
        self._place = bytearray(size)

    def next_batch(self, sender=None, seconds=0.0):
        if not self.left:
            return Batch(b"end" if self.last is Outcome.END else b"", self.last)
        self.left -= 1
        self.made += 1
        self._place[:] = bytes([self.made % 251]) * len(self._place)
        return Batch(memoryview(self._place), Outcome.MORE, sent={0: Gtid(0, 1, self.made)})

    def forget_batch(self):
        self.forgotten += 1
        self._place[:] = bytes(len(self._place))  # it may be another's by now


class Took(list):
    """The numbers of the groups that a client has taken."""

    def __call__(self, batch):
        self.append(batch.sent[0].seq)


def pump_of(stream, threads=1, taken=1):
    """Return a pump, and what notes what it says that the client took."""
    turns, took = PumpTurns(threads), Took()
    turns.taken = taken
    return SocketPump(stream, turns), took


def read_all(client, found, size):
    while len(found) < size and (data := client.recv(1 << 16)):
        found += data


@pytest.mark.parametrize("last", [Outcome.IDLE, Outcome.END])
def test_a_client_that_reads_gets_all_batches_in_one_turn(ends, last, monkeypatch):
    monkeypatch.setattr(socket_pump, "TURN_SECONDS", SECONDS)
    found, count = bytearray(), 60
    reading = threading.Thread(target=read_all, args=(ends[1], found, count * BATCH_BYTES))
    reading.start()
    pump, took = pump_of(Batches(count, last=last))
    batch = pump.turn(DirectSender(ends[0].fileno()), took)
    reading.join()
    assert found == b"".join(bytes([n % 251]) * BATCH_BYTES for n in range(1, count + 1))
    assert pump.taken == count * BATCH_BYTES
    assert took == list(range(1, count + 1))
    assert (batch.outcome, batch.data) == (last, b"end" if last is Outcome.END else b"")


def test_what_a_stream_has_sent_itself_is_taken_and_not_sent_again(ends):
    class Sending(Batches):
        def next_batch(self, sender=None, seconds=0.0):
            batch = super().next_batch(sender, seconds)
            if batch.outcome is not Outcome.MORE:
                return batch
            size = sender.lend(lambda descriptor: os.write(descriptor, batch.data[:60]))
            rest = batch.data[60:] if self.made % 2 else b""
            return replace(batch, data=rest, sent_size=size)

    pump, took = pump_of(Sending(4, 100))
    assert pump.turn(DirectSender(ends[0].fileno()), took).outcome is Outcome.IDLE
    assert took == [1, 2, 3, 4]
    assert pump.taken == 320
    assert ends[1].recv(1000) == b"\1" * 100 + b"\2" * 60 + b"\3" * 100 + b"\4" * 60


def test_what_a_client_does_not_take_is_returned_and_can_be_sent_later(ends, monkeypatch):
    monkeypatch.setattr(socket_pump, "REST_SECONDS", 0.1)
    stream = Batches(2, LARGE)
    pump, took = pump_of(stream)
    batch = pump.turn(DirectSender(ends[0].fileno()), took)
    assert stream.made == 1
    assert took == []
    assert batch.outcome is Outcome.MORE
    assert batch.data == b"\1" * (LARGE - pump.taken)
    assert pump.taken > 0


def test_nothing_is_made_for_a_client_that_has_left(ends):
    stream = Batches(9, 10)
    pump, took = pump_of(stream)
    ends[1].shutdown(socket.SHUT_WR)  # it has had the first batch, and goes
    with pytest.raises(PeerGone):
        pump.turn(DirectSender(ends[0].fileno()), took)
    assert (stream.made, took) == (1, [1])


class Turn(threading.Thread):
    """A turn in a thread that has the only permit, for a client that is sent much."""

    def __init__(self, ends, taken=1):
        super().__init__(daemon=True)
        self.pump, self.took = pump_of(Batches(1, LARGE), taken=taken)
        self.permits = self.pump._turns.permits
        self._sender = DirectSender(ends[0].fileno())

    def run(self):
        self.permits.take()
        self.pump.turn(self._sender, self.took)
        self.permits.give()


@pytest.mark.parametrize("taken", [1, 3])
def test_whoever_waits_nobody_keeps_a_permit_for_a_client(ends, taken, monkeypatch):
    monkeypatch.setattr(socket_pump, "REST_SECONDS", SECONDS)
    turn, found = Turn(ends, taken), bytearray()
    assert not turn.pump.waits
    turn.start()
    wait_until(lambda: turn.pump.waits, SECONDS)
    assert (turn.permits.free, turn.permits.resting) == (1, 1)
    turn.permits.take()
    assert turn.pump.taken < LARGE
    reading = threading.Thread(target=read_all, args=(ends[1], found, LARGE))
    reading.start()
    wait_until(lambda: turn.permits.resting == 0, SECONDS)  # it asks for its permit,
    assert turn.is_alive()  # and has to wait
    assert not turn.pump.waits
    assert turn.took == []
    turn.permits.give()
    reading.join(SECONDS)
    turn.join(SECONDS)
    assert (turn.took, turn.pump.taken) == ([1], LARGE)
    assert found == b"\1" * LARGE
    assert (turn.permits.free, turn.permits.resting, turn.pump.waits) == (1, 0, False)


def test_a_permit_comes_back_from_a_wait_that_fails(ends, monkeypatch):
    monkeypatch.setattr(DirectSender, "wait", lambda *_: 1 // 0)
    pump, took = pump_of(Batches(1, LARGE))
    permits = pump._turns.permits
    permits.take()
    with pytest.raises(ZeroDivisionError):
        pump.turn(DirectSender(ends[0].fileno()), took)
    assert (permits.free, permits.resting, pump.waits) == (0, 0, False)


def test_nobody_waits_for_a_client_while_enough_others_do(ends, monkeypatch):
    monkeypatch.setattr(socket_pump, "RESTING_MAX", 1)
    monkeypatch.setattr(DirectSender, "wait", lambda _, seconds: waits.append(seconds))
    waits, (pump, took) = [], pump_of(Batches(1, LARGE))
    permits = pump._turns.permits
    permits.take()
    assert permits.lend()
    permits.take()
    assert pump.turn(DirectSender(ends[0].fileno()), took).data
    assert (took, waits) == ([], [])
    assert (permits.free, permits.resting) == (0, 1)


@pytest.fixture
def waits(ends, monkeypatch):
    """Return how long each wait lasts, and whether the client reads then; and the clock."""
    told, now = [], [0.0]

    def wait(_, seconds):
        lasts, reads = told.pop(0) if len(told) > 1 else told[0]
        now[0] += lasts
        if reads:
            ends[1].recv(LARGE)
        else:
            assert lasts == seconds
        return reads

    ends[1].setblocking(False)
    monkeypatch.setattr(socket_pump, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(DirectSender, "wait", wait)
    return told, now


def test_a_turn_rests_for_no_longer_than_it_may(ends, waits):
    """In all, however often its client reads something; the next one may again."""
    (told, now), (pump, took) = waits, pump_of(Batches(2, LARGE))
    told[:] = [(0.3, True), (0.2, True), (socket_pump.WAIT_SECONDS, False)]
    batch = pump.turn(DirectSender(ends[0].fileno()), took)
    assert len(batch.data) == LARGE - pump.taken
    assert REST_SECONDS <= now[0] <= REST_SECONDS + 2 * socket_pump.WAIT_SECONDS
    told[:], now[0] = [(REST_SECONDS / 4, True)], 0.0
    assert pump.turn(DirectSender(ends[0].fileno()), took).data
    assert now[0] == REST_SECONDS
    assert took == []


def test_while_a_turn_rests_its_time_does_not_pass(ends, waits):
    (told, now), (pump, took) = waits, pump_of(Batches(4, 1 << 20), taken=2)
    told[:] = [(4 * socket_pump.TURN_SECONDS, True), (0.0, True)]
    assert pump.turn(DirectSender(ends[0].fileno()), took).outcome is Outcome.IDLE
    assert took == [1, 2, 3, 4]
    assert now[0] == 4 * socket_pump.TURN_SECONDS


@pytest.mark.parametrize(("threads", "taken", "sealing"), [(1, 2, 0), (2, 3, 1), (4, 1, 5)])
def test_those_that_wait_for_their_clients_make_no_crowd(threads, taken, sealing):
    turns = PumpTurns(threads)
    turns.taken, turns.sealing = taken, sealing
    resting = 0
    while turns.crowded:
        turns.permits.take()
        assert turns.permits.lend()
        resting += 1
    assert resting == taken + sealing - threads
    turns.permits.take_back()
    assert turns.crowded


def test_a_turn_is_over_when_its_time_is(ends, monkeypatch):
    monkeypatch.setattr(socket_pump, "SHORT_TURN_SECONDS", 0.0)
    stream = Batches(5, 10)
    pump, took = pump_of(stream, taken=2)
    batch = pump.turn(DirectSender(ends[0].fileno()), took)
    assert (stream.made, took, batch.data, batch.outcome) == (1, [1], b"", Outcome.MORE)
    assert pump.turn(DirectSender(ends[0].fileno()), took).data == b""
    assert took == [1, 2]
    assert pump.taken == 10


@pytest.mark.parametrize(
    ("taken", "expected"), [(2, packet_buffers.SENT_SECONDS), (3, socket_pump.SHORT_TURN_SECONDS)]
)
def test_a_batch_takes_less_long_while_others_wait(ends, taken, expected):
    class Asked(Batches):
        def next_batch(self, sender=None, seconds=0.0):
            asked.append(seconds)
            return super().next_batch(sender, seconds)

    asked = []
    pump, _ = pump_of(Asked(1, 10), threads=2, taken=taken)
    pump.turn(DirectSender(ends[0].fileno()), Took())
    assert set(asked) == {expected}


@pytest.mark.parametrize("fails", [True, False])
def test_every_turn_gives_its_descriptor_up_and_where_it_made_batches(ends, fails):
    stream = Batches(3)
    pump, took = pump_of(stream)
    sender = DirectSender(ends[0].fileno())
    ends[0].close()
    if fails:
        ends[1].close()
        with pytest.raises(OSError, match="Broken pipe"):
            pump.turn(sender, took)
    else:
        reading = threading.Thread(target=read_all, args=(ends[1], bytearray(), LARGE))
        reading.start()
        assert pump.turn(sender, took).outcome is Outcome.IDLE
        reading.join(SECONDS)  # which it does when the connection has ended
        assert not reading.is_alive()
    with pytest.raises(ConnectionAbortedError):
        sender.send(b"x")
    assert stream.forgotten == 1


def test_a_dump_that_is_dropped_in_its_turn_sends_nothing_more(ends):
    class Dropped(Batches):
        def next_batch(self, sender=None, seconds=0.0):
            if self.made == 2:
                sender.close()
            return super().next_batch(sender, seconds)

    sender = DirectSender(ends[0].fileno())
    pump, took = pump_of(Dropped(9, 10))
    with pytest.raises(ConnectionAbortedError):
        pump.turn(sender, took)
    assert took == [1, 2]
    assert len(ends[1].recv(100)) == 20


@pytest.mark.parametrize("turns", [0, 1, socket_pump.TURNS_MAX])
async def test_with_any_number_of_turns_the_same_is_sent(serve, store, turns, monkeypatch):
    monkeypatch.setattr(PumpTurns, "has_room", property(lambda it: it.taken < turns))
    for seq in range(11, 41):
        publish(store, Gtid(0, 1, seq), 200_000)
    store.sync()
    server = await serve(store)
    dumps = [await dumping(server, "0-1-10", non_block=False, server_id=n) for n in (5, 6, 7)]
    first, *others = [await dump.groups(30) for dump in dumps]
    assert [group.gtid.seq for group in first] == list(range(11, 41))
    assert all(other == first for other in others)
    publish(store, Gtid(0, 1, 41), wait=True)
    assert {(await dump.next_group()).gtid.seq for dump in dumps} == {41}
    await until(lambda: server.pools.turns.taken == 0)
    for dump in dumps:
        await dump.client.close()
    await until_sessions(server, 0)


async def test_what_was_sent_counts_whoever_sent_it(serve, store):
    for seq in range(11, 41):
        publish(store, Gtid(0, 1, seq), 200_000)
    store.sync()
    server = await serve(store)
    dump = await dumping(server, "0-1-10", non_block=False)
    (session,) = server.sessions
    await dump.groups(30)
    await until(lambda: session.is_idle_dump)
    sent, received = session.traffic[1], dump.client.received
    await dump.client.close()
    assert sent > 30 * 200_000
    assert abs(sent - received) < 1 << 12  # since the greeting


async def test_a_killed_dump_that_nobody_reads_lets_its_connection_go(serve, store, monkeypatch):
    monkeypatch.setattr("ibb.server.session.END_GRACE_SECONDS", 0.1)
    for seq in (11, 12):
        publish(store, Gtid(0, 1, seq), 16 << 20, wait=True)
    server = await serve(store)
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    await client.dump(server_id=5)
    client.writer.transport.pause_reading()
    (session,) = server.sessions
    await until(lambda: session.progress() and server.pools.turns.taken)
    session.end(None)
    await until_sessions(server, 0)
    assert server.pools.turns.taken == 0
    await client.close()


@pytest.mark.parametrize(
    ("spare", "most"),
    [(0, socket_pump.TURNS_MIN), (1000, 1000), (10**6, socket_pump.TURNS_MAX)],
)
def test_as_many_have_a_turn_as_there_are_descriptors_to_spare(spare, most):
    turns = PumpTurns(2, spare)
    turns.taken = most - 1
    assert turns.has_room
    turns.taken = most
    assert not turns.has_room
