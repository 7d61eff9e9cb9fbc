"""
Characters of several bytes that MariaDB reads otherwise than Python does, or alone.

Source: MariaDB 10.11, CONVERT(... USING utf8mb4) of everything that is one character.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_EUC: Final = re.compile(rb"\x8f..|[\x80-\xff].|.", re.DOTALL)
_DOUBLE: Final = re.compile(rb"[\x81-\x9f\xe0-\xfe].|.", re.DOTALL)
_BIG5: Final = re.compile(rb"[\x81-\xfe].|.", re.DOTALL)
_ROW: Final = range(0xA1, 0xFF)
_USER_ROWS: Final = range(0xF5, 0xFF)
_USER_FIRST: Final = 0xE000  # of those for private use
_NEC_ROW: Final = 0xAD  # of eucjpms: Python knows the characters by 0x87 of cp932
_IBM: Final = (
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ\uff07\uff02㈱№℡炻仼僴凬匇匤\ufa0e咊坙\ufa0f\ufa10增寬峵嵓\ufa11德悅"
    "愠敎昻晥\ufa12\uf929栁\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧"
    "\ufa1c\ufa1d綠緖\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶\ufa23\ufa24\ufa25郞\ufa26鄕\ufa27\ufa28閒"
    "\uf9dc\ufa29霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑"
)


def _codes(leads: Iterable[bytes]) -> Iterable[bytes]:
    return (lead + bytes([last]) for lead, last in product(leads, _ROW))


def _user_defined() -> dict[bytes, str]:
    leads = [*(bytes([row]) for row in _USER_ROWS), *(bytes([0x8F, row]) for row in _USER_ROWS)]
    return {code: chr(_USER_FIRST + number) for number, code in enumerate(_codes(leads))}


def _eucjpms() -> dict[bytes, str]:
    nec = (code for code in range(0x40, 0x9D) if code != 0x7F)
    found = {bytes([_NEC_ROW, last]): bytes([0x87, code]) for last, code in zip(_ROW, nec)}  # noqa: B905
    chars = {code: text.decode("cp932") for code, text in found.items() if _is_cp932(text)}
    ibm = [code for code in _codes([b"\x8f\xf3", b"\x8f\xf4"]) if code >= b"\x8f\xf3\xf3"]
    return (
        _user_defined()
        | chars
        | dict(zip(ibm, _IBM, strict=True))
        | {b"\xa1\xc1": "\uff5e", b"\xa1\xc2": "\u2225", b"\xa1\xdd": "\uff0d"}
        | {b"\xa1\xf1": "\uffe0", b"\xa1\xf2": "\uffe1", b"\xa2\xcc": "\uffe2"}
        | {b"\x8f\xa2\xb7": "\uff5e", b"\x8f\xa2\xc3": "\uffe4"}
    )


def _is_cp932(code: bytes) -> bool:
    return "\ufffd" not in code.decode("cp932", "replace")


@cache
def own_characters(charset: str) -> Mapping[bytes, str]:
    """Return the characters of a character set, by MariaDB's name, that Python would misread."""
    match charset:
        case "big5":
            lost = (b"\xa1\x5a", b"\xa1\xc3", b"\xa1\xc5", b"\xa1\xfe", b"\xa2\x40", b"\xa2\xcc")
            more = {
                bytes([0xF9, 0xD6 + number]): char for number, char in enumerate("碁銹裏墻恒粧嫺")
            }
            return dict.fromkeys((*lost, b"\xa2\xce"), "\ufffd") | more
        case "eucjpms":
            return _eucjpms()
        case "sjis":
            return {b"\x81\x5f": "\\"}
        case "ujis":
            return _user_defined() | {b"\xa1\xc0": "\\"}
    return {}


_SHAPES: Final = {"big5": _BIG5, "eucjpms": _EUC, "sjis": _DOUBLE, "ujis": _EUC}


def decoded(
    data: bytes, charset: str, codec: str, errors: str, *, of_statement: bool = False
) -> str:
    """
    Return bytes of a character set as a text.

    Args:
        data: the bytes.
        charset: by MariaDB's name.
        codec: of Python, for all characters that are not MariaDB's own.
        errors: "replace" or "strict", as in Python.
        of_statement: characters of several bytes that MariaDB shows as a backslash are full-width
            ones, since it reads none of them as an escape.

    Raises:
        UnicodeDecodeError: "strict", and there is something that is no character.
    """
    own = own_characters(charset)
    if not own:
        return data.decode(codec, errors)
    pieces, start = [], 0
    for found in _SHAPES[charset].finditer(data):
        char = own.get(found[0])
        if char is not None and not (of_statement and char == "\\"):
            pieces += [data[start : found.start()].decode(codec, errors), char]
            start = found.end()
    return "".join((*pieces, data[start:].decode(codec, errors)))
