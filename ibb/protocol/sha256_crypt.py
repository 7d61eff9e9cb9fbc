"""
The slow password hash that MySQL keeps for caching_sha2_password: Drepper's SHA-crypt with SHA-256.

It differs from /etc/shadow's `$5$` in its salt, 20 bytes instead of at most 16, and its head.
"""

from __future__ import annotations

import hashlib
from typing import Final

ROUNDS: Final = 5000
DIGEST_CHARS: Final = 43
ALPHABET: Final = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

_CYCLE: Final = 42  # rounds after which the order of the parts repeats: lcm(2, 3, 7)
# Bytes of the digest that make four characters each; 31 and 30 make the last three.
_TRIPLES: Final = (
    *((0, 10, 20), (21, 1, 11), (12, 22, 2), (3, 13, 23), (24, 4, 14)),
    *((15, 25, 5), (6, 16, 26), (27, 7, 17), (18, 28, 8), (9, 19, 29)),
)


def sha256_crypt(password: bytes, salt: bytes, rounds: int = ROUNDS) -> bytes:
    """Return the 43 characters of the hash; takes some milliseconds."""
    size = len(password)
    other = hashlib.sha256(password + salt + password).digest()
    mixed = hashlib.sha256(password + salt + repeated(other, size))
    bits = size
    while bits:
        mixed.update(other if bits & 1 else password)
        bits >>= 1
    digest = mixed.digest()
    p = repeated(hashlib.sha256(password * size).digest(), size)
    s = repeated(hashlib.sha256(salt * (16 + digest[0])).digest(), len(salt))
    # What stands before and behind the digest of the round before; it is first where i is even.
    around = []
    for i in range(_CYCLE):
        middle = (s if i % 3 else b"") + (p if i % 7 else b"")
        around.append((p + middle, b"") if i & 1 else (b"", middle + p))
    for i in range(rounds):
        before, behind = around[i % _CYCLE]
        digest = hashlib.sha256(before + digest + behind).digest()
    return _encoded(digest)


def repeated(data: bytes, size: int) -> bytes:
    """Return *size* bytes: *data* as often as it takes, the last time perhaps only in part."""
    return (data * (size // len(data) + 1))[:size]


def _encoded(digest: bytes) -> bytes:
    out = bytearray()
    for first, second, third in _TRIPLES:
        value = digest[first] << 16 | digest[second] << 8 | digest[third]
        out += bytes(ALPHABET[value >> shift & 63] for shift in (0, 6, 12, 18))
    value = digest[31] << 8 | digest[30]
    return bytes(out + bytes(ALPHABET[value >> shift & 63] for shift in (0, 6, 12)))
