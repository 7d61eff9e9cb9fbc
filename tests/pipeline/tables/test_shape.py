"""Kinds of ALTER TABLE: right columns and rows after it, or a stop before the first wrong row."""

from decimal import Decimal

import pyarrow as pa
import pytest

from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.effects import AlterTable, Unclear
from ibb.pipeline.ddl.statement import effect_of
from ibb.pipeline.tables.shape import Reshape, column_field

SCHEMA = pa.schema(
    [
        column_field("id", "int(11)"),
        column_field("n", "int(10) unsigned"),
        column_field("name", "varchar(20)", "latin1"),
        column_field("price", "decimal(10,2)"),
        column_field("kind", "enum('a','b')", "utf8mb4"),
        column_field("day", "date"),
    ]
)
ROW = {"id": 1, "n": 2, "name": "x", "price": Decimal("1.50"), "kind": "a", "day": None}

FOLLOWED = {
    "ADD COLUMN extra BIGINT": {"extra": None},
    "ADD extra VARCHAR(5) NOT NULL DEFAULT 'it''s' AFTER id": {"extra": "it's"},
    "ADD COLUMN (a INT NOT NULL, b DECIMAL(6,3) DEFAULT -1.5)": {"a": 0, "b": Decimal("-1.500")},
    "ADD COLUMN IF NOT EXISTS NAME INT": {},
    "ADD COLUMN u BIGINT UNSIGNED DEFAULT 18446744073709551615": {"u": Decimal(2**64 - 1)},
    "ADD t TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'a, (b'": {"t": ""},
    "ADD COLUMN `odd ``name` TINYINT(1) FIRST": {"odd `name": None},
    "DROP COLUMN day": {"day": ...},
    "DROP IF EXISTS nothing, DROP `kind` CASCADE": {"kind": ...},
    "RENAME COLUMN n TO m": {"n": ..., "m": 2},
    "CHANGE n m INT UNSIGNED NULL": {"n": ..., "m": 2},
    "CHANGE COLUMN id nr BIGINT NOT NULL": {"id": ..., "nr": 1},
    "MODIFY n BIGINT UNSIGNED": {"n": Decimal(2)},
    "MODIFY n BIGINT": {"n": 2},
    "MODIFY name VARCHAR(200) CHARACTER SET utf8mb4": {},
    "MODIFY name MEDIUMTEXT CHARACTER SET latin1": {},
    "MODIFY price DECIMAL(14,4)": {"price": Decimal("1.5000")},
    "MODIFY kind ENUM('b','c','a') CHARACTER SET utf8mb4": {},
    "MODIFY day DATETIME(3)": {},
    "ADD INDEX by_name (name(3)), ADD UNIQUE KEY u (n), DROP INDEX old": {},
    "ADD CONSTRAINT fk FOREIGN KEY (n) REFERENCES other (id) ON DELETE CASCADE": {},
    "ENGINE=InnoDB, COMMENT='a, b', ALGORITHM=INPLACE, LOCK=NONE": {},
    "ALTER COLUMN n SET DEFAULT 5, RENAME INDEX a TO b": {},
    "ORDER BY id, FORCE": {},
    "/* a comment, */ ADD /*! COLUMN extra INT */ -- to the end": {"extra": None},
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)": {},
    "ADD PRIMARY KEY IF NOT EXISTS (n)": {},
}
STOPPED = {
    "MODIFY n INT": "n changes from",
    "MODIFY n SMALLINT UNSIGNED": "n changes from",
    "MODIFY name VARCHAR(10)": "name changes from",
    "MODIFY name VARCHAR(20) CHARACTER SET ascii": "name changes from",
    "MODIFY name CHAR(20)": "name changes from",
    "MODIFY price DECIMAL(10,1)": "price changes from",
    "MODIFY price DOUBLE": "price changes from",
    "MODIFY kind ENUM('a')": "kind changes from",
    "MODIFY id VARCHAR(20)": "id changes from",
    "MODIFY day DATE NOT NULL": "day is NOT NULL now",
    "ADD COLUMN at DATETIME DEFAULT CURRENT_TIMESTAMP": "an expression",
    "ADD COLUMN u UUID DEFAULT (UUID())": "an expression",
    "ADD COLUMN s INT AS (n + 1) STORED": "the server computes",
    "ADD COLUMN nr BIGINT AUTO_INCREMENT UNIQUE": "AUTO_INCREMENT numbers",
    "ADD COLUMN d DATE NOT NULL": "d is new",
    "ADD COLUMN name INT": "there is a column name",
    "ADD COLUMN _ibb_key INT": "kept for ibb",
    "DROP COLUMN nothing": "has no column nothing",
    "DROP COLUMN id": "id of the key goes",
    "CONVERT TO CHARACTER SET utf8mb4": "CONVERT TO CHARACTER SET",
    "DROP PARTITION p0": "DROP PARTITION",
    "ADD SYSTEM VERSIONING": "ADD SYSTEM",
    "ADD PRIMARY KEY (name(3))": "a part of a column",
    "FROBNICATE ALL": "FROBNICATE",
}
KEYS = {
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)": ["id", "n"],
    "CHANGE COLUMN id nr BIGINT NOT NULL": ["nr"],
}


def reshaped(clauses):
    effect = effect_of(f"ALTER TABLE orders {clauses}", "shop")
    if isinstance(effect, Unclear):
        raise UnclearError(effect.reason)
    assert isinstance(effect, AlterTable)
    reshape = Reshape(SCHEMA, ["id"], effect.effects, has_rows=True)
    rows = pa.Table.from_pylist([ROW], SCHEMA)
    reshape.check([rows])
    return reshape, reshape.rows(rows).to_pylist()


@pytest.mark.parametrize("clauses", FOLLOWED)
def test_it_is_followed(clauses):
    reshape, rows = reshaped(clauses)
    wanted = {**ROW, **FOLLOWED[clauses]}
    wanted = {name: value for name, value in wanted.items() if value is not ...}
    assert rows == [wanted]
    assert reshape.key == KEYS.get(clauses, ["id"])


@pytest.mark.parametrize("clauses", STOPPED)
def test_it_stops(clauses):
    with pytest.raises(Exception, match=STOPPED[clauses].replace("(", r"\(")):
        reshaped(clauses)


def test_only_null_columns_are_added_without_writing_rows_anew():
    assert [field.name for field in reshaped("ADD a INT, ADD b INT AFTER id")[0].added_only] == [
        "a",
        "b",
    ]
    for clauses in ("ADD a INT DEFAULT 1", "MODIFY id BIGINT", "DROP n", "RENAME COLUMN n TO m"):
        assert reshaped(clauses)[0].added_only is None
    assert reshaped("ENGINE=InnoDB")[0].added_only == []


def test_a_key_that_configuration_chose_stays():
    effect = effect_of("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)", "shop")
    assert Reshape(SCHEMA, ["id"], effect.effects, has_rows=True, keeps_key=True).key == ["id"]
