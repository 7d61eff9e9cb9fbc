"""One client's connection, below its packets."""

import asyncio
import os
import pwd
import select
import socket
import threading

import pytest

from ibb.protocol.command import Ping
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_ok
from ibb.server.connections.connection import Connection
from ibb.server.login.accounts import make_account

from ..raw_client import RawClient

AHEAD = 4000
SECONDS = 20.0


async def test_who_sends_ahead_takes_turns_with_the_others(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as hasty,
        await RawClient.logged_in(server) as other,
    ):
        hasty.writer.write(frame(Ping().encode(), 0) * AHEAD)
        before = server.questions
        assert await other.value("SELECT 1") == "1"
        assert server.questions - before < AHEAD // 2
        for _ in range(AHEAD):
            assert is_ok(await hasty.packet())


class Closing:
    """A transport that tells who is there until it is closed, as uvloop's do."""

    def __init__(self, link):
        self.link = link
        self.transport = self

    def get_extra_info(self, name):
        if self.link.fileno() < 0:
            raise ValueError("negative file descriptor")
        names = {"sockname": self.link.getsockname, "peername": self.link.getpeername}
        return names.get(name, lambda: self.link)()

    def set_write_buffer_limits(self, high):
        pass


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
def test_who_was_there_is_known_behind_the_end_of_the_connection(family, tmp_path):
    """Or SHOW PROCESSLIST would fail for whoever asks while another's connection ends."""
    with socket.socket(family) as listening, socket.socket(family) as client:
        listening.bind(str(tmp_path / "s") if family == socket.AF_UNIX else ("127.0.0.1", 0))
        listening.listen()
        client.connect(listening.getsockname())
        link, _ = listening.accept()
        connection = Connection(None, Closing(link), write_timeout=1)
        link.close()
        if family == socket.AF_INET:
            assert connection.peer == "{}:{}".format(*client.getsockname())
            assert connection.hosts == ["localhost", "127.0.0.1"]
        else:
            assert (connection.peer, connection.limit_key) == ("unix", f"unix:{os.getuid()}")
            assert connection.peer_user() == pwd.getpwuid(os.getuid()).pw_name


def connected(family):
    """Return both ends of a connection."""
    if family == socket.AF_UNIX:
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        return listening.accept()[0], client


def fill(sender):
    """Send until the system takes no more."""
    while sender.send(bytes(1 << 20)):
        pass


def until_told(sender, begun):
    """Wait for the client as a thread does to which the descriptor is lent; return what it gets."""

    def wait(descriptor):
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        begun.set()
        return poll.poll(3600_000)

    return sender.lend(wait)


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
async def test_a_thread_that_waits_for_a_client_is_told_at_once_when_it_is_dropped(family):
    ours, theirs = connected(family)
    connection = Connection(*await asyncio.open_connection(sock=ours), write_timeout=1)
    sender, begun = connection.direct_sender(), threading.Event()
    fill(sender)
    waiting = asyncio.get_running_loop().run_in_executor(None, until_told, sender, begun)
    assert await asyncio.to_thread(begun.wait, SECONDS)
    try:
        connection.abort()
        async with asyncio.timeout(SECONDS):
            ((_, events),) = await waiting
        assert events & (select.POLLHUP | select.POLLERR)
        with pytest.raises(ConnectionAbortedError):
            sender.send(b"x")
        assert sender._descriptor < 0  # it is given up
        await connection.close()
    finally:
        theirs.close()  # which ends the waiting in any case


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
async def test_where_no_thread_waits_a_connection_is_dropped_like_others(family):
    ours, theirs = connected(family)
    connection = Connection(*await asyncio.open_connection(sock=ours), write_timeout=1)
    sender = connection.direct_sender()
    connection.abort()
    assert sender._descriptor < 0
    connection.abort()
    await connection.close()
    connection.abort()
    with theirs:
        theirs.settimeout(SECONDS)
        assert theirs.recv(1) == b""


async def test_names_of_system_users_are_asked_for_only_where_needed_and_beside_the_loop(
    serve, store, accounts, tmp_path, monkeypatch
):
    asked = []

    def getpwuid(_):
        asked.append(threading.current_thread())
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    accounts.add(make_account("me", "localhost", "", methods=["unix_socket"]))
    await serve(store, socket=str(tmp_path / "s"))
    for user, times in (("repl", 0), ("me", 1)):
        async with await RawClient.connect(str(tmp_path / "s")) as client:
            assert is_ok(await client.log_in(user)) == (user == "repl")
            assert len(asked) == times
    assert asked[0] is not threading.main_thread()
