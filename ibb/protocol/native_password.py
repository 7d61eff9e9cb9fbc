"""
mysql_native_password: proving that one knows a password without sending it.

The server keeps `stage2 = SHA1(SHA1(password))` and sends 20 random bytes. The client answers
`SHA1(password) XOR SHA1(nonce || stage2)`; who knows stage2 alone cannot compute that.
Source: dump-protocol 1.4.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Final

from mysql_mimic.auth import NativePasswordAuthPlugin

from .authentication import Verdict, xor
from .errors import FormatError

if TYPE_CHECKING:
    from .authentication import Channel, ClientExchange, Exchange

PLUGIN_NAME: Final = "mysql_native_password"
NONCE_BYTES: Final = 20
STAGE2_BYTES: Final = 20  # and of a response

_HASH_TEXT: Final = re.compile(r"\*[0-9A-Fa-f]{40}", re.ASCII)


def stage2(password: str) -> bytes:
    """Return what a server keeps of *password*: 20 bytes, or none for the empty password."""
    if not password:
        return b""
    return bytes.fromhex(NativePasswordAuthPlugin.create_auth_string(password))


def hash_text(stage2: bytes) -> str:
    """Return *stage2* as SQL shows it: `*` and 40 upper-case hexadecimal digits, or nothing."""
    return f"*{stage2.hex().upper()}" if stage2 else ""


def parse_hash_text(text: str) -> bytes:
    """
    Return the stage2 that *text* shows.

    Raises:
        ValueError: *text* is neither empty nor `*` and 40 hexadecimal digits.
    """
    if not text:
        return b""
    if not _HASH_TEXT.fullmatch(text):
        raise ValueError("not a password hash: * and 40 hexadecimal digits are needed")
    return bytes.fromhex(text[1:])


def scramble_response(password: str, nonce: bytes) -> bytes:
    """Return the client's answer to *nonce*: 20 bytes, or none for the empty password."""
    assert len(nonce) == NONCE_BYTES
    if not password:
        return b""
    stage1 = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return xor(stage1, _mask(nonce, stage2(password)))


def check(response: bytes, nonce: bytes, stage2: bytes) -> bool:
    """
    Return whether *response* to *nonce* proves the password behind *stage2*.

    The work and its time are the same for right, wrong, short, long and empty answers. (The
    library's own check stops at the first unequal byte and hides its exceptions.) For a user
    who does not exist, check against `NO_PASSWORD_FITS`.
    """
    assert len(nonce) == NONCE_BYTES
    fitting = response if len(response) == STAGE2_BYTES else bytes(STAGE2_BYTES)
    stage1 = xor(fitting, _mask(nonce, stage2 or NO_PASSWORD_FITS))
    proof = hashlib.sha1(stage1, usedforsecurity=False).digest()
    right = hmac.compare_digest(proof, stage2 or NO_PASSWORD_FITS)
    if not stage2:
        return not response
    return right and len(response) == STAGE2_BYTES


# Nobody knows a text whose double SHA-1 is all zeros.
NO_PASSWORD_FITS: Final = bytes(STAGE2_BYTES)


def _mask(nonce: bytes, stage2: bytes) -> bytes:
    return hashlib.sha1(nonce + stage2, usedforsecurity=False).digest()


class NativePassword:
    """The method of every MariaDB account that was made without naming one."""

    name = PLUGIN_NAME
    plugin = PLUGIN_NAME
    salt_bytes = 0
    challenge_bytes = NONCE_BYTES
    costly = False

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string to be kept."""
        assert not salt
        return hash_text(stage2(password))

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* is no authentication string."""
        if not text:
            raise ValueError("a password is needed")
        parse_hash_text(text)

    def decoy(self, model: str, seed: bytes | None) -> str:
        """Return a string that fits no password."""
        del model, seed
        return hash_text(NO_PASSWORD_FITS)

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask for the response to *challenge*, which has no NUL."""
        del channel
        response = yield challenge + b"\0"
        return Verdict(check(response, challenge, parse_hash_text(text)))

    def trust_key(self, text: str) -> bytes:
        """Return stage2."""
        return parse_hash_text(text)


def client_exchange(password: str, challenge: bytes, channel: Channel) -> ClientExchange:
    """Answer as a client does; raises FormatError for a challenge that is too short."""
    del channel
    if len(challenge) < NONCE_BYTES:
        raise FormatError(f"a nonce of {len(challenge)} bytes, not {NONCE_BYTES}")
    yield scramble_response(password, challenge[:NONCE_BYTES])
    return stage2(password)
