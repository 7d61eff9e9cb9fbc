"""The client's end of a connection, when others take over what comes."""

import asyncio

from ibb.protocol.packet import frame
from ibb.server.connections.packet_link import PacketLink
from ibb.server.connections.tapped_reader import open_tapped

from ..waiting import until

SECONDS = 20.0


async def test_who_receives_directly_has_what_came_behind_the_last_answer_first():
    may_go_on = asyncio.Event()

    async def talk(_, writer):
        writer.write(frame(b"answer", 0) + b"behind it")
        await may_go_on.wait()
        writer.write(b", and later")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        ends = await open_tapped(*server.sockets[0].getsockname(), 1 << 16)
        link = PacketLink(*ends)
        link._packets.expected_seq = 0
        assert await link.receive() == b"answer"
        await until(lambda: link._packets.buffered + len(ends[0]._buffer) == len(b"behind it"))
        receiver = link.direct_receiver()
        try:
            came = await asyncio.to_thread(receiver.receive, lambda: SECONDS)
            assert bytes(came) == b"behind it"
            may_go_on.set()
            came = await asyncio.to_thread(receiver.receive, lambda: SECONDS)
            assert bytes(came) == b", and later"
        finally:
            receiver.close()
            await link.close()
