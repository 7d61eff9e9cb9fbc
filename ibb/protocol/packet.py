"""
Packets: payloads behind a 4-byte header, cut into chunks of 16 MiB - 1.

    offset  size  field
    0       3     bytes of payload in this chunk
    3       1     sequence id, counted modulo 256 over every chunk both ways

A chunk of exactly `CHUNK_BYTES` is followed by another, if need be by an empty one.

`PacketReader` hands out whole payloads and holds no more than its limit; `PacketStream` hands
out pieces as they come, for the events of up to 4 GiB that a relay passes on. Neither knows
where bytes come from: what came is fed, in any cut.
Source: dump-protocol 1.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .fields import Buffer

HEADER_BYTES: Final = 4
CHUNK_BYTES: Final = 0xFFFFFF  # payload of a chunk that is not the last
READ_AHEAD_BYTES_MAX: Final = 1 << 20  # bytes beyond one whole packet that a reader holds
WHOLE_PACKET_BYTES_MAX: Final = 64 << 10  # payloads up to here come as one fragment
PAYLOAD_BYTES_MAX: Final = (1 << 32) + 64  # an event's length is 32 bits; status bytes before it


class PacketTooLarge(ProtocolError):  # noqa: N818 (MariaDB's name for error 1153)
    """The peer announced more than the limit; nothing of it was kept."""


class PacketsOutOfOrder(ProtocolError):  # noqa: N818 (MariaDB's name for error 1156)
    """A sequence id is not the one that follows: bytes are lost, or this is no such protocol."""


class Packet(NamedTuple):
    """One whole payload; *seq* is the sequence id of its last chunk."""

    payload: bytes
    seq: int


class PacketFragment(NamedTuple):
    """A piece of a payload: *seq* is that of its chunk, *data* may be a view of what was fed."""

    data: Buffer
    first: bool
    last: bool
    seq: int


def next_seq(seq: int) -> int:
    """Return the sequence id after *seq*."""
    return (seq + 1) & 0xFF


def frame(payload: Buffer, seq: int) -> bytes:
    """Return *payload* as packets, the first numbered *seq*."""
    length = len(payload)
    if length < CHUNK_BYTES:
        return _header(length, seq) + payload
    return b"".join(PacketFramer(length, seq).feed(payload))


def frame_all(payloads: Iterable[Buffer], seq: int) -> tuple[bytes, int]:
    """Return *payloads* as packets numbered from *seq*, and the sequence id after them."""
    parts: list[Buffer] = []
    for payload in payloads:
        length = len(payload)
        if length < CHUNK_BYTES:
            parts += (_header(length, seq), payload)
            seq = next_seq(seq)
        else:
            framer = PacketFramer(length, seq)
            parts += framer.feed(payload)
            seq = framer.next_seq
    return b"".join(parts), seq


class PacketFramer:
    """
    Cuts one payload of a length known in advance into packets while it comes.

    Args:
        length: bytes of payload that will be fed.
        seq: sequence id of the first packet.
    """

    __slots__ = ("_chunk_left", "_left", "_open", "next_seq")

    def __init__(self, length: int, seq: int) -> None:
        assert length >= 0
        self._left = length  # bytes of payload still to come
        self._chunk_left = 0  # bytes still to come of the chunk whose header is out
        self._open = True  # another header is due
        self.next_seq = seq & 0xFF

    @property
    def done(self) -> bool:
        """Whether the payload and its last chunk's header are out."""
        return not self._open and not self._left

    def feed(self, data: Buffer) -> list[Buffer]:
        """
        Return the buffers to send for the next bytes of payload.

        They are headers and views of *data*, which must not change until they are sent. A
        payload of no bytes at all takes one call with `b""`.
        """
        assert len(data) <= self._left
        out: list[Buffer] = []
        view = memoryview(data)
        offset = 0
        while True:
            if not self._chunk_left and self._open:
                self._chunk_left = min(self._left, CHUNK_BYTES)
                self._open = self._chunk_left == CHUNK_BYTES
                out.append(_header(self._chunk_left, self.next_seq))
                self.next_seq = next_seq(self.next_seq)
            piece = view[offset : offset + self._chunk_left]
            if not piece:
                return out
            out.append(piece)
            offset += len(piece)
            self._chunk_left -= len(piece)
            self._left -= len(piece)


class PacketReader:
    """
    Puts payloads together, holding at most one and what was read ahead of it.

    Args:
        packet_bytes_max: longest payload allowed; may be changed between packets, as a server
            does when a client has logged in.
        expected_seq: the sequence id that the next packet must carry, None for any. It counts on
            by itself; a server sets it to 0 before each command.
    """

    def __init__(self, packet_bytes_max: int, expected_seq: int | None = 0) -> None:
        self.packet_bytes_max = packet_bytes_max
        self.expected_seq = expected_seq
        self._buffer = bytearray()
        self._chunks: list[bytes] = []  # full chunks of the payload that is coming
        self._chunks_bytes = 0

    @property
    def buffered(self) -> int:
        """Bytes fed and not yet handed out; what a peer sent too early shows here."""
        return len(self._buffer) + self._chunks_bytes

    def feed(self, data: Buffer) -> None:
        """
        Add bytes that came from the peer.

        Raises:
            PacketTooLarge: more is buffered than one packet and the allowance for reading ahead.
        """
        self._buffer += data
        if self.buffered > self.packet_bytes_max + READ_AHEAD_BYTES_MAX:
            raise PacketTooLarge(f"{self.buffered} bytes sent ahead of what was asked for")

    def next_packet(self) -> Packet | None:
        """
        Return the next whole payload, or None when more bytes are needed.

        Raises:
            PacketTooLarge: a header announces more than `packet_bytes_max` in all.
            PacketsOutOfOrder: the sequence id is not the expected one.
        """
        buffer = self._buffer
        while len(buffer) >= HEADER_BYTES:
            length = buffer[0] | buffer[1] << 8 | buffer[2] << 16
            seq = buffer[3]
            _check_seq(seq, self.expected_seq)
            _check_length(self._chunks_bytes + length, self.packet_bytes_max)
            end = HEADER_BYTES + length
            if len(buffer) < end:
                return None
            with memoryview(buffer) as view:
                chunk = bytes(view[HEADER_BYTES:end])
            del buffer[:end]
            if self.expected_seq is not None:
                self.expected_seq = next_seq(seq)
            if length == CHUNK_BYTES:
                self._chunks.append(chunk)
                self._chunks_bytes += length
                continue
            if self._chunks:
                chunk = b"".join((*self._chunks, chunk))
                self._chunks.clear()
                self._chunks_bytes = 0
            return Packet(chunk, seq)
        return None

    def detach(self) -> bytes:
        """Return what was fed beyond the last packet and forget it, for a `PacketStream`."""
        assert not self._chunks
        data = bytes(self._buffer)
        self._buffer.clear()
        return data


class PacketStream:
    """
    Takes payloads apart into fragments while they come, so that no large one is ever held.

    A payload of up to `WHOLE_PACKET_BYTES_MAX` comes as one fragment; a longer one as pieces,
    of which only the last may be empty. What is buffered between two calls is less than one
    packet that comes whole.

    Args:
        expected_seq: the sequence id that the next packet must carry, None for any; counts on.
        payload_bytes_max: longest payload allowed.
    """

    def __init__(
        self, expected_seq: int | None = 1, payload_bytes_max: int = PAYLOAD_BYTES_MAX
    ) -> None:
        self.expected_seq = expected_seq
        self.payload_bytes_max = payload_bytes_max
        self._held = bytearray()  # the beginning of a header or of a packet that comes whole
        self._held_until = 0  # bytes that let it go on
        self._payload_bytes = 0  # announced so far of the payload at hand
        self._first = True  # the next fragment begins a payload
        self._seq = 0  # of the chunk at hand
        self._chunk_left = 0  # bytes to come of a chunk that goes out in pieces
        self._goes_on = False  # that chunk is not the last of its payload

    @property
    def at_boundary(self) -> bool:
        """Whether everything fed so far was whole payloads."""
        return self._first and not self._chunk_left and not self._held

    @property
    def wanted(self) -> int:
        """How many bytes more complete the fragment that has begun, or its header; 0: none has."""
        return self._held_until - len(self._held) if self._held else self._chunk_left

    def feed(self, data: Buffer) -> Iterator[PacketFragment]:
        """
        Yield the fragments that *data* completes; run it to its end before the next call.

        Fragments may be views of *data*: use them before it changes.

        Raises:
            PacketTooLarge: a payload grows above `payload_bytes_max`.
            PacketsOutOfOrder: a sequence id is not the expected one.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._held_until:
                return
            data = bytes(self._held)
            self._held.clear()
        view = memoryview(data)
        offset, end = 0, len(view)
        while offset < end:
            if self._chunk_left:
                piece = view[offset : offset + self._chunk_left]
                offset += len(piece)
                self._chunk_left -= len(piece)
                yield self._fragment(piece, last=not self._chunk_left and not self._goes_on)
                continue
            length, until = 0, offset + HEADER_BYTES
            if until <= end:
                length = view[offset] | view[offset + 1] << 8 | view[offset + 2] << 16
                if self._first and length <= WHOLE_PACKET_BYTES_MAX:
                    until += length
            if until > end:
                self._held += view[offset:]
                self._held_until = until - offset
                return
            self._open_chunk(length, view[offset + 3])
            offset += HEADER_BYTES
            if not length:  # an empty payload, or the end of one of nothing but full chunks
                yield self._fragment(b"", last=True)

    def _open_chunk(self, length: int, seq: int) -> None:
        """Take note of a chunk's header, in order and within the limit."""
        _check_seq(seq, self.expected_seq)
        self._payload_bytes += length
        _check_length(self._payload_bytes, self.payload_bytes_max)
        if self.expected_seq is not None:
            self.expected_seq = next_seq(seq)
        self._seq = seq
        self._chunk_left = length
        self._goes_on = length == CHUNK_BYTES

    def _fragment(self, data: Buffer, *, last: bool) -> PacketFragment:
        fragment = PacketFragment(data, self._first, last, self._seq)
        self._first = last
        if last:
            self._payload_bytes = 0
        return fragment


def packet_size(header: Buffer) -> int:
    """Return the bytes of a packet, header and all, by its first bytes; of a header, without."""
    if len(header) < HEADER_BYTES:
        return HEADER_BYTES
    return HEADER_BYTES + (header[0] | header[1] << 8 | header[2] << 16)


def _header(length: int, seq: int) -> bytes:
    return (seq << 24 | length).to_bytes(HEADER_BYTES, "little")


def _check_seq(seq: int, expected: int | None) -> None:
    if expected is not None and seq != expected:
        raise PacketsOutOfOrder(f"Got packets out of order: sequence id {seq}, not {expected}")


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise PacketTooLarge(f"Got a packet of {length} bytes or more, {limit} allowed")
