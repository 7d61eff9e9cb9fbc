"""One client's connection, below its packets."""

import os
import pwd
import socket
import threading

import pytest

from ibb.protocol.command import Ping
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_ok
from ibb.server.connections.connection import Connection
from ibb.server.login.accounts import make_account
from ibb.server.relay.upstream import Upstream, UpstreamAddress

from ..raw_client import RawClient

AHEAD = 4000


def keepalive(writer):
    """Return what the kernel was told of *writer*."""
    return writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_the_system_looks_after_peers_that_go_without_a_word(serve, store):
    server = await serve(store)
    upstream = await Upstream.connect(UpstreamAddress(*server.address, "repl", "secret"))
    (session,) = server.sessions
    assert keepalive(session._connection._writer)
    assert keepalive(upstream._link._writer)
    await upstream.close()


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


async def test_unix_sockets_have_no_such_need(serve, store, tmp_path):
    server = await serve(store, socket=str(tmp_path / "s"))
    async with await RawClient.connect(str(tmp_path / "s")) as client:
        await client.log_in()
        (session,) = server.sessions
        assert not keepalive(session._connection._writer)


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
