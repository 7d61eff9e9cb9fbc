"""The sockets that a server listens on, and those that are another's."""

import errno
import socket

import pytest

from .raw_client import RawClient


async def test_the_unix_socket_of_a_server_that_lives_stays_its_own(serve, store, tmp_path):
    path = str(tmp_path / "s")
    await serve(store, socket=path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    with pytest.raises(OSError, match="another server") as caught:
        await serve(store, socket=path, listen="{}:{}".format(*address))
    assert caught.value.errno == errno.EADDRINUSE
    with pytest.raises(ConnectionRefusedError):
        await RawClient.connect(address)
    async with await RawClient.connect(path) as client:
        assert (await client.log_in())[:1] == b"\0"


async def test_a_socket_on_which_many_wait_is_not_taken_for_a_stale_one(serve, store, tmp_path):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(path)
        busy.listen(0)
        waiting.connect(path)
        with pytest.raises(OSError, match="another server"):
            await serve(store, socket=path)


async def test_a_socket_that_has_taken_its_place_is_not_removed_at_the_end(serve, store, tmp_path):
    path = tmp_path / "s"
    server = await serve(store, socket=str(path))
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        await server.stop()
        assert path.exists()
