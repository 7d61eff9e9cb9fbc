"""From the events of one group to what they do: rows and statements that were not rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.ddl.statement import is_of_rows
from ibb.pipeline.ddl.tokens import tokens_of
from ibb.protocol.event import HEADER_SIZE, TYPE_OFFSET, EventHeader, EventType
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag
from ibb.protocol.partial_rows import FragmentJoiner
from ibb.protocol.rows.rows_event import OPS, STATEMENT_END, open_rows
from ibb.protocol.rows.table_map import TableMap

from .errors import PipelineError
from .query_event import QueryEvent
from .row_changes import Statement, TableName
from .unsaid_cells import RowStatement, unsaid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.gtid_event import XaId
    from ibb.storage.group_reader import StoredGroup

    from .prepared_xa import PreparedXa

_QUERIES: Final = frozenset(
    {EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY}
)
_SEQUENCE: Final = (  # the columns of what CREATE SEQUENCE makes, which is no table
    *("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment"),
    *("cache_size", "cycle_option", "cycle_count"),
)
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
_BEGINNINGS: Final = frozenset({"BEGIN", "COMMIT"})


class TableRows(NamedTuple):
    """
    A rows event of a table.

    Args:
        table_map: the table map before it.
        event: as stored.
        unsaid: why columns that it leaves out may not be as they were; empty: they are.
    """

    table_map: TableMap
    event: bytes
    unsaid: str = ""


def steps_of(
    group: StoredGroup, wants: Callable[[TableName], bool], prepared: PreparedXa
) -> list[TableRows | Statement]:
    """
    Return what *group* does to the tables that are wanted, in order.

    Rows that were rolled back may be logged all the same, when a table without transactions
    changed in between. The tables of a pipeline have transactions, so theirs did not happen. DDL
    did: a CREATE OR REPLACE ... SELECT that failed has dropped the table, and is rolled back.

    Args:
        group: whose pieces were not taken yet.
        wants: whether a table's rows matter.
        prepared: the XA transactions prepared before it; those after it when this returns. Rows
            of one are steps of the group that commits it.

    Raises:
        PipelineError: it commits a transaction that was prepared before the stream began or is
            gone, or is an incident.
        FormatError: it is damaged.
    """
    reading = _Reading(group, wants)
    reading.read(group)
    xa_id = reading.xa_id
    if xa_id is None:
        return reading.steps
    if reading.prepares:
        prepared.prepare(xa_id, group, changes=bool(reading.steps))
        return []
    if reading.ended_by == "COMMIT":
        rows = prepared.commit(xa_id, group)
        if rows is not None:
            reading.read(rows)
    elif reading.ended_by:
        prepared.roll_back(xa_id)
    return reading.steps


class _Reading:
    """
    The steps of a group, and of the one that prepared what it commits.

    Args:
        group: whose GTID and time they have.
        wants: whether a table's rows matter.
    """

    def __init__(self, group: StoredGroup, wants: Callable[[TableName], bool]) -> None:
        assert group.gtid is not None
        self.steps: list[TableRows | Statement] = []
        self.xa_id: XaId | None = None
        self.prepares = False
        self.ended_by = ""  # of XA COMMIT and XA ROLLBACK, whose rows another group has
        self._gtid = group.gtid
        self._time = group.timestamp
        self._wants = wants
        self._ends_xa = False
        self._is_undone = False  # ALTER in two groups: the one that commits it says it again
        self._maps: dict[int, TableMap] = {}
        self._statement = RowStatement()
        self._savepoints: list[tuple[str, int]] = []  # name, steps before it

    def read(self, group: StoredGroup) -> None:
        for event in _events(group):
            self._take(event)

    def _take(self, event: bytes) -> None:
        kind = event[TYPE_OFFSET]
        if kind == EventType.GTID:
            begin = GtidEvent.parse(event)
            self._is_undone = bool(begin.flags_extra & _NOT_DONE)
            self.xa_id = begin.xa_id
            self._ends_xa = begin.standalone and bool(begin.flags2 & GtidFlag.COMPLETED_XA)
        elif kind == EventType.TABLE_MAP:
            table_map = TableMap.parse(event)
            self._maps[table_map.number] = table_map
            self._statement.uses(table_map)
        elif kind == EventType.ANNOTATE_ROWS:
            self._statement = RowStatement(event[HEADER_SIZE:])
        elif kind in OPS:
            head = open_rows(event)
            table_map = self._maps[head.number]
            name = TableName(table_map.database, table_map.table)
            if self._wants(name) and table_map.optional.names != _SEQUENCE:
                reason = unsaid(head, table_map, self._statement)
                self.steps.append(TableRows(table_map, event, reason))
            if head.flags & STATEMENT_END:
                self._statement = RowStatement()
        elif kind in _QUERIES:
            self._query(QueryEvent.parse(event))
        elif kind == EventType.XA_PREPARE:
            self.prepares = True
        elif kind == EventType.INCIDENT:
            raise PipelineError(
                f"{self._gtid}: the source lost events there (an incident). Take a new snapshot"
            )

    def _query(self, query: QueryEvent) -> None:
        text = query.sql.lstrip()
        word = text[:16].partition(" ")[0].upper().rstrip(";")
        if word in _BEGINNINGS:
            return
        if word == "XA":
            if self._ends_xa:
                self.ended_by = tokens_of(text)[1].word
        elif word == "SAVEPOINT":
            self._savepoints.append((_last_name(text), len(self.steps)))
        elif word == "ROLLBACK":
            self._roll_back(text)
        elif not self._is_undone:
            self.steps.append(
                Statement(
                    self._gtid,
                    self._time,
                    query.database,
                    query.sql,
                    query.modes,
                    query.error,
                    query.uses_temporary,
                )
            )

    def _roll_back(self, text: str) -> None:
        if len(tokens_of(text)) == 1:
            self._undo(0)
            return
        name = _last_name(text)
        while self._savepoints and self._savepoints[-1][0] != name:
            self._savepoints.pop()
        self._undo(self._savepoints[-1][1] if self._savepoints else 0)

    def _undo(self, first: int) -> None:
        """Leave out the changes of rows among the steps from number *first* on."""
        self.steps[first:] = [
            step
            for step in self.steps[first:]
            if isinstance(step, Statement) and not is_of_rows(step.sql)
        ]


def _last_name(text: str) -> str:
    return tokens_of(text)[-1].value.lower()


def _events(group: StoredGroup) -> Iterator[bytes]:
    """Yield the whole events of *group*; fragments of an event as the event."""
    splitter, joiner = EventSplitter(), FragmentJoiner()
    held: list[bytes] = []
    fragments: list[bytes] = []
    for piece in group.pieces():
        for part in splitter.feed(piece):
            if part.header.type == EventType.PARTIAL_ROW_DATA:
                fragments.append(bytes(joiner.take(part).data))
                if joiner.done:
                    yield b"".join(fragments)
                    fragments, joiner = [], FragmentJoiner()
                continue
            held.append(bytes(part.data))
            if part.last:
                event = b"".join(held)
                held = []
                assert len(event) == EventHeader.unpack(event).length
                yield event
