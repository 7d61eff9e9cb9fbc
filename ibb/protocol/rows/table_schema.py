"""
The schema of a table as its definition says it: what a table map leaves out.

A type is a text as SHOW CREATE TABLE and information_schema.COLUMNS.COLUMN_TYPE have it:
`int(10) unsigned`, `enum('a','b')`, `varchar(20)`. Where it comes from is the pipeline's concern.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import IbbError

from .column import Column, ColumnType

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPE: Final = re.compile(r"\s*([a-z0-9_]+)(?:\s+(varying|precision))?", re.IGNORECASE)
_BITS: Final = re.compile(r"float\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_FLOAT_BITS_MAX: Final = 24  # FLOAT(25) is a DOUBLE
_SIZED: Final = re.compile(r"(?:blob|text)\s*\(", re.IGNORECASE)  # of whichever kind holds so much
_DIGITS: Final = re.compile(r"[a-z ]+\(\s*(\d)\s*\)", re.IGNORECASE)
_LABEL: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

_INTEGERS: Final = {
    "tinyint": ColumnType.TINY,
    "smallint": ColumnType.SHORT,
    "mediumint": ColumnType.INT24,
    "int": ColumnType.LONG,
    "bigint": ColumnType.LONGLONG,
}
# What a table map has for a type: code, and bytes of the length where those tell it apart.
_TABLE_MAP_TYPES: Final[Mapping[str, frozenset[tuple[ColumnType, int]]]] = {
    **{name: frozenset({(kind, 0)}) for name, kind in _INTEGERS.items()},
    "float": frozenset({(ColumnType.FLOAT, 0)}),
    "double": frozenset({(ColumnType.DOUBLE, 0)}),
    "decimal": frozenset({(ColumnType.NEWDECIMAL, 0)}),
    "bit": frozenset({(ColumnType.BIT, 0)}),
    "year": frozenset({(ColumnType.YEAR, 0)}),
    "date": frozenset({(ColumnType.DATE, 0), (ColumnType.NEWDATE, 0)}),
    "time": frozenset({(ColumnType.TIME, 0), (ColumnType.TIME2, 0)}),
    "datetime": frozenset({(ColumnType.DATETIME, 0), (ColumnType.DATETIME2, 0)}),
    "timestamp": frozenset({(ColumnType.TIMESTAMP, 0), (ColumnType.TIMESTAMP2, 0)}),
    "enum": frozenset({(ColumnType.ENUM, 0)}),
    "set": frozenset({(ColumnType.SET, 0)}),
    **dict.fromkeys(("char", "binary"), frozenset({(ColumnType.STRING, 0)})),
    **dict.fromkeys(("uuid", "inet4", "inet6"), frozenset({(ColumnType.STRING, 0)})),
    **dict.fromkeys(
        ("varchar", "varbinary"),
        frozenset({(ColumnType.VARCHAR, 0), (ColumnType.VARCHAR_COMPRESSED, 0)}),
    ),
    "vector": frozenset({(ColumnType.VARCHAR, 0)}),  # the bytes of its floats
    **{
        name: frozenset({(ColumnType.BLOB, prefix), (ColumnType.BLOB_COMPRESSED, prefix)})
        for prefix, names in enumerate(
            (("tinyblob", "tinytext"), ("blob", "text"), ("mediumblob", "mediumtext")), 1
        )
        for name in names
    },
    **dict.fromkeys(
        ("longblob", "longtext", "json"),
        frozenset({(ColumnType.BLOB, 4), (ColumnType.BLOB_COMPRESSED, 4)}),
    ),
    **dict.fromkeys(
        (
            *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
            *("multipolygon", "geometrycollection"),
        ),
        frozenset({(ColumnType.GEOMETRY, 4)}),
    ),
}
_SYNONYMS: Final = {
    "bool": "tinyint",
    "boolean": "tinyint",
    "int1": "tinyint",
    "int2": "smallint",
    "int3": "mediumint",
    "middleint": "mediumint",
    "int4": "int",
    "integer": "int",
    "int8": "bigint",
    "serial": "bigint",
    "real": "double",
    "float8": "double",
    "float4": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal",
    "number": "decimal",
    "character": "char",
    "nchar": "char",
    "nvarchar": "varchar",
    "long": "mediumtext",
    "clob": "longtext",
    "varchar2": "varchar",
    "raw": "varbinary",
}
SPECIAL: Final = frozenset({"uuid", "inet4", "inet6"})


class SchemaError(IbbError):
    """A schema says what cannot be."""


class ColumnSchema(NamedTuple):
    """
    One column of a definition.

    Args:
        name: as it is written.
        type_text: as SHOW CREATE TABLE has it, with `unsigned` and labels.
        charset: of strings, ENUM and SET; None for all others, and for bytes.
        visible: whether SELECT * has it.
    """

    name: str
    type_text: str
    charset: str | None = None
    visible: bool = True

    @property
    def type_name(self) -> str:
        """The type by MariaDB's own word: `int` for INTEGER, `varchar` for CHARACTER VARYING."""
        found = _TYPE.match(self.type_text)
        if found is None:
            raise SchemaError(f"column `{self.name}` has no type: {self.type_text!r}")
        name, more = found[1].lower(), (found[2] or "").lower()
        name = _SYNONYMS.get(name, name)
        bits = _BITS.match(self.type_text)
        if bits and int(bits[1]) > _FLOAT_BITS_MAX:
            return "double"
        if more == "varying" or (name == "mediumtext" and " varchar" in self.type_text.lower()):
            name = "varchar" if name == "char" else name
        return name

    @property
    def unsigned(self) -> bool:
        """Whether a number has no sign."""
        behind = self.type_text.rpartition(")")[2].lower().split()
        words = behind or self.type_text.lower().split()
        is_always = words[:1] == ["serial"] or self.type_name == "year"
        return is_always or "unsigned" in words or "zerofill" in words

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of ENUM and SET."""
        return tuple(_unquoted(found[1]) for found in _LABEL.finditer(self.type_text))

    @property
    def fraction_digits(self) -> int:
        """The digits of a moment's second behind the point."""
        found = _DIGITS.match(self.type_text)
        return int(found[1]) if found else 0

    @property
    def special(self) -> str | None:
        """The type, if it comes as bytes and is shown as something else."""
        name = self.type_name
        return name if name in SPECIAL else None

    @property
    def holds_bytes(self) -> bool:
        """Whether it is of a type of bytes without any character set."""
        name = self.type_name
        return name in SPECIAL or name.endswith(("binary", "blob", "vector"))

    def fits(self, column: Column) -> bool:
        """Return whether a table map's column can be this one."""
        types = _TABLE_MAP_TYPES.get(self.type_name)
        if types is None:
            raise SchemaError(f"column `{self.name}` has the unknown type {self.type_text!r}")
        is_sized = _SIZED.match(self.type_text) is not None
        return any(
            column.type is kind and (is_sized or not prefix or column.prefix == prefix)
            for kind, prefix in types
        )


class TableSchema(NamedTuple):
    """
    A table's definition.

    Args:
        columns: in their order, hidden ones too.
        key: names of the columns of the primary key.
    """

    columns: tuple[ColumnSchema, ...]
    key: tuple[str, ...] = ()


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else "'", text)
