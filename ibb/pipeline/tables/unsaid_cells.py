"""
Updates whose images leave columns out that may have other values than before.

Where binlog_row_image is MINIMAL or NOBLOB, and the server carries out a REPLACE as an update, the
binlog has neither the columns that got their defaults nor a sign that it was no UPDATE; and where
INSERT ... ON DUPLICATE KEY UPDATE changes a row, it lacks what a BEFORE UPDATE trigger did.
Replicas go wrong then (seen with 10.11 and 11.8). What changed the rows is known by the event that
names the statement (binlog_annotate_row_events), by the number of its table maps, and by their flag
for triggers: what these do stands under the statement that they are run by.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ibb.pipeline.ddl.tokens import tokens_of
from ibb.protocol.errors import FormatError
from ibb.protocol.fields import FieldReader
from ibb.protocol.rows.row_stage import UPDATE

if TYPE_CHECKING:
    from ibb.pipeline.ddl.tokens import Token
    from ibb.protocol.rows.rows_event import RowsHead
    from ibb.protocol.rows.table_map import TableMap

_HEAD_BYTES: Final = 4096  # of a statement, which tell what it is
_SHOWN_CHARACTERS: Final = 80
_BEFORE_TABLES: Final = frozenset({"UPDATE", "LOW_PRIORITY", "IGNORE", "JOIN", ",", ".", "("})
_MAY_BE: Final = "what may be a REPLACE"
_BY: Final = {"REPLACE": "a REPLACE", "INSERT": "an INSERT or a trigger"}
_REASON: Final = (
    "the binlog does not hold all columns of rows that {} changed ({}). Set binlog_row_image=FULL"
    " at the source, then take a new snapshot of the table"
)


class RowStatement:
    """
    The statement whose rows come.

    Args:
        text: as the binlog names it; empty: it does not.
    """

    def __init__(self, text: bytes = b"") -> None:
        self._text = text[:_HEAD_BYTES]
        self._maps: dict[int, TableMap] = {}

    def uses(self, table_map: TableMap) -> None:
        """Take note of a table that it may change."""
        self._maps[table_map.number] = table_map

    def may_change_unseen(self, table_map: TableMap) -> bool:
        """Tell whether columns of that table may change that are in no image of an update."""
        triggers = any(one.has_triggers for one in self._maps.values())
        if self.is_direct:
            return self.verb != "UPDATE" and (self.verb != "INSERT" or triggers)
        return self.verb != "UPDATE" or triggers or not self._updates(table_map.table)

    @property
    def is_direct(self) -> bool:
        """Whether it changes one table, and no trigger or function another."""
        return len(self._maps) == 1

    @cached_property
    def verb(self) -> str:
        """UPDATE, INSERT or REPLACE, which LOAD DATA may be too; empty: another, or none."""
        words = [token.word for token in self._tokens]
        if words[:2] == ["SET", "STATEMENT"] and "FOR" in words:
            words = words[words.index("FOR") + 1 :]
        if words[:1] == ["LOAD"]:
            return "REPLACE" if "REPLACE" in words else ""
        return words[0] if words and words[0] in ("UPDATE", "INSERT", "REPLACE") else ""

    @property
    def shown(self) -> str:
        """Its beginning without values, for errors."""
        texts = ("?" if one.kind in ("text", "number") else one.value for one in self._tokens)
        return " ".join(texts)[:_SHOWN_CHARACTERS] or "the binlog does not name the statement"

    @cached_property
    def _tokens(self) -> list[Token]:
        return tokens_of(self._text.decode(errors="replace"))

    def _updates(self, table: str) -> bool:
        """Tell whether a table stands among those of an UPDATE: no trigger may change it then."""
        for before, token in pairwise(self._tokens):
            if token.word == "SET":
                return False
            sign = before.word or before.value
            if sign in _BEFORE_TABLES and token.value.lower() == table.lower():
                return True
        return False


def unsaid(head: RowsHead, table_map: TableMap, statement: RowStatement) -> str:
    """
    Return why columns that an event leaves out may not be as they were; empty: they are.

    Args:
        head: of the event.
        table_map: of its table.
        statement: that it is of.
    """
    if head.op != UPDATE:
        return ""
    try:
        after = _partial_after(head)
    except FormatError:
        return ""  # who decodes it tells
    if after is None or not statement.may_change_unseen(table_map):
        return ""
    key = table_map.optional.key
    what = _BY.get(statement.verb, _MAY_BE) if statement.is_direct else _MAY_BE
    if what == _MAY_BE and key and not any(after >> number & 1 for number in key):
        return ""  # an UPDATE that does not set the key: a REPLACE does, unless that has a default
    return _REASON.format(what, statement.shown)


def _partial_after(head: RowsHead) -> int | None:
    """Return the columns of the image after a change, as bits; None: nothing is left out."""
    reader = FieldReader(head.event, head.offset, what="rows event")
    columns = reader.lenenc()
    size = (columns + 7) // 8
    before, after = (int.from_bytes(reader.take(size), "little") for _ in range(2))
    every = (1 << columns) - 1
    return None if (before | after) & every == every else after
