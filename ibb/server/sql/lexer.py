"""Cut the text of SQL statements into tokens: enough SQL for what clients send a primary."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from ibb.protocol.error_codes import PARSE_ERROR
from ibb.protocol.errors import SqlError

TOKENS_MAX: Final = 4096  # of one text; the longest statement known, of a JDBC driver, has 200
_NEAR_CHARS: Final = 80  # of the statement that a syntax error quotes


class Kind(Enum):
    """What a token is."""

    WORD = auto()  # keyword or name, as written
    QUOTED = auto()  # `name`
    STRING = auto()  # text between quotes, escapes resolved
    NUMBER = auto()
    USER_VARIABLE = auto()  # @name, without the @
    SYSTEM_VARIABLE = auto()  # @@scope.name or @@name, without the @@
    BYTES = auto()  # x'6162', 0x6162, b'01': the bytes in hexadecimal
    SIGN = auto()
    END = auto()


class Token(NamedTuple):
    """One token, and where it stands in the text."""

    kind: Kind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Tell whether this is one of the keywords *words*, given in upper case."""
        return self.kind is Kind.WORD and self.text.upper() in words

    def is_sign(self, sign: str) -> bool:
        """Tell whether this is the sign *sign*."""
        return self.kind is Kind.SIGN and self.text == sign


_NAME: Final = r"[A-Za-z0-9_$\u0080-\U0010ffff]+"
NULL_SIGN: Final = "\\N"
_ANY_NAME: Final = rf"(?:{_NAME}|`[^`]*`)"
_TOKEN: Final = re.compile(
    rf"""
      (?P<SKIP>       (?: \s+ | \#[^\n]* | --(?=\s|$)[^\n]* | /\*.*?\*/ )++ )
    | (?P<BYTES>    0x[0-9A-Fa-f]+(?![0-9A-Za-z_$]) | 0b[01]+(?![0-9A-Za-z_$])
                      | [xX]'(?:[0-9A-Fa-f]{{2}})*+' | [bB]'[01]*' )
    | (?P<SYSTEM_VARIABLE> @@ {_ANY_NAME} (?:\s*\.\s*{_ANY_NAME})*+ )
    | (?P<USER_VARIABLE>   @ (?: [A-Za-z0-9_$.\u0080-\U0010ffff]+ | `[^`]*` | '[^']*' | "[^"]*" ) )
    | (?P<NUMBER>     (?: [0-9]+ (?:\.[0-9]*)? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )?
                      (?![A-Za-z_$\u0080-\U0010ffff]) )
    | (?P<WORD>       {_NAME} | \\N\b )
    | (?P<STRING>     ' (?: [^'\\]++ | \\. | '' )*+ ' | " (?: [^"\\]++ | \\. | "" )*+ " )
    | (?P<QUOTED>     ` (?: [^`]++ | `` )*+ ` )
    | (?P<SIGN>       := | <=> | <= | >= | <> | != | << | >> | \|\| | &&
                      | /(?!\*) | [=,().;*+\-<>!%&|^~?] )
    """,
    re.VERBOSE | re.DOTALL,
)
_VERSION_COMMENT: Final = re.compile(r"/\*(M?)!([0-9]{5,6})?(.*?)\*/", re.DOTALL)
_OWN_VERSION: Final = 101199  # comments for this version or an earlier one are executed
_MYSQL_ONLY: Final = range(
    50700, 100000
)  # versions of MySQL that MariaDB does not count as its own
# What has no end takes the rest: looking for it from each quote again would take quadratic time.
_LITERAL_OR_COMMENT: Final = re.compile(
    r"""
      ' (?: [^'\\]++ | \\. )*+ (?: ' | \\?\Z ) | " (?: [^"\\]++ | \\. )*+ (?: " | \\?\Z )
    | ` [^`]*+ (?: ` | \Z ) | /\* (?: .*?\*/ | .*+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED_CHARS: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "b": "\b",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",  # for LIKE
}


def uncommented(sql: str) -> str:
    """Return *sql* with what version comments hold for us (`/*!50000 ... */`) in their place."""
    if "/*!" not in sql and "/*M!" not in sql:
        return sql

    def executed(match: re.Match[str]) -> str:
        comment = _VERSION_COMMENT.fullmatch(match[0])
        if comment is None:
            return match[0]
        version = int(comment[2] or 0)
        foreign = version in _MYSQL_ONLY and not comment[1]
        return " " if foreign or version > _OWN_VERSION else comment[3]

    return _LITERAL_OR_COMMENT.sub(executed, sql)


def tokens(sql: str) -> list[Token]:
    """
    Return the tokens of *sql*, blanks and comments left out, with an END token behind them.

    Raises:
        SqlError: 1064, there is something else in it, or more than `TOKENS_MAX` tokens.
    """
    found: list[Token] = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None or len(found) == TOKENS_MAX:
            raise syntax_error(sql, at)
        at = match.end()
        if match.lastgroup != "SKIP":
            assert match.lastgroup is not None
            kind = Kind[match.lastgroup]
            found.append(Token(kind, _meaning(kind, match[0]), match.start(), at))
    found.append(Token(Kind.END, "", at, at))
    return found


def syntax_error(sql: str, at: int, begin: int = 0) -> SqlError:
    """Return error 1064 for what goes wrong at *at*, in the statement that begins at *begin*."""
    return PARSE_ERROR.error(sql[at : at + _NEAR_CHARS], sql.count("\n", begin, at) + 1)


def _meaning(kind: Kind, text: str) -> str:
    """Return a token's text without quotes, escapes and the signs that tell its kind."""
    if kind is Kind.STRING:
        return _unescaped(text)
    if kind is Kind.QUOTED:
        return text[1:-1].replace("``", "`")
    if kind is Kind.BYTES:
        return _hexadecimal(text)
    if kind is Kind.USER_VARIABLE:
        return text[2:-1] if text[1] in "`'\"" else text[1:]
    if kind is Kind.WORD:
        return "NULL" if text == NULL_SIGN else text
    if kind is Kind.SYSTEM_VARIABLE:
        return "".join(text[2:].replace("`", "").split())
    return text


def _hexadecimal(literal: str) -> str:
    """Return the digits of a literal of bytes, two for each."""
    digits = literal[2:].rstrip("'")
    if literal[0] in "bB" or literal[1] == "b":
        digits = f"{int(digits, 2):x}" if digits else ""
    return digits if len(digits) % 2 == 0 else f"0{digits}"


def _unescaped(literal: str) -> str:
    quote = literal[0]

    def plain(match: re.Match[str]) -> str:
        char = match[1]
        if char is not None:
            return _ESCAPED_CHARS.get(char, char)
        return quote if match[0] == quote * 2 else match[0]

    return _ESCAPE.sub(plain, literal[1:-1])
