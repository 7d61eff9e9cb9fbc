"""
Character sets and collations that clients may name, and their texts as bytes.

Ids are those of MariaDB 10.11. A text here is Unicode; a byte that its character set has no
character for is a lone surrogate, as Python's `surrogateescape` has it, so what a client sends
comes back to it as it was.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .fields import Buffer

LATIN1: Final = 8
UTF8MB3: Final = 33
UTF8MB4: Final = 45
BINARY: Final = 63

# Collation by character set: what SET NAMES takes where none is named.
DEFAULT_COLLATIONS: Final = {
    "ascii": "ascii_general_ci",
    "binary": "binary",
    "latin1": "latin1_swedish_ci",
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "utf8mb4": "utf8mb4_general_ci",
}
COLLATIONS: Final = {
    "ascii_general_ci": 11,
    "ascii_bin": 65,
    "binary": BINARY,
    "latin1_swedish_ci": LATIN1,
    "latin1_german1_ci": 5,
    "latin1_german2_ci": 31,
    "latin1_general_ci": 48,
    "latin1_general_cs": 49,
    "latin1_bin": 47,
    "utf8mb3_general_ci": UTF8MB3,
    "utf8mb3_bin": 83,
    "utf8mb3_unicode_ci": 192,
    "utf8mb4_general_ci": UTF8MB4,
    "utf8mb4_bin": 46,
    "utf8mb4_unicode_ci": 224,
    "utf8mb4_unicode_520_ci": 246,
    "utf8mb4_nopad_bin": 1070,
    "utf8mb4_general_nopad_ci": 1069,
    "utf8mb4_uca1400_ai_ci": 2304,
    "utf8mb4_uca1400_as_ci": 2306,
}
COLLATION_NAMES: Final = {number: name for name, number in COLLATIONS.items()}
# Those that MariaDB knows besides.
OTHER_CHARSETS: Final = frozenset(
    {
        *("armscii8", "big5", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866"),
        *("cp932", "dec8", "eucjpms", "euckr", "gb2312", "gbk", "geostd8", "greek", "hebrew"),
        *("hp8", "keybcs2", "koi8r", "koi8u", "latin2", "latin5", "latin7", "macce", "macroman"),
        *("sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32"),
    }
)
# Those of them that MariaDB takes from no client.
NO_CLIENT_CHARSETS: Final = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
DESCRIPTIONS: Final = {
    "ascii": ("US ASCII", 1),
    "binary": ("Binary pseudo charset", 1),
    "latin1": ("cp1252 West European", 1),
    "utf8mb3": ("UTF-8 Unicode", 3),
    "utf8mb4": ("UTF-8 Unicode", 4),
}
_ESCAPED: Final = "surrogateescape"
# A byte that is no character of its character set.
BYTE_OF_NONE: Final = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII: Final = re.compile("[\u0080-\udc7f\udd00-\U0010ffff]")
_BEYOND_THREE_BYTES: Final = re.compile("[\U00010000-\U0010ffff]")
# MariaDB's latin1 is Windows-1252; the five bytes that has no character for are control characters.
_LATIN1: Final = "".join(
    bytes([byte]).decode("cp1252" if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else "latin-1")
    for byte in range(256)
)
_LATIN1_BYTES: Final = {ord(char): byte for byte, char in enumerate(_LATIN1)}


def charset_of(collation: str) -> str:
    """Return the character set that a known collation belongs to."""
    name = collation.partition("_")[0]
    return "utf8mb3" if name == "utf8" else name


def decoded(data: bytes, charset: str) -> str:
    """Return bytes of a character set as a text."""
    if charset == "latin1":
        return codecs.charmap_decode(data, "strict", _LATIN1)[0]
    if charset == "ascii":
        return data.decode("ascii", _ESCAPED)
    text = data.decode("utf-8", _ESCAPED)
    if charset == "utf8mb3" and not text.isascii():
        return _BEYOND_THREE_BYTES.sub(lambda found: _as_bytes(found[0]), text)
    return text


def decoded_name(data: Buffer, collation: int) -> str:
    """
    Return a name that a client sent with its login, with a replacement for what is no character.

    Replicas of 10.11 announce latin1 and send UTF-8, which a real primary therefore takes for
    another name. So it is read as UTF-8 where it can be, whatever the client announces.
    """
    name = bytes(data)
    try:
        return name.decode()
    except UnicodeDecodeError:
        if charset_of(COLLATION_NAMES.get(collation, "")) == "latin1":
            return decoded(name, "latin1")
        return name.decode(errors="replace")


def encoded(text: str, charset: str) -> bytes:
    """Return a text in a character set, with `?` for what that has no character for."""
    if charset == "latin1":
        return codecs.charmap_encode(text, "replace", _LATIN1_BYTES)[0]
    if charset == "ascii":
        return _BEYOND_ASCII.sub("?", text).encode("ascii", _ESCAPED)
    if charset == "utf8mb3":
        text = _BEYOND_THREE_BYTES.sub("?", text)
    return text.encode("utf-8", _ESCAPED)


def readable(text: str) -> str:
    r"""Return a text with bytes that are none written out, `\xE4`, as MariaDB shows them."""
    return BYTE_OF_NONE.sub(lambda found: f"\\x{ord(found[0]) & 0xFF:02X}", text)


def _as_bytes(char: str) -> str:
    """Return a character as the escaped bytes of its UTF-8."""
    return char.encode().decode("ascii", _ESCAPED)
