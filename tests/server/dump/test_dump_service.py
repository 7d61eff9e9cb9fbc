"""A dump beside who listens: whoever ends first, both are over before that is told."""

import asyncio
from types import SimpleNamespace

import pytest

from ibb.server.connections.connection import PeerGone
from ibb.server.dump.dump_service import DumpService

from ..waiting import turns


class Ends:
    """A client's end that can be heard, and a dump that can be ended; both note their own."""

    def __init__(self):
        loop = asyncio.get_running_loop()
        self.heard, self.done = loop.create_future(), loop.create_future()
        self.over = []

    async def _listen(self):
        try:
            await self.heard
        finally:
            self.over.append("listening")

    async def dump(self):
        try:
            await self.done
        finally:
            self.over.append("dump")

    def run(self):
        return DumpService._until_either_ends(SimpleNamespace(_listen=self._listen), self.dump())

    async def begun(self):
        """Return the task of `session`, once it and who listens wait."""
        task = asyncio.create_task(self.session())
        await turns(2)
        return task

    async def session(self):
        """Run both as a session does, which goes on behind them; return what they raised."""
        try:
            await self.run()
        except PeerGone as gone:
            return gone
        except OSError as error:
            return error
        finally:
            await turns(2)
            task = asyncio.current_task()
            self.over.append(task.cancelling())
        return None


async def test_the_dump_begins_before_the_loop_does_anything_else():
    ends = Ends()
    ends.done.set_result(None)
    asyncio.get_running_loop().call_soon(ends.over.append, "loop")
    await ends.run()
    assert ends.over[:2] == ["dump", "loop"]


async def test_when_the_client_is_heard_to_go_the_dump_is_over():
    ends = Ends()
    session = asyncio.create_task(ends.session())
    await asyncio.sleep(0)
    ends.heard.set_exception(PeerGone("quit"))
    assert str(await session) == "quit"
    assert ends.over == ["listening", "dump", 0]


@pytest.mark.parametrize("error", [None, BrokenPipeError("no pipe")])
async def test_when_the_dump_ends_nobody_listens(error):
    ends = Ends()
    session = await ends.begun()
    if error is None:
        ends.done.set_result(None)
    else:
        ends.done.set_exception(error)
    assert await session is error
    assert ends.over == ["dump", "listening", 0]


@pytest.mark.parametrize("heard_first", [True, False])
async def test_when_both_end_at_once_nothing_of_it_is_left(heard_first):
    ends = Ends()
    session = await ends.begun()
    told = [
        lambda: ends.heard.set_exception(PeerGone("quit")),
        lambda: ends.done.set_exception(BrokenPipeError("no pipe")),
    ]
    for tell in told if heard_first else reversed(told):
        tell()
    assert str(await session) in ("quit", "no pipe")
    assert sorted(ends.over, key=str) == [0, "dump", "listening"]


@pytest.mark.parametrize("heard", [True, False])
async def test_a_session_that_is_cancelled_ends_as_one(heard):
    ends = Ends()
    session = await ends.begun()
    if heard:
        ends.heard.set_exception(PeerGone("quit"))
        await asyncio.sleep(0)
    session.cancel()
    with pytest.raises(asyncio.CancelledError):
        await session
    assert ends.over[-1] == 1
    assert sorted(ends.over[:-1]) == ["dump", "listening"]
