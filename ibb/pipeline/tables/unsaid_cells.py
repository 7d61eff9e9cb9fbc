"""
Updates whose images leave columns out that may have other values than before.

REPLACE sets what it does not name to its default. Where the server carries it out as an update, and
binlog_row_image is MINIMAL or NOBLOB, the binlog has neither these columns nor a sign that it was
no UPDATE, so that replicas go wrong (seen with 10.11 and 11.8). What it was stands in the event
that names the statement (binlog_annotate_row_events), which is on by default.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ibb.protocol.fields import FieldReader
from ibb.protocol.rows.row_stage import UPDATE

if TYPE_CHECKING:
    from ibb.protocol.rows.rows_event import RowsHead
    from ibb.protocol.rows.table_map import TableMap

_FIRST_WORD: Final = re.compile(
    r"(?:\s|/\*(?!M?!).*?\*/|--\s[^\n]*\n|#[^\n]*\n)*([A-Za-z]+)", re.DOTALL
)
_KEEPING: Final = frozenset({"UPDATE", "INSERT"})  # the columns that they do not name
_REASON: Final = (
    "the binlog does not hold all columns of rows that {} changed. Set binlog_row_image=FULL at the"
    " source, then take a new snapshot of the table"
)


def unsaid(head: RowsHead, table_map: TableMap, statement: str | None) -> str:
    """
    Return why columns that an event leaves out may not be as they were; empty: they are.

    Args:
        head: of the event.
        table_map: of its table.
        statement: that the binlog names before it; None: it names none.
    """
    if head.op != UPDATE:
        return ""
    reader = FieldReader(head.event, head.offset, what="rows event")
    columns = reader.lenenc()
    size = (columns + 7) // 8
    before, after = (int.from_bytes(reader.take(size), "little") for _ in range(2))
    if (before | after) & (1 << columns) - 1 == (1 << columns) - 1:
        return ""
    found = _FIRST_WORD.match(statement or "")
    word = found[1].upper() if found else ""
    if word in _KEEPING and _names(statement or "", table_map.table):
        return ""
    key = table_map.optional.key
    if word != "REPLACE" and key and not any(after >> number & 1 for number in key):
        return ""  # an UPDATE that does not name the key: REPLACE always does
    return _REASON.format("a REPLACE" if word == "REPLACE" else "what may be a REPLACE")


def _names(statement: str, table: str) -> bool:
    """Tell whether a statement has a table's name as a word; if not, a trigger changed the rows."""
    word = rf"(?<![\w$]){re.escape(table)}(?![\w$])"
    return re.search(word, statement, re.IGNORECASE) is not None
