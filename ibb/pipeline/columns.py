"""Columns of the data source, in Spark's words and in Arrow's; Arrow batches made of rows."""

from __future__ import annotations

import re
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
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_DDL: Final = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.duration("us"): "interval day to second",
    pa.string(): "string",
    pa.int64(): "bigint",
    pa.int32(): "int",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    TIMESTAMP: "timestamp",
    STRINGS: "array<string>",
    TEXTS: "map<string,string>",
}

_BY_DDL: Final = {text: kind for kind, text in _DDL.items()}


class Column(NamedTuple):
    """
    One column.

    Attributes:
        name: of those that are ours lower case.
        type: in Arrow; one of those that have a name in Spark here.
        origin: what it is in MariaDB, by `origin_of`; empty: it is ours, or a user's.
        nullable: it may be null; where it never is, Spark looks at no row for that.
    """

    name: str
    type: Any
    origin: str = ""
    nullable: bool = True

    @property
    def field(self) -> pa.Field:
        """The column in Arrow."""
        return pa.field(self.name, self.type, nullable=self.nullable)

    @property
    def ddl(self) -> str:
        """The column as Spark's schema strings have it."""
        return f"`{self.name.replace('`', '``')}` {ddl_of(self.type)}"


def ddl_of(kind: Any) -> str:
    """Return the name of an Arrow type in Spark."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _DDL[kind]


def columns_of_schema(fields: Iterable[tuple[str, str]]) -> tuple[Column, ...]:
    """
    Return the columns of a schema that a user gave, or that was ours.

    Args:
        fields: names, and types as Spark's simple strings have them.

    Raises:
        OptionError: a type that no column here has.
    """
    return tuple(Column(name, _arrow(name, text)) for name, text in fields)


def _arrow(name: str, text: str) -> Any:
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        return pa.decimal128(int(found[1]), int(found[2]))
    if text not in _BY_DDL:
        raise OptionError("schema", f"column {name}: there is no column of type {text} here")
    return _BY_DDL[text]


def chosen(columns: Sequence[Column], names: Iterable[str]) -> tuple[Column, ...]:
    """
    Return the columns of these *names*, in that order; all if there are no names.

    Raises:
        OptionError: there is no such column.
    """
    by_name = {column.name.lower(): column for column in columns}
    for name in names:
        if name.lower() not in by_name:
            raise OptionError("columns", f"there is no column {name}: {', '.join(by_name)}")
    wanted = dict.fromkeys(name.lower() for name in names)
    return tuple(by_name[name] for name in wanted) or tuple(columns)


GROUP_KEY_COLUMNS: Final = (  # what says whose group a row is of; the lists of all modes begin so
    Column("gtid", pa.string()),
    Column("domain", pa.int64()),
    Column("server", pa.int64()),
    Column("seq_no", pa.int64()),
    Column("commit_time", TIMESTAMP),
)


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
    schema = pa.schema([column.field for column in columns])
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
