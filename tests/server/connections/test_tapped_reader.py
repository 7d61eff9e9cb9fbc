"""A reader whose bytes are given away: nothing is lost where it begins, nor said twice."""

import asyncio
import select

import pytest

from ibb.server.connections.tapped_reader import open_tapped

from ..waiting import turns, until


@pytest.fixture
async def ends():
    """Return our reader and writer, and the writer of the other end."""
    accepted = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda *pair: accepted.set_result(pair), "127.0.0.1", 0)
    reader, writer = await open_tapped("127.0.0.1", server.sockets[0].getsockname()[1], 1000)
    _, theirs = await accepted
    yield reader, writer, theirs
    writer.close()
    theirs.close()
    server.close()


class Heard:
    def __init__(self):
        self.pieces, self.ends = [], []

    @property
    def data(self):
        return b"".join(self.pieces)


async def test_what_was_not_read_is_given_away_and_so_is_what_comes(ends):
    reader, _, theirs = ends
    theirs.write(b"read, left")
    assert await reader.readexactly(6) == b"read, "
    heard = Heard()
    reader.hand_on(heard.pieces.append, heard.ends.append)
    assert heard.data == b"left"
    theirs.write(b" and more")
    await until(lambda: heard.data == b"left and more")
    assert heard.ends == []
    theirs.close()
    await until(lambda: heard.ends)
    assert heard.ends == [None]


async def test_a_reader_that_had_enough_goes_on(ends):
    reader, _, theirs = ends
    theirs.write(b"x" * 2_000_000)
    assert await reader.readexactly(1) == b"x"
    await until(lambda: reader._paused)
    heard = Heard()
    reader.hand_on(heard.pieces.append, heard.ends.append)
    await until(lambda: len(heard.data) == 1_999_999)


async def test_nothing_comes_while_it_is_paused(ends):
    reader, writer, theirs = ends
    heard = Heard()
    reader.hand_on(heard.pieces.append, heard.ends.append)
    reader.pause()
    theirs.write(b"x")
    arrived = writer.get_extra_info("socket").fileno()
    await until(lambda: select.select([arrived], [], [], 0)[0])
    await turns()  # in which the loop would take it
    assert heard.pieces == []
    reader.resume()
    await until(lambda: heard.data == b"x")


@pytest.mark.parametrize("broken", [True, False])
async def test_an_end_before_it_is_told_of(ends, broken):
    reader, writer, theirs = ends
    theirs.write(b"last")
    theirs.close()
    await until(lambda: reader._eof)
    if broken:
        reader.set_exception(ConnectionResetError("reset"))
    heard = Heard()
    reader.hand_on(heard.pieces.append, heard.ends.append)
    assert heard.data == b"last"
    assert [str(error) for error in heard.ends] == ["reset" if broken else "None"]
    writer.transport.abort()
    reader.pause()
    reader.resume()  # neither minds


async def test_a_connection_that_breaks_is_told_of(ends):
    reader, writer, _ = ends
    heard = Heard()
    reader.hand_on(heard.pieces.append, heard.ends.append)
    reader.set_exception(ConnectionResetError("reset"))
    assert [str(error) for error in heard.ends] == ["reset"]
    writer.transport.abort()
