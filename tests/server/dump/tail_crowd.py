"""Readers at the end of a history who are served by the loop, without sockets."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import SimpleNamespace

from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import dump_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.shared_blocks import SharedBlocks
from ibb.server.dump.tails import Tails
from ibb.storage.page_runs import PageRuns

from ...storage.events import query, rows_event, xid
from .crowd import Reader
from .made_streams import Alone, packets_of, request


class AtOnce(Executor):
    """A pool whose work is done when it is asked for; counts it."""

    def __init__(self):
        self.calls = 0

    def submit(self, call, /, *args, **kwargs):
        self.calls += 1
        future = Future()
        try:
            future.set_result(call(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            future.set_exception(error)
        return future


class Line:
    """
    What a reader is sent by, in place of its connection.

    Args:
        data: takes all that is sent.
        is_direct: any thread may send by it.

    Attributes:
        is_slow: the rest of what is written waits here.
        sent: bytes, as who sends counts them.
        came: as they came.
        takes: of the next that a thread sends, so many bytes at most; None: all; -1: it breaks.
    """

    def __init__(self, data, *, is_direct):
        self._data, self._is_direct = data, is_direct
        self.is_slow, self.takes, self.unsent, self.sent = False, None, 0, 0
        self.is_closing = False
        self.opened = self.closed = self.came = 0

    def write_at_once(self, data):
        """Take packets as a connection does."""
        self._data.append(bytes(data))
        self.came += len(data)
        self.sent += len(data)
        self.unsent = len(data) if self.is_slow else 0
        return not self.is_slow

    def direct_sender(self):
        """Return what any thread may send by."""
        self.opened += self._is_direct
        return self if self._is_direct else None

    def send(self, data):
        """Take packets, or the beginning of them, from any thread."""
        assert not self.unsent
        takes, self.takes = self.takes, None
        if takes == -1:
            raise ConnectionResetError
        self._data.append(bytes(data[:takes]))
        self.came += len(self._data[-1])
        return len(self._data[-1])

    def close(self):
        """Be sent nothing by other threads any more."""
        self.closed += 1

    def abort(self):
        """Break, with all that is on its way."""
        self.is_slow = True


class TailReader(Reader):
    """A reader that takes what comes, now at once, now late."""

    def __init__(self, crowd, asked, shift):
        super().__init__(crowd.history, asked, crowd.blocks, crowd.runs, shift)
        self._crowd, self.member = crowd, None
        self.line, self.beats = Line(self.data, is_direct=crowd.is_direct), 0
        self.times_joined = 0

    @property
    def pace(self):
        return self.stream._pace

    def join(self):
        """Join the others at the end, if that is where it is."""
        self.line.is_slow, self.line.unsent = False, 0
        self.member = self._crowd.tails.join(self.stream, self.line)
        self.times_joined += self.member is not None
        return self.member is not None

    def beat(self):
        """Be sent a heartbeat."""
        self.data.append(self.member.heartbeat())
        self.beats += 1

    def look(self):
        """Go on by itself if it is not served any more."""
        if self.member is not None and self.member.left.done():
            self.sent.update(self.member.reached() | self.member.unsent)
            self.member, self.outcome = None, Outcome.MORE

    def leave(self):
        """Be served no more."""
        if self.member is not None:
            self.member.leave()
            self.look()

    def run(self):
        """Read by itself to the end of what is there."""
        self.leave()
        self.outcome = Outcome.MORE
        super().run()

    def packets(self):
        """Return its packets without heartbeats, as if they had been counted as ever."""
        found, beats = [], 0
        for seq, payload in super().packets():
            if payload[1 + 4] == EventType.HEARTBEAT:  # behind the status byte and the time
                beats += 1
            else:
                found.append(((seq - beats) & 255, payload))
        assert beats == self.beats
        return found

    def check(self, alone):
        """Compare with what it gets alone, and what it would be told in a heartbeat now."""
        plain = super().check(alone)
        ((_, beat),), ((_, expected),) = map(packets_of, (self.stream.heartbeat(), plain.heartbeat))
        assert beat == expected
        return plain


class TailCrowd:
    """
    Readers of a store, and the tails that serve them.

    Args:
        store: what they read.
        is_direct: any thread may send to them.
    """

    def __init__(self, store, rng, monkeypatch, batch=None, *, is_direct=False):
        self.history, self.rng, self.is_direct = store, rng, is_direct
        self.blocks, self.runs = SharedBlocks(), PageRuns(store)
        self.signal, self.pool = SimpleNamespace(listener=None, at_once=None), AtOnce()
        self.tails = Tails(store, self.runs, self.signal, self.pool)
        self.readers = []
        if batch:
            monkeypatch.setattr(dump_stream, "BATCH_BYTES", batch)

    def add(self, *, start=None, **changes):
        asked = request(connect_state=start or GtidPosition(), **changes)
        shift = self.rng.choice((0, 0, 1, 100, 255))
        self.readers.append(TailReader(self, asked, shift))
        return self.readers[-1]

    def commit(self, number, size=100, **options):
        """Publish a small group."""
        with self.history.begin() as group:
            group.write(query("a") + rows_event(size) + xid(number))
            group.commit(Gtid(0, 1, number), **options)

    def news(self):
        """Tell that the history has grown, and have what is new sent at once."""
        self.end_rest()
        if not (self.is_direct and self.tell_a_thread()):
            self.signal.listener()
        for reader in self.readers:
            reader.look()

    def end_rest(self):
        """Have the loop rest no more behind what it has served."""
        if self.tails._resting is not None:
            self.tails._resting.cancel()
            self.tails._resting = None

    def tell_a_thread(self):
        """Have another thread send what is new; return whether the loop has nothing to do."""
        self.end_rest()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.signal.at_once).result()

    def at_end(self, count, **changes):
        """Return readers that are served."""
        found = [self.add(**changes) for _ in range(count)]
        for one in found:
            one.run()
            assert one.join()
        return found

    def check(self):
        """Have everybody read to the end, and compare."""
        alone = Alone(self.history)
        for reader in self.readers:
            if reader.outcome is not Outcome.END:
                reader.run()
            reader.check(alone)

    def close(self):
        self.tails.close()
        for reader in self.readers:
            reader.leave()
            reader.stream.close()
            assert reader.line.opened == reader.line.closed
            assert reader.line.sent == reader.line.came
        assert not self.blocks._seats
