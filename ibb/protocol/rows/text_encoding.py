"""
The character sets of columns: which one a collation has, and its texts as UTF-8.

A one-byte character set is a table of 256 entries of four bytes: how many bytes of UTF-8 the
character has, 0 for none, and these. Most are as Python has them; where MariaDB differs, its own.
Source: MariaDB 10.11 and 11.8, information_schema and CONVERT(... USING utf8mb4) of every byte.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from .own_characters import decoded

UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
# Character sets of several bytes by Python's name: characters are decoded by it, but for a few
# (`own_characters`).
CODECS: Final = {
    "big5": "big5",
    "cp932": "cp932",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "ucs2": "utf-16-be",
    "ujis": "euc_jp",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
# One-byte character sets: the table of Python that is closest, and what MariaDB has otherwise from
# some bytes on; U+FFFD is no character.
_TABLES: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "armscii8": (
        "latin-1",
        {
            0xA1: "\u2741\u00a7\u0589)(\u00bb\u00ab\u2014.\u055d,-\u055f\u2026\u055c\u055b\u055e",
            0xB2: "".join(chr(0x531 + index) + chr(0x561 + index) for index in range(38)),
            0xFE: "\u2019'",
        },
    ),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF), "\ufffd")),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "\u207f\u00b2"}),
    "dec8": (
        "latin-1",
        dict.fromkeys((0xA4, 0xA6, 0xB4, 0xB8, 0xBE, 0xD0, 0xDE, 0xF0), "\ufffd")
        | {0xA8: "\u00a4", 0xAC: "\ufffd" * 4, 0xD7: "\u0152", 0xDD: "\u0178", 0xF7: "\u0153"}
        | {0xFD: "\u00ff\ufffd\ufffd"},
    ),
    "geostd8": (
        "latin-1",
        {
            0x80: "\u20ac\ufffd\u201a\ufffd\u201e\u2026\u2020\u2021\ufffd\u2030\ufffd\u2039"
            + "\ufffd" * 5,
            0x91: "\u2018\u2019\u201c\u201d\u2022\u2013\u2014\ufffd\ufffd\ufffd\u203a"
            + "\ufffd" * 4,
            0xC0: "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db"
            "\u10dc\u10f2\u10dd\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7"
            "\u10e8\u10e9\u10ea\u10eb\u10ec\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5",
            0xE6: "\ufffd" * 23 + "\u2116\ufffd\ufffd",
        },
    ),
    "greek": ("iso8859_7", {0xA1: "\u02bd\u02bc", 0xA4: "\ufffd\ufffd", 0xAA: "\ufffd"}),
    "hebrew": ("iso8859_8", {0xAF: "\u203e"}),
    "hp8": ("hp_roman8", {}),
    "keybcs2": (
        "cp437",
        {
            0x80: "\u010c",
            0x83: "\u010f",
            0x85: "\u010e\u0164\u010d\u011b\u011a\u0139\u00cd\u013e\u013a",
            0x8F: "\u00c1",
            0x91: "\u017e\u017d",
            0x95: "\u00d3\u016f\u00da\u00fd",
            0x9B: "\u0160\u013d\u00dd\u0158\u0165",
            0xA4: "\u0148\u0147\u016e\u00d4\u0161\u0159\u0155\u0154",
            0xAD: "\u00a1",
        },
    ),
    "koi8r": ("koi8_r", {}),
    "koi8u": ("koi8_u", {0x95: "\u2022"}),
    "latin1": ("cp1252", {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    "latin2": ("iso8859_2", {}),
    "latin5": ("iso8859_9", {}),
    "latin7": ("iso8859_13", {}),
    "macce": ("mac_latin2", {}),
    "macroman": ("mac_roman", {}),
    "swe7": (
        "ascii",
        {
            0x40: "\u00c9",
            0x5B: "\u00c4\u00d6\u00c5\u00dc",
            0x60: "\u00e9",
            0x7B: "\u00e4\u00f6\u00e5\u00fc\ufffd",
        },
    ),
    "tis620": ("tis_620", {}),
}
# Collations below 1024 by character set, as runs of numbers; those of 1024 to 2047 are the same
# without padding, those behind the Unicode collations of 2010, 256 numbers a character set.
_COLLATIONS: Final = {
    "armscii8": (32, 64),
    "ascii": (11, 65),
    "big5": (1, 84),
    "binary": (63,),
    "cp1250": (26, 34, 44, 66, 99),
    "cp1251": (14, 23, *range(50, 53)),
    "cp1256": (57, 67),
    "cp1257": (29, *range(58, 60)),
    "cp850": (4, 80),
    "cp852": (40, 81),
    "cp866": (36, 68),
    "cp932": (*range(95, 97),),
    "dec8": (3, 69),
    "eucjpms": (*range(97, 99),),
    "euckr": (19, 85),
    "gb2312": (24, 86),
    "gbk": (28, 87),
    "geostd8": (*range(92, 94),),
    "greek": (25, 70),
    "hebrew": (16, 71),
    "hp8": (6, 72),
    "keybcs2": (37, 73),
    "koi8r": (7, 74),
    "koi8u": (22, 75),
    "latin1": (5, 8, 15, 31, *range(47, 50), 94),
    "latin2": (2, 9, 21, 27, 77),
    "latin5": (30, 78),
    "latin7": (20, *range(41, 43), 79),
    "macce": (38, 43),
    "macroman": (39, 53),
    "sjis": (13, 88),
    "swe7": (10, 82),
    "tis620": (18, 89),
    "ucs2": (35, 90, *range(128, 152), 159, *range(640, 643)),
    "ujis": (12, 91),
    "utf16": (*range(54, 56), *range(101, 125), *range(672, 675)),
    "utf16le": (56, 62),
    "utf32": (*range(60, 62), *range(160, 184), *range(736, 739)),
    "utf8mb3": (33, 83, *range(192, 216), 223, *range(576, 579)),
    "utf8mb4": (*range(45, 47), *range(224, 248), *range(608, 611)),
}
_WITHOUT_PADDING: Final = 1024
_UNICODE_2010: Final = {8: "utf8mb3", 9: "utf8mb4", 10: "ucs2", 11: "utf16", 12: "utf32"}
_BY_COLLATION: Final = {number: name for name, numbers in _COLLATIONS.items() for number in numbers}
CHARACTER_SETS: Final = frozenset(_COLLATIONS)


def charset_of_collation(number: int) -> str | None:
    """Return the character set of a collation by its number, None if nobody knows it."""
    if number >= 2 * _WITHOUT_PADDING:
        return _UNICODE_2010.get(number >> 8)
    return _BY_COLLATION.get(number % _WITHOUT_PADDING)


@cache
def utf8_table(charset: str) -> bytes | None:
    """
    Return the table of a one-byte character set, None for one of several bytes.

    Of each byte it has four: its UTF-8, filled up with zeros, and how many bytes that has.
    """
    if charset not in _TABLES:
        return None
    python, others = _TABLES[charset]
    chars = list(bytes(range(256)).decode(python, "replace"))
    for first, text in others.items():
        chars[first : first + len(text)] = text
    table = bytearray()
    for char in chars:
        encoded = b"" if char == "\ufffd" else char.encode()
        table += encoded.ljust(3, b"\0") + bytes([len(encoded)])
    return bytes(table)


def has_ascii(table: bytes) -> bool:
    """Tell whether all of ASCII means in a character set of that table what it means in UTF-8."""
    return table[: 4 * 128] == b"".join(bytes((byte, 0, 0, 1)) for byte in range(128))


def text_of(
    data: bytes, charset: str, errors: str = "replace", *, of_statement: bool = False
) -> str:
    """
    Return bytes of a character set as a text.

    Args:
        data: the bytes.
        charset: by MariaDB's name; names and words in `binary` are those of UTF-8.
        errors: what to do with what is no character, as in Python.
        of_statement: it is to be parsed: no character is a backslash but the one of one byte.

    Raises:
        UnicodeDecodeError: "strict", and there is such.
        LookupError: nobody knows the character set.
    """
    table = utf8_table(charset)
    if table is None:
        codec = "utf-8" if charset in UTF8 or charset == "binary" else CODECS[charset]
        return decoded(data, charset, codec, errors, of_statement=of_statement)
    text = b"".join(table[4 * byte : 4 * byte + table[4 * byte + 3]] or b"\xff" for byte in data)
    return text.decode(errors=errors)


def label_of(data: bytes, charset: str) -> str:
    r"""
    Return a label of an ENUM or SET as a text.

    Those in `binary` may be of any bytes: what is no UTF-8 is written out, as `\xe4`, so that no
    two of them become the same.

    Raises:
        LookupError: nobody knows the character set.
    """
    return text_of(data, charset, "backslashreplace" if charset == "binary" else "replace")
