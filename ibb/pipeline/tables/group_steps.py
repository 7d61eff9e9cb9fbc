"""From the events of one group to what they do: rows and statements that were not rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.pipeline.ddl.tokens import tokens_of
from ibb.protocol.event import TYPE_OFFSET, EventHeader, EventType
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.gtid_event import GtidEvent, GtidExtraFlag, GtidFlag
from ibb.protocol.partial_rows import FragmentJoiner
from ibb.protocol.rows.rows_event import OPS, open_rows
from ibb.protocol.rows.table_map import TableMap

from .errors import PipelineError
from .prepared_xa import AGAIN
from .query_event import QueryEvent
from .row_changes import Statement, TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.gtid import Gtid
    from ibb.storage.group_reader import StoredGroup

    from .prepared_xa import PreparedXa

_QUERIES: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED})
_LOADS: Final = frozenset({EventType.EXECUTE_LOAD_QUERY, EventType.BEGIN_LOAD_QUERY})
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER
_BEGINNINGS: Final = frozenset({"BEGIN", "COMMIT"})


class TableRows(NamedTuple):
    """A rows event of a table: the event as stored, and the table map before it."""

    table_map: TableMap
    event: bytes


def steps_of(
    group: StoredGroup, wants: Callable[[TableName], bool], prepared: PreparedXa
) -> list[TableRows | Statement]:
    """
    Return what *group* does to the tables that are wanted, in order.

    Rows that were rolled back may be logged all the same, when a table without transactions
    changed in between. The tables of a pipeline have transactions, so theirs did not happen.

    Args:
        group: whose pieces were not taken yet.
        wants: whether a table's rows matter.
        prepared: the XA transactions prepared before it; those after it when this returns.

    Raises:
        PipelineError: it prepares a transaction with rows that matter, commits one that was
            prepared before the stream began, or is an incident.
        FormatError: it is damaged.
    """
    assert group.gtid is not None
    reading = _Reading(group.gtid, group.timestamp, wants, prepared)
    for event in _events(group):
        reading.take(event)
    return reading.steps


class _Reading:
    def __init__(
        self, gtid: Gtid, time: int, wants: Callable[[TableName], bool], prepared: PreparedXa
    ) -> None:
        self.steps: list[TableRows | Statement] = []
        self._gtid = gtid
        self._time = time
        self._wants = wants
        self._prepared = prepared
        self._xid = ""
        self._ends_xa = False  # its rows are those of another group, that prepared it
        self._is_undone = False  # ALTER in two groups: the one that commits it says it again
        self._maps: dict[int, TableMap] = {}
        self._savepoints: list[tuple[str, int]] = []  # name, steps before it

    def take(self, event: bytes) -> None:
        kind = event[TYPE_OFFSET]
        if kind == EventType.GTID:
            begin = GtidEvent.parse(event)
            self._is_undone = bool(begin.flags_extra & _NOT_DONE)
            self._xid = str(begin.xa_id or "")
            self._ends_xa = begin.standalone and bool(begin.flags2 & GtidFlag.COMPLETED_XA)
        elif kind == EventType.TABLE_MAP:
            table_map = TableMap.parse(event)
            self._maps[table_map.number] = table_map
        elif kind in OPS:
            table_map = self._maps[open_rows(event).number]
            if self._wants(TableName(table_map.database, table_map.table)):
                self.steps.append(TableRows(table_map, event))
        elif kind in _QUERIES:
            self._query(QueryEvent.parse(event))
        elif kind in _LOADS:
            self.steps.append(Statement(self._gtid, self._time, "", "LOAD DATA"))
        elif kind == EventType.XA_PREPARE:
            self._prepare()
        elif kind == EventType.INCIDENT:
            raise PipelineError(
                f"{self._gtid}: the source lost events there (an incident). Take a new snapshot"
            )

    def _query(self, query: QueryEvent) -> None:
        text = query.sql.lstrip()
        word = text[:16].partition(" ")[0].upper().rstrip(";")
        if word == "XA":
            self._end_xa(text)
            return
        if word in _BEGINNINGS:
            return
        if word == "SAVEPOINT":
            self._savepoints.append((_last_name(text), len(self.steps)))
        elif word == "ROLLBACK":
            self._roll_back(text)
        elif not self._is_undone:
            self.steps.append(
                Statement(self._gtid, self._time, query.database, query.sql, query.ansi_quotes)
            )

    def _prepare(self) -> None:
        if self.steps:
            raise PipelineError(
                f"{self._gtid} prepares the XA transaction {self._xid}, which changes these "
                f"tables: that is not followed. {AGAIN}"
            )
        if self._xid:
            self._prepared.prepare(self._xid, self._gtid)

    def _end_xa(self, text: str) -> None:
        if not self._ends_xa:
            return
        if tokens_of(text)[1].word == "COMMIT":
            self._prepared.commit(self._xid, self._gtid)
        else:
            self._prepared.roll_back(self._xid)

    def _roll_back(self, text: str) -> None:
        if len(tokens_of(text)) == 1:
            del self.steps[:]
            return
        name = _last_name(text)
        while self._savepoints and self._savepoints[-1][0] != name:
            self._savepoints.pop()
        del self.steps[self._savepoints[-1][1] if self._savepoints else 0 :]


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
