"""Writes that do not wait: whole and in order, whatever the system takes of them."""

import asyncio
import random
import socket
from contextlib import suppress

import pytest

from ibb.server.connections.connection import Connection

from ..waiting import until

SECONDS_MAX = 20


@pytest.fixture
async def both():
    """A connection of ours, and the other end's reader and writer."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    connection = Connection(*await asyncio.open_connection(sock=ours), write_timeout=SECONDS_MAX)
    reader, writer = await asyncio.open_connection(sock=theirs)
    yield connection, reader, writer
    await connection.close()
    writer.close()
    await writer.wait_closed()


async def test_what_the_system_takes_needs_no_waiting(both):
    connection, reader, _ = both
    assert connection.write_at_once(b"abc")
    assert not connection.unsent
    assert await reader.readexactly(3) == b"abc"
    assert connection.sent == 3


async def test_what_it_does_not_take_follows_in_order(both):
    connection, reader, _ = both
    pieces = [random.Random(number).randbytes(30_000) for number in range(12)]
    taken = [connection.write_at_once(piece) for piece in pieces]
    assert not all(taken)
    assert not any(taken[taken.index(False) :])  # nothing goes past what waits
    assert connection.unsent
    last = asyncio.create_task(connection.write(b"end"))
    async with asyncio.timeout(SECONDS_MAX):
        assert await reader.readexactly(12 * 30_000) == b"".join(pieces)
        assert await reader.readexactly(3) == b"end"
        await last
    assert connection.write_at_once(b"again")
    assert await reader.readexactly(5) == b"again"


async def test_nothing_goes_past_what_waits_though_there_is_room_again():
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    theirs.setblocking(False)
    connection = Connection(*await asyncio.open_connection(sock=ours), write_timeout=SECONDS_MAX)
    pieces, found = [bytes([number]) * 30_000 for number in range(1, 8)], b""
    for piece in pieces:
        connection.write_at_once(piece)
        with suppress(BlockingIOError):
            found += theirs.recv(1 << 20)
    async with asyncio.timeout(SECONDS_MAX):
        loop = asyncio.get_running_loop()
        while len(found) < 7 * 30_000:
            found += await loop.sock_recv(theirs, 1 << 20)
    assert found == b"".join(pieces)
    await connection.close()
    theirs.close()


async def test_a_connection_that_is_gone_takes_nothing(both):
    connection, _, writer = both
    writer.transport.abort()
    await until(lambda: not connection.write_at_once(b"x" * 1000))
    connection.abort()
    assert not connection.write_at_once(b"x")
