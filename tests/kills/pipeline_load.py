"""What is written to a primary while its pipeline is killed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..integration.workload import TYPE_COLUMNS, TYPE_ROW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

MIXED_TABLES: Final = (
    "words (w VARCHAR(20) PRIMARY KEY, n INT, b BLOB) CHARSET=utf8mb4",
    "others (w VARCHAR(20) PRIMARY KEY, n INT, b BLOB) CHARSET=utf8mb4",
    "bag (n INT, w VARCHAR(9))",
    "pair (a INT, b BINARY(3), v DOUBLE, PRIMARY KEY (b, a))",
)
STATEMENTS: Final = (
    "INSERT INTO words VALUES ('k{n}', {n}, 'x') ON DUPLICATE KEY UPDATE n = {n}",
    "UPDATE IGNORE words SET w = 'K{n}', n = n + 1 WHERE w = 'k{m}'",
    "DELETE FROM words WHERE n MOD 7 = {n} MOD 7 LIMIT 3",
    "INSERT INTO bag SELECT {n} MOD 3, 'x' FROM seq_1_to_20",
    "DELETE FROM bag WHERE n = {n} MOD 3 LIMIT 15",
    "UPDATE bag SET w = CONCAT(w, 'y') WHERE n = {m} MOD 3 AND LENGTH(w) < 4 LIMIT 2",
    "REPLACE INTO pair (a, b, v) SELECT seq, CHAR({n} MOD 3), {n} / 3 FROM seq_1_to_50",
    "UPDATE IGNORE pair SET a = a + 1000 WHERE a > 40 AND a < 60 AND b = CHAR({n} MOD 3)",
    "DELETE FROM pair WHERE a > 1000",
    "TRUNCATE TABLE bag",
    "ALTER TABLE pair ADD COLUMN c{n} INT DEFAULT {n}",
    "RENAME TABLE words TO swapped, others TO words, swapped TO others",
)
RARE: Final = 3  # of the last statements, which come once in so many
RARE_IN: Final = 40

_COMPUTED: Final = frozenset({"id", "gv", "gs"})
_NAMES: Final = ", ".join(
    name
    for name in re.findall(r"(?:^|, )(\w+) [A-Z]", re.sub(r"\([^)]*\)", "", TYPE_COLUMNS))
    if name not in _COMPUTED
)
_WIDE: Final = (  # by kind of table: what it is, its first rows, and what happens to it
    (
        f"({TYPE_COLUMNS})",
        (
            "INSERT INTO {t} VALUES " + TYPE_ROW.replace("{", "{{").replace("}", "}}"),
            "INSERT INTO {t} () VALUES ()",
        ),
        (
            f"INSERT INTO {{t}} ({_NAMES}) SELECT {_NAMES} FROM {{t}} ORDER BY id LIMIT 400",
            (
                "UPDATE {t} SET ti = {n} MOD 100, ub = {n}, f = {n} / 7, n = -n, b64 = b64 ^ {n}, "
                "vc = CONCAT('{n} ', LEFT(vc, 50)), bl = UNHEX(MD5('{n}')), e = 1 + {n} MOD 3, "
                "s = {n} MOD 8, da = '2024-02-29' + INTERVAL {n} DAY, t6 = -t6, dt3 = NOW(3), "
                "ts6 = NOW(6), u = UUID(), j = '{{\"n\": {n}}}' "
                "WHERE id MOD 20 = {n} MOD 20 LIMIT 400"
            ),
            "DELETE FROM {t} WHERE id MOD 11 = {n} MOD 11 AND id > 2 LIMIT 250",
        ),
    ),
    (
        "(w VARCHAR(40) PRIMARY KEY, n INT, b BLOB) CHARSET=utf8mb4",
        ("INSERT INTO {t} SELECT CONCAT('k', seq), seq, NULL FROM seq_1_to_500",),
        (
            "REPLACE INTO {t} SELECT CONCAT('k', seq + {n} MOD 3000), {n}, 'x' FROM seq_1_to_300",
            (
                "UPDATE {t} SET w = CONCAT('K', SUBSTR(w, 2), ' '), n = {n} "
                "WHERE n MOD 9 = {n} MOD 9 AND LENGTH(w) < 30 LIMIT 200"
            ),
            "DELETE FROM {t} WHERE n MOD 7 = {n} MOD 7 LIMIT 100",
        ),
    ),
    (
        "(n INT, w VARCHAR(9), d DECIMAL(12,3))",
        ("INSERT INTO {t} SELECT seq MOD 5, 'x', seq / 7 FROM seq_1_to_500",),
        (
            "INSERT INTO {t} SELECT seq MOD 9, 'x', {n} MOD 3 FROM seq_1_to_300",
            "UPDATE {t} SET w = CONCAT(w, 'y') WHERE n = {n} MOD 9 AND LENGTH(w) < 4 LIMIT 100",
            "DELETE FROM {t} WHERE n = {m} MOD 9 LIMIT 150",
        ),
    ),
    (
        "(a INT, b BINARY(3), v DOUBLE, ts TIMESTAMP(6), PRIMARY KEY (b, a))",
        ("INSERT INTO {t} SELECT seq, CHAR(seq MOD 3), seq / 3, NOW(6) FROM seq_1_to_500",),
        (
            "REPLACE INTO {t} SELECT seq + {m}, CHAR({n} MOD 3), {n} / 3, NOW(6) FROM seq_1_to_300",
            "UPDATE IGNORE {t} SET a = a + 10000, v = -v WHERE a MOD 13 = {n} MOD 13 LIMIT 100",
            "DELETE FROM {t} WHERE a > 10000 LIMIT 200",
        ),
    ),
)


class Load(Protocol):
    """
    What is written.

    Attributes:
        tables: how many.
        changed: rows that were changed so far.
        statements: that were run.
    """

    tables: int
    changed: int
    statements: int

    @property
    def first(self) -> Sequence[str]:
        """The statements that make the tables, in their database, with some rows."""

    @property
    def share(self) -> float:
        """What was written of all that is to be, 0 to 1; 1 where somebody else says when."""

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be written."""

    def step(self, cursor: Any) -> None:
        """Write a little more."""


class MixedLoad:
    """Tables of different keys, with TRUNCATE, ALTER and RENAME, until somebody ends it."""

    tables = len(MIXED_TABLES)
    first = (
        *(f"CREATE TABLE {table}" for table in MIXED_TABLES),
        "INSERT INTO words SELECT CONCAT('k', seq), seq, NULL FROM seq_1_to_2000",
        "INSERT INTO bag SELECT seq MOD 5, 'x' FROM seq_1_to_500",
    )
    share = 1.0
    is_done = False

    def __init__(self, random: Random) -> None:
        self._random = random
        self.changed = self.statements = 0

    def step(self, cursor: Any) -> None:
        """Run a statement."""
        self.statements += 1
        choice = STATEMENTS[-RARE:] if self.statements % RARE_IN == 0 else STATEMENTS[:-RARE]
        statement = self._random.choice(choice)
        text = statement.format(n=self.statements, m=self._random.randrange(2000))
        self.changed += cursor.execute(text)


class WideLoad:
    """
    Tables of all types, with keys of all kinds and without, until so many rows were changed.

    Args:
        random: chooses what comes.
        tables: how many.
        rows: changed rows.
    """

    def __init__(self, random: Random, tables: int, rows: int) -> None:
        self._random = random
        self._rows = rows
        self.tables = tables
        self.changed = self.statements = 0

    @property
    def first(self) -> Sequence[str]:
        """The statements that make the tables, with some rows."""
        made = []
        for number in range(self.tables):
            columns, rows, _ = _WIDE[number % len(_WIDE)]
            made += [
                f"CREATE TABLE t{number} {columns}",
                *(row.format(t=f"t{number}") for row in rows),
            ]
        return made

    @property
    def share(self) -> float:
        """Of the rows that are to be changed, those that were."""
        return min(self.changed / self._rows, 1.0)

    @property
    def is_done(self) -> bool:
        """Whether so many rows were changed."""
        return self.changed >= self._rows

    def step(self, cursor: Any) -> None:
        """Run a statement."""
        self.statements += 1
        number = self._random.randrange(self.tables)
        statement = self._random.choice(_WIDE[number % len(_WIDE)][2])
        self.changed += cursor.execute(
            statement.format(t=f"t{number}", n=self.statements, m=self._random.randrange(2000))
        )
