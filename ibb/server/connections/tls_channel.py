"""
TLS without a socket: encrypted bytes in and out on one side, plain ones on the other.

The event loops' own upgrade of a connection loses bytes that were read along with the request for
it, and a client may send the beginning of its handshake at once. Here nothing is read past anybody:
what came behind the request goes into the handshake, so it counts as TLS or not at all.

Records go to OpenSSL one by one, so that those can be counted that bring nothing: a peer may change
its keys as often as it likes, and each change costs us a derivation and an answer, perhaps unread.
Source: RFC 8446, 4.6.3 and 5.1.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

PLAIN_BYTES: Final = 64 << 10
EMPTY_RECORDS_MAX: Final = 32  # without content for us: changes of keys, tickets
BYTES_PER_EMPTY_RECORD: Final = 1 << 20  # carried either way, that allow for one more
_HEADER_BYTES: Final = 5
_RECORD_BYTES_MAX: Final = (16 << 10) + 2048  # behind the header
_CONTENT_TYPES: Final = range(20, 25)
_MAJOR_VERSION: Final = 3


class TlsFailed(ConnectionError):  # noqa: N818 - what happened to the connection
    """The peer does not speak TLS, or not ours; `outgoing` may hold an alert for it."""


class _InTurn:
    """A lock that who waits for it gets next, even if who had it wants it again at once."""

    def __init__(self) -> None:
        self._gate, self._mutex = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self._gate:
            self._mutex.acquire()

    def __exit__(self, *_: object) -> None:
        self._mutex.release()


class TlsChannel:
    """
    One connection's TLS.

    Args:
        context: of the server or the client.
        server_side: which of them we are.
        server_name: for clients: the name that the certificate must have, if it is checked.

    Attributes:
        ended: the peer has said that nothing follows.
    """

    def __init__(
        self, context: ssl.SSLContext, *, server_side: bool, server_name: str | None = None
    ) -> None:
        self.ended = False
        self._mutex = _InTurn()  # of all that OpenSSL has, which is for one at a time
        self._pending = bytearray()  # what was fed last, and a part of a record before it
        self._empty_records = 0
        self._carried = 0  # bytes that have not yet allowed for another
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._sealed: list[bytes] = []  # before what is in there: it is copied whenever it grows
        self._tls = context.wrap_bio(
            self._received, self._to_send, server_side=server_side, server_hostname=server_name
        )

    def outgoing(self) -> bytes:
        """Return the encrypted bytes that are due to the peer."""
        return b"".join(self.outgoing_pieces())

    def outgoing_pieces(self) -> list[bytes]:
        """Return the same in pieces, one behind the other, of which none is empty."""
        with self._mutex:
            pieces, self._sealed = self._sealed, []
            if last := self._to_send.read():
                pieces.append(last)
        return pieces

    def shake_hands(self, data: Buffer) -> bool:
        """
        Go on with the handshake by what the peer sent; return whether it is complete.

        Raises:
            TlsFailed: it cannot be completed.
        """
        self._pending += data
        while True:
            more = self._pass_on_record()
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not more:
                    return False
            except ssl.SSLError as error:
                raise TlsFailed(f"TLS handshake failed: {_reason(error)}") from error
            else:
                return True

    def receive(self, data: Buffer) -> bytes:
        """
        Return the plain bytes within what the peer sent, perhaps none yet.

        Raises:
            TlsFailed: it is not what the peer encrypted, or too many records bring nothing.
        """
        self._pending += data
        plain = []
        while not self.ended and self._pass_on_record():
            try:
                with self._mutex:
                    piece = self._tls.read(PLAIN_BYTES)
            except ssl.SSLWantReadError:
                self._count_empty()
                continue
            except ssl.SSLZeroReturnError:
                piece = b""
            except ssl.SSLError as error:
                raise TlsFailed(f"TLS failed: {_reason(error)}") from error
            self.ended = not piece
            plain.append(piece)
            with self._mutex:
                self._count_carried(len(piece))
        return b"".join(plain)

    def _pass_on_record(self) -> bool:
        """Give OpenSSL the next record if it is whole."""
        size = _record_bytes(self._pending)
        if not size:
            return False
        with memoryview(self._pending) as view, self._mutex:
            self._received.write(view[:size])
        del self._pending[:size]
        return True

    def _count_empty(self) -> None:
        with self._mutex:
            self._empty_records += 1
            are_too_many = self._empty_records > EMPTY_RECORDS_MAX
        if are_too_many:
            raise TlsFailed(f"more than {EMPTY_RECORDS_MAX} TLS records without content")

    def _count_carried(self, size: int) -> None:
        paid, self._carried = divmod(self._carried + size, BYTES_PER_EMPTY_RECORD)
        self._empty_records = max(0, self._empty_records - paid)

    def seal(self, data: Buffer) -> None:
        """Encrypt *data*, by any thread, to be sent in its turn; raises TlsFailed."""
        view = memoryview(data)
        try:
            while view:
                with self._mutex:  # not for long: others may want it
                    size = self._tls.write(view[:PLAIN_BYTES])
                    self._count_carried(size)
                    self._sealed.append(self._to_send.read())
                view = view[size:]
        except ssl.SSLError as error:
            raise TlsFailed(f"TLS failed: {_reason(error)}") from error

    def send(self, data: Buffer) -> bytes:
        """Return *data* encrypted, with whatever else is due; raises TlsFailed."""
        self.seal(data)
        return self.outgoing()

    def close(self) -> bytes:
        """Return what tells the peer that nothing follows."""
        with self._mutex, contextlib.suppress(ssl.SSLError):  # the peer has not said so yet, or
            self._tls.unwrap()  # it had failed
        return self.outgoing()

    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate as DER; on the server's side it was checked."""
        return self._tls.getpeercert(binary_form=True)

    def cipher(self) -> tuple[str, str]:
        """Return cipher and version, as SHOW STATUS has them."""
        found = self._tls.cipher()
        return (found[0], self._tls.version() or "") if found else ("", "")


def _record_bytes(data: bytearray) -> int:
    """Return the size of the record that *data* begins with, 0 if it is not whole yet."""
    if not data:
        return 0
    if data[0] not in _CONTENT_TYPES or data[1:2] not in (b"", bytes([_MAJOR_VERSION])):
        return len(data)  # no record: OpenSSL shall say so
    length = int.from_bytes(data[3:_HEADER_BYTES])
    if length > _RECORD_BYTES_MAX:
        return len(data)
    whole = _HEADER_BYTES + length
    return whole if len(data) >= whole else 0


def _reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's words without its file and line."""
    return (error.reason or str(error)).lower().replace("_", " ")
