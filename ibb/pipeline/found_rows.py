"""What is found of row changes: one rows event, or many of a table; and which are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE
from ibb.protocol.rows.table_map import TableMap

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from ibb.protocol.fields import Buffer
    from ibb.protocol.gtid import Gtid
    from ibb.protocol.gtid_event import GtidEvent

TABLE_MAPS_MAX: Final = 4096  # remembered
NUMBER: Final = slice(HEADER_SIZE, HEADER_SIZE + 6)  # of the table, in table maps and rows events


class TableRows(NamedTuple):
    """
    A rows event.

    Attributes:
        group: when and by which GTID its changes happened.
        table: its table map.
        event: all of it, without checksum.
        position: of the event in its group.
        number: of the group, among those of its partition.
        statement: that changed the rows (binlog_annotate_row_events), or the beginning of it; None:
            it was not logged, or not asked for.
    """

    group: GtidEvent
    table: TableMap
    event: Buffer
    position: int
    number: int
    statement: bytes | None = None


class FoundEvents(NamedTuple):
    """
    Rows events that lie in one buffer, in their order.

    Attributes:
        data: the buffer.
        starts, ends: where each is in it.
        ops: what happens in each, as `ibb.protocol.small_groups` has it.
    """

    data: memoryview
    starts: memoryview
    ends: memoryview
    ops: memoryview

    def up_to(self, stop: int) -> FoundEvents:
        """Return those before one."""
        return self._replace(ops=self.ops[:stop])


class BlockRows(NamedTuple):
    """
    Rows events of one table in a block of groups, in their order; used before the next is taken.

    Attributes:
        table: its table map.
        events: the rows events.
        number: how many there are.
        tags: where they come from, as `RowTags` has it.
        size: bytes of them.
    """

    table: TableMap
    events: FoundEvents
    number: int
    tags: dict[str, pa.Int64Array]
    size: int


class WantedRows:
    """
    Which rows are wanted; remembers table maps.

    Args:
        wants: which tables, by database and name.
        ops: which kinds of changes, by the protocol's numbers; empty: all.
    """

    def __init__(self, wants: Callable[[str, str], bool], ops: frozenset[int]) -> None:
        self.wants = wants
        self.ops = ops
        self._maps: dict[bytes, TableMap] = {}

    def table_map(self, event: bytes) -> TableMap:
        """
        Return a table map.

        Raises:
            FormatError: it is damaged.
        """
        key = event[NUMBER.stop :]
        found = self._maps.get(key)
        if found is None:
            if len(self._maps) >= TABLE_MAPS_MAX:
                self._maps.clear()
            found = self._maps[key] = TableMap.parse(event)
        return found

    def wants_rows(self, table: TableMap, op: int) -> bool:
        """Tell whether changes of a kind are wanted of a table."""
        return self.wants(table.database, table.table) and self.wants_op(op)

    def wants_op(self, op: int) -> bool:
        """Tell whether changes of a kind are wanted."""
        return not self.ops or op in self.ops


def refuse(error: FormatError, gtid: Gtid) -> NoReturn:
    """Raise *error*, which names the group, or the place in the files."""
    if error.file is not None:
        raise error
    raise FormatError(f"group {gtid}: {error.what}") from error
