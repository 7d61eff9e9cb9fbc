"""The sockets that a server listens on, and those that are another's."""

import asyncio
import errno
import socket

import pytest
from structlog.testing import capture_logs

from ibb.protocol.native_password import scramble_response
from ibb.protocol.reply import is_ok, parse_err
from ibb.server import listener
from ibb.server.connections import heap_trim
from ibb.server.dump import packet_buffers

from .raw_client import RawClient, until_sessions
from .waiting import until


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


async def test_who_waits_in_the_last_place_gives_way_to_an_administrator(
    serve, store, monkeypatch, capfd
):
    server = await serve(store, max_connections=1)
    async with (
        await RawClient.logged_in(server) as first,
        await RawClient.connect(server.address) as waiting,
        await RawClient.connect(server.address) as admin,
    ):
        await waiting.read_greeting()
        assert parse_err(await admin.packet()).code == 1040  # not at once
        monkeypatch.setattr(listener, "PATIENCE_SECONDS", 0.0)
        async with await RawClient.connect(server.address) as again:
            assert is_ok(await again.log_in("admin", "mighty"))
            assert await waiting.packet() is None
            async with await RawClient.connect(server.address) as too_many:
                assert parse_err(await too_many.packet()).code == 1040
        assert await first.value("SELECT 1") == "1"
    assert "login took too long while all places were taken" in capfd.readouterr().out
    await until_sessions(server, 0)
    assert not server._listener._pushed_out


async def from_address(server, source):
    return RawClient(*await asyncio.open_connection(*server.address, local_addr=(source, 0)))


async def test_who_is_turned_away_by_its_address_costs_nobody_a_place(serve, store, monkeypatch):
    monkeypatch.setattr(listener, "PATIENCE_SECONDS", 0.0)
    server = await serve(store, max_connections=2, max_logins_per_address=2)
    async with (
        await from_address(server, "127.0.0.3") as waiting,
        await from_address(server, "127.0.0.2") as first,
        await from_address(server, "127.0.0.2") as second,
    ):
        for client in (waiting, first, second):
            await client.read_greeting()
        async with await from_address(server, "127.0.0.2") as too_many:
            assert "from 127.0.0.2" in parse_err(await too_many.packet()).message
        assert not server._listener._pushed_out
        await first.close()
        await until_sessions(server, 2)
        assert is_ok(await waiting.log_in())


async def test_who_becomes_another_user_keeps_its_place(serve, store, monkeypatch):
    monkeypatch.setattr(listener, "PATIENCE_SECONDS", 0.0)
    server = await serve(store, max_connections=1)
    async with (
        await RawClient.logged_in(server) as first,
        await RawClient.logged_in(server, "admin", "mighty") as second,
    ):
        await first.send(b"\x11admin\0\0\0\x2d\0other_plugin\0")
        switch = await first.packet()
        assert switch[:1] == b"\xfe"
        async with await RawClient.connect(server.address) as too_many:
            assert parse_err(await too_many.packet()).code == 1040
        await first.send(scramble_response("mighty", switch[-21:-1]), first.seq + 1)
        assert is_ok(await first.packet())
        assert await second.value("SELECT 1") == "1"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_every_address_is_those_of_ipv4_too(serve, store, address):
    """As MariaDB's bind_address has `::`; clients are known by their own addresses."""
    server = await serve(store, listen="[::]:0")
    async with await RawClient.connect((address, server.port())) as client:
        with capture_logs() as lines:
            assert (await client.log_in("repl", "wrong"))[:1] == b"\xff"
        peer = f"{address}:{client.writer.get_extra_info('sockname')[1]}"
    assert {line["peer"] for line in lines} == {peer}


async def test_buffers_of_dumps_are_given_back_behind_a_client_that_was_sent_much(
    serve, store, monkeypatch
):
    monkeypatch.setattr(heap_trim, "TRIM_SECONDS", 0.0)
    monkeypatch.setattr(heap_trim, "SENT_BYTES_MIN", 1)
    server = await serve(store)
    async with await RawClient.logged_in(server):
        packet_buffers.give_buffer(packet_buffers.take_buffer())
    await until(lambda: not any(packet_buffers._buffers.values()))
