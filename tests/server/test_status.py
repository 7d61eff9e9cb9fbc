"""The counters of SHOW STATUS that monitors read."""

from ibb.protocol.command import Query

from .raw_client import RawClient, until_sessions
from .waiting import until

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
        await until(lambda: server.session(number).runner.running is not None)
        assert await status(client, "Threads_running") == 2
