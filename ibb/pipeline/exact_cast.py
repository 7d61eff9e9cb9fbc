"""
Values of an older version of a column as the type that it has now, where that says the same.

Arrow's own cast refuses what does not fit into an integer or a decimal, but cuts the time off a
DATETIME and digits off a DOUBLE, takes any number for true, and puts times into a zone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def exact_cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """
    Return *values* as another type, none of them changed.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: a value has no exact counterpart.
    """
    if pa.types.is_decimal(values.type) and pa.types.is_string(kind):
        return pa.array([None if v is None else f"{v:f}" for v in values.to_pylist()], kind)
    _check_zones(values, kind)
    cast = values.cast(kind)
    if _may_lose(values.type, kind) and not _is_same(cast.cast(values.type, safe=False), values):
        raise pa.ArrowInvalid(f"Casting from {values.type} to {kind} would change a value")
    return cast


def _check_zones(values: pa.Array, kind: pa.DataType) -> None:
    """Refuse to put a DATETIME into a zone, or a TIMESTAMP out of it: nobody says into which."""
    both = (values.type, kind)
    zones = {one.tz for one in both if pa.types.is_timestamp(one)}
    if len(zones) > 1 and values.null_count < len(values):
        raise pa.ArrowInvalid(f"{both[0]} and {both[1]} differ by a time zone that is not known")


def _may_lose(old: pa.DataType, new: pa.DataType) -> bool:
    is_cut = pa.types.is_timestamp(old) and pa.types.is_date(new)
    is_rounded = not pa.types.is_string(old) and (
        pa.types.is_floating(new) or (pa.types.is_floating(old) and pa.types.is_decimal(new))
    )
    return is_cut or is_rounded or (pa.types.is_boolean(new) and not pa.types.is_string(old))


def _is_same(back: pa.Array, values: pa.Array) -> bool:
    return bool(pc.all(pc.equal(back, values), min_count=0).as_py())
