"""
The columns of a history table, and how its versions get from one shape to the next.

Nothing that a version held is lost: a column that goes is kept under another name, with the
moment at which it went.
"""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from .delta_commits import KEY_METADATA, key_of, visible
from .row_key import KEY_COLUMN, row_keys
from .shape import ShapedColumn, widened
from .validity import IS_CURRENT, VALIDITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .validity import Moment

ASIDE_PREFIX: Final = "_ibb_dropped_"
NAME_METADATA: Final = b"ibb.name"  # of a column that went: as it was called
PLACES_METADATA: Final = b"ibb.places"  # up to which moments it was called what, at which place
ADDED_METADATA: Final = b"ibb.added"  # `seq` of the moment since when there is a column
DROPPED_METADATA: Final = b"ibb.dropped"  # the same, since when there is none
GAPS_METADATA: Final = b"ibb.gaps"
OLD_KEY_MARK: Final = "@"  # behind it is the moment at which keys began to be others
GAPS_MAX: Final = 1000  # in one table; more are taken together
PLACES_MAX: Final = 1000  # of one column; older ones are forgotten
_OURS: Final = frozenset([KEY_COLUMN, *VALIDITY.names])


class HistoryShape:
    """
    From the columns that a history has to those that it gets.

    Args:
        old: all columns now; none: there is no table yet.
        columns: the source's columns then.
        key: names of the key's columns then.
        at: the moment of the change.
        begins: whether all versions that are current end, and others begin.
    """

    def __init__(
        self,
        old: pa.Schema,
        columns: Sequence[ShapedColumn],
        key: Sequence[str],
        at: Moment,
        *,
        begins: bool,
    ) -> None:
        self._old = old
        self._columns = {column.field.name: column for column in columns}
        self._key = list(key)
        self._at = at
        self._begins = begins
        self._places = {field.name: place for place, field in enumerate(visible(old))}
        used = {column.source for column in columns}
        gone = [field for field in visible(old) if field.name not in used]
        aside = [field for field in old if field.name.startswith(ASIDE_PREFIX)]
        self._sources: dict[str, str] = {field.name: field.name for field in aside}
        for field in gone:
            aside.append(self._put_aside(field))
            self._sources[aside[-1].name] = field.name
        shown = [self._described(column, place) for place, column in enumerate(columns)]
        hidden = pa.field(KEY_COLUMN, pa.string(), metadata=self._metadata())
        self.schema = pa.schema([hidden, *VALIDITY, *shown, *aside])

    @property
    def renews_keys(self) -> bool:
        """Whether the keys of versions before and behind have nothing to do with one another."""
        same = self._key and len(self._old) and self._key == key_of(self._old)
        return not same or any(self._columns[name].source is None for name in self._key)

    def kept(self, rows: pa.Table) -> pa.Table:
        """Return versions of before in the new shape."""
        current = rows.column(IS_CURRENT)
        arrays = {name: rows.column(name) for name in _OURS}
        arrays |= {name: rows.column(source) for name, source in self._sources.items()}
        for name, column in self._columns.items():
            kind = column.field.type
            if column.source is not None:
                arrays[name] = widened(rows.column(column.source), kind)
            elif self._begins:
                arrays[name] = pa.nulls(rows.num_rows, kind)
            else:  # versions that have ended did not see the column
                constant = pa.scalar(column.constant, kind)
                arrays[name] = pc.if_else(current, constant, pa.scalar(None, kind))
        arrays[KEY_COLUMN] = self._keys(arrays)
        return pa.table([arrays[name] for name in self.schema.names], schema=self.schema)

    def begun(self, rows: pa.Table, ours: pa.Table) -> pa.Table:
        """Return versions that begin: *rows* with their keys, and their validity."""
        made = {**dict(zip(ours.column_names, ours.columns, strict=True))}
        made |= dict(zip(rows.column_names, rows.columns, strict=True))
        nothing = {
            name: pa.nulls(rows.num_rows, self.schema.field(name).type) for name in self._sources
        }
        arrays = {**made, **nothing}
        return pa.table(
            [arrays[field.name].cast(field.type) for field in self.schema], schema=self.schema
        )

    def _keys(self, arrays: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
        keys = arrays[KEY_COLUMN]
        is_old = pc.match_substring(keys, OLD_KEY_MARK)
        if self.renews_keys:
            mark = pa.scalar(f"{OLD_KEY_MARK}{self._at.seq}")
            return pc.if_else(is_old, keys, pc.binary_join_element_wise(keys, mark, ""))
        sources = {name: self._columns[name] for name in self._key}
        if all(
            self._old.field(column.source).type == column.field.type for column in sources.values()
        ):
            return keys
        anew = pa.table([arrays[name] for name in self._key], names=self._key)
        return pc.if_else(is_old, keys, pa.array(row_keys(anew, self._key), pa.string()))

    def _described(self, column: ShapedColumn, place: int) -> pa.Field:
        metadata = {
            name: value
            for name, value in (column.field.metadata or {}).items()
            if name not in (ADDED_METADATA, PLACES_METADATA)
        }
        if column.source is not None:
            old = self._old.field(column.source)
            added = (old.metadata or {}).get(ADDED_METADATA)
            if (column.source, self._places[column.source]) == (column.field.name, place):
                metadata |= _with_places(_places_of(old))
            else:
                metadata |= self._left(old)
        else:
            added = str(self._at.seq).encode() if len(self._old) else None
        if added is not None:
            metadata[ADDED_METADATA] = added
        return column.field.with_metadata(metadata)

    def _put_aside(self, field: pa.Field) -> pa.Field:
        name = f"{ASIDE_PREFIX}{field.name}"
        taken = {known.lower() for known in (*self._old.names, *self._sources)}
        again = count(2)
        while name.lower() in taken:
            name = f"{ASIDE_PREFIX}{field.name}_{next(again)}"
        metadata = {
            **(field.metadata or {}),
            **self._left(field),
            NAME_METADATA: field.name.encode(),
            DROPPED_METADATA: str(self._at.seq).encode(),
        }
        return field.with_name(name).with_metadata(metadata)

    def _left(self, old: pa.Field) -> dict[bytes, bytes]:
        """Return the places of a column that leaves the one that it has."""
        here = (self._at.seq, old.name, self._places[old.name])
        return _with_places([*_places_of(old), here])

    def _metadata(self) -> dict[bytes, bytes]:
        gaps = json.dumps(gaps_of(self._old)).encode()
        return {KEY_METADATA: json.dumps(self._key).encode(), GAPS_METADATA: gaps}


def same_columns(old: pa.Schema, schema: pa.Schema) -> list[ShapedColumn]:
    """Return the columns of *schema*, with values from those of *old* that are the same."""
    known = {field.name: field.type for field in visible(old)}
    return [
        ShapedColumn(field, field.name if known.get(field.name) == field.type else None)
        for field in schema
    ]


def added_at(field: pa.Field, at: Moment) -> pa.Field:
    """Return the field of a column that there is since *at*."""
    added = {**(field.metadata or {}), ADDED_METADATA: str(at.seq).encode()}
    return field.with_metadata(added)


def columns_at(schema: pa.Schema, seq: int) -> dict[str, str]:
    """
    Return the columns that the source had at a moment, as they are called here and there.

    They are in the order that they had. Of moments before it was noted what a column was called,
    and where it was, it is what it is now.
    """
    found: list[tuple[int, str, str]] = []
    for place, field in enumerate(field for field in schema if field.name not in _OURS):
        metadata = field.metadata or {}
        dropped = metadata.get(DROPPED_METADATA)
        if int(metadata.get(ADDED_METADATA, 0)) > seq or (
            dropped is not None and int(dropped) <= seq
        ):
            continue
        now = (place, metadata.get(NAME_METADATA, field.name.encode()).decode())
        then = ((at, name) for until, name, at in _places_of(field) if until > seq)
        found.append((*next(then, now), field.name))
    return {here: there for _, there, here in sorted(found)}


def _places_of(field: pa.Field) -> list[tuple[int, str, int]]:
    """Return what a column was called up to which moments, and where it was, the oldest first."""
    places = json.loads((field.metadata or {}).get(PLACES_METADATA, b"[]"))
    return [(int(until), str(name), int(place)) for until, name, place in places]


def _with_places(places: Sequence[tuple[int, str, int]]) -> dict[bytes, bytes]:
    if not places:
        return {}
    return {PLACES_METADATA: json.dumps(places[-PLACES_MAX:], separators=(",", ":")).encode()}


def gaps_of(schema: pa.Schema) -> list[list[int]]:
    """
    Return of which moments a history with these columns knows nothing.

    Each gap is from one that it knows to the next that it does; the first begins with nothing.
    """
    if not len(schema):
        return []
    found = json.loads((schema.field(KEY_COLUMN).metadata or {}).get(GAPS_METADATA, b"[]"))
    return [[int(first), int(last)] for first, last in found]


def with_gap(schema: pa.Schema, first: int, last: int) -> pa.Schema:
    """Return *schema* of a history that knows nothing between the moments *first* and *last*."""
    if last - first < 2:
        return schema
    gaps = [*gaps_of(schema), [first, last]]
    if len(gaps) > GAPS_MAX:
        gaps[:2] = [[gaps[0][0], gaps[1][1]]]
    index = schema.get_field_index(KEY_COLUMN)
    field = schema.field(index)
    metadata = {**(field.metadata or {}), GAPS_METADATA: json.dumps(gaps).encode()}
    return schema.set(index, field.with_metadata(metadata))
