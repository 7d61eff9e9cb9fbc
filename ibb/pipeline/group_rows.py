"""Rows of mode groups: one for each event group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.storage.file_name import binlog_name
from ibb.storage.inspect.group_summary import GroupSummary, summarise

from .columns import GROUP_KEY_COLUMNS, MICROSECONDS, STRINGS, Column, WeighedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ibb.storage.group_reader import StoredGroup

    from .event_groups import EventGroup

SEQ_NO_MAX: Final = 2**63 - 1  # what a bigint holds

GROUP_COLUMNS: Final = (
    *GROUP_KEY_COLUMNS,
    Column("kind", pa.string()),
    Column("xid", pa.string()),
    Column("file", pa.string()),
    Column("offset", pa.int64()),
    Column("bytes", pa.int64()),
    Column("events", pa.int32()),
    Column("tables", STRINGS),
    Column("sha256", pa.string()),
)
_OF_CONTENTS: Final = frozenset(("bytes", "events", "tables", "sha256"))
_ROW_BYTES: Final = 300  # about


def group_rows(
    path: str | None, groups: Iterable[EventGroup], columns: Sequence[Column]
) -> Iterator[WeighedRow]:
    """
    Yield a row for each group; its contents are read only for columns that tell of them.

    Args:
        path: of their directory, for column file; None: they are in no file of ours.
        groups: each is used before the next is taken.
        columns: of `GROUP_COLUMNS`.

    Raises:
        FormatError: a group is damaged, or its number does not fit into a bigint.
    """
    needs_contents = any(column.name in _OF_CONTENTS for column in columns)
    of_head = {**_HEAD_VALUES, **_place_values(path)}
    getters = [(column.name in _OF_CONTENTS, column.name) for column in columns]
    for group in groups:
        event = GtidEvent.parse(group.head)
        check_seq_no(event)
        summary = summarise(cast("StoredGroup", group)) if needs_contents else None
        values = tuple(
            _CONTENT_VALUES[name](summary)
            if of_contents and summary is not None
            else of_head[name](group, event)
            for of_contents, name in getters
        )
        yield WeighedRow(values, _ROW_BYTES)


def check_seq_no(event: GtidEvent) -> None:
    """
    Check that a group's number fits into column seq_no.

    Raises:
        FormatError: it does not.
    """
    if event.gtid.seq > SEQ_NO_MAX:
        raise FormatError(f"GTID {event.gtid}: its number does not fit into a bigint")


def commit_time(event: GtidEvent) -> int:
    """Return when a group was committed, in microseconds since 1970."""
    return event.timestamp * MICROSECONDS


def kind_of(event: GtidEvent) -> str:
    """Return what a group is: ddl, transaction, statement, xa_prepare or xa_complete."""
    flags = event.flags2
    if flags & GtidFlag.PREPARED_XA:
        return "xa_prepare"
    if flags & GtidFlag.COMPLETED_XA:
        return "xa_complete"
    if flags & GtidFlag.DDL:
        return "ddl"
    return "statement" if flags & GtidFlag.STANDALONE else "transaction"


def _place_values(path: str | None) -> dict[str, Callable[[EventGroup, GtidEvent], Any]]:
    if path is None:
        return {"file": lambda *_: None, "offset": lambda *_: None}
    return {
        "file": lambda group, _: f"{path}/{binlog_name(group.position.file_no)}",
        "offset": lambda group, _: group.position.offset,
    }


_HEAD_VALUES: Final[dict[str, Callable[[EventGroup, GtidEvent], Any]]] = {
    "gtid": lambda _, event: str(event.gtid),
    "domain": lambda _, event: event.gtid.domain,
    "server": lambda _, event: event.gtid.server,
    "seq_no": lambda _, event: event.gtid.seq,
    "commit_time": lambda _, event: commit_time(event),
    "kind": lambda _, event: kind_of(event),
    "xid": lambda _, event: None if event.xa_id is None else str(event.xa_id),
}
_CONTENT_VALUES: Final[dict[str, Callable[[GroupSummary], Any]]] = {
    "bytes": lambda summary: summary.size,
    "events": lambda summary: summary.events,
    "tables": lambda summary: list(summary.tables),
    "sha256": lambda summary: summary.sha256,
}
