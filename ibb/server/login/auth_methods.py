"""The ways to log in that accounts may have, by MariaDB's names, and a key pair for one of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ibb.protocol.caching_sha2_password import CachingSha2Password
from ibb.protocol.ed25519_password import Ed25519Password
from ibb.protocol.native_password import NativePassword
from ibb.protocol.parsec_password import ParsecPassword
from ibb.protocol.socket_peer import SocketPeer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.authentication import Method

DEFAULT_METHOD: Final = NativePassword.name
RSA_BITS: Final = 2048


def make_methods() -> Mapping[str, Method]:
    """Return the methods of one server, which remembers by them who has logged in."""
    methods: tuple[Method, ...] = (
        NativePassword(),
        Ed25519Password(),
        ParsecPassword(),
        CachingSha2Password(RsaCipher()),
        SocketPeer(),
    )
    return {method.name: method for method in methods}


class RsaCipher:
    """A key pair that lives as long as the server, made when somebody first needs it."""

    def __init__(self) -> None:
        self._key: rsa.RSAPrivateKey | None = None
        self._lock = threading.Lock()

    def public_pem(self) -> bytes:
        """Return the public key as PEM; the first call takes a tenth of a second."""
        public = self._made().public_key()
        return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def decrypt(self, data: bytes) -> bytes:
        """Return what was encrypted with RSA-OAEP and SHA-1; nothing if it was not."""
        oaep = padding.OAEP(padding.MGF1(SHA1()), SHA1(), None)  # noqa: S303 - the protocol's choice
        try:
            return self._made().decrypt(data, oaep)
        except ValueError:
            return b""

    def _made(self) -> rsa.RSAPrivateKey:
        with self._lock:
            if self._key is None:
                self._key = rsa.generate_private_key(65537, RSA_BITS)
            return self._key


# For making and checking authentication strings, which needs no server.
METHODS: Final[Mapping[str, Method]] = make_methods()
