"""
TLS without a socket: encrypted bytes in and out on one side, plain ones on the other.

The event loops' own upgrade of a connection loses bytes that were read along with the request for
it, and a client may send the beginning of its handshake at once. Here nothing is read past anybody:
what came behind the request goes into the handshake, so it counts as TLS or not at all.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

PLAIN_BYTES: Final = 64 << 10


class TlsFailed(ConnectionError):  # noqa: N818 - what happened to the connection
    """The peer does not speak TLS, or not ours; `outgoing` may hold an alert for it."""


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
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._received, self._to_send, server_side=server_side, server_hostname=server_name
        )

    def outgoing(self) -> bytes:
        """Return the encrypted bytes that are due to the peer."""
        return self._to_send.read()

    def shake_hands(self, data: Buffer) -> bool:
        """
        Go on with the handshake by what the peer sent; return whether it is complete.

        Raises:
            TlsFailed: it cannot be completed.
        """
        self._received.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise TlsFailed(f"TLS handshake failed: {_reason(error)}") from error
        return True

    def receive(self, data: Buffer) -> bytes:
        """
        Return the plain bytes within what the peer sent, perhaps none yet.

        Raises:
            TlsFailed: it is not what the peer encrypted.
        """
        self._received.write(data)
        plain = []
        try:
            while piece := self._tls.read(PLAIN_BYTES):
                plain.append(piece)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            raise TlsFailed(f"TLS failed: {_reason(error)}") from error
        return b"".join(plain)

    def send(self, data: Buffer) -> bytes:
        """Return *data* encrypted, with whatever else is due; raises TlsFailed."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._tls.write(view) :]
        except ssl.SSLError as error:
            raise TlsFailed(f"TLS failed: {_reason(error)}") from error
        return self._to_send.read()

    def close(self) -> bytes:
        """Return what tells the peer that nothing follows."""
        with contextlib.suppress(ssl.SSLError):  # the peer has not said so yet, or it had failed
            self._tls.unwrap()
        return self._to_send.read()

    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate as DER; on the server's side it was checked."""
        return self._tls.getpeercert(binary_form=True)

    def cipher(self) -> tuple[str, str]:
        """Return cipher and version, as SHOW STATUS has them."""
        found = self._tls.cipher()
        return (found[0], self._tls.version() or "") if found else ("", "")


def _reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's words without its file and line."""
    return (error.reason or str(error)).lower().replace("_", " ")
