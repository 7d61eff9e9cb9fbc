"""A column as CREATE and ALTER TABLE define it, and the value that rows have which were there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .cursor import Cursor, UnclearError
from .tokens import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPE_WORDS: Final = frozenset({"UNSIGNED", "SIGNED", "ZEROFILL", "PRECISION", "VARYING"})
_BYTES: Final = re.compile(r"0?([xXbB])([0-9a-fA-F]*)")  # 0x61, x'61', 0b1100001, b'1100001'
_COMPUTED: Final = frozenset({"AS", "GENERATED"})
_STORED: Final = frozenset({"PERSISTENT", "STORED"})


@dataclass(frozen=True)
class ColumnDefinition:
    """
    One column.

    Args:
        name: as written.
        type_text: as information_schema has it: `int(10) unsigned`, `enum('a','b')`.
        charset: in lower case, where the definition names one: "binary" too.
        nullable: whether it may be NULL.
        says_null: whether the definition has the word NULL.
        default: of rows that do not name it: a literal, or None.
        has_default: whether there is a DEFAULT clause that is a literal.
        is_quoted: whether that is a text.
        is_key: whether the definition makes it the primary key.
        computed: why rows that are there cannot be told its value; empty: they can.
        generated: "virtual" or "stored", if it is computed from others; else "".
        place: "", "FIRST" or the name of the column that it stands behind.
    """

    name: str
    type_text: str
    charset: str = ""
    nullable: bool = True
    says_null: bool = False
    default: str | None = None
    has_default: bool = False
    is_quoted: bool = False
    is_key: bool = False
    computed: str = ""
    generated: str = ""
    place: str = ""


def read_definition(name: str, cursor: Cursor) -> ColumnDefinition:
    """
    Read what stands behind a column's *name*.

    Raises:
        UnclearError: something in it is not known.
    """
    type_text, charset = _read_type(cursor)
    found: dict[str, object] = {"charset": charset}
    while not cursor.at_end:
        _read_attribute(cursor, found)
    return ColumnDefinition(name, type_text, **found)  # type: ignore[arg-type]


def _read_type(cursor: Cursor) -> tuple[str, str]:
    words = [cursor.name().lower()]
    if words == ["national"]:
        words = [cursor.name().lower()]
    if words == ["long"] and cursor.peek().word in ("VARCHAR", "VARBINARY"):
        words = ["mediumtext" if cursor.take().word == "VARCHAR" else "mediumblob"]
    while word := cursor.any_of(*_TYPE_WORDS):
        words.append(word.lower())
    text = " ".join(words)
    if cursor.peek().value == "(" and cursor.peek().kind == "sign":
        inside = cursor.group()
        if words[0] in ("enum", "set"):
            inside = _labels(Cursor(inside))
        text += "(" + "".join(_literal(token) for token in inside) + ")"
    while word := cursor.any_of(*_TYPE_WORDS):
        text += " " + word.lower()
    return text, "binary" if cursor.words("BYTE") else ""


def _labels(cursor: Cursor) -> list[Token]:
    """Return labels and the commas between them, with texts for those that are numbers of bytes."""
    found = []
    while not cursor.at_end:
        token = cursor.take()
        digits = _BYTES.fullmatch(token.value) if token.kind == "word" else None
        if digits:
            base, text = digits[1], digits[2]
            if not text and cursor.peek().kind == "text":
                text = cursor.take().value
            token = Token("text", _of_bytes(base, text))
        found.append(token)
    return found


def _of_bytes(base: str, digits: str) -> str:
    """Return the text whose bytes *digits* are, hexadecimal or binary ones."""
    is_binary = base in "bB"
    try:
        size = -(-len(digits) // (8 if is_binary else 2))
        return int(digits, 2 if is_binary else 16).to_bytes(size, "big").decode("ascii")
    except ValueError:
        raise UnclearError(f"the label {base}'{digits}', which is no ASCII") from None


def _literal(token: Token) -> str:
    return "'" + token.value.replace("'", "''") + "'" if token.kind == "text" else token.value


def _read_attribute(cursor: Cursor, found: dict[str, object]) -> None:
    word = cursor.take().word
    if word == "NOT" and cursor.words("NULL"):
        found["nullable"] = False
    elif word in (
        "NULL",
        "UNIQUE",
        "VISIBLE",
        "INVISIBLE",
        "KEY",
        "UNICODE",
        "ASCII",
        "PERSISTENT",
    ):
        if word == "KEY":
            found.update(is_key=True, nullable=False)
        if word == "NULL":
            found["says_null"] = True
        if word == "UNIQUE":
            cursor.words("KEY")
    elif word == "PRIMARY" and cursor.words("KEY"):
        found.update(is_key=True, nullable=False)
    elif word == "DEFAULT":
        _read_default(cursor, found)
    elif word == "ON" and cursor.words("UPDATE"):
        cursor.name()
        _skip_group(cursor)
    elif word == "COMMENT":
        cursor.take()
    elif word in ("CHARACTER", "CHARSET"):
        if word == "CHARACTER" and not cursor.words("SET"):
            raise UnclearError("CHARACTER without SET")
        cursor.sign("=")
        found["charset"] = cursor.take().value.lower()
    elif word == "COLLATE":
        cursor.sign("=")
        collation = cursor.take().value.lower()
        found["charset"] = found["charset"] or collation.partition("_")[0]
    elif word == "BINARY":
        pass  # a collation, for strings
    elif word == "AUTO_INCREMENT":
        found["computed"] = "AUTO_INCREMENT numbers them"
    elif word in _COMPUTED:
        found["generated"] = _read_generated(cursor)
        found["computed"] = "the server computes them"
    elif word == "CHECK":
        cursor.group()
    elif word == "REFERENCES":
        cursor.rest()
    elif word == "CONSTRAINT":
        if cursor.peek().word != "CHECK":
            cursor.name()
    elif word == "COMPRESSED":
        cursor.sign("=")
        cursor.any_of("ZLIB")
    elif word == "FIRST":
        found["place"] = "FIRST"
    elif word == "AFTER":
        found["place"] = cursor.name()
    elif word == "REF_SYSTEM_ID":
        cursor.sign("=")
        cursor.take()
    else:
        raise UnclearError(f"{word or 'a sign'} in the definition of a column")


def _read_default(cursor: Cursor, found: dict[str, object]) -> None:
    sign = "-" if cursor.sign("-") else ""
    token = cursor.peek()
    if token.kind in ("text", "number"):
        cursor.take()
        is_quoted = token.kind == "text"
        found.update(default=sign + token.value, has_default=True, is_quoted=is_quoted)
    elif token.word == "NULL":
        cursor.take()
    elif token.word in ("TRUE", "FALSE"):
        cursor.take()
        found.update(default="1" if token.word == "TRUE" else "0", has_default=True)
    else:
        if token.kind == "sign":
            cursor.group()
        else:
            cursor.take()
            _skip_group(cursor)
        found["computed"] = "their value is an expression"


def _read_generated(cursor: Cursor) -> str:
    cursor.any_of("ALWAYS")
    cursor.any_of("AS")
    if cursor.any_of("ROW"):
        raise UnclearError("system versioning")
    cursor.group()
    return "stored" if cursor.any_of("VIRTUAL", "PERSISTENT", "STORED") in _STORED else "virtual"


def _skip_group(cursor: Cursor) -> None:
    if cursor.peek().value == "(" and cursor.peek().kind == "sign":
        cursor.group()


def key_columns(tokens: Sequence[Token]) -> tuple[str, ...]:
    """
    Return the names in the brackets of a key.

    Raises:
        UnclearError: it is a key over a part of a column.
    """
    inside = Cursor(tokens)
    names = [inside.name()]
    while not inside.at_end:
        if inside.peek().value == "(":
            raise UnclearError("a key over a part of a column")
        inside.any_of("ASC", "DESC")
        if inside.sign(","):
            names.append(inside.name())
    return tuple(names)
