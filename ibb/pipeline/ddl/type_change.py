"""Whether values of a column stay what they are when its type changes."""

from __future__ import annotations

import re
from typing import Final

from .column_types import base_type

_SIZE: Final = re.compile(r"\((\d+)(?:,(\d+))?\)")
_LABEL: Final = re.compile(r"'((?:[^']|'')*)'")
_INTEGER_BITS: Final = {
    **dict.fromkeys(("tinyint", "bool", "boolean", "int1"), 8),
    **dict.fromkeys(("smallint", "int2"), 16),
    **dict.fromkeys(("mediumint", "middleint", "int3"), 24),
    **dict.fromkeys(("int", "integer", "int4"), 32),
    **dict.fromkeys(("bigint", "int8"), 64),
}
DECIMALS: Final = frozenset({"decimal", "dec", "numeric", "fixed"})
# Longest texts, in bytes; those of CHAR and VARCHAR are in characters, and count four times.
_LONG: Final = {"tiny": 2**8 - 1, "": 2**16 - 1, "medium": 2**24 - 1, "long": 2**32 - 1}
_TEXT_BYTES: Final = {f"{size}text": most for size, most in _LONG.items()}
_BLOB_BYTES: Final = {f"{size}blob": most for size, most in _LONG.items()}
_WITH_SIGN: Final = DECIMALS | {"float", "double", "real"}
BYTES_MAX: Final = 4  # of a character
DECIMAL_DIGITS_MAX: Final = 38  # of a decimal that is one here, and no text
_MOMENTS: Final = frozenset({"datetime", "timestamp", "time"})
_WITHIN: Final = {
    "utf8mb4": frozenset({"utf8", "utf8mb3", "latin1", "latin2", "ascii", "cp1250", "cp1251"}),
    "utf8mb3": frozenset({"utf8", "latin1", "latin2", "ascii", "cp1250", "cp1251"}),
    "utf8": frozenset({"utf8mb3", "latin1", "latin2", "ascii", "cp1250", "cp1251"}),
    "latin1": frozenset({"ascii"}),
}


def keeps_values(old: str, new: str, old_charset: str = "", new_charset: str = "") -> bool:
    """
    Whether every value of type *old* is the same in type *new*.

    Args:
        old: a type as information_schema writes it.
        new: the same.
        old_charset: of texts; empty: not known.
        new_charset: the same; of characters that only one of them has see `same_characters`.
    """
    one, other = base_type(old), base_type(new)
    if one in _WITH_SIGN and _is_signed(old) and not _is_signed(new):
        return False
    if one in _INTEGER_BITS:
        return _keeps_integers(old, new)
    if one in DECIMALS:
        return other in DECIMALS and _keeps_decimals(_size(old, 10), _size(new, 10))
    if one in ("char", "varchar") or (one in _TEXT_BYTES and "(" not in old):
        if (old_charset == "binary") != (new_charset == "binary"):
            return False
        same = not new_charset or old_charset == new_charset
        is_padded = other == "char" and (one != "char" or new_charset == "binary")
        return not is_padded and _keeps_texts(old, new, same_charset=same)
    if one == "varbinary" or (one in _BLOB_BYTES and "(" not in old):
        return _blob_bytes(old) <= _blob_bytes(new)
    if one in ("enum", "set"):
        return one == other and _keeps_labels(labels_of(old), labels_of(new), one)
    if one in _MOMENTS:
        return one == other and _size(old, 0)[0] <= _size(new, 0)[0]
    if one == "date" and other == "datetime":
        return True
    if one == "float" and "(" not in old and other in ("double", "real"):
        return "(" not in new
    return " ".join(old.split()) == " ".join(new.split())


def same_characters(old: str, old_charset: str, new_charset: str) -> bool:
    """Whether *new_charset* surely has all characters that a column of type *old* may have."""
    is_text = base_type(old) in ("char", "varchar") or base_type(old) in _TEXT_BYTES
    if not is_text or (old_charset and old_charset == new_charset):
        return True
    return old_charset in _WITHIN.get(new_charset, ())


def labels_of(text: str) -> list[str]:
    """Return the labels of an ENUM or SET, in their order."""
    return [label.replace("''", "'") for label in _LABEL.findall(text)]


def _keeps_labels(old: list[str], new: list[str], kind: str) -> bool:
    """Whether values have the same labels; those of a SET are in the order of its type."""
    same = [label for label in new if label in old]
    return same == old if kind == "set" else set(same) == set(old)


def _keeps_integers(old: str, new: str) -> bool:
    bits, other = _INTEGER_BITS[base_type(old)], base_type(new)
    if other in DECIMALS:
        digits, scale = _size(new, 10)
        if digits > DECIMAL_DIGITS_MAX:
            return False
        most = len(str(2 ** (bits - _is_signed(old))))  # digits of any value
        return digits - scale >= most and (_is_signed(new) or not _is_signed(old))
    if other not in _INTEGER_BITS:
        return False
    if _is_signed(old) == _is_signed(new):
        return bits <= _INTEGER_BITS[other]
    return _is_signed(new) and bits < _INTEGER_BITS[other]


def _keeps_texts(old: str, new: str, *, same_charset: bool) -> bool:
    """Whether a text that is not too long for *old* is not for *new* either."""
    if base_type(old) in _TEXT_BYTES and base_type(new) in ("char", "varchar"):
        return _size(new, 1)[0] >= _longest_text(old)  # a character may have one byte only
    grows = base_type(old) in _TEXT_BYTES and not same_charset
    return _longest_text(old) * (BYTES_MAX if grows else 1) <= _longest_text(new)


def _keeps_decimals(old: tuple[int, int], new: tuple[int, int]) -> bool:
    if new[0] > DECIMAL_DIGITS_MAX and (old[0] <= DECIMAL_DIGITS_MAX or new[1] != old[1]):
        return False  # these are texts here, with as many digits behind the point
    return new[1] >= old[1] and new[0] - new[1] >= old[0] - old[1]


def _is_signed(text: str) -> bool:
    return re.search("unsigned|zerofill", text) is None


def _size(text: str, default: int) -> tuple[int, int]:
    match = _SIZE.search(text)
    return (default, 0) if match is None else (int(match[1]), int(match[2] or 0))


def _longest_text(text: str) -> int:
    """Return how many bytes a text may have; -1: it is no text, or of a size that is not known."""
    name = base_type(text)
    if name in ("char", "varchar"):
        return BYTES_MAX * _size(text, 1)[0]
    return _TEXT_BYTES.get(name, -1) if "(" not in text else -1


def _blob_bytes(text: str) -> int:
    name = base_type(text)
    if name == "varbinary":
        return _size(text, -1)[0]
    return _BLOB_BYTES.get(name, -1) if "(" not in text else -1
