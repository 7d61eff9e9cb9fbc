"""The client's end of a connection: packets of a login and of statements, encrypted or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import ProtocolError
from ibb.protocol.packet import PacketReader, frame, next_seq
from ibb.server.config import READ_BYTES

from .direct_receiver import DirectReceiver
from .tapped_reader import TappedReader
from .tls_channel import TlsFailed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .tls_channel import TlsChannel

REPLY_PACKET_BYTES_MAX: Final = 1 << 20  # of an answer to one of our statements


class PacketLink:
    """
    One connection to a server.

    Args:
        reader, writer: the transport.

    Attributes:
        tls: None while nothing is encrypted.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tls: TlsChannel | None = None
        self._reader = reader
        self._writer = writer
        self._packets = PacketReader(REPLY_PACKET_BYTES_MAX)
        self._seq = 0

    def cipher(self) -> tuple[str, str]:
        """Return cipher and version of TLS, empty without."""
        return ("", "") if self.tls is None else self.tls.cipher()

    async def start_tls(self, channel: TlsChannel) -> None:
        """
        Encrypt from here on.

        Raises:
            ProtocolError: something came behind the greeting that would have counted as encrypted.
            TlsFailed, ConnectionError: there is no agreement.
        """
        if self._packets.detach():
            raise ProtocolError("the server sent something before TLS had begun")
        self._packets = PacketReader(REPLY_PACKET_BYTES_MAX, self._seq)
        data = b""
        while not channel.shake_hands(data):
            self._writer.write(channel.outgoing())
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection in the TLS handshake")
        self._writer.write(channel.outgoing())
        self.tls = channel
        self._packets.feed(channel.receive(b""))

    async def send(self, payload: bytes, *, new_command: bool = False) -> None:
        """Send a payload, as the next one of an exchange or as a *new_command*."""
        seq = 0 if new_command else self._seq
        data = frame(payload, seq)
        self._seq = next_seq(seq)
        self._packets.expected_seq = self._seq
        self._writer.write(data if self.tls is None else self.tls.send(data))
        await self._writer.drain()

    async def receive(self) -> bytes:
        """
        Return the next payload.

        Raises:
            ConnectionResetError: the server closed the connection.
            ProtocolError: too long, or out of order.
        """
        while (packet := self._packets.next_packet()) is None:
            data = await self._read()
            if not data:
                raise ConnectionResetError("the primary closed the connection")
            self._packets.feed(data)
        self._seq = next_seq(packet.seq)
        return packet.payload

    def hand_on(
        self, take: Callable[[bytes], object], end: Callable[[BaseException], None]
    ) -> None:
        """
        Give away all bytes from now on, packets cut anywhere, as they come; no `receive` any more.

        Args:
            take: is given them.
            end: is told why nothing comes any more; TlsFailed among the reasons.
        """

        def take_plain(data: bytes) -> None:
            if self.tls is not None:
                try:
                    data = self._decrypted(self.tls, data)
                except TlsFailed as error:
                    end(error)
                    return
            if data:
                take(data)
            if self.tls is not None and self.tls.ended:
                tell(None)

        def tell(error: BaseException | None) -> None:
            end(error or ConnectionResetError("the upstream closed the connection"))

        if rest := self._packets.detach():
            take(rest)
        self._tapped().hand_on(take_plain, tell)

    def direct_receiver(self) -> DirectReceiver | None:
        """
        Return what receives all bytes from now on, packets cut anywhere; no `receive` any more.

        None: they are encrypted, see `hand_on`.

        Raises:
            OSError: the connection has broken, or there is no descriptor left.
        """
        if self.tls is not None:
            return None
        came = self._tapped().stop()
        descriptor = self._writer.get_extra_info("socket").fileno()
        if descriptor < 0:
            raise ConnectionResetError("the server closed the connection")
        return DirectReceiver(descriptor, self._packets.detach() + came)

    def pause(self) -> None:
        """Have nothing come for a while, behind `hand_on`."""
        self._tapped().pause()

    def resume(self) -> None:
        """Go on behind `pause`."""
        self._tapped().resume()

    def _tapped(self) -> TappedReader:
        assert isinstance(self._reader, TappedReader)
        return self._reader

    async def close(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()
        try:
            await self._writer.wait_closed()
        except OSError:
            return  # it was gone already

    async def _read(self) -> bytes:
        while (data := await self._reader.read(READ_BYTES)) and self.tls is not None:
            plain = self._decrypted(self.tls, data)
            if plain or self.tls.ended:
                return plain
        return data

    def _decrypted(self, tls: TlsChannel, data: bytes) -> bytes:
        plain = tls.receive(data)
        if due := tls.outgoing():
            self._writer.write(due)
        return plain
