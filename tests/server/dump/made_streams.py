"""Two ways to make the packets of a dump, and all that either says."""

import os
import socket
import sys
from contextlib import contextmanager, suppress
from typing import NamedTuple
from unittest.mock import patch

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import dump_stream, page_feed, page_rings, run_stream
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.dump_request import DumpRequest
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.dump_terms import DumpTerms
from ibb.server.dump.pacing import Pacing
from ibb.server.dump.run_stream import RunStream
from ibb.storage import page_runs
from ibb.storage.clock import SystemClock
from ibb.storage.open_files import OpenFiles

from ...storage.events import rows_event, xid

BATCHES_MAX = 100_000
RING_BYTES = 256 << 10  # so that it turns in a test
READ_BYTES = 64 << 10
COPY_BYTES = 1 << 20


class Made(NamedTuple):
    """What a stream made until it had no more, and where it was then."""

    data: bytes
    outcome: Outcome
    error: str | None
    sent: dict
    at: object
    heartbeat: bytes | None


def request(**changes):
    values = {
        "file_name": "",
        "position": 4,
        "server_id": 7,
        "non_block": True,
        "annotate": True,
        "connect_state": GtidPosition(),
        "until": None,
        "until_before": False,
        "strict": False,
        "ignore_duplicates": False,
        "capability": 4,
        "checksum": True,
        "skip_marked": False,
        "semi_sync": False,
        "needs_start_list": False,
        "join_fragments": False,
    }
    return DumpRequest(**(values | changes))


def stream(kind, history, asked, **shared):
    pace = Pacing(0, 0, SystemClock()).for_reader()
    return kind(DumpTerms(history, asked, 9, "10.11.9", now=77, pace=pace), **shared)


def publish_rows(store, *, groups, events, size):
    """Publish groups of so many rows events of *size* bytes each, numbered from 1 on."""
    for number in range(1, groups + 1):
        with store.begin() as group:
            for _ in range(events):
                group.write(rows_event(size))
            group.write(xid(number))
            group.commit(Gtid(0, 1, number), wait=False)
    store._engine.settle()  # in the files: what is not there cannot be sent from there


def made_by(kind, history, asked):
    """Return what a stream of a *kind* makes of a *history*."""
    one = stream(kind, history, asked)
    try:
        return rest_of(one, one.start())
    finally:
        one.close()


class Alone:
    """What readers get alone of a *history* that stays as it is; once for all who ask alike."""

    def __init__(self, history):
        self._history, self._made = history, []

    def get(self, asked):
        for other, made in self._made:
            if other == asked:
                return made
        self._made.append((asked, made_by(DumpStream, self._history, asked)))
        return self._made[-1][1]


def pumped(history, asked, room):
    """Return what a stream makes that sends by itself what it reads by itself, as far as it can."""
    one = stream(RunStream, history, asked)
    try:
        with by_descriptor(), Client(room) as client:
            return rest_of(one, one.start(), client)
    finally:
        one.close()


@contextmanager
def by_descriptor():
    """Have streams that are alone read by descriptors, and send little at a time."""
    with (
        patch.object(run_stream, "_LENT_BYTES_MIN", 1),
        patch.object(page_feed, "_rings", page_rings.PageRings()),
        patch.object(page_rings, "RING_BYTES", RING_BYTES),
        patch.object(page_rings, "READ_BYTES", READ_BYTES),
        patch.object(OpenFiles, "lent", _lent),
    ):
        yield


class Client:
    """A client's connection, which takes some *room* of bytes while nobody reads."""

    def __init__(self, room):
        self._ours, self._theirs = socket.socketpair()
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self.bytes = 0

    def lend(self, call):
        return call(self._ours.fileno())

    def received(self, until=sys.maxsize):
        """Return what was sent since the last call; none beyond *until* bytes in all."""
        found = []
        with suppress(BlockingIOError):
            while data := self._theirs.recv(min(1 << 20, until - self.bytes)):
                found.append(data)
                self.bytes += len(data)
        return b"".join(found)

    def leave(self):
        self._theirs.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._ours.close()
        self._theirs.close()


@contextmanager
def _lent(files, file_no):
    """Lend a file as `OpenFiles` does; one that has no descriptor as a copy that has."""
    handle = files._take(file_no)
    try:
        if handle.file.descriptor >= 0:
            yield handle.file.descriptor
            return
        copy = os.memfd_create("copy")
        try:
            os.ftruncate(copy, handle.file.size())
            offset = 0
            while data := handle.file.read_at(offset, COPY_BYTES):
                if data.count(0) < len(data):
                    os.pwrite(copy, data, offset)
                offset += len(data)
            yield copy
        finally:
            os.close(copy)
    finally:
        files._give_back(handle)


def rest_of(one, batch=None, client=None):
    """Return what a stream makes from a batch on, and sends to a client meanwhile."""
    data, sent = [], {}
    batch = batch or one.next_batch(client)
    for _ in range(BATCHES_MAX):
        if client is not None:
            data.append(client.received())
            assert len(data[-1]) == batch.sent_size
        data.append(bytes(batch.data))  # the next one may be made where it lies
        sent.update(batch.sent)
        if batch.outcome is not Outcome.MORE:
            break
        batch = one.next_batch(client)
    whole = one.at_boundary
    error = batch.error and f"{batch.error.code} {batch.error}"
    return Made(
        b"".join(data), batch.outcome, error, sent, batch.end, one.heartbeat() if whole else None
    )


def packets_of(data):
    """Return the payloads of packets and their sequence ids."""
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        found.append((data[at + 3], data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def assert_same(history, asked):
    """Compare all ways, packet by packet; return what they made."""
    plain = made_by(DumpStream, history, asked)
    for quick in (made_by(RunStream, history, asked), pumped(history, asked, 1 << 14)):
        assert packets_of(quick.data) == packets_of(plain.data)
        assert quick == plain
    return plain


@contextmanager
def often(monkeypatch, batch, run):
    """Have batches and runs end all the time: after so many bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(dump_stream, "BATCH_BYTES", batch)
        patch.setattr(page_runs, "RUN_BYTES", run)
        patch.setattr(page_feed, "FIRST_BYTES", run // 2)
        yield


def note_quick_bytes(monkeypatch):
    """Return a list in which the kernel's bytes are noted each time that it hands out some."""
    noted, send = [], RunStream._send_run

    def send_run(self, wanted, out):
        before = len(out)
        quick = send(self, wanted, out)
        noted.extend(map(len, out[before:]))
        return quick

    monkeypatch.setattr(RunStream, "_send_run", send_run)
    return noted
