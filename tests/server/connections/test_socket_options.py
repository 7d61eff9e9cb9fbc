"""What the system is told of connections."""

import socket
from pathlib import Path

import pytest

from ibb.server.connections.socket_options import UNPACED, congestion_control, send_unpaced
from ibb.server.relay.upstream import Upstream, UpstreamAddress

from ..raw_client import RawClient

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
OTHERS = sorted({*ALLOWED.read_text().split()} - {UNPACED}) if ALLOWED.exists() else []
needs_another = pytest.mark.skipif(not OTHERS, reason="the system allows no other")


def keepalive(writer):
    """Return what the kernel was told of *writer*."""
    return writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def choose(link, name):
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


async def test_the_system_looks_after_peers_that_go_without_a_word(serve, store):
    server = await serve(store)
    upstream = await Upstream.connect(UpstreamAddress(*server.address, "repl", "secret"))
    (session,) = server.sessions
    assert keepalive(session._connection._writer)
    assert keepalive(upstream._link._writer)
    await upstream.close()


async def test_unix_sockets_have_no_such_need(serve, store, tmp_path):
    server = await serve(store, socket=str(tmp_path / "s"))
    async with await RawClient.connect(str(tmp_path / "s")) as client:
        await client.log_in()
        (session,) = server.sessions
        assert not keepalive(session._connection._writer)


@needs_another
@pytest.mark.parametrize("name", OTHERS)
async def test_a_client_on_this_host_is_sent_to_as_fast_as_it_goes(serve, store, name):
    server = await serve(store)
    for listening in server._listener._servers:
        for link in listening.sockets:
            choose(link, name)
    async with await RawClient.logged_in(server):
        (session,) = server.sessions
        link = session._connection._writer.get_extra_info("socket")
        assert congestion_control(link) == UNPACED


class Link:
    """A connection between two addresses, as Python tells them."""

    def __init__(self, near, far, *, family=socket.AF_INET, error=None):
        self.near, self.far, self.family, self.error = near, far, family, error
        self.chosen = []

    def getsockname(self):
        return self.near, 3306

    def getpeername(self):
        if self.far is None:
            raise OSError(107, "Transport endpoint is not connected")
        return self.far, 40000

    def setsockopt(self, *option):
        self.chosen.append(option)
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.1.1", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:127.0.1.1", "::ffff:127.0.0.1"),
        ("::ffff:10.1.2.3", "::ffff:10.1.2.3"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
    ],
)
def test_addresses_of_this_host_are_known(near, far):
    link = Link(near, far)
    send_unpaced(link)
    assert link.chosen == [(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")]


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("10.1.2.3", "10.1.2.4"),
        ("::ffff:10.1.2.3", "::ffff:10.1.2.4"),
        ("fe80::1%eth0", "fe80::2%eth0"),
        ("2001:db8::1", "2001:db8::2"),
        ("10.1.2.3", None),
    ],
)
def test_peers_elsewhere_and_those_that_have_gone_keep_what_the_system_gives(near, far):
    link = Link(near, far)
    send_unpaced(link)
    assert link.chosen == []


def test_a_unix_socket_has_no_such_thing():
    link = Link("/run/ibb.sock", "", family=socket.AF_UNIX)
    send_unpaced(link)
    assert link.chosen == []


def test_an_administrator_may_let_nobody_choose():
    link = Link("127.0.0.1", "127.0.0.1", error=PermissionError(1, "Operation not permitted"))
    send_unpaced(link)
    assert len(link.chosen) == 1


@needs_another
def test_the_name_of_a_congestion_control_is_told_as_the_system_has_it():
    with socket.socket() as link:
        for name in (*OTHERS, UNPACED):
            choose(link, name)
            assert congestion_control(link) == name
