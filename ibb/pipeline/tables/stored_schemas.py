"""What change tables know of their columns that table maps cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema

from .errors import PipelineError
from .shape import CHARSET_METADATA, TYPE_METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.protocol.rows.table_map import TableMap

    from .config import PipelineConfig
    from .lake import Lake
    from .row_changes import TableName

_SPECIAL: Final = ("uuid", "inet4", "inet6")  # types of which a table map says nothing


class StoredSchemas:
    """
    Schemas of the change tables in *lake*, as far as they are needed.

    Args:
        config: of the pipeline.
        lake: where the tables are.
    """

    def __init__(self, config: PipelineConfig, lake: Lake) -> None:
        self._config = config
        self._lake = lake
        self._schemas: dict[TableName, TableSchema | None] = {}

    def forget(self) -> None:
        """Look anew: tables may have changed."""
        self._schemas.clear()

    def of(self, table_map: TableMap) -> TableSchema | None:
        """
        Return what the change table knows of columns that a table map cannot describe.

        Raises:
            PipelineError: the table map has no names of columns.
        """
        name = self._config.table_name(table_map.database, table_map.table)
        if not table_map.optional.names:
            raise PipelineError(
                f"{name}: the binlog has no names of columns: set binlog_row_metadata=FULL at the "
                "source, and take a new snapshot"
            )
        if name not in self._schemas:
            self._schemas[name] = self._known(name, table_map.optional.names)
        return self._schemas[name]

    def _known(self, name: TableName, names: Sequence[str]) -> TableSchema | None:
        target = self._lake.open(name)
        if not target.exists:
            return None
        known = {}
        for field in target.schema:
            metadata = field.metadata or {}
            known[field.name] = ColumnSchema(
                field.name,
                metadata.get(TYPE_METADATA, b"").decode(),
                metadata.get(CHARSET_METADATA, b"").decode() or None,
            )
        is_special = any(column.type_text.startswith(_SPECIAL) for column in known.values())
        if not is_special or set(names) != set(known):
            return None  # the table map says everything, or the shape is another: that stops later
        return TableSchema(tuple(known[column] for column in names))
