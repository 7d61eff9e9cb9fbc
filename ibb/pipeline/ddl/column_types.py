"""
The Arrow type of a column by its definition: the one that the row decoder gives its values.

`ibb.protocol.rows.column_form` decides by the table map; a definition comes before any row.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from .cursor import UnclearError

_TYPE: Final = re.compile(r"([a-z0-9_]+)(?: (varying|precision))?(?:\(([^)]*)\))?(.*)", re.DOTALL)
_INTEGERS: Final = {
    **dict.fromkeys(("tinyint", "bool", "boolean", "int1"), (pa.int8(), pa.int16())),
    **dict.fromkeys(("smallint", "int2"), (pa.int16(), pa.int32())),
    **dict.fromkeys(("mediumint", "middleint", "int3"), (pa.int32(), pa.int32())),
    **dict.fromkeys(("int", "integer", "int4"), (pa.int32(), pa.int64())),
    **dict.fromkeys(("bigint", "int8"), (pa.int64(), pa.decimal128(20, 0))),
}
_DECIMALS: Final = frozenset({"decimal", "dec", "numeric", "fixed", "number"})
_TEXTS: Final = frozenset(
    {"char", "character", "nchar", "varchar", "varchar2", "nvarchar", "tinytext", "text"}
    | {"mediumtext", "longtext", "json", "clob", "long"}
)
_PLAIN: Final = {
    "float4": pa.float32(),
    **dict.fromkeys(("double", "real", "float8"), pa.float64()),
    "year": pa.int16(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "time": pa.int64(),
    **dict.fromkeys(("enum", "set", "uuid", "inet4", "inet6"), pa.string()),
    **dict.fromkeys(("binary", "varbinary", "raw", "tinyblob", "blob"), pa.binary()),
    **dict.fromkeys(("mediumblob", "longblob", "geometry", "point"), pa.binary()),
    **dict.fromkeys(("linestring", "polygon", "multipoint", "multilinestring"), pa.binary()),
    **dict.fromkeys(("multipolygon", "geometrycollection"), pa.binary()),
}
_FLOAT_DIGITS_MAX: Final = 24  # binary ones; FLOAT(25) is a double
_DECIMAL128_DIGITS_MAX: Final = 38


def base_type(type_text: str) -> str:
    """Return the first word of a type."""
    match = _TYPE.match(type_text)
    return match[1] if match else ""


def arrow_type_of(type_text: str, charset: str = "") -> pa.DataType:
    """
    Return the type of a column as a change table has it.

    Args:
        type_text: `int(10) unsigned`, `decimal(10,2)`, in lower case but for labels.
        charset: of texts; "binary" makes them bytes.

    Raises:
        UnclearError: there is no such type.
    """
    match = _TYPE.match(type_text)
    if match is None:
        raise UnclearError(f"the type {type_text}")
    name, more, size, behind = match[1], match[2], match[3] or "", match[4]
    if name in _INTEGERS:
        signed, unsigned = _INTEGERS[name]
        return unsigned if re.search("unsigned|zerofill", behind) else signed
    if name in _DECIMALS:
        digits, _, scale = size.partition(",")
        precision = int(digits or 10)
        if precision > _DECIMAL128_DIGITS_MAX:
            return pa.string()
        return pa.decimal128(precision, int(scale or 0))
    if name == "bit":
        length = int(size or 1)
        wide = pa.decimal128(20, 0) if length == 64 else pa.int64()
        return pa.bool_() if length == 1 else wide
    if name == "float":
        is_double = size and "," not in size and int(size) > _FLOAT_DIGITS_MAX
        return pa.float64() if is_double else pa.float32()
    if name in _TEXTS:
        is_bytes = charset == "binary" and name != "json"
        return pa.binary() if is_bytes or "varbinary" in (more or "") else pa.string()
    if name == "year" and size == "2":
        raise UnclearError(
            "YEAR(2) has no century at the server, and one in the binlog: make it YEAR"
        )
    if name in _PLAIN:
        return _PLAIN[name]
    raise UnclearError(f"the type {type_text}")
