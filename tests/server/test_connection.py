"""One client's connection, below its packets."""

import socket

from ibb.server.upstream import Upstream, UpstreamAddress

from .raw_client import RawClient


def keepalive(writer):
    """Return what the kernel was told of *writer*."""
    return writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_the_system_looks_after_peers_that_go_without_a_word(serve, store):
    server = await serve(store)
    upstream = await Upstream.connect(UpstreamAddress(*server.address, "repl", "secret"))
    (session,) = server.sessions()
    assert keepalive(session._connection._writer)
    assert keepalive(upstream._link._writer)
    await upstream.close()


async def test_unix_sockets_have_no_such_need(serve, store, tmp_path):
    server = await serve(store, socket=str(tmp_path / "s"))
    async with await RawClient.connect(str(tmp_path / "s")) as client:
        await client.log_in()
        (session,) = server.sessions()
        assert not keepalive(session._connection._writer)
