"""
The rows events of groups that stand, each with its table map: what row changes are made of.

A group is read to its end before the first of its rows is given out, as only the end tells whether
they stand: small ones are held meanwhile, larger ones read twice.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, TYPE_OFFSET, EventType
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.protocol.partial_rows import FragmentJoiner
from ibb.protocol.rows.rows_event import OPS
from ibb.storage.group_runs import GroupBlock

from .block_rows import BlockFinder
from .found_rows import NUMBER, BlockRows, TableRows, WantedRows, refuse
from .group_outcome import STATEMENT_BYTES_MAX, GroupOutcome, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ibb.protocol.event_splitter import EventPart
    from ibb.protocol.rows.table_map import TableMap

    from .event_groups import EventGroup, OpenGroups

SMALL_BYTES_MAX: Final = 1 << 16  # of a group by itself that is looked at by the kernel
HELD_BYTES_MAX: Final = 8 << 20  # of a group that is not read twice
ROWS_EVENT_BYTES_MAX: Final = 1 << 30  # of one that is decoded: what a primary's largest packet has
_TELLING: Final = frozenset(
    {EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY, EventType.INCIDENT}
)
_CARRIERS: Final = frozenset({*ROWS, EventType.TABLE_MAP, EventType.PARTIAL_ROW_DATA})
_PREPARED_XA: Final = int(GtidFlag.PREPARED_XA)  # plain: operations of IntFlag are slow
_FLAGS: Final = HEADER_SIZE + 6  # of a rows event, low byte
_STATEMENT_ENDS: Final = 1  # a flag of the last rows event of a statement


class RowEvents:
    """
    Reads the rows events of groups.

    Args:
        opened: where the groups are.
        wants: which tables, by database and name.
        keeps: tables of engines that cannot roll back; None: nobody has said.
        ops: which kinds of changes are wanted, by the protocol's numbers; empty: all.
        allow_statements: pass over changes that are logged as statements.
        annotated: say of rows which statement changed them.
    """

    def __init__(
        self,
        opened: OpenGroups,
        wants: Callable[[str, str], bool],
        keeps: frozenset[tuple[str, str]] | None,
        ops: frozenset[int] = frozenset(),
        *,
        allow_statements: bool,
        annotated: bool = False,
    ) -> None:
        self._carriers = _CARRIERS | ({EventType.ANNOTATE_ROWS} if annotated else set())
        self._takes_small = not annotated
        self._opened = opened
        self._wanted = WantedRows(wants, ops)
        self._keeps = keeps
        self._allow_statements = allow_statements
        self._groups = 0
        self._finder = BlockFinder(self._wanted)

    def all(self) -> Iterator[TableRows | BlockRows]:
        """
        Yield the rows events of all groups that stand.

        Raises:
            FormatError: as `of`, or the groups cannot be read.
            DiskError: a file cannot be read.
        """
        for found in self._opened.runs():
            if isinstance(found, GroupBlock):
                yield from self._of_block(found)
            else:
                yield from self.of(found)

    def _of_block(self, block: GroupBlock) -> Iterator[TableRows | BlockRows]:
        at = block.first
        while at < block.stop:
            if self._takes_small:
                stop = self._finder.look(block, at)
                yield from self._finder.found(block, self._groups + 1 - at)
                self._groups += stop - at
                at = stop
                if self._finder.is_full or at == block.stop:
                    continue
            yield from self._of(block.group(at), may_be_small=False)
            at += 1

    def of(self, group: EventGroup) -> Iterable[TableRows]:
        """
        Return the rows events of a group that stand when it is committed.

        Raises:
            FormatError: also while iterating: it is damaged, or it cannot be told what became of
                its rows; names the GTID.
        """
        return self._of(group, may_be_small=self._takes_small)

    def _of(self, group: EventGroup, *, may_be_small: bool) -> Iterable[TableRows]:
        head = GtidEvent.parse(group.head)
        self._groups += 1
        if head.flags2 & _PREPARED_XA:
            return ()
        try:
            pieces = group.pieces()
            first = next(pieces, b"")
            is_short = len(first) <= SMALL_BYTES_MAX
            if may_be_small and is_short and self._finder.look_at_group(first):
                first = bytes(first)  # which the next piece may write over
                second = next(pieces, None)
                if second is None:
                    return self._finder.found_in_group(first, head, self._groups)
                pieces = chain((second,), pieces)
        except FormatError as error:
            refuse(error, head.gtid)
        return self._named(self._standing(group, chain((first,), pieces), head, head), head)

    def _named(self, rows: Iterator[TableRows], head: GtidEvent) -> Iterator[TableRows]:
        """Yield *rows*; errors name the group."""
        try:
            yield from rows
        except FormatError as error:
            refuse(error, head.gtid)

    def _standing(
        self,
        group: EventGroup,
        pieces: Iterable[bytes | memoryview],
        head: GtidEvent,
        happened: GtidEvent,
    ) -> Iterator[TableRows]:
        """Yield the rows events of any group."""
        outcome, size = GroupOutcome(), 0
        held: list[tuple[int, EventPart]] = []
        text = bytearray()
        for position, part in _numbered(pieces):
            if part.header.type in _TELLING:
                text = bytearray() if part.first else text
                text += part.data[: max(STATEMENT_BYTES_MAX - len(text), 0)]
                if part.last:
                    outcome.add(position, text)
                    self._check_statement(text)
            elif part.header.type in self._carriers:
                size += len(part.data)
                if size <= HELD_BYTES_MAX:
                    held.append((position, part._replace(data=bytes(part.data))))
                else:
                    held.clear()
        parts: Iterable[tuple[int, EventPart]] = held
        if size > HELD_BYTES_MAX:
            again = self._opened.again(group)
            numbered = _numbered(again.pieces())
            parts = (both for both in numbered if both[1].header.type in self._carriers)
        yield from self._rows(parts, outcome, head, happened)
        if outcome.xa == "COMMIT" and not size:
            yield from self._prepared(group, head)

    def _check_statement(self, event: bytearray) -> None:
        if self._allow_statements or event[TYPE_OFFSET] == EventType.INCIDENT:
            return
        statement = Statement.parse(event)
        if statement.changes_rows and any(
            self._wanted.wants(name, "") for name in statement.databases
        ):
            raise FormatError(
                "it changes rows by a statement, not by rows (binlog_format); set option"
                " allowStatements to true to pass over such changes"
            )

    def _rows(
        self,
        parts: Iterable[tuple[int, EventPart]],
        outcome: GroupOutcome,
        head: GtidEvent,
        happened: GtidEvent,
    ) -> Iterator[TableRows]:
        tables: dict[bytes, TableMap | None] = {}
        joiner: FragmentJoiner | None = None
        event = [bytearray()]  # in a list, so that it can be handed over
        table: TableMap | None = None
        statement: bytes | None = None
        is_last = False  # of its statement
        for position, stored in parts:
            part = stored
            if part.header.type == EventType.ANNOTATE_ROWS:
                before = HEADER_SIZE if part.first else 0
                known = b"" if part.first or statement is None else statement
                statement = (known + part.data[before:])[:STATEMENT_BYTES_MAX]
                continue
            if part.header.type == EventType.PARTIAL_ROW_DATA:
                joiner = joiner or FragmentJoiner()
                part = joiner.take(part)
                joiner = None if joiner.done else joiner
            if part.first:
                number, event = bytes(part.data[NUMBER]), [bytearray()]
                if len(number) < NUMBER.stop - NUMBER.start:
                    raise FormatError("an event of a table that does not say which table")
                if part.header.type != EventType.TABLE_MAP:
                    if number not in tables:
                        raise FormatError("rows of a table without a table map before them")
                    table = tables[number]
                    _check_size(table, part)
                    is_last = len(part.data) > _FLAGS and bool(part.data[_FLAGS] & _STATEMENT_ENDS)
            event[0] += part.data
            if not part.last:
                if table is None and part.header.type != EventType.TABLE_MAP:
                    event[0].clear()  # nobody wants it
                continue
            if part.header.type == EventType.TABLE_MAP:
                found = self._wanted.table_map(bytes(event[0]))
                tables[number] = found if self._wanted.wants(found.database, found.table) else None
                continue
            stands = table is not None and self._stands(table, position, outcome, head)
            if stands and self._wanted.wants_op(OPS[EventType(event[0][TYPE_OFFSET])]):
                assert table is not None
                rows = event.pop  # what it returns is not held here: it may be large
                yield TableRows(happened, table, rows(), position, self._groups, statement)
            statement = None if is_last else statement
        if joiner is not None:
            raise FormatError("fragments of a rows event end before it does")

    def _stands(
        self, table: TableMap, position: int, outcome: GroupOutcome, head: GtidEvent
    ) -> bool:
        """Tell whether an event's rows stand."""
        if not outcome.is_rolled_back(position):
            return True
        if head.flags2 & GtidFlag.TRANSACTIONAL:
            return False
        if self._keeps is None:
            raise FormatError(
                f"rows of {table.database}.{table.table} were rolled back, which not all engines"
                " can: say by option nonTransactional which tables cannot"
            )
        return (table.database, table.table) in self._keeps

    def _prepared(self, group: EventGroup, head: GtidEvent) -> Iterator[TableRows]:
        """Yield the rows of the XA transaction that a group commits."""
        prepared = None if head.xa_id is None else self._opened.prepared(group, head.xa_id)
        if prepared is None:
            raise FormatError(
                f"it commits the XA transaction {head.xa_id}, of which the prepared group is not"
                " in the history any more"
            )
        yield from self._standing(prepared, prepared.pieces(), GtidEvent.parse(prepared.head), head)


def _check_size(table: TableMap | None, part: EventPart) -> None:
    """Refuse a rows event that is too large to be held, whatever its rows are like."""
    if table is not None and part.header.length > ROWS_EVENT_BYTES_MAX:
        raise FormatError(
            f"rows of {table.database}.{table.table} in an event of {part.header.length} bytes:"
            f" more than {ROWS_EVENT_BYTES_MAX} are not read at a time; option tables can leave"
            " the table out"
        )


def _numbered(pieces: Iterable[bytes | memoryview]) -> Iterator[tuple[int, EventPart]]:
    """Yield the parts of a group's events with the number of the event."""
    splitter, position = EventSplitter(), -1
    for piece in pieces:
        for part in splitter.feed(piece):
            position += part.first
            yield position, part
    if not splitter.at_boundary:
        raise FormatError("it ends inside an event")
