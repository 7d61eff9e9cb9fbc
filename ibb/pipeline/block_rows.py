"""The rows events of whole blocks of small transactions: the kernel's findings as columns."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid_event import GtidEvent
from ibb.protocol.small_groups import NOT_PLAIN, RowsFinder

from .found_rows import BlockRows, FoundEvents, TableRows, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.fields import Buffer
    from ibb.protocol.rows.table_map import TableMap
    from ibb.storage.group_runs import GroupBlock

    from .found_rows import WantedRows

FEW: Final = 4  # rows events of a block, of which each is given out by itself
_BEGIN: Final = array("q", (0,))


class BlockFinder:
    """
    Finds the rows events of small transactions.

    Args:
        wanted: which of them.
    """

    def __init__(self, wanted: WantedRows) -> None:
        self._wanted = wanted
        self._finder = RowsFinder()

    @property
    def is_full(self) -> bool:
        """Whether `look` has stopped as there was no more room."""
        return self._finder.is_full

    def look(self, block: GroupBlock, first: int) -> int:
        """Look through a block from a group on; return the first that is for others, or its end."""
        copied = block.copied
        return self._finder.look(copied.data, copied.starts, copied.ends, first, block.stop)

    def found(self, block: GroupBlock, number: int) -> Iterator[TableRows | BlockRows]:
        """
        Yield the rows events that were found; each is used before the next is taken.

        Args:
            block: that was looked through.
            number: of its group 0, among the groups of its partition.

        Raises:
            FormatError: a table map is damaged; names the GTID.
        """
        finder = self._finder
        tables = [self._table_map(block, group, event) for group, event in finder.maps]
        if finder.count <= FEW:
            data = block.copied.data
            yield from self._singly(data, tables, number, partial(_head_of, block))
            return
        for place, table in enumerate(tables):
            if self._wanted.wants(table.database, table.table):
                chosen = self._chosen(place, is_all=len(tables) == 1)
                rows = self._rows(block, table, number, chosen)
                if rows.number:
                    yield rows

    def look_at_group(self, data: Buffer) -> bool:
        """Look through a group by itself; tell whether it is a small transaction."""
        return bool(self._finder.look(data, _BEGIN, array("q", (len(data),)), 0, 1))

    def found_in_group(self, data: bytes, head: GtidEvent, number: int) -> list[TableRows]:
        """
        Return the rows events that were found in a group by itself.

        Args:
            data: its bytes.
            head: its GTID event.
            number: among the groups of its partition.

        Raises:
            FormatError: a table map is damaged.
        """
        tables = [self._wanted.table_map(event) for _, event in self._finder.maps]
        return list(self._singly(memoryview(data), tables, number, lambda _: head))

    def _singly(
        self,
        data: memoryview,
        tables: list[TableMap],
        number: int,
        head_of: Callable[[int], GtidEvent],
    ) -> Iterator[TableRows]:
        """Yield the rows events one by one."""
        finder = self._finder
        for event in range(finder.count):
            group, table = finder.groups[event], tables[finder.tables[event]]
            if self._wanted.wants_rows(table, finder.ops[event] & NOT_PLAIN - 1):
                whole = data[finder.starts[event] : finder.ends[event]]
                position = finder.positions[event]
                yield TableRows(head_of(group), table, whole, position, number + group)

    def _rows(
        self, block: GroupBlock, table: TableMap, number: int, chosen: pa.UInt64Array | None
    ) -> BlockRows:
        """Return the chosen events of a table; None: all."""
        copied, finder = block.copied, self._finder

        def of_events(values: memoryview) -> pa.Int64Array:
            found = _numbers(values, finder.count)
            return found if chosen is None else found.take(chosen)

        groups = of_events(finder.groups)
        starts, ends, ops = map(of_events, (finder.starts, finder.ends, finder.ops))
        tags = {
            "domain": _numbers(copied.domains, copied.count).take(groups),
            "server": _numbers(copied.servers, copied.count).take(groups),
            "seq_no": _numbers(copied.numbers, copied.count).take(groups),
            "time": _numbers(copied.times, copied.count).take(groups),
            "position": of_events(finder.positions),
            "group": pc.add(groups, number),
            "thread": of_events(finder.threads),
        }
        size = pc.sum(pc.subtract(ends, starts)).as_py() or 0
        events = FoundEvents(copied.data, _view(starts), _view(ends), _view(ops))
        return BlockRows(table, events, len(groups), tags, size)

    def _chosen(self, table: int, *, is_all: bool) -> pa.UInt64Array | None:
        """Return which of the events are of a table, by its table map, and wanted; None: all."""
        finder, ops = self._finder, self._wanted.ops
        if is_all and not ops:
            return None
        tables = _numbers(finder.tables, finder.count)
        chosen = pc.equal(tables, table)
        if ops:
            kinds = pc.bit_wise_and(_numbers(finder.ops, finder.count), NOT_PLAIN - 1)
            wanted = pa.array(sorted(ops), pa.int64())
            chosen = pc.and_(chosen, pc.is_in(kinds, wanted))
        return pc.indices_nonzero(chosen)

    def _table_map(self, block: GroupBlock, group: int, event: bytes) -> TableMap:
        try:
            return self._wanted.table_map(event)
        except FormatError as error:
            refuse(error, block.gtid(group))


def _head_of(block: GroupBlock, number: int) -> GtidEvent:
    return GtidEvent.parse(block.group(number).head)


def _numbers(values: memoryview, count: int) -> pa.Int64Array:
    """Return the first of some numbers as an array that is one with them."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(values)])


def _view(values: pa.Int64Array) -> memoryview:
    """Return the numbers of an array that begins where its buffer does."""
    return memoryview(values.buffers()[1]).cast("b").cast("q")[: len(values)]
