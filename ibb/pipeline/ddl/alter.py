"""ALTER TABLE, clause by clause; a clause that is not known makes all of it unclear."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from .column_definition import key_columns, read_definition
from .cursor import Cursor, UnclearError, split
from .effects import AddColumn, AlterTable, ChangeColumn, DropColumn, RenameColumn, SetKey

if TYPE_CHECKING:
    from ibb.pipeline.tables.row_changes import TableName

    from .effects import ColumnEffect, Effect

_KEY_WORDS: Final = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT"}
)
# Clauses that change neither rows nor columns, by their first word.
_HARMLESS: Final = frozenset(
    {"COMMENT", "AUTO_INCREMENT", "ROW_FORMAT", "ALGORITHM", "LOCK", "FORCE", "CHECKSUM"}
    | {"KEY_BLOCK_SIZE", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "ORDER"}
    | {"AVG_ROW_LENGTH", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "DELAY_KEY_WRITE", "ENABLE"}
    | {"DISABLE", "PAGE_COMPRESSED", "PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "NOWAIT"}
    | {"TRANSACTIONAL", "IETF_QUOTES", "PARTITION", "REMOVE", "COALESCE", "REORGANIZE", "REBUILD"}
    | {"ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "WAIT", "WITH", "WITHOUT", "DEFAULT", "COLLATE"}
    | {"CHARACTER", "CHARSET", "DATA", "UNION", "INSERT_METHOD", "CONNECTION", "SEQUENCE"}
)
_TRANSACTIONAL: Final = frozenset({"innodb", "rocksdb"})
# Of those with a second word that decides.
_CHANGES_ROWS: Final = frozenset(
    {("DROP", "PARTITION"), ("TRUNCATE", "PARTITION"), ("EXCHANGE", "PARTITION")}
    | {("CONVERT", "PARTITION"), ("CONVERT", "TABLE"), ("DISCARD", "TABLESPACE")}
    | {("IMPORT", "TABLESPACE"), ("DROP", "SYSTEM"), ("ADD", "SYSTEM"), ("ADD", "PERIOD")}
)


def read_alter(cursor: Cursor, database: str) -> Effect:
    """
    Read what stands behind ALTER.

    Raises:
        UnclearError: something in it is not known.
    """
    cursor.any_of("ONLINE", "OFFLINE")
    if cursor.any_of("IGNORE"):
        raise UnclearError("ALTER IGNORE may remove rows")
    if not cursor.any_of("TABLE"):
        return None  # databases, views, users ...
    cursor.words("IF", "EXISTS")
    table = cursor.table_name(database)
    if cursor.any_of("WAIT"):
        cursor.take()
    cursor.any_of("NOWAIT")
    effects: list[ColumnEffect] = []
    new_name: TableName | None = None
    altered: set[str] = set()  # names of columns that get another default
    for part in split(cursor.rest()):
        clause = Cursor(part)
        if clause.peek().word == "RENAME" and clause.peek(1).word not in ("COLUMN", "INDEX", "KEY"):
            clause.take()
            clause.any_of("TO", "AS")
            clause.sign("=")
            new_name = clause.table_name(table.database)
            continue
        if clause.any_of("ALTER"):  # of a default, or of an index: of rows that are there nothing
            clause.any_of("COLUMN")
            if not clause.words("IF", "EXISTS"):  # columns that are new are not meant then
                altered.add(clause.name().lower())
            continue
        effects += _clause(clause)
    effects = [_with_other_default(effect, altered) for effect in effects]
    return AlterTable(table, tuple(effects), new_name)


def _with_other_default(effect: ColumnEffect, altered: set[str]) -> ColumnEffect:
    """Return *effect*; the value of a new column is unclear if it is among those *altered*."""
    if not isinstance(effect, AddColumn) or effect.definition.name.lower() not in altered:
        return effect
    reason = "the same statement gives it another DEFAULT"
    return effect._replace(definition=replace(effect.definition, computed=reason))


def check_engine(name: str) -> None:
    """
    Check that rows of rolled back transactions, which may be logged, do not stay in the table.

    Raises:
        UnclearError: the engine has no transactions.
    """
    if name.lower() not in _TRANSACTIONAL:
        raise UnclearError(f"the engine {name} has no transactions")


def _clause(clause: Cursor) -> list[ColumnEffect]:
    if clause.at_end:
        return []
    pair = (clause.peek().word, clause.peek(1).word)
    if pair in _CHANGES_ROWS:
        raise UnclearError(" ".join(pair))
    word = clause.take().word
    if word == "ADD":
        return _add(clause)
    if word == "DROP":
        return _drop(clause)
    if word in ("MODIFY", "CHANGE"):
        clause.any_of("COLUMN")
        if_there = clause.words("IF", "EXISTS")
        old = clause.name()
        new = old if word == "MODIFY" else clause.name()
        return [ChangeColumn(old, read_definition(new, clause), if_there)]
    if word == "RENAME":
        if not clause.any_of("COLUMN"):
            return []  # an index
        if_there = clause.words("IF", "EXISTS")
        old = clause.name()
        if not clause.any_of("TO"):
            raise UnclearError("RENAME COLUMN without TO")
        return [RenameColumn(old, clause.name(), if_there)]
    if word == "CONVERT":
        raise UnclearError("CONVERT TO CHARACTER SET may change texts and types")
    if word == "ENGINE":
        clause.sign("=")
        check_engine(clause.take().value)
        return []
    if word in _HARMLESS:
        return []
    raise UnclearError(f"the clause {word or 'without a word'} of ALTER TABLE")


def _add(clause: Cursor) -> list[ColumnEffect]:
    if clause.any_of("PARTITION"):
        return []
    if clause.any_of("CONSTRAINT") and clause.peek().word not in {"PRIMARY", *_KEY_WORDS}:
        clause.words("IF", "NOT", "EXISTS")
        clause.name()
    if clause.words("PRIMARY", "KEY"):
        if_missing = clause.words("IF", "NOT", "EXISTS")
        while not clause.at_end and clause.peek().value != "(":
            clause.take()
        return [SetKey(key_columns(clause.group()), if_missing)]
    if clause.peek().word in _KEY_WORDS:
        return []
    clause.any_of("COLUMN")
    if_missing = clause.words("IF", "NOT", "EXISTS")
    if clause.peek().value == "(" and clause.peek().kind == "sign":
        return [
            effect
            for part in split(clause.group())
            for effect in _added_column(Cursor(part), if_missing)
        ]
    return _added_column(clause, if_missing)


def _added_column(clause: Cursor, if_missing: bool) -> list[ColumnEffect]:
    if clause.peek().word in {"PRIMARY", *_KEY_WORDS} and clause.peek().kind == "word":
        return _add(clause)
    return [AddColumn(read_definition(clause.name(), clause), if_missing)]


def _drop(clause: Cursor) -> list[ColumnEffect]:
    if clause.words("PRIMARY", "KEY"):
        return [SetKey(())]
    if clause.any_of("INDEX", "KEY", "CONSTRAINT", "FOREIGN", "CHECK"):
        return []
    clause.any_of("COLUMN")
    if_there = clause.words("IF", "EXISTS")
    name = clause.name()
    clause.any_of("RESTRICT", "CASCADE")
    if not clause.at_end:
        raise UnclearError("DROP with more behind the column's name")
    return [DropColumn(name, if_there)]
