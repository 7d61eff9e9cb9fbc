"""
Keys of rows as text of one length, so that every kind of key is compared in one way.

A key is the exact value that the binlog holds, not what a collation thinks of it. That is right
for `a` and `A` under a `_ci` collation too: a change names the row it is about by the image
before, which holds what was stored, so the text changes from one to the other as the row does.
Floats go by their bits (-0.0 is not 0.0), numbers by their value whatever their width.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

KEY_COLUMN: Final = "_ibb_key"
DIGEST_BYTES: Final = 16
DIGEST_CHARACTERS: Final = 2 * DIGEST_BYTES

_DOUBLE: Final = struct.Struct("<d")
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def row_key(values: Iterable[object]) -> str:
    """
    Return the key of a row whose key columns hold *values*: 32 hexadecimal digits.

    Raises:
        PipelineError: a value is of a kind that cannot be a key.
    """
    parts = []
    for value in values:
        data = _encoded(value)
        parts.append(b"%d:" % len(data))
        parts.append(data)
    return blake2b(b"".join(parts), digest_size=DIGEST_BYTES).hexdigest()


def row_keys(table: pa.Table, columns: Sequence[str]) -> list[str]:
    """Return the key of each row of *table* by its *columns*."""
    values = (table.column(name).to_pylist() for name in columns)
    return [row_key(key) for key in zip(*values, strict=True)]


def _encoded(value: object) -> bytes:
    """Return bytes that differ for values that differ: a letter for the kind, then the value."""
    if isinstance(value, str):
        return b"s" + value.encode(errors="surrogatepass")
    if isinstance(value, int):
        return b"n%d" % value
    if value is None:
        return b""
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, Decimal):
        return b"n" + _plain(value).encode()
    if isinstance(value, float):
        return b"f" + _DOUBLE.pack(value)
    if isinstance(value, dt.date | dt.time):
        return b"t" + value.isoformat().encode()
    if isinstance(value, dt.timedelta):
        return b"n%d" % (value // _MICROSECOND)
    raise PipelineError(f"a value of type {type(value).__name__} cannot be part of a key")


def _plain(value: Decimal) -> str:
    """Return *value* without trailing zeros: 1.50 and 1.5 are one key, before ALTER and after."""
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
