"""
Ways to prove a password, and what both sides of a login say for each.

A method's exchange is a generator, so that it knows neither socket nor clock: what it yields is
said to the peer, and what it is sent is the peer's answer. On the server's side the first piece
goes into an AuthSwitchRequest and each later one into an AuthMoreData.
Source: dump-protocol 1.4, 1.5.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from .errors import IbbError

if TYPE_CHECKING:
    from .fields import Buffer

PASSWORD_BYTES_MAX: Final = 1024
_TRUST_MARK: Final = b"\x01"


class CannotAuthenticate(IbbError):  # noqa: N818 - a state of the world
    """The client's side cannot prove its password here without giving it away."""


class Verdict(NamedTuple):
    """
    What the server's side found.

    Attributes:
        proven: whether the client knows the password.
        last_word: to be said before the OK and not answered, or None.
    """

    proven: bool
    last_word: bytes | None = None


Exchange: TypeAlias = Generator[bytes, bytes, Verdict]
# Returns what `certificate_proof` needs, once told of the OK.
ClientExchange: TypeAlias = Generator[bytes, bytes, bytes]


class PasswordCipher(Protocol):
    """The server's key pair for passwords that are sent over connections that others can read."""

    def public_pem(self) -> bytes:
        """Return the public key as PEM."""

    def decrypt(self, data: bytes) -> bytes:
        """Return what was encrypted with RSA-OAEP and SHA-1; anything at all if it is not valid."""


@dataclass(frozen=True, slots=True)
class Channel:
    """
    What an exchange may know of its connection.

    Attributes:
        private: nobody else reads it: TLS, or a unix socket.
        trusted: for clients: the server's certificate was checked before the login.
        peer_user: the operating system's name of who is at the other end of a unix socket, or "".
    """

    private: bool = False
    trusted: bool = False
    peer_user: str = ""


class Method(Protocol):
    """
    One way to log in, as a server knows it.

    Attributes:
        name: MariaDB's name of the server's plugin, as in IDENTIFIED VIA.
        plugin: the client's plugin on the wire; "" if clients have nothing to say.
        salt_bytes: random bytes that `make` needs.
        challenge_bytes: random bytes that an exchange needs.
        costly: checking takes milliseconds.
    """

    name: str
    plugin: str
    salt_bytes: int
    challenge_bytes: int
    costly: bool

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string to be kept."""

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* is no authentication string; the message has no part of it."""

    def decoy(self, model: str, seed: bytes | None) -> str:
        """
        Return an authentication string that fits no password, for who cannot log in.

        Args:
            model: one of an account; the decoy costs the client and the server the same.
            seed: 32 bytes, from which comes what is random in strings of accounts and shows; None
                takes that from the model.
        """

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask the client for its proof."""

    def trust_key(self, text: str) -> bytes:
        """Return what both sides know and nobody else, for `certificate_proof`; b"" if nothing."""


def certificate_proof(trust_key: bytes, scramble: bytes, fingerprint: bytes) -> bytes:
    """
    Return the info of the OK by which a client of 11.4 and newer trusts an unknown certificate.

    Args:
        trust_key: of the account's method; a man in the middle does not know it.
        scramble: the 20 bytes of the greeting.
        fingerprint: SHA-256 of the server's certificate.
    """
    digest = hashlib.sha256(trust_key + scramble + fingerprint).hexdigest()
    return _TRUST_MARK + digest.upper().encode()


def proves_certificate(info: bytes, trust_key: bytes, scramble: bytes, fingerprint: bytes) -> bool:
    """Tell whether *info* of the OK is the certificate's proof, made by who knows the password."""
    wanted = certificate_proof(trust_key, scramble, fingerprint)
    return bool(trust_key) and hmac.compare_digest(info, wanted)


def xor(left: Buffer, right: Buffer) -> bytes:
    """Return *left* with each bit turned that *right* has set; they are equally long."""
    assert len(left) == len(right)
    return (int.from_bytes(left) ^ int.from_bytes(right)).to_bytes(len(left))
