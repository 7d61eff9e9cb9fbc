"""Tables that are altered at random, as of each group, both ways, against SELECT of then."""

import os
import random
from datetime import date, datetime
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.history_reading import write_history_as_of
from ibb.pipeline.tables.parquet_manifest import KEPT_VERSIONS
from ibb.pipeline.tables.row_changes import TableName
from ibb.protocol.gtid import GtidPosition

from .topology import selected, shown

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("as_of_at_random")]

SEEDS = int(os.environ.get("IBB_TEST_SEEDS", "2"))
STATEMENTS = 30
COLUMNS_MAX = 7
IDS = 12
WIDER = {
    "TINYINT UNSIGNED": ("INT", ("0", "255", "7")),
    "INT": ("BIGINT", ("-2147483648", "0", "2147483647")),
    "BIGINT": ("DECIMAL(20,1)", ("-9223372036854775808", "1")),
    "DECIMAL(6,2)": ("DECIMAL(12,4)", ("-9999.99", "0.01", "5")),
    "VARCHAR(5)": ("VARCHAR(40)", ("''", "'äö  '", "'abcde'")),
    "VARCHAR(40)": ("MEDIUMTEXT", ("'a'", "REPEAT('é', 40)")),
    "CHAR(3)": ("VARCHAR(9)", ("'abc'", "'x'")),
    "VARBINARY(4)": ("BLOB", ("'y'", "'zzzz'")),
    "DATE": ("DATETIME", ("'2024-02-29'", "'0001-01-01'")),
    "DATETIME": ("DATETIME(3)", ("'2024-02-29 23:59:59'", "'1999-01-01'")),
    "ENUM('a','b')": ("ENUM('c','b','a')", ("'a'", "'b'")),
    "SET('x','y')": ("SET('x','y','z')", ("''", "'x,y'", "'y'")),
    "DOUBLE": (None, ("1.5", "-0.1", "1e300")),
}
VALUES = {kind: values for kind, (_, values) in WIDER.items()}
VALUES |= {wider: VALUES[kind] for kind, (wider, _) in WIDER.items() if wider not in VALUES}


class Walk:
    """A table, and random statements that fit what it is by then."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.columns = [("id", "INT")]
        self.has_key = True
        for _ in range(3):
            self.columns.append(self.new())

    def created(self):
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"CREATE TABLE t ({columns}, PRIMARY KEY (id))"

    def new(self):
        """A column; sometimes with the name of one that there was."""
        taken = {name for name, _ in self.columns}
        names = [f"c{number}" for number in range(COLUMNS_MAX + 1) if f"c{number}" not in taken]
        return self.random.choice(names), self.random.choice(list(WIDER))

    def value(self, kind):
        return "NULL" if self.random.random() < 0.2 else self.random.choice(VALUES[kind])

    def others(self):
        return [column for column in self.columns if column[0] != "id"]

    def some_rows(self):
        return f"id MOD {self.random.randint(2, 4)} = {self.random.randint(0, 2)}"

    def statement(self):
        kinds = ("insert", "update", "move", "delete", "transaction", "alter", "truncate")
        kind = self.random.choices(kinds, (6, 6, 1, 2, 2, 8, 0.5))[0]
        return getattr(self, kind)()

    def insert(self):
        rows = []
        for number in self.random.sample(range(IDS), self.random.randint(1, 4)):
            values = [
                str(number) if name == "id" else self.value(kind) for name, kind in self.columns
            ]
            rows.append(f"({', '.join(values)})")
        return [f"REPLACE INTO t VALUES {', '.join(rows)}"]

    def update(self):
        if not self.others():
            return self.move()
        chosen = self.random.sample(self.others(), self.random.randint(1, len(self.others())))
        values = ", ".join(f"{name} = {self.value(kind)}" for name, kind in chosen)
        return [f"UPDATE t SET {values} WHERE {self.some_rows()}"]

    def move(self):
        return [
            f"UPDATE t SET id = id + {100 * self.random.randint(1, 9)} WHERE {self.some_rows()}"
        ]

    def delete(self):
        return [f"DELETE FROM t WHERE {self.some_rows()}"]

    def transaction(self):
        parts = (self.insert, self.update, self.delete, self.move)
        found = [text for _ in range(3) for text in self.random.choice(parts)()]
        return ["BEGIN", *found, "COMMIT"]

    def truncate(self):
        return ["TRUNCATE TABLE t"]

    def alter(self):
        """Of one to three clauses that do not meddle with each other's columns."""
        clauses, free = [], dict(self.others())
        for _ in range(self.random.randint(1, 3)):
            clause = self.random.choice((self.add, self.drop, self.rename, self.widen, self.swap))
            if text := clause(free):
                clauses.append(text)
        if self.random.random() < 0.1:
            clauses.append("DROP PRIMARY KEY" if self.has_key else "ADD INDEX (id)")
            self.has_key = False
        return [f"ALTER TABLE t {', '.join(clauses)}"] if clauses else self.update()

    def place(self, name, kind, free):
        """Put a column where a clause says, and return that; not behind one that changes."""
        behind = [one for one, _ in self.columns if one == "id" or one in free]
        choice = self.random.choice(["", "FIRST", *behind])
        if choice in ("", "FIRST"):
            self.columns.insert(0 if choice else len(self.columns), (name, kind))
            return choice
        free.pop(choice, None)
        at = [one for one, _ in self.columns].index(choice)
        self.columns.insert(at + 1, (name, kind))
        return f"AFTER {choice}"

    def add(self, free):
        if len(self.columns) >= COLUMNS_MAX or len(free) < len(self.others()):
            return ""
        name, kind = self.new()
        default = ""
        if self.random.random() < 0.6 and kind.startswith(("INT", "BIGINT", "VARCHAR")):
            default = f" NOT NULL DEFAULT {VALUES[kind][0]}"
        return f"ADD {name} {kind}{default} {self.place(name, kind, free)}"

    def taken(self, free):
        if not free:
            return None
        name = self.random.choice(sorted(free))
        return name, free.pop(name)

    def drop(self, free):
        found = self.taken(free)
        if found is None:
            return ""
        self.columns.remove(found)
        return f"DROP COLUMN {found[0]}"

    def rename(self, free):
        found = self.taken(free)
        if found is None or len(self.columns) >= COLUMNS_MAX:
            return ""
        new, _ = self.new()
        self.columns[self.columns.index(found)] = (new, found[1])
        return f"CHANGE {found[0]} {new} {found[1]}"

    def widen(self, free):
        found = self.taken(free)
        wider = found and WIDER.get(found[1], (None,))[0]
        if not wider:
            return ""
        place = ""
        at = self.columns.index(found)
        self.columns[at] = (found[0], wider)
        if self.random.random() < 0.3:
            del self.columns[at]
            place = self.place(found[0], wider, free)
        return f"MODIFY {found[0]} {wider} {place}"

    def swap(self, free):
        """Two columns get each other's names."""
        one, other = self.taken(free), self.taken(free)
        if one is None or other is None:
            return ""
        at, to = self.columns.index(one), self.columns.index(other)
        self.columns[at], self.columns[to] = (other[0], one[1]), (one[0], other[1])
        return f"CHANGE {one[0]} {other[0]} {one[1]}, CHANGE {other[0]} {one[0]} {other[1]}"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_both_ways_give_what_select_showed(topology, tmp_path, seed):
    walk, primary, database = Walk(seed), topology.primary, f"walk{seed}"
    image = walk.random.choice(("FULL", "MINIMAL", "NOBLOB"))
    settings = (f"SET NAMES utf8mb4, binlog_row_image = {image}", f"USE {database}")
    primary.run(
        f"CREATE DATABASE {database} CHARACTER SET utf8mb4", f"USE {database}", walk.created()
    )
    config = topology.config(
        tmp_path,
        include=(f"{database}.*",),
        history=(f"{database}.*",),
        batch_groups=walk.random.randint(1, 9),
        format=walk.random.choice(("delta", "parquet")),
    )
    topology.run(config)
    then = []
    for _ in range(STATEMENTS):
        statements = walk.statement()
        primary.run(*settings, *statements)
        position = GtidPosition.parse(primary.binlog_position())
        then.append((position, statements, selected(primary, f"{database}.t", text)))
    topology.run(config)
    assert topology.differences(config) == ([], 2)
    file = tmp_path / "rows.parquet"
    kept = len(then) if config.format == "delta" else KEPT_VERSIONS - 1
    for write, known in ((write_history_as_of, then), (write_as_of, then[-kept:])):
        for position, statements, wanted in known:
            write(config, TableName(database, "t"), position, str(file))
            found = pq.read_table(file)
            columns = sorted(found.column_names)
            rows = shown((row.values() for row in found.select(columns).to_pylist()), text)
            assert (columns, rows) == wanted, (write.__name__, position, statements)


def text(value):
    """Return a value as text; older moments of a history have the wider types of today."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | Decimal):
        return f"{Decimal(value).normalize():f}"
    is_date = isinstance(value, date) and not isinstance(value, datetime)
    return f"{value} 00:00:00" if is_date else str(value)
