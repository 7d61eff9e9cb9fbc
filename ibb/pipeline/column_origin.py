"""What a column of MariaDB is, as far as that tells what its values mean: `int`, `set('a','b')`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.rows.column import COMPRESSED, STRINGS, ColumnType

if TYPE_CHECKING:
    from ibb.protocol.rows.table_layout import ColumnLayout

_NAMES: Final = {
    ColumnType.TINY: "tinyint",
    ColumnType.SHORT: "smallint",
    ColumnType.INT24: "mediumint",
    ColumnType.LONG: "int",
    ColumnType.LONGLONG: "bigint",
    ColumnType.FLOAT: "float",
    ColumnType.DOUBLE: "double",
    ColumnType.YEAR: "year",
    ColumnType.DATE: "date",
    ColumnType.NEWDATE: "date",
    ColumnType.DATETIME: "datetime",
    ColumnType.DATETIME2: "datetime",
    ColumnType.TIMESTAMP: "timestamp",
    ColumnType.TIMESTAMP2: "timestamp",
    ColumnType.TIME: "time",
    ColumnType.TIME2: "time",
    ColumnType.ENUM: "enum",
    ColumnType.GEOMETRY: "geometry",
}
_VARYING: Final = COMPRESSED | {ColumnType.VARCHAR, ColumnType.VAR_STRING}


def origin_of(layout: ColumnLayout) -> str:
    """
    Return the type of a column, without what changes no value.

    That is the length of texts, their character set, the digits of a second, labels of an ENUM.
    """
    column = layout.column
    kind = column.type
    if kind in STRINGS:
        return layout.special or _string(layout)
    if kind is ColumnType.BIT:
        return f"bit({column.length})"
    if kind is ColumnType.SET:
        labels = ",".join(f"'{label}'" for label in layout.labels or ())
        return f"set({labels})"  # a label has no comma
    if kind is ColumnType.NEWDECIMAL:
        name = f"decimal({column.length},{column.scale})"
    else:
        name = _NAMES.get(kind, kind.name.lower())
    is_year = kind is ColumnType.YEAR  # which a primary says to have no sign
    return f"{name} unsigned" if layout.unsigned and not is_year else name


def _string(layout: ColumnLayout) -> str:
    kind = layout.column.type
    is_text = layout.charset not in (None, "binary")
    if kind is ColumnType.STRING:
        return "char" if is_text else f"binary({layout.column.length})"
    if kind in _VARYING:
        return "varchar" if is_text else "varbinary"
    return "text" if is_text else "blob"
