"""How long a session may be idle, silent inside a command, or not reading: as it said itself."""

import asyncio
import contextlib
import os
import socket
from types import SimpleNamespace

import pytest

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.server.connections.connection import Connection, PeerGone

from . import raw_client
from .conftest import publish
from .raw_client import RawClient
from .waiting import until

GROUPS = 20
GROUP_BYTES = 300_000
LOOKS = 40  # at a client that reads a little between each two of them
WRITE_TIMEOUT = 0.08
SLOW_WRITE_TIMEOUT = 1.0


class Reading:
    """A client's transport: *pieces* times it takes a byte when somebody looks, then all."""

    def __init__(self, pieces, link):
        self.left = 10_000
        self.pieces = pieces
        self.socket = link

    def get_extra_info(self, name):
        return self.socket if name == "socket" else ("127.0.0.1", 1)

    def set_write_buffer_limits(self, **_):
        pass

    def get_write_buffer_size(self):
        if self.pieces:
            self.pieces -= 1
            self.left -= 1
        return self.left

    async def drain(self):
        if self.pieces == 0 and self.left == 10_000 - LOOKS:
            return
        await asyncio.get_running_loop().create_future()


def connection_to(reading):
    writer = SimpleNamespace(
        transport=reading, drain=reading.drain, get_extra_info=reading.get_extra_info
    )
    return Connection(None, writer, write_timeout=WRITE_TIMEOUT)


async def test_a_client_that_reads_steadily_is_waited_for_however_long_it_takes():
    began = asyncio.get_running_loop().time()
    with socket.socket() as link:
        reading = Reading(LOOKS, link)
        await connection_to(reading).flushed()
    assert asyncio.get_running_loop().time() - began > 3 * WRITE_TIMEOUT
    assert reading.pieces == 0


async def test_bytes_that_the_system_holds_for_a_client_count_when_it_takes_them(serve, store):
    """The system's own buffer is larger than what such a client reads in its time."""
    for seq in range(11, 11 + GROUPS):
        publish(store, Gtid(0, 1, seq), GROUP_BYTES)
    store.sync()
    server = await serve(store, net_write_timeout=SLOW_WRITE_TIMEOUT)
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(link, server.address)
    client = RawClient(*await asyncio.open_connection(sock=link, limit=4096))
    await client.log_in()
    await client.prepare("0-1-10")
    await client.dump(server_id=5)
    client.writer.transport.pause_reading()
    slowly = socket.socket(fileno=os.dup(link.fileno()))
    began = loop.time()
    while loop.time() - began < 2.5 * SLOW_WRITE_TIMEOUT:
        with contextlib.suppress(BlockingIOError):
            slowly.recv(4 << 10)
        await asyncio.sleep(SLOW_WRITE_TIMEOUT / 20)  # what a slow client does between two reads
    assert len(server.sessions) == 1
    await until(lambda: len(server.sessions) == 0)
    slowly.close()
    await client.close()


async def test_one_that_stops_reading_is_not():
    with socket.socket() as link:
        reading = Reading(LOOKS // 2, link)
        with pytest.raises(TimeoutError):
            await connection_to(reading).flushed()
    assert reading.pieces == 0


async def test_a_connection_that_is_closed_meanwhile_is_gone():
    with socket.socket() as link:
        reading = Reading(LOOKS, link)
    with pytest.raises(PeerGone):
        await connection_to(reading).flushed()


async def test_a_reader_has_the_time_that_it_asked_for(serve, store, capfd):
    for seq in range(11, 11 + GROUPS):
        publish(store, Gtid(0, 1, seq), GROUP_BYTES)
    store.sync()
    server = await serve(store, net_write_timeout=0.5)
    patient, plain = [await RawClient.logged_in(server) for _ in range(2)]
    await patient.query("SET SESSION net_write_timeout = 600")
    for client in (patient, plain):
        await client.prepare("0-1-10")
        await client.dump(server_id=5 if client is plain else 6)
        client.writer.transport.pause_reading()
    await until(lambda: len(server.sessions) == 1)
    (session,) = server.sessions
    assert session.dump_server_id == 6
    output = capfd.readouterr()
    (line,) = [line for line in (output.out + output.err).splitlines() if "dump_dropped" in line]
    assert "the client did not read for 0.5 s" in line
    for client in (patient, plain):
        client.writer.transport.resume_reading()
        await client.close()


async def test_a_session_may_be_idle_for_as_long_as_it_said(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as hasty,
        await RawClient.logged_in(server) as calm,
    ):
        await hasty.query("SET wait_timeout = 1")
        assert await hasty.packet() is None
        assert await calm.value("SELECT @@wait_timeout") == "28800"


async def test_a_change_for_all_is_none_for_who_is_there(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server, "admin", "mighty") as first:
        await first.query("SET GLOBAL wait_timeout = 1")
        async with await RawClient.logged_in(server) as second:
            assert await second.packet() is None
        assert await first.value("SELECT @@global.wait_timeout") == "1"


async def test_a_person_has_a_time_of_their_own(serve, store, monkeypatch):
    server = await serve(store, wait_timeout=5.0, interactive_timeout=700.0)
    capabilities = CLIENT_CAPABILITIES | Capability.INTERACTIVE
    monkeypatch.setattr(raw_client, "CLIENT_CAPABILITIES", capabilities)
    async with await RawClient.logged_in(server) as person:
        assert await person.value("SELECT @@wait_timeout") == "700"
    monkeypatch.undo()
    async with await RawClient.logged_in(server) as program:
        assert await program.value("SELECT @@wait_timeout") == "5"
        assert await program.value("SELECT @@interactive_timeout") == "700"


async def test_a_command_must_go_on_once_it_has_begun(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query("SET net_read_timeout = 1")
        client.writer.write(b"\x09\x00\x00\x00\x03SELECT")
        assert await client.packet() is None


@pytest.mark.parametrize("sql", ["SELECT SLEEP(60)", "SELECT MASTER_GTID_WAIT('9-9-9')"])
async def test_a_statement_may_take_as_long_as_its_session_said(serve, store, sql):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query("SET max_statement_time = 0.05")
        with pytest.raises(SqlError) as caught:
            await client.query(sql)
        assert caught.value.code == 1969
        assert await client.value("SELECT 1") == "1"
        await client.query("SET max_statement_time = 0")
        assert await client.value("SELECT SLEEP(0.1)") == "0"
