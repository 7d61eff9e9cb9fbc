"""What is known of tables besides what the binlog says of them, from wherever; it travels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ibb.protocol.gtid import Gtid
    from ibb.protocol.rows.table_schema import TableSchema

    from .table_schemas import TableSchemas


class KnownSchemas(NamedTuple):
    """
    Schemas from several sources.

    Attributes:
        sources: the first that knows a table is believed.
    """

    sources: tuple[TableSchemas, ...]

    def find(self, database: str, table: str, gtid: Gtid) -> TableSchema | None:
        """Return the schema that a table had in the group *gtid*, None if it is not known."""
        for source in self.sources:
            found = source.find(database, table, gtid)
            if found is not None:
                return found
        return None

    def always(self, database: str, table: str) -> tuple[bool, TableSchema | None]:
        """Tell whether `find` returns the same for all groups, and if so, what."""
        for source in self.sources:
            is_same, schema = source.always(database, table)
            if not is_same or schema is not None:
                return is_same, schema
        return True, None


NOTHING_KNOWN: Final = KnownSchemas(())
