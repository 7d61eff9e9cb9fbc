"""
caching_sha2_password, which MySQL's connectors expect, as a server and as a client.

    server                                     client
    20 random bytes and a NUL              ->
                                           <-  32 bytes made of the password and them
    03, and the OK                         ->      what the server keeps in memory fits
    04                                     ->      else it wants the password itself
                                           <-  the password and a NUL, if nobody else reads it
                                           <-  02, if others may
    PEM of a public key                    ->
                                           <-  the password, masked and encrypted

What is kept for good is a slow hash. The fast check needs SHA256(SHA256(password)), which is kept
in memory from the first login on. Source: dump-protocol 1.4.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from .authentication import PASSWORD_BYTES_MAX, CannotAuthenticate, Verdict, xor
from .errors import FormatError
from .sha256_crypt import ALPHABET, DIGEST_CHARS, ROUNDS, repeated, sha256_crypt

if TYPE_CHECKING:
    from .authentication import Channel, ClientExchange, Exchange, PasswordCipher

PLUGIN_NAME: Final = "caching_sha2_password"
NONCE_BYTES: Final = 20
SALT_BYTES: Final = 20
CACHED_MAX: Final = 4096  # passwords that the fast check is possible for

_FAST_OK: Final = b"\x03"
_SEND_PASSWORD: Final = b"\x04"
_SEND_PUBLIC_KEY: Final = b"\x02"
_TEXT: Final = re.compile(r"\$A\$([0-9A-F]{3})\$([\x01-\x7f]{20})([./0-9A-Za-z]{43})", re.ASCII)
_ROUNDS_UNIT: Final = 1000
_ROUNDS_MAX: Final = 100_000
_DIGEST_BYTES: Final = 32
_NOT_REMEMBERED: Final = bytes(_DIGEST_BYTES)


def _parse(text: str) -> tuple[int, bytes, bytes]:
    """Return rounds, salt and hash; raises ValueError."""
    found = _TEXT.fullmatch(text)
    rounds = int(found[1], 16) * _ROUNDS_UNIT if found else 0
    if found is None or not ROUNDS <= rounds <= _ROUNDS_MAX:
        raise ValueError("not a caching_sha2_password string: $A$005$, salt and hash are needed")
    return rounds, found[2].encode(), found[3].encode()


def _text(rounds: int, salt: bytes, hashed: bytes) -> str:
    return f"$A${rounds // _ROUNDS_UNIT:03X}${salt.decode()}{hashed.decode()}"


class CachingSha2Password:
    """
    The method caching_sha2_password of one server, with what it remembers.

    Args:
        cipher: for clients whose connection others may read; None sends them away.
    """

    name = PLUGIN_NAME
    plugin = PLUGIN_NAME
    salt_bytes = SALT_BYTES
    challenge_bytes = NONCE_BYTES
    costly = True

    def __init__(self, cipher: PasswordCipher | None = None) -> None:
        self._cipher = cipher
        self._double_hashes: OrderedDict[str, bytes] = OrderedDict()

    def make(self, password: str, salt: bytes) -> str:
        """Return the authentication string to be kept."""
        assert len(salt) == SALT_BYTES
        printable = bytes(ALPHABET[byte & 63] for byte in salt)
        return _text(ROUNDS, printable, sha256_crypt(password.encode(), printable))

    def check_text(self, text: str) -> None:
        """Raise ValueError if *text* is no authentication string."""
        _parse(text)

    def decoy(self, model: str, seed: bytes | None) -> str:
        """Return a string that fits no password, of as many rounds; its salt never shows."""
        del seed
        return _text(_parse(model)[0], b"." * SALT_BYTES, b"." * DIGEST_CHARS)

    def exchange(self, text: str, challenge: bytes, channel: Channel) -> Exchange:
        """Ask for the quick proof, and where nothing is remembered for the password."""
        response = yield challenge + b"\0"
        known = self._double_hashes.get(text, _NOT_REMEMBERED)
        if _check_fast(response, challenge, known) and known != _NOT_REMEMBERED:
            self._double_hashes.move_to_end(text)
            return Verdict(proven=True, last_word=_FAST_OK)
        answer = yield _SEND_PASSWORD
        if not channel.private:
            if answer != _SEND_PUBLIC_KEY or self._cipher is None:
                return Verdict(proven=False)
            encrypted = yield self._cipher.public_pem()
            masked = self._cipher.decrypt(encrypted)
            answer = xor(masked, repeated(challenge, len(masked)))
        password, end, behind = answer.partition(b"\0")
        rounds, salt, hashed = _parse(text)
        fits = 0 < len(password) <= PASSWORD_BYTES_MAX and bool(end) and not behind
        found = sha256_crypt(password if fits else b"x", salt, rounds)
        if not (hmac.compare_digest(found, hashed) and fits):
            return Verdict(proven=False)
        self._remember(text, password)
        return Verdict(proven=True)

    def trust_key(self, text: str) -> bytes:
        """Return nothing: clients do not trust a certificate by this method."""
        del text
        return b""

    def _remember(self, text: str, password: bytes) -> None:
        self._double_hashes[text] = _sha256(_sha256(password))
        if len(self._double_hashes) > CACHED_MAX:
            self._double_hashes.popitem(last=False)


def client_exchange(password: str, challenge: bytes, channel: Channel) -> ClientExchange:
    """
    Answer as a client does that gives its password to nobody but the right server.

    Raises:
        FormatError: the challenge is too short.
        CannotAuthenticate: the server wants the password itself and may be the wrong one.
    """
    nonce = challenge[:NONCE_BYTES]
    if len(nonce) != NONCE_BYTES:
        raise FormatError(f"a nonce of {len(nonce)} bytes, not {NONCE_BYTES}")
    single = _sha256(password.encode())
    answer = yield xor(single, _mask(_sha256(single), nonce))
    if answer != _SEND_PASSWORD:
        return b""
    if not (channel.private and channel.trusted):
        raise CannotAuthenticate(
            "the primary wants the password in clear (caching_sha2_password): verify its "
            "certificate with upstream_ssl_ca or upstream_ssl_fp, or use another method"
        )
    yield password.encode() + b"\0"
    return b""


def _check_fast(response: bytes, nonce: bytes, double_hash: bytes) -> bool:
    if len(response) != _DIGEST_BYTES:
        return False
    single = xor(response, _mask(double_hash, nonce))
    return hmac.compare_digest(_sha256(single), double_hash)


def _mask(double_hash: bytes, nonce: bytes) -> bytes:
    return _sha256(double_hash + nonce)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
