"""
MariaDB's ed25519: the client signs random bytes, the server keeps only a public key.

The key pair is RFC 8032's but for one thing: where that takes SHA-512 of a 32-byte seed, this takes
SHA-512 of the password, however long. So libraries verify as they are, while making the key and
signing are put together from the curve's operations. Source: dump-protocol 1.4.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Final

from nacl import bindings
from nacl.exceptions import BadSignatureError

from .authentication import Verdict

if TYPE_CHECKING:
    from .authentication import Channel, ClientExchange, Exchange

PLUGIN_NAME: Final = "client_ed25519"
PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
NONCE_BYTES: Final = 32
# A point of the curve, so that checking against it is the same work. libsodium's map of SHA-256
# of "nobody" to the curve gave it, so nobody has its secret.
NOBODYS_KEY: Final = bytes.fromhex(
    "66cb4395b9e976b5ace9e1b27335414ccfe19e8a2a4d87ccf705b48a68c62743"
)

_KEY_TEXT: Final = re.compile(r"[A-Za-z0-9+/]{43}", re.ASCII)
_NO_SIGNATURE: Final = bytes(SIGNATURE_BYTES)


def public_key(password: str) -> bytes:
    """Return what a server keeps of *password*: 32 bytes."""
    scalar, _ = _secrets(password)
    return bindings.crypto_scalarmult_ed25519_base_noclamp(scalar)


def sign(password: str, message: bytes) -> bytes:
    """Return the signature of *message*: 64 bytes."""
    scalar, prefix = _secrets(password)
    key = bindings.crypto_scalarmult_ed25519_base_noclamp(scalar)
    nonce = _reduced(prefix + message)
    point = bindings.crypto_scalarmult_ed25519_base_noclamp(nonce)
    product = bindings.crypto_core_ed25519_scalar_mul(_reduced(point + key + message), scalar)
    return point + bindings.crypto_core_ed25519_scalar_add(nonce, product)


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether *signature* of *message* was made with the secret behind *key*."""
    fitting = signature if len(signature) == SIGNATURE_BYTES else _NO_SIGNATURE
    try:
        bindings.crypto_sign_open(fitting + message, key)
    except BadSignatureError:
        return False
    return True


def key_text(key: bytes) -> str:
    """Return a public key as SQL shows it: 43 characters of base64, without padding."""
    return base64.b64encode(key).decode().rstrip("=")


def parse_key_text(text: str) -> bytes:
    """
    Return the public key that *text* shows.

    Raises:
        ValueError: *text* is not 43 characters of base64.
    """
    if not _KEY_TEXT.fullmatch(text):
        raise ValueError("not an ed25519 key: 43 characters of base64 are needed")
    return base64.b64decode(text + "=")


def _secrets(password: str) -> tuple[bytes, bytes]:
    """Return the secret scalar and the prefix that makes nonces."""
    expanded = bytearray(hashlib.sha512(password.encode()).digest())
    expanded[0] &= 248
    expanded[31] = expanded[31] & 127 | 64
    scalar = bindings.crypto_core_ed25519_scalar_reduce(bytes(expanded[:32]) + bytes(32))
    return scalar, bytes(expanded[32:])


def _reduced(data: bytes) -> bytes:
    return bindings.crypto_core_ed25519_scalar_reduce(hashlib.sha512(data).digest())


class Ed25519Password:
    """The method that MariaDB calls ed25519."""

    name = "ed25519"
    plugin = PLUGIN_NAME
    salt_bytes = 0
    challenge_bytes = NONCE_BYTES
    costly = False

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string to be kept."""
        assert not salt
        return key_text(public_key(password))

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* is no authentication string."""
        parse_key_text(text)

    def decoy(self, model: str, seed: bytes | None) -> str:
        """Return a string that fits no password."""
        del model, seed
        return key_text(NOBODYS_KEY)

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask for a signature of *challenge*."""
        del channel
        signature = yield challenge
        return Verdict(verify(parse_key_text(text), challenge, signature))

    def trust_key(self, text: str) -> bytes:
        """Return the public key, which is no secret to the client nor told to others."""
        return parse_key_text(text)


def client_exchange(password: str, challenge: bytes, channel: Channel) -> ClientExchange:
    """Answer as a client does."""
    del channel
    yield sign(password, challenge)
    return public_key(password)
