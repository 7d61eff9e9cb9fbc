"""
The bytes of one client: whole packets in, framed packets out, nothing ever waiting without limit.

Source: dump-protocol 1.1; 10, traps 11, 31, 41, 42.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ibb.protocol.packet import Packet, PacketReader, frame_all

from .config import END_GRACE_SECONDS, LOGIN_PACKET_BYTES_MAX, WRITE_BUFFER_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

READ_BYTES: Final = 64 << 10
LINGER_BYTES_MAX: Final = 1 << 20  # that a peer may still send after we have ended the connection
LINGER_SECONDS: Final = 2.0


class PeerGone(ConnectionError):  # noqa: N818 - a state of the world, no fault of anybody
    """The peer closed the connection, between packets or inside one."""


class Connection:
    """
    One client's connection.

    Args:
        reader, writer: the transport.
        write_timeout: seconds that the client may leave a write waiting.

    Attributes:
        seq: sequence id of the next packet that is sent.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        write_timeout: float,
    ) -> None:
        self.seq = 0
        self._reader = reader
        self._writer = writer
        self._write_timeout = write_timeout
        self._packets = PacketReader(LOGIN_PACKET_BYTES_MAX)
        self._is_tcp = isinstance(writer.get_extra_info("sockname"), tuple)
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    @property
    def peer(self) -> str:
        """Address of the client, `unix` for a unix socket."""
        if not self._is_tcp:
            return "unix"
        name = self._writer.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if name else "gone"

    @property
    def hosts(self) -> list[str]:
        """Address and names by which accounts may know the client, the one to show first."""
        if not self._is_tcp:
            return ["localhost"]
        address = self.peer.rpartition(":")[0].removeprefix("::ffff:")
        is_loopback = address == "::1" or address.startswith("127.")
        return ["localhost", address] if is_loopback else [address]

    def expect(self, packet_bytes_max: int, seq: int = 0) -> None:
        """Set what the next packet may be: at most this long, with this sequence id."""
        self._packets.packet_bytes_max = packet_bytes_max
        self._packets.expected_seq = seq

    async def receive(self) -> Packet:
        """
        Return the next packet; the answer goes on with the sequence id after its own.

        Raises:
            PeerGone: the connection ended first.
            ProtocolError: too long, or out of order.
        """
        while (packet := self._packets.next_packet()) is None:
            data = await self._reader.read(READ_BYTES)
            if not data:
                inside = " inside a packet" if self._packets.buffered else ""
                raise PeerGone(f"the client closed the connection{inside}")
            self._packets.feed(data)
        self.seq = (packet.seq + 1) & 0xFF
        return packet

    async def discard_until_closed(self) -> None:
        """Throw away what the client still sends; raises PeerGone when it closes."""
        while await self._reader.read(READ_BYTES):
            pass
        raise PeerGone("the client closed the connection")

    async def send(self, payloads: Iterable[bytes]) -> None:
        """Send whole payloads; raises TimeoutError when the client does not read."""
        data, self.seq = frame_all(payloads, self.seq)
        await self.write(data)

    async def write(self, data: bytes) -> None:
        """Send framed packets, or pieces of them; raises TimeoutError as `send` does."""
        if self._writer.is_closing():
            raise PeerGone("the client closed the connection")
        self._writer.write(data)
        await self.flushed()

    async def flushed(self) -> None:
        """Return when little is left to be sent; raises TimeoutError as `send` does."""
        async with asyncio.timeout(self._write_timeout):
            await self._writer.drain()

    async def end(self) -> None:
        """
        Close so that the client gets everything that was sent.

        A socket that is closed with bytes unread resets the connection, and the client may lose
        the last packets: so what still comes is read and thrown away, for a while.
        """
        try:
            if not self._writer.is_closing():
                self._writer.write_eof()
            async with asyncio.timeout(LINGER_SECONDS):
                left = LINGER_BYTES_MAX
                while left > 0 and (data := await self._reader.read(READ_BYTES)):
                    left -= len(data)
        except (OSError, TimeoutError):
            self.abort()
        await self.close()

    async def close(self) -> None:
        """Close at once; what the transport still holds is sent if the client takes it soon."""
        self._writer.close()
        try:
            async with asyncio.timeout(END_GRACE_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self.abort()

    def abort(self) -> None:
        """Drop the connection and all that waits in it."""
        self._writer.transport.abort()
