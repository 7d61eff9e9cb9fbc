"""
MariaDB's parsec: a slow hash of password and salt is the seed of an Ed25519 key pair.

    server                                         client
    32 random bytes                            ->
                                               <-  nothing
    P, iterations, 18 bytes of salt            ->
                                               <-  32 random bytes, 64 bytes of signature

The signature is of both sides' random bytes. Source: dump-protocol 1.4.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Final

from nacl import bindings

from .authentication import CannotAuthenticate, Verdict
from .ed25519_password import (
    NOBODYS_KEY,
    PUBLIC_KEY_BYTES,
    SIGNATURE_BYTES,
    key_text,
    parse_key_text,
    verify,
)
from .errors import FormatError

if TYPE_CHECKING:
    from .authentication import Channel, ClientExchange, Exchange

PLUGIN_NAME: Final = "parsec"
SALT_BYTES: Final = 18
NONCE_BYTES: Final = 32
ITERATIONS_LOG_MAX: Final = 3  # of 1024 << it

_KEY_DERIVATION: Final = b"P"  # PBKDF2, the only one there is
_SALT_PACKET_BYTES: Final = 2 + SALT_BYTES
_ANSWER_BYTES: Final = NONCE_BYTES + SIGNATURE_BYTES
_TEXT: Final = re.compile(r"P([0-3]):([A-Za-z0-9+/]{24}):([A-Za-z0-9+/]{43})", re.ASCII)


def key_pair(password: str, salt: bytes, iterations_log: int) -> tuple[bytes, bytes]:
    """Return public key (32 bytes) and secret key (64, as libsodium has it) of *password*."""
    assert 0 <= iterations_log <= ITERATIONS_LOG_MAX
    rounds = 1024 << iterations_log
    seed = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, rounds, 32)
    public, secret = bindings.crypto_sign_seed_keypair(seed)
    return public, secret


def _parse(text: str) -> tuple[bytes, bytes]:
    """Return the packet with the salt, and the public key; raises ValueError."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError("not a parsec string: P0:SALT:KEY is needed, both in base64")
    salt = base64.b64decode(found[2])
    return _KEY_DERIVATION + bytes([int(found[1])]) + salt, parse_key_text(found[3])


def _text(iterations_log: int, salt: bytes, key: bytes) -> str:
    return f"P{iterations_log}:{base64.b64encode(salt).decode()}:{key_text(key)}"


class ParsecPassword:
    """The method parsec."""

    name = PLUGIN_NAME
    plugin = PLUGIN_NAME
    salt_bytes = SALT_BYTES
    challenge_bytes = NONCE_BYTES
    costly = False

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string to be kept, with MariaDB's default of iterations."""
        assert len(salt) == SALT_BYTES
        return _text(0, salt, key_pair(password, salt, 0)[0])

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* is no authentication string."""
        _parse(text)

    def decoy(self, model: str, seed: bytes | None) -> str:
        """Return a string that fits no password, of as many iterations."""
        salt_packet, _ = _parse(model)
        salt = salt_packet[2:] if seed is None else seed[:SALT_BYTES]
        return _text(salt_packet[1], salt, NOBODYS_KEY)

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask for a signature of *challenge* and the client's own random bytes."""
        del channel
        salt_packet, key = _parse(text)
        unasked = yield challenge
        answer = yield salt_packet
        fitting = answer if len(answer) == _ANSWER_BYTES else bytes(_ANSWER_BYTES)
        nonce, signature = fitting[:NONCE_BYTES], fitting[NONCE_BYTES:]
        return Verdict(verify(key, challenge + nonce, signature) and not unasked)

    def trust_key(self, text: str) -> bytes:
        """Return the salt packet and the public key: 52 bytes."""
        salt_packet, key = _parse(text)
        return salt_packet + key


def client_exchange(password: str, challenge: bytes, channel: Channel) -> ClientExchange:
    """
    Answer as a client does.

    Raises:
        FormatError: the server's salt is none.
        CannotAuthenticate: it wants more iterations than there are.
    """
    del channel
    salt_packet = yield b""
    if len(salt_packet) != _SALT_PACKET_BYTES or salt_packet[:1] != _KEY_DERIVATION:
        raise FormatError("the server's parsec salt has another form")
    if salt_packet[1] > ITERATIONS_LOG_MAX:
        raise CannotAuthenticate("the server wants too many iterations for parsec")
    public, secret = key_pair(password, salt_packet[2:], salt_packet[1])
    # The server's random bytes alone make the signature fresh: ours may be derived from them.
    nonce = hashlib.sha256(secret + challenge).digest()
    signed = bindings.crypto_sign(challenge + nonce, secret)
    yield nonce + signed[:SIGNATURE_BYTES]
    return salt_packet + public


assert PUBLIC_KEY_BYTES + _SALT_PACKET_BYTES == 52
