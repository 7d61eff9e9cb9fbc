"""Columns of the data source, in Spark's words and in Arrow's; Arrow batches made of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from .errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BATCH_ROWS_MAX: Final = 10_000
BATCH_BYTES_MAX: Final = 8 << 20  # of what rows say that they weigh; one row may weigh more

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
STRINGS: Final = pa.list_(pa.field("element", pa.string()))
TEXTS: Final = pa.map_(pa.string(), pa.string())
MICROSECONDS: Final = 1_000_000
_DDL: Final = {
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    TIMESTAMP: "timestamp",
    STRINGS: "array<string>",
    TEXTS: "map<string,string>",
}


class Column(NamedTuple):
    """
    One column.

    Attributes:
        name: lower case.
        type: in Arrow; one of those that have a name in Spark here.
    """

    name: str
    type: Any

    @property
    def ddl(self) -> str:
        """The column as Spark's schema strings have it."""
        return f"`{self.name}` {_DDL[self.type]}"


def chosen(columns: Sequence[Column], names: Iterable[str]) -> tuple[Column, ...]:
    """
    Return the columns of these *names*, in that order; all if there are no names.

    Raises:
        OptionError: there is no such column.
    """
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise OptionError("columns", f"there is no column {name}: {', '.join(by_name)}")
    return tuple(by_name[name] for name in dict.fromkeys(names)) or tuple(columns)


def schema_ddl(columns: Sequence[Column]) -> str:
    """Return a schema as Spark reads it."""
    return ", ".join(column.ddl for column in columns)


class WeighedRow(NamedTuple):
    """
    A row and how many bytes it takes, about.

    Attributes:
        values: one for each column.
        size: bytes.
    """

    values: tuple[Any, ...]
    size: int


def batches(columns: Sequence[Column], rows: Iterable[WeighedRow]) -> Iterator[pa.RecordBatch]:
    """Yield rows in Arrow batches that are bounded in rows and bytes."""
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])
    held: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        held.append(row.values)
        size += row.size
        if len(held) >= BATCH_ROWS_MAX or size >= BATCH_BYTES_MAX:
            yield _batch(schema, held)
            held, size = [], 0
    if held:
        yield _batch(schema, held)


def _batch(schema: Any, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
