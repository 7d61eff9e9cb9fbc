"""
The bytes of one client: whole packets in, framed packets out, nothing ever waiting without limit.

Source: dump-protocol 1.1; 10, traps 11, 31, 41, 42.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import termios
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from ibb.protocol.packet import (
    Packet,
    PacketReader,
    PacketsOutOfOrder,
    PacketTooLarge,
    frame_all,
    next_seq,
)
from ibb.server.config import END_GRACE_SECONDS, LOGIN_PACKET_BYTES_MAX, WRITE_BUFFER_BYTES
from ibb.server.login.login_guard import address_key

from .direct_sender import DirectSender
from .peer_names import peer_address, peer_uid, user_name
from .tls_channel import TlsChannel, TlsFailed

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from ibb.protocol.fields import Buffer

    from .certificate import ServerTls

T = TypeVar("T")
READ_BYTES: Final = 64 << 10
LINGER_BYTES_MAX: Final = 1 << 20  # that a peer may still send after we have ended the connection
LINGER_SECONDS: Final = 2.0
_LOOKS: Final = 8  # at what a client reads, in the time that it may read nothing
_INT: Final = struct.Struct("i")


class PeerGone(ConnectionError):  # noqa: N818 - a state of the world, no fault of anybody
    """The peer closed the connection, between packets or inside one."""


class Connection:
    """
    One client's connection.

    Args:
        reader, writer: the transport.
        write_timeout: as below, at first.

    Attributes:
        seq: sequence id of the next packet that is sent.
        write_timeout: seconds that the client may read nothing while something waits for it.
        is_tcp: no unix socket.
        peer: address of the client, `unix` for a unix socket.
        limit_key: what limits by address count by; on a unix socket, the system's user.
        fingerprint: of the certificate that the client was shown, b"" without TLS.
        received, sent: bytes so far, before encryption.
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
        self.write_timeout = write_timeout
        self._packets = PacketReader(LOGIN_PACKET_BYTES_MAX)
        self._tls: TlsChannel | None = None
        self.fingerprint = b""
        self.received = 0
        self.sent = 0
        self._direct: DirectSender | None = None
        self.is_tcp = isinstance(writer.get_extra_info("sockname"), tuple)
        # Asked for now: a socket that is closed tells nothing any more.
        self.peer = peer_address(writer) if self.is_tcp else "unix"
        self._uid = None if self.is_tcp else peer_uid(writer)
        self.limit_key = address_key(self.address) if self.is_tcp else f"unix:{self._uid}"
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    @property
    def address(self) -> str:
        """Address of a client by TCP, without its port."""
        return self.peer.rpartition(":")[0]

    @property
    def hosts(self) -> list[str]:
        """Address and names by which accounts may know the client, the one to show first."""
        if not self.is_tcp:
            return ["localhost"]
        address = self.address
        return ["localhost", address] if address in ("127.0.0.1", "::1") else [address]

    @property
    def unsent(self) -> int:
        """Bytes that the system did not take yet, because the client reads too slowly."""
        return self._writer.transport.get_write_buffer_size()

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._writer.is_closing()

    @property
    def encrypted(self) -> bool:
        """Whether TLS is on."""
        return self._tls is not None

    @property
    def private(self) -> bool:
        """Whether nobody else can read it: TLS, or a unix socket."""
        return self.encrypted or not self.is_tcp

    def peer_user(self) -> str:
        """Return the system's name of who is at a unix socket's other end, or ""; may block."""
        return "" if self._uid is None else user_name(self._uid)

    def peer_certificate(self) -> bytes | None:
        """Return the client's certificate as DER, which a CA of ours has vouched for, or None."""
        return None if self._tls is None else self._tls.peer_certificate()

    def cipher(self) -> tuple[str, str]:
        """Return cipher and version of TLS, empty without."""
        return ("", "") if self._tls is None else self._tls.cipher()

    async def start_tls(self, server_tls: ServerTls) -> None:
        """
        Encrypt from here on; what the client has sent already must be its handshake.

        Raises:
            TlsFailed: it is not, or they find no common terms.
            PeerGone: the connection ended first.
        """
        assert self._tls is None
        tls = TlsChannel(server_tls.context, server_side=True)
        data = self._packets.detach()
        self._packets = PacketReader(LOGIN_PACKET_BYTES_MAX)
        try:
            while not tls.shake_hands(data):
                self._writer.write(tls.outgoing())
                data = await self._reader.read(READ_BYTES)
                if not data:
                    raise PeerGone("the client closed the connection in the TLS handshake")
        except TlsFailed:
            self._writer.write(tls.outgoing())  # says why
            raise
        self._writer.write(tls.outgoing())
        self._tls, self.fingerprint = tls, server_tls.fingerprint
        self._packets.feed(tls.receive(b""))

    def expect(self, packet_bytes_max: int, seq: int = 0) -> None:
        """Set what the next packet may be: at most this long, with this sequence id."""
        self._packets.packet_bytes_max = packet_bytes_max
        self._packets.expected_seq = seq

    async def receive(self, read_timeout: float | None = None) -> Packet:
        """
        Return the next packet; the answer goes on with the sequence id after its own.

        Args:
            read_timeout: seconds that the client may be silent inside the packet.

        Raises:
            PeerGone: the connection ended first.
            TimeoutError: the client does not go on with a packet.
            ProtocolError: too long, or out of order.
        """
        packets = self._packets
        if packets.buffered:
            await asyncio.sleep(0)  # who sends ahead takes turns with the others
        try:
            while (packet := packets.next_packet()) is None:
                async with asyncio.timeout(read_timeout if packets.buffered else None):
                    data = await self._read()
                if not data:
                    inside = " inside a packet" if packets.buffered else ""
                    raise PeerGone(f"the client closed the connection{inside}")
                packets.feed(data)
        except PacketsOutOfOrder:
            self.seq = packets.expected_seq or 0
            raise
        except PacketTooLarge:
            self.seq = next_seq(packets.expected_seq or 0)
            raise
        self.seq = next_seq(packet.seq)
        return packet

    async def departed(self) -> None:
        """
        Wait until the client closes, and raise PeerGone; what it sends ahead is kept.

        One that sends more ahead than is kept is not looked at any more, and waits as we do.
        """
        while self._packets.buffered < READ_BYTES:
            data = await self._read()
            if not data:
                raise PeerGone("the client closed the connection")
            self._packets.feed(data)
        await asyncio.get_running_loop().create_future()

    async def unless_gone(self, work: Coroutine[None, None, T]) -> T:
        """Return what *work* does; cancels it and raises PeerGone when the client closes first."""
        working = asyncio.create_task(work)
        leaving = asyncio.create_task(self.departed())
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            leaving.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
        if working.cancelled():
            leaving.result()
        return working.result()

    async def discard_until_closed(self) -> None:
        """Throw away what the client still sends; raises PeerGone when it closes."""
        while await self._read():
            pass
        raise PeerGone("the client closed the connection")

    async def _read(self) -> bytes:
        """Return the next plain bytes, none at the end; raises TlsFailed."""
        while (data := await self._reader.read(READ_BYTES)) and self._tls is not None:
            plain = self._tls.receive(data)
            if due := self._tls.outgoing():
                self._writer.write(due)
            if plain or self._tls.ended:
                self.received += len(plain)
                return plain
        self.received += len(data)
        return data

    async def send(self, payloads: Iterable[bytes]) -> None:
        """Send whole payloads; raises TimeoutError when the client does not read."""
        data, self.seq = frame_all(payloads, self.seq)
        await self.write(data)

    async def write(self, data: bytes) -> None:
        """Send framed packets, or pieces of them; raises TimeoutError as `send` does."""
        if self.is_closing:
            raise PeerGone("the client closed the connection")
        self._writer.write(data if self._tls is None else self._tls.send(data))
        self.sent += len(data)
        await self.flushed()

    def seal(self, data: Buffer) -> None:
        """Encrypt framed packets for `write_sealed`, by any thread; raises TlsFailed."""
        assert self._tls is not None
        self._tls.seal(data)

    async def write_sealed(self, size: int) -> None:
        """Do as `write` for so many bytes that were sealed; more of them may go with these."""
        if self.is_closing:
            raise PeerGone("the client closed the connection")
        assert self._tls is not None
        if pieces := self._tls.outgoing_pieces():
            self._writer.writelines(pieces)
        self.sent += size
        await self.flushed()

    def write_at_once(self, data: Buffer) -> bool:
        """
        Write framed packets without waiting; return whether the system has taken all of them.

        What it has not waits in the transport: `flushed` tells when it has gone. What is wrong with
        a connection that is closed, or breaks, the next that is done with it will find.

        Args:
            data: is not changed by anybody until it has gone.
        """
        link = self._writer.get_extra_info("socket")
        if self.is_closing or link is None:
            return False
        try:
            left = memoryview(data if self._tls is None else self._tls.send(data))
        except TlsFailed:
            return False
        self.sent += len(data)
        if not self.unsent:
            with suppress(OSError):  # it has no room, or the transport meets the same
                left = left[os.write(link.fileno(), left) :]
        if left:
            self._writer.write(left)
        return not left

    def keep_nothing(self, *, wanted: bool = True) -> None:
        """Have `write` return only when the system has everything, or as ever if not *wanted*."""
        if not self.is_closing:
            self._writer.transport.set_write_buffer_limits(high=0 if wanted else WRITE_BUFFER_BYTES)

    def direct_sender(self) -> DirectSender | None:
        """Return what sends past the transport, or None: bytes wait in that, or are encrypted."""
        link = self._writer.get_extra_info("socket")
        if link is None or self._tls is not None or self.is_closing or self.unsent:
            return None
        try:
            self._direct = DirectSender(link.fileno())
        except OSError:  # there is no descriptor left
            return None
        return self._direct

    async def flushed(self) -> None:
        """Return when little is left to be sent; raises TimeoutError as `send` does."""
        time = asyncio.get_running_loop().time
        left: int | None = None  # seen at the first look, which most writes do not need
        since = time()
        while True:
            try:
                async with asyncio.timeout(self.write_timeout / _LOOKS):
                    await self._writer.drain()
            except TimeoutError:
                before, left = left, self._unread()
                if before is not None and left < before:
                    since = time()
                elif time() - since >= self.write_timeout:
                    reason = f"the client did not read for {self.write_timeout:g} s"
                    raise TimeoutError(reason) from None
            else:
                return

    def _unread(self) -> int:
        """
        Return how many bytes wait for the client, those in the system's buffer among them.

        The system asks for more only when a good part of its buffer, which may be megabytes, is
        empty: a client that reads slowly would seem not to read at all. Raises PeerGone.
        """
        link = self._writer.get_extra_info("socket")
        if link.fileno() < 0:
            raise PeerGone("the connection was closed")
        (waiting,) = _INT.unpack(fcntl.ioctl(link, termios.TIOCOUTQ, bytes(4)))
        return self._writer.transport.get_write_buffer_size() + int(waiting)

    async def end(self) -> None:
        """
        Close so that the client gets everything that was sent.

        A socket that is closed with bytes unread resets the connection, and the client may lose
        the last packets: so what still comes is read and thrown away, for a while.
        """
        try:
            if not self.is_closing:
                if self._tls is not None:
                    self._writer.write(self._tls.close())
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
        if self._direct is not None:
            self._direct.close()
        self._writer.close()
        try:
            async with asyncio.timeout(END_GRACE_SECONDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self.abort()
        if (error := self._reader.exception()) is not None:
            # The frames that it came through hold all that the session was about.
            error.__traceback__ = error.__context__ = None

    def abort(self) -> None:
        """Drop the connection and all that waits in it."""
        if self._direct is not None and not self._direct.close():
            descriptor = self._writer.get_extra_info("socket").fileno()
            with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as link:
                link.shutdown(socket.SHUT_RDWR)  # who waits for the client in a thread is told
        self._writer.transport.abort()
