"""The counters of SHOW STATUS that monitors read."""

import pytest

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability
from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.handshake import SslRequest
from ibb.protocol.reply import is_err, is_ok

from ..raw_client import RawClient, until_sessions
from ..waiting import until

SQL = "SELECT '" + "x" * 10_000 + "'"


async def status(client, name):
    ((_, value),) = await client.rows(f"SHOW GLOBAL STATUS LIKE '{name}'")
    return int(value)


async def test_bytes_are_counted_beyond_the_end_of_their_connection(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        received, sent = await status(client, "Bytes_received"), await status(client, "Bytes_sent")
        async with await RawClient.logged_in(server) as other:
            await other.query(SQL)
            assert await status(client, "Bytes_received") >= received + len(SQL)
        await until_sessions(server, 1)
        assert await status(client, "Bytes_received") >= received + len(SQL)
        assert await status(client, "Bytes_sent") >= sent + 10_000


async def test_a_thread_runs_while_it_does_something(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as client,
        await RawClient.logged_in(server) as other,
    ):
        assert await status(client, "Threads_running") == 1
        assert await status(client, "Threads_connected") == 2
        number = int(await other.value("SELECT CONNECTION_ID()"))
        await other.send(Query("DO SLEEP(3600)").encode())
        await until(lambda: server.sessions.get(number).runner.running is not None)
        assert await status(client, "Threads_running") == 2


@pytest.mark.parametrize(("goodbye", "aborted"), [(True, 0), (False, 1)])
async def test_clients_that_go_without_a_goodbye_are_counted(serve, store, goodbye, aborted):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        if goodbye:
            await client.send(b"\x01")
            assert await client.packet() is None
    await until_sessions(server, 0)
    assert server.status()["Aborted_clients"] == str(aborted)
    assert server.status()["Aborted_connects"] == "0"


async def test_connections_that_find_all_places_taken_are_counted(serve, store):
    server = await serve(store, max_connections=1)
    async with (
        await RawClient.connect(server.address) as first,
        await RawClient.connect(server.address) as second,
    ):
        await first.read_greeting()
        await second.read_greeting()
        async with await RawClient.connect(server.address) as third:
            assert is_err(await third.packet())
    assert server.status()["Connection_errors_max_connections"] == "1"


async def test_tls_handshakes_are_counted(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        assert is_ok(await client.log_in())
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.send(SslRequest(CLIENT_CAPABILITIES | Capability.SSL, 1 << 24, 8).encode(), 1)
        client.writer.write(b"no hello")
        await client.reader.read()
    await until_sessions(server, 0)
    shown = server.status()
    assert (shown["Ssl_accepts"], shown["Ssl_finished_accepts"]) == ("2", "1")


async def test_denials_are_counted(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as stranger:
        assert is_err(await stranger.log_in("repl", "wrong"))
    async with await RawClient.logged_in(server) as client:
        assert await status(client, "Access_denied_errors") == 1
        for sql, code in (("FLUSH LOGS", 1227), ("SELECT nosuch", 1054)):
            with pytest.raises(SqlError) as caught:
                await client.query(sql)
            assert caught.value.code == code
        assert await status(client, "Access_denied_errors") == 2
