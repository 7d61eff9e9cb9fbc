"""The queue between reading and storing."""

import asyncio

import pytest

from ibb.server.connections.byte_queue import ByteQueue


async def test_everything_that_waits_is_taken_in_order():
    queue = ByteQueue(100)
    for piece in (b"a", b"b", b"c"):
        await queue.put(piece)
    assert await queue.take() == [b"a", b"b", b"c"]


async def test_putting_waits_while_too_much_is_there():
    queue = ByteQueue(10)
    await queue.put(b"x" * 10)
    putting = asyncio.create_task(queue.put(b"y"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not putting.done()
    assert await queue.take() == [b"x" * 10]
    await putting
    assert await queue.take() == [b"y"]


async def test_the_end_comes_behind_the_last_piece():
    queue = ByteQueue(10)
    await queue.put(b"x")
    await queue.end(ConnectionResetError("gone"))
    assert await queue.take() == [b"x"]
    with pytest.raises(ConnectionResetError, match="gone"):
        await queue.take()
