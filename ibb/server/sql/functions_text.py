"""Functions of texts and bytes: CONCAT, HEX, LENGTH and their like."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

from ibb.protocol.error_codes import NOT_SUPPORTED_YET
from ibb.protocol.result_set import ColumnType

from .types import PLAIN_DECIMALS, Kind, SqlType, Typed, as_number, as_text, integer_type, text_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .context import Context
    from .types import SqlValue

_Arguments: TypeAlias = "Sequence[Typed]"
TEXT_BYTES_MAX: Final = 1 << 20  # of a text that a function makes
_SHA2_BITS: Final = (224, 256, 384, 512)
_CHARS: Final = integer_type(9)


def _texts(arguments: _Arguments) -> list[str] | None:
    """Return the arguments as texts, None if one is NULL."""
    texts = [as_text(argument.value, argument.type.decimals) for argument in arguments]
    return None if None in texts else [text for text in texts if text is not None]


def _check_size(characters: int) -> None:
    """Raise SqlError before a text is made that is too long."""
    if characters > TEXT_BYTES_MAX:
        raise NOT_SUPPORTED_YET.error(f"texts of more than {TEXT_BYTES_MAX} characters")


def _text(value: str | None, characters: int) -> Typed:
    return Typed(None if value is None else value[:TEXT_BYTES_MAX], text_type(characters))


def _chars(typed: Typed) -> int:
    return typed.type.length


def _concat(_: Context, arguments: _Arguments) -> Typed:
    texts = _texts(arguments)
    _check_size(sum(map(len, texts or ())))
    return _text(None if texts is None else "".join(texts), sum(map(_chars, arguments)))


def _concat_ws(_: Context, arguments: _Arguments) -> Typed:
    separator, *others = (as_text(argument.value) for argument in arguments)
    pieces = [one for one in others if one is not None]
    _check_size(sum(map(len, pieces)) + len(separator or "") * len(pieces))
    joined = None if separator is None else separator.join(pieces)
    gaps = max(len(others) - 1, 0) * _chars(arguments[0])
    return _text(joined, sum(map(_chars, arguments[1:])) + gaps)


def _mapped(change: Callable[[str], str]) -> Callable[[Context, _Arguments], Typed]:
    """Return a function of one text that keeps its declared length."""

    def compute(_: Context, arguments: _Arguments) -> Typed:
        texts = _texts(arguments)
        return _text(None if texts is None else change(texts[0]), _chars(arguments[0]))

    return compute


def _length(*, characters: bool) -> Callable[[Context, _Arguments], Typed]:
    """Return CHAR_LENGTH or LENGTH; each byte of what is no text is a character."""

    def compute(context: Context, arguments: _Arguments) -> Typed:
        value = arguments[0].value
        type_ = _CHARS.or_null(arguments[0].type.nullable)
        if value is None:
            return Typed(None, type_)
        in_characters = characters and not isinstance(value, bytes)
        counted = as_text(value) or "" if in_characters else _bytes(context, value)
        return Typed(len(counted), type_)

    return compute


def _substring(_: Context, arguments: _Arguments) -> Typed:
    length = _chars(arguments[0])
    if len(arguments) > 2 and isinstance(arguments[2].value, int):
        length = min(length, max(arguments[2].value, 0))
    values = [arguments[0].value, *(as_number(one.value) for one in arguments[1:])]
    if None in values:
        return _text(None, length)
    text = as_text(values[0]) or ""
    start = int(values[1] or 0)  # type: ignore[arg-type]
    at = start - 1 if start > 0 else len(text) + start
    if start == 0 or at < 0:
        return _text("", length)
    end = len(text) if len(values) < 3 else at + max(int(values[2] or 0), 0)  # type: ignore[arg-type]
    return _text(text[at:end], length)


def _end_of(*, left: bool) -> Callable[[Context, _Arguments], Typed]:
    def compute(_: Context, arguments: _Arguments) -> Typed:
        count = as_number(arguments[1].value)
        text = as_text(arguments[0].value)
        if count is None or text is None:
            return _text(None, _chars(arguments[0]))
        size = max(int(count), 0)
        piece = text[:size] if left else text[len(text) - min(size, len(text)) :]
        return _text(piece, min(_chars(arguments[0]), size))

    return compute


def _replace(_: Context, arguments: _Arguments) -> Typed:
    texts = _texts(arguments)
    grown = max(_chars(arguments[2]) - _chars(arguments[1]), 0) * _chars(arguments[0])
    changed = None
    if texts is not None:
        text, old, new = texts
        count = text.count(old) if old else 0
        _check_size(len(text) + count * (len(new) - len(old)))
        changed = text.replace(old, new) if count else text
    return _text(changed, _chars(arguments[0]) + grown)


def _substring_index(_: Context, arguments: _Arguments) -> Typed:
    count, texts = as_number(arguments[2].value), _texts(arguments[:2])
    if texts is None or count is None:
        return _text(None, _chars(arguments[0]))
    pieces = texts[0].split(texts[1]) if texts[1] else [""]
    chosen = pieces[: int(count)] if count >= 0 else pieces[int(count) :]
    return _text(texts[1].join(chosen), _chars(arguments[0]))


def _hex(context: Context, arguments: _Arguments) -> Typed:
    value, given = arguments[0].value, arguments[0].type
    bytes_per_character = 1 if given.kind is Kind.BINARY else context.literal_character_bytes()
    characters = 16 if given.kind is Kind.INTEGER else given.length * bytes_per_character * 2
    type_ = replace(text_type(characters), decimals=PLAIN_DECIMALS)
    if value is None:
        return Typed(None, type_)
    if isinstance(value, int):
        return Typed(f"{value:X}", type_)
    data = _bytes(context, value)
    _check_size(2 * len(data))
    return Typed(data.hex().upper(), type_)


def _bytes(context: Context, value: SqlValue) -> bytes:
    """Return a value's bytes as those of a literal."""
    return value if isinstance(value, bytes) else context.literal_bytes(as_text(value) or "")


def _unhex(_: Context, arguments: _Arguments) -> Typed:
    text = as_text(arguments[0].value)
    type_ = SqlType(Kind.BINARY, (_chars(arguments[0]) * 4 + 1) // 2, nullable=True)
    try:
        data = None if text is None else bytes.fromhex("0" * (len(text) % 2) + text)
    except ValueError:
        data = None
    return Typed(data, type_)


def _digest(name: str, digits: int) -> Callable[[Context, _Arguments], Typed]:
    def compute(context: Context, arguments: _Arguments) -> Typed:
        value = arguments[0].value
        digest = hashlib.new(name, usedforsecurity=False)
        digest.update(_bytes(context, value))
        return _text(None if value is None else digest.hexdigest(), digits)

    return compute


def _sha2(context: Context, arguments: _Arguments) -> Typed:
    bits = as_number(arguments[1].value)
    size = 256 if bits == 0 else bits
    type_ = text_type(int(size) // 4 if size in _SHA2_BITS and size is not None else 0)
    value = arguments[0].value
    if value is None or size not in _SHA2_BITS:
        return Typed(None, type_)
    digest = hashlib.new(f"sha{size}", _bytes(context, value), usedforsecurity=False)
    return Typed(digest.hexdigest(), type_)


def _crc32(context: Context, arguments: _Arguments) -> Typed:
    value = arguments[0].value
    type_ = SqlType(Kind.INTEGER, 10, nullable=arguments[0].type.nullable, unsigned=True)
    type_ = replace(type_, wire=ColumnType.LONG)
    return Typed(None if value is None else crc32(_bytes(context, value)), type_)


def _found_at(text: Typed, piece: Typed, first: Typed | None = None) -> Typed:
    """Return where a text has a piece, counted from 1, in upper or lower case; 0: nowhere."""
    given = (text, piece) if first is None else (text, piece, first)
    type_ = SqlType(Kind.INTEGER, 11, nullable=any(one.type.nullable for one in given))
    texts = _texts(given)
    if texts is None:
        return Typed(None, replace(type_, wire=ColumnType.LONG))
    start = 1 if first is None else int(as_number(first.value) or 0)
    found = texts[0].lower().find(texts[1].lower(), start - 1) if start > 0 else -1
    return Typed(found + 1, replace(type_, wire=ColumnType.LONG))


def _locate(_: Context, arguments: _Arguments) -> Typed:
    return _found_at(arguments[1], arguments[0], *arguments[2:])


def _instr(_: Context, arguments: _Arguments) -> Typed:
    return _found_at(arguments[0], arguments[1])


def _charset(context: Context, _: _Arguments) -> Typed:
    return _text(str(context.variables.read("character_set_connection", "", context)), 64)


# Fewest and most arguments, and what computes it.
TEXT_FUNCTIONS: Final[dict[str, tuple[int, int, Callable[[Context, _Arguments], Typed]]]] = {
    "CHARACTER_LENGTH": (1, 1, _length(characters=True)),
    "CHARSET": (1, 1, _charset),
    "CHAR_LENGTH": (1, 1, _length(characters=True)),
    "CONCAT": (1, 99, _concat),
    "CONCAT_WS": (2, 99, _concat_ws),
    "CRC32": (1, 1, _crc32),
    "HEX": (1, 1, _hex),
    "INSTR": (2, 2, _instr),
    "LCASE": (1, 1, _mapped(str.lower)),
    "LEFT": (2, 2, _end_of(left=True)),
    "LENGTH": (1, 1, _length(characters=False)),
    "LOCATE": (2, 3, _locate),
    "LOWER": (1, 1, _mapped(str.lower)),
    "LTRIM": (1, 1, _mapped(lambda text: text.lstrip(" "))),
    "MD5": (1, 1, _digest("md5", 32)),
    "OCTET_LENGTH": (1, 1, _length(characters=False)),
    "REPLACE": (3, 3, _replace),
    "REVERSE": (1, 1, _mapped(lambda text: text[::-1])),
    "RIGHT": (2, 2, _end_of(left=False)),
    "RTRIM": (1, 1, _mapped(lambda text: text.rstrip(" "))),
    "SHA": (1, 1, _digest("sha1", 40)),
    "SHA1": (1, 1, _digest("sha1", 40)),
    "SHA2": (2, 2, _sha2),
    "SUBSTR": (2, 3, _substring),
    "SUBSTRING": (2, 3, _substring),
    "SUBSTRING_INDEX": (3, 3, _substring_index),
    "TRIM": (1, 1, _mapped(lambda text: text.strip(" "))),
    "UCASE": (1, 1, _mapped(str.upper)),
    "UNHEX": (1, 1, _unhex),
    "UPPER": (1, 1, _mapped(str.upper)),
}
