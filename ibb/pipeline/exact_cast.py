"""
Values of an older version of a column as the type that it has now, where that says the same.

Only what is listed here is cast: where the value stays what it is and MariaDB's own conversion
gives the same. Arrow would cast times and texts by their internal numbers.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_FLOATS: Final = frozenset({"float", "double"})
_TEXTS: Final = frozenset({"char", "varchar", "text"})
_BYTES: Final = frozenset({"varbinary", "blob"})
# By the words that types begin with: to what each may be cast.
_PAIRS: Final = {
    **dict.fromkeys(_INTEGERS, _INTEGERS | _FLOATS | _TEXTS | {"decimal"}),
    **dict.fromkeys(_FLOATS, _FLOATS),
    **dict.fromkeys(_TEXTS, _TEXTS),
    **dict.fromkeys(_BYTES, _BYTES),
    "decimal": _TEXTS | {"decimal"},
    "bit": _INTEGERS | {"bit"},
    "year": _INTEGERS,
    "binary": _BYTES,
    "enum": _TEXTS,
    "set": _TEXTS | {"set"},
    "date": frozenset({"datetime"}),
    "datetime": frozenset({"date"}),
}
# What a cast of Arrow's to these leaves out, it does not say.
_MAY_LOSE: Final = _FLOATS | {"date", "bit"}


def exact_cast(values: pa.Array, old: str, kind: pa.DataType, new: str) -> pa.Array:
    """
    Return *values* as another type, none of them changed.

    Args:
        values: of a column as it was.
        old: what it was, by `origin_of`.
        kind: that they are to have.
        new: what the column is now, likewise; empty: a user has said no more than *kind*.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: the types are none of those that are cast, or a
            value has no exact counterpart.
    """
    if values.type == kind and new in ("", old):
        return values
    new = new or _origin_for(kind)
    if not _is_listed(old, new) or not _is_of_one_form(values.type, kind, new):
        raise pa.ArrowInvalid("values of the one are not surely the same as the other")
    target = _base(new)
    if target == "char" and pc.any(pc.ends_with(values.cast(kind), " "), min_count=0).as_py():
        raise pa.ArrowInvalid("CHAR has no spaces at its end")
    if pa.types.is_decimal(values.type) and target in _TEXTS:
        return pa.array([None if v is None else f"{v:f}" for v in values.to_pylist()], kind)
    cast = values.cast(kind)
    if target in _MAY_LOSE and not _is_same(cast.cast(values.type, safe=False), values):
        raise pa.ArrowInvalid("a value would change")
    return cast


def _is_listed(old: str, new: str) -> bool:
    """Tell whether the two types are a pair that is cast."""
    if old == new:
        return True
    one, other = _base(old), _base(new)
    if one == other == "set":
        return _is_in_order(old, new)
    if "unsigned" in old and other in _TEXTS:
        return False  # ZEROFILL, which the binlog does not tell, would put zeros in front
    if one == other == "enum":
        return True
    return other in _PAIRS.get(one, frozenset())


def _is_of_one_form(old: pa.DataType, new: pa.DataType, origin: str) -> bool:
    """Refuse texts that stand for another type (numbers, dates), and are none of a text column."""
    texts = pa.types.is_string(old), pa.types.is_string(new)
    is_text = _base(origin) in _TEXTS | {"enum", "set"}
    return texts[1] == is_text and not (texts[0] and not is_text)


def _is_in_order(old: str, new: str) -> bool:
    """Tell whether a SET has all labels of another, in their order: only so it is shown alike."""
    labels = iter(new[len("set(") : -1].split(","))
    return all(label in labels for label in old[len("set(") : -1].split(","))


def _base(origin: str) -> str:
    return origin.partition("(")[0].partition(" ")[0]


def _origin_for(kind: pa.DataType) -> str:
    """Return the type of MariaDB that a user means by one of Arrow."""
    for is_kind, origin in (
        (pa.types.is_integer, "bigint"),
        (pa.types.is_floating, "double"),
        (pa.types.is_decimal, "decimal"),
        (pa.types.is_string, "text"),
        (pa.types.is_binary, "blob"),
        (pa.types.is_date, "date"),
    ):
        if is_kind(kind):
            return origin
    return "datetime" if kind == pa.timestamp("us") else ""


def _is_same(back: pa.Array, values: pa.Array) -> bool:
    return bool(pc.all(pc.equal(back, values), min_count=0).as_py())
