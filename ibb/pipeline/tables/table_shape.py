"""Columns and key of a table where the stream is, when the table itself is ahead of it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from .place import covers, is_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ibb.protocol.gtid import Gtid, GtidPosition

    from .change_target import KeptTable, Version
    from .ledger import Ledger
    from .row_changes import TableName


class TableShape(NamedTuple):
    """Columns and key of a table."""

    schema: pa.Schema
    key: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """Return what `from_json` takes."""
        schema = base64.b64encode(self.schema.serialize()).decode()
        return {"arrow_schema": schema, "key": list(self.key)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> TableShape:
        """
        Return what `as_json` was called on.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
        """
        data = pa.py_buffer(base64.b64decode(value["arrow_schema"]))
        return cls(pa.ipc.read_schema(data), tuple(map(str, value["key"])))


def keep_shapes(
    ledger: Ledger, names: Iterable[TableName], open_table: Callable[[TableName], KeptTable]
) -> None:
    """
    Note in *ledger* what columns tables have where it is, before a snapshot puts others in place.

    Args:
        ledger: of the pipeline.
        names: of the tables that were read anew; one that the ledger does not know was none of
            the pipeline's, and whatever is left of it tells nothing.
        open_table: opens a table.
    """
    for name in names:
        if name not in ledger.shapes:
            known = name in ledger.tables and name not in ledger.ahead
            ledger.shapes[name] = _shape_at(open_table(name), ledger) if known else None


def shape_before(target: KeptTable, gtid: Gtid) -> TableShape | None:
    """
    Return what columns *target* had before the group *gtid*; None: that version is not kept.

    Every change of its columns by the stream has made a version.
    """
    return _newest(target, lambda position: is_behind(gtid, position))


def _shape_at(target: KeptTable, ledger: Ledger) -> TableShape | None:
    return _newest(target, lambda position: covers(ledger.place.position, position))


def _newest(target: KeptTable, is_right: Callable[[GtidPosition], bool]) -> TableShape | None:
    found: Version | None = next(
        (version for version in target.versions() if is_right(version.position)), None
    )
    if found is None or found.name != target.name:
        return None
    return TableShape(target.schema_at(found.number), tuple(target.key_at(found.number)))
