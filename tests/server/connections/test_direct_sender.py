"""Bytes past a transport: as many as the system takes, never more than one connection's."""

import os
import select
import socket
import threading
from types import SimpleNamespace

import pytest

from ibb.server.connections.direct_sender import DirectSender

LARGE = bytes(1 << 20)
SECONDS = 20.0


@pytest.fixture
def sender(ends):
    one = DirectSender(ends[0].fileno())
    yield one
    one.close()


def fill(sender):
    """Send until the system takes no more; return how much that was."""
    sent = 0
    while size := sender.send(LARGE):
        sent += size
    return sent


def drain(client, size):
    while size:
        size -= len(client.recv(min(size, 1 << 16)))


def test_what_it_is_given_arrives(sender, ends):
    assert sender.send(b"abc") == 3
    assert sender.send(memoryview(b"xdefx")[1:4]) == 3
    assert ends[1].recv(6, socket.MSG_WAITALL) == b"abcdef"


def test_it_never_waits_for_the_client_unless_it_is_told_to(sender, ends):
    sent = fill(sender)
    assert sent > 0
    assert sender.send(b"x") == 0
    assert not sender.wait(0.0)
    assert not sender.wait(0.001)
    reading = threading.Thread(target=drain, args=(ends[1], sent))
    reading.start()
    assert sender.wait(SECONDS)
    assert sender.send(b"x") == 1
    reading.join()
    assert ends[1].recv(1) == b"x"


def test_behind_its_end_it_sends_nothing_and_holds_nobody_up(sender, ends):
    assert sender.close()
    assert sender.close()
    with pytest.raises(ConnectionAbortedError):
        sender.send(b"x")
    assert sender.wait(SECONDS)
    assert ends[0].send(b"y") == 1  # the connection is as it was
    assert ends[1].recv(2) == b"y"


def test_its_descriptor_is_its_own_until_its_end(ends):
    sender = DirectSender(ends[0].fileno())
    ends[0].close()
    assert sender.send(b"x") == 1  # the connection has not ended yet
    sender.close()
    assert ends[1].recv(1) == b"x"
    assert ends[1].recv(1) == b""


def test_to_close_it_waits_for_nobody_who_sends(sender, ends, monkeypatch):
    writes, may_write, descriptors = threading.Event(), threading.Event(), []

    def slow_write(descriptor, data):
        descriptors.append(descriptor)
        writes.set()
        assert may_write.wait(SECONDS)
        return os.write(descriptor, data)

    slow = SimpleNamespace(write=slow_write, close=os.close)
    monkeypatch.setattr("ibb.server.connections.direct_sender.os", slow)
    sending = threading.Thread(target=sender.send, args=(b"x",))
    sending.start()
    assert writes.wait(SECONDS)
    assert not sender.close()
    os.fstat(descriptors[0])  # it is still ours: what is sent goes to nobody else
    assert select.select([ends[1]], [], [], 0.0)[0] == []
    may_write.set()
    sending.join(SECONDS)
    assert ends[1].recv(1) == b"x"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[0])
    assert sender.close()
    with pytest.raises(ConnectionAbortedError):
        sender.send(b"x")


def test_a_client_that_has_gone_is_told_of(sender, ends):
    ends[1].close()
    assert sender.wait(SECONDS)
    with pytest.raises(BrokenPipeError):
        sender.send(b"x")


@pytest.mark.parametrize("half", [True, False])
def test_whether_the_client_is_there_can_be_seen(sender, ends, half):
    ends[1].send(b"it may say what it likes")
    assert sender.has_reader()
    fill(sender)
    assert sender.has_reader()
    if half:
        ends[1].shutdown(socket.SHUT_WR)
    else:
        ends[1].close()
    assert not sender.has_reader()
    sender.close()
    assert not sender.has_reader()


def test_without_a_descriptor_there_is_none():
    closed = os.dup(0)
    os.close(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        DirectSender(closed)
