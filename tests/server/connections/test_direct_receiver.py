"""Bytes past a transport, for a thread that waits for them: all of them, and never another's."""

import os
import socket
import threading
from pathlib import Path

import pytest

from ibb.server.connections import direct_receiver
from ibb.server.connections.direct_receiver import RECEIVE_BYTES, DirectReceiver

SECONDS = 20.0
PATIENCE = 60.0


@pytest.fixture
def receiver(ends):
    one = DirectReceiver(ends[0].fileno())
    yield one
    one.close()


def patient():
    return PATIENCE


def open_descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_what_is_sent_comes_behind_what_was_read_already(ends):
    receiver = DirectReceiver(ends[0].fileno(), b"begun")
    ends[1].sendall(b" and sent")
    assert receiver.receive(patient) == b"begun"
    assert receiver.receive(patient) == b" and sent"
    receiver.close()


def test_a_thread_that_waits_has_it_when_it_comes(receiver, ends):
    found = []
    waiting = threading.Thread(target=lambda: found.append(bytes(receiver.receive(patient))))
    waiting.start()
    ends[1].sendall(b"late")
    waiting.join(SECONDS)
    assert found == [b"late"]


def test_no_more_than_its_room_is_taken_at_a_time(receiver, ends):
    data = os.urandom(3 * RECEIVE_BYTES)
    sending = threading.Thread(target=ends[1].sendall, args=(data,))
    sending.start()
    came = bytearray()
    while len(came) < len(data):
        piece = receiver.receive(patient)
        assert 0 < len(piece) <= RECEIVE_BYTES
        came += piece
    sending.join(SECONDS)
    assert came == data


def test_who_says_nothing_is_given_up_when_the_time_is_over(receiver, monkeypatch):
    monkeypatch.setattr(direct_receiver, "LOOK_SECONDS", 0.001)
    asked = []

    def shorter():
        asked.append(PATIENCE if len(asked) < 5 else 0.0)
        return asked[-1]

    with pytest.raises(TimeoutError):
        receiver.receive(shorter)
    assert len(asked) == 6  # the limit may be changed while it waits


def test_an_end_is_told_behind_all_that_came(receiver, ends):
    ends[1].sendall(b"last")
    ends[1].shutdown(socket.SHUT_WR)
    assert receiver.receive(patient) == b"last"
    with pytest.raises(ConnectionResetError, match="closed"):
        receiver.receive(patient)


def test_a_connection_that_breaks_is_told_of():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    ours.setblocking(False)
    receiver = DirectReceiver(ours.fileno())
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    theirs.close()
    with pytest.raises(ConnectionResetError):
        receiver.receive(patient)
    receiver.close()
    ours.close()


@pytest.mark.parametrize("waits", [True, False])
def test_it_is_closed_from_another_thread_while_it_waits_or_not(ends, waits):
    before = open_descriptors()
    receiver = DirectReceiver(ends[0].fileno())
    assert len(open_descriptors()) == len(before) + 3
    ended, is_waiting = [], threading.Event()

    def silence():
        is_waiting.set()
        return PATIENCE

    def receive():
        try:
            receiver.receive(silence)
        except ConnectionAbortedError as error:
            ended.append(error)

    if waits:
        waiting = threading.Thread(target=receive)
        waiting.start()
        assert is_waiting.wait(SECONDS)
    receiver.close()
    receiver.close()
    if waits:
        waiting.join(SECONDS)
    else:
        receive()
    assert len(ended) == 1
    assert open_descriptors() == before


def test_no_descriptor_stays_where_one_is_missing(ends, monkeypatch):
    before = open_descriptors()

    def refuse():
        raise OSError(24, "too many")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", refuse)
        with pytest.raises(OSError, match="too many"):
            DirectReceiver(ends[0].fileno())
    assert open_descriptors() == before


def test_one_that_is_closed_while_it_is_asked_for_more_is_closed(ends, monkeypatch):
    before = open_descriptors()
    receiver = DirectReceiver(ends[0].fileno())

    class Poll:
        def poll(self, _):
            closing = threading.Thread(target=receiver.close)
            closing.start()
            closing.join(SECONDS)
            return []

    monkeypatch.setattr(receiver, "_poll", Poll())
    assert not receiver.has_more()
    assert open_descriptors() == before


def test_it_tells_whether_something_waits(ends):
    receiver = DirectReceiver(ends[0].fileno(), b"rest")
    assert receiver.has_more()
    receiver.receive(patient)
    assert not receiver.has_more()
    ends[1].sendall(b"x")
    assert receiver.has_more()
    receiver.close()
    assert receiver.has_more()  # to be told of its end
