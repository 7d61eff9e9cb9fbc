"""
What a table map says besides types, if the primary has binlog_row_metadata: names, signs, keys.

Each field is u8 type, lenenc length, value. Bits are counted from the highest of the first byte.
MINIMAL has signs, character sets and geometry types; FULL all of it; NO_LOG, the default, nothing.
Source: dump-protocol 4.9b, and what MariaDB 10.11 writes: there BIT is no number, YEAR is one, and
geometry counts as a string.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError
from ibb.protocol.fields import FieldReader

from .column import INTEGER_BYTES, STRINGS, Column, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NUMBERS: Final = frozenset(INTEGER_BYTES) | {
    ColumnType.FLOAT,
    ColumnType.DOUBLE,
    ColumnType.NEWDECIMAL,
    ColumnType.YEAR,
}
_CHARACTERS: Final = STRINGS | {ColumnType.GEOMETRY}
_LABELLED: Final = frozenset({ColumnType.ENUM, ColumnType.SET})


class MetadataField(IntEnum):
    """Fields of the optional metadata."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_STR_VALUE = 5
    ENUM_STR_VALUE = 6
    GEOMETRY_TYPE = 7
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    ENUM_AND_SET_DEFAULT_CHARSET = 10
    ENUM_AND_SET_COLUMN_CHARSET = 11
    COLUMN_VISIBILITY = 12


@dataclass(slots=True)
class OptionalMetadata:
    """
    What is known of the columns, by their numbers from 0; empty where it is not said.

    Args:
        unsigned: whether a number has no sign.
        collations: of strings, ENUM and SET; 63 is binary.
        names: of all columns, or none.
        labels: of ENUM and SET, in the bytes of their character set.
        geometry: number of the geometry's kind.
        key: columns of the primary key in its order; None if not said, or there is none.
        key_prefixes: characters of a column that are in the key, where it is not all of them.
        visible: whether SELECT * has it.
    """

    unsigned: dict[int, bool] = field(default_factory=dict)
    collations: dict[int, int] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    labels: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    geometry: dict[int, int] = field(default_factory=dict)
    key: tuple[int, ...] | None = None
    key_prefixes: dict[int, int] = field(default_factory=dict)
    visible: dict[int, bool] = field(default_factory=dict)


def read_optional_metadata(reader: FieldReader, columns: Sequence[Column]) -> OptionalMetadata:
    """
    Read all fields to the end of *reader*; those of unknown types are passed over.

    Raises:
        FormatError: a field is cut, is there twice, or speaks of columns that are not there.
    """
    found = OptionalMetadata()
    seen = set()
    while reader.remaining:
        code = reader.u8()
        if code in seen:
            raise FormatError(f"field {code} of a table map's metadata is there twice")
        size = reader.lenenc()
        start = reader.offset
        reader.skip(size)
        read = _READERS.get(code)
        if read is None:
            continue
        seen.add(code)
        inner = FieldReader(reader.data[: start + size], start, what="table map's metadata")
        read(inner, columns, found)
    return found


def _numbers_of(columns: Sequence[Column], types: frozenset[ColumnType]) -> list[int]:
    return [number for number, column in enumerate(columns) if column.type in types]


def _bits(reader: FieldReader, numbers: Sequence[int]) -> dict[int, bool]:
    data = reader.take((len(numbers) + 7) // 8)
    return {
        number: bool(data[index // 8] & 0x80 >> index % 8) for index, number in enumerate(numbers)
    }


def _signs(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
    found.unsigned = _bits(reader, _numbers_of(columns, _NUMBERS))


def _visibility(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
    found.visible = _bits(reader, range(len(columns)))


def _defaults(types: frozenset[ColumnType]) -> _Reader:
    def read(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
        numbers = _numbers_of(columns, types)
        found.collations |= dict.fromkeys(numbers, reader.lenenc())
        while reader.remaining:
            number = _pick(numbers, reader.lenenc())
            found.collations[number] = reader.lenenc()

    return read


def _each(types: frozenset[ColumnType]) -> _Reader:
    def read(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
        found.collations |= {number: reader.lenenc() for number in _numbers_of(columns, types)}

    return read


def _names(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
    found.names = tuple(reader.lestr().decode(errors="replace") for _ in columns)


def _labels(kind: ColumnType) -> _Reader:
    def read(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
        for number in _numbers_of(columns, frozenset({kind})):
            count = reader.lenenc()
            if count > reader.remaining:
                raise FormatError(f"{count} labels in {reader.remaining} bytes of a table map")
            found.labels[number] = tuple(reader.lestr() for _ in range(count))

    return read


def _geometry(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
    numbers = _numbers_of(columns, frozenset({ColumnType.GEOMETRY}))
    found.geometry = {number: reader.lenenc() for number in numbers}


def _key(reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata) -> None:
    every = range(len(columns))
    key = []
    while reader.remaining:
        key.append(_pick(every, reader.lenenc()))
    found.key = tuple(key)


def _key_with_prefix(
    reader: FieldReader, columns: Sequence[Column], found: OptionalMetadata
) -> None:
    every = range(len(columns))
    key = []
    while reader.remaining:
        number = _pick(every, reader.lenenc())
        key.append(number)
        if characters := reader.lenenc():
            found.key_prefixes[number] = characters
    found.key = tuple(key)


def _pick(numbers: Sequence[int], index: int) -> int:
    if index >= len(numbers):
        raise FormatError(f"metadata of a table map speaks of column {index} of {len(numbers)}")
    return numbers[index]


if TYPE_CHECKING:
    _Reader = Callable[[FieldReader, Sequence[Column], OptionalMetadata], None]

_READERS: Final[dict[int, _Reader]] = {
    MetadataField.SIGNEDNESS: _signs,
    MetadataField.DEFAULT_CHARSET: _defaults(_CHARACTERS),
    MetadataField.COLUMN_CHARSET: _each(_CHARACTERS),
    MetadataField.COLUMN_NAME: _names,
    MetadataField.SET_STR_VALUE: _labels(ColumnType.SET),
    MetadataField.ENUM_STR_VALUE: _labels(ColumnType.ENUM),
    MetadataField.GEOMETRY_TYPE: _geometry,
    MetadataField.SIMPLE_PRIMARY_KEY: _key,
    MetadataField.PRIMARY_KEY_WITH_PREFIX: _key_with_prefix,
    MetadataField.ENUM_AND_SET_DEFAULT_CHARSET: _defaults(_LABELLED),
    MetadataField.ENUM_AND_SET_COLUMN_CHARSET: _each(_LABELLED),
    MetadataField.COLUMN_VISIBILITY: _visibility,
}
