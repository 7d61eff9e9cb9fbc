"""Kinds of ALTER TABLE: right columns and rows after it, or a stop before the first wrong row."""

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from ibb.pipeline.ddl.cursor import UnclearError
from ibb.pipeline.ddl.effects import AlterTable, Unclear
from ibb.pipeline.ddl.session_modes import DEFAULT_MODES, SessionModes
from ibb.pipeline.ddl.statement import effect_of
from ibb.pipeline.tables.generated import STORED, UNLOGGED, VIRTUAL
from ibb.pipeline.tables.shape import Reshape, column_field

SCHEMA = pa.schema(
    [
        column_field("id", "int(11)"),
        column_field("n", "int(10) unsigned"),
        column_field("name", "varchar(20)", "latin1"),
        column_field("price", "decimal(10,2)"),
        column_field("kind", "enum('a','b')", "utf8mb4"),
        column_field("day", "date"),
        column_field("note", "tinytext", "latin1"),
        column_field("zero", "int(11)"),
        column_field("tags", "set('a','b')", "utf8mb4"),
    ]
)
ROW = {"id": 1, "n": 2, "name": "x", "price": Decimal("1.50"), "kind": "a"}
ROW |= {"day": None, "note": "long", "zero": 0, "tags": "a,b"}

FOLLOWED = {
    "ADD COLUMN extra BIGINT": {"extra": None},
    "ADD extra VARCHAR(5) NOT NULL DEFAULT 'it''s' AFTER id": {"extra": "it's"},
    "ADD COLUMN (a INT NOT NULL, b DECIMAL(6,3) DEFAULT -1.5)": {"a": 0, "b": Decimal("-1.500")},
    "ADD COLUMN IF NOT EXISTS NAME INT": {},
    "ADD COLUMN u BIGINT UNSIGNED DEFAULT 18446744073709551615": {"u": Decimal(2**64 - 1)},
    "ADD t TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'a, (b'": {"t": ""},
    "ADD COLUMN `odd ``name` TINYINT(1) FIRST": {"odd `name": None},
    "ADD e ENUM('x','it''s') DEFAULT 'it''s', ADD s SET('a','b') DEFAULT 'a,b'": {
        "e": "it's",
        "s": "a,b",
    },
    "ADD c CHAR(5) DEFAULT 'ab  ', ADD v VARCHAR(5) DEFAULT 1.50": {"c": "ab", "v": "1.50"},
    "ADD y YEAR(4) DEFAULT 2024, ADD t TIME NOT NULL, ADD f FLOAT DEFAULT -0.5": {
        "y": 2024,
        "t": 0,
        "f": -0.5,
    },
    "ADD t DATETIME(3) DEFAULT '2024-02-29 12:34:56.78'": {
        "t": datetime.fromisoformat("2024-02-29T12:34:56.780")
    },
    r"ADD w VARCHAR(9) DEFAULT 'a\_b\%c\d', ADD e ENUM('\_') DEFAULT '\_'": {
        "w": r"a\_b\%cd",
        "e": r"\_",
    },
    "ADD c VARCHAR(3) BYTE NOT NULL, ADD d CHAR(3) NOT NULL": {"c": b"", "d": ""},
    "DROP COLUMN day": {"day": ...},
    "DROP IF EXISTS nothing, DROP `kind` CASCADE": {"kind": ...},
    "RENAME COLUMN n TO m": {"n": ..., "m": 2},
    "CHANGE n m INT UNSIGNED NULL": {"n": ..., "m": 2},
    "RENAME COLUMN id TO n, RENAME COLUMN n TO id": {"id": 2, "n": 1},
    "CHANGE n id INT UNSIGNED, CHANGE id n INT": {"id": 2, "n": 1},
    "RENAME COLUMN n TO price, DROP COLUMN price": {"n": ..., "price": 2},
    "ADD PRIMARY KEY (id, more), ADD COLUMN more INT NOT NULL DEFAULT 3": {"more": 3},
    "CHANGE COLUMN id nr BIGINT NOT NULL AUTO_INCREMENT": {"id": ..., "nr": 1},
    "MODIFY n BIGINT UNSIGNED": {"n": Decimal(2)},
    "MODIFY n BIGINT": {"n": 2},
    "MODIFY name VARCHAR(200) CHARACTER SET utf8mb4": {},
    "MODIFY name MEDIUMTEXT CHARACTER SET latin1": {},
    "MODIFY n DECIMAL(10,0)": {"n": Decimal(2)},
    "MODIFY price DECIMAL(14,4)": {"price": Decimal("1.5000")},
    "MODIFY kind ENUM('b','c','a') CHARACTER SET utf8mb4": {},
    "MODIFY tags SET('c','a','d','b') CHARACTER SET utf8mb4": {},
    "MODIFY day DATETIME(3)": {},
    "ADD INDEX by_name (name(3)), ADD UNIQUE KEY u (n), DROP INDEX old": {},
    "ADD CONSTRAINT fk FOREIGN KEY (n) REFERENCES other (id) ON DELETE RESTRICT": {},
    "ENGINE=InnoDB, COMMENT='a, b', ALGORITHM=INPLACE, LOCK=NONE": {},
    "DROP COLUMN id, DROP PRIMARY KEY": {"id": ...},
    "ALTER COLUMN n SET DEFAULT 5, RENAME INDEX a TO b": {},
    "ALTER INDEX i IGNORED, ALTER KEY IF EXISTS j NOT IGNORED": {},
    "ADD c INT DEFAULT 2, ALTER IF EXISTS c SET DEFAULT 9, ALTER n SET DEFAULT 3": {"c": 2},
    "ADD IF NOT EXISTS n INT DEFAULT 2, ALTER n SET DEFAULT 9": {},
    "ORDER BY id, FORCE": {},
    "/* a comment, */ ADD /*! COLUMN extra INT */ -- to the end": {"extra": None},
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)": {},
    "ADD PRIMARY KEY IF NOT EXISTS (n)": {},
}
STOPPED = {
    "MODIFY n INT": "n changes from",
    "MODIFY n SMALLINT UNSIGNED": "n changes from",
    "MODIFY name VARCHAR(10)": "name changes from",
    "MODIFY name VARBINARY(20)": "name changes from",
    "MODIFY name VARCHAR(20) CHARACTER SET binary": "name changes from",
    "MODIFY name CHAR(20)": "name changes from",
    "MODIFY price DECIMAL(10,1)": "price changes from",
    "MODIFY price DOUBLE": "price changes from",
    "MODIFY price DECIMAL(10,2) UNSIGNED": "price changes from",
    "MODIFY price DECIMAL(40,2)": "price changes from",
    "MODIFY n DECIMAL(40,2)": "n changes from",
    "MODIFY note VARCHAR(100) CHARACTER SET latin1": "note changes from",
    "MODIFY note TINYTEXT CHARACTER SET utf8mb4": "note changes from",
    "MODIFY note TEXT(10) CHARACTER SET latin1": "note changes from",
    "MODIFY kind ENUM('a')": "kind changes from",
    "MODIFY tags SET('b','a') CHARACTER SET utf8mb4": "tags changes from",
    "MODIFY tags SET('a') CHARACTER SET utf8mb4": "tags changes from",
    "MODIFY id VARCHAR(20)": "id changes from",
    "MODIFY day DATE NOT NULL": "day is NOT NULL now",
    "ADD PRIMARY KEY (day)": "day is NOT NULL now",
    "MODIFY zero INT NOT NULL AUTO_INCREMENT UNIQUE": "zero is AUTO_INCREMENT now, and has 0",
    "ADD COLUMN at DATETIME DEFAULT CURRENT_TIMESTAMP": "an expression",
    "ADD COLUMN u UUID DEFAULT (UUID())": "an expression",
    "ADD COLUMN s INT AS (n + 1) STORED": "the server computes",
    "ADD c INT NOT NULL DEFAULT 2, ALTER COLUMN C SET DEFAULT 9": "c is new: the same statement",
    "ALTER c DROP DEFAULT, ADD (b INT, c INT DEFAULT 4)": "c is new: the same statement",
    "ADD COLUMN nr BIGINT AUTO_INCREMENT UNIQUE": "AUTO_INCREMENT numbers",
    "ADD COLUMN d DATE NOT NULL": "d is new",
    "ADD c FLOAT(5,2) DEFAULT 1.239": "c is new",
    "ADD c DOUBLE(5,2) DEFAULT 1.239": "c is new",
    "ADD c ENUM('x','y') DEFAULT 'X'": "c is new",
    "ADD c SET('a','b') DEFAULT 'b,a'": "c is new",
    "ADD c DATETIME DEFAULT '2024-02-29 12:34:56.789'": "c is new",
    "ADD c YEAR DEFAULT 24": "c is new",
    "ADD c TIME DEFAULT 10203": "c is new",
    "ADD c UUID DEFAULT '123E4567-E89B-12D3-A456-426655440000'": "c is new",
    "ADD c INET6 DEFAULT '::FFFF:A'": "c is new",
    "ADD c DECIMAL(40,2) DEFAULT 5": "c is new",
    "ADD c VARCHAR(9) DEFAULT -007": "c is new",
    "ADD c VARCHAR(9) DEFAULT 1e2": "c is new",
    "ADD c BIT(8) DEFAULT '5'": "c is new",
    "ADD c YEAR(2)": "has no century",
    "ADD c CHAR(3) BYTE NOT NULL": "c is new",
    "ADD c CHAR(3) CHARACTER SET binary NOT NULL": "c is new",
    "ADD COLUMN name INT": "there is a column name",
    "ADD COLUMN _ibb_key INT": "kept for ibb",
    "DROP COLUMN nothing": "has no column nothing",
    "DROP COLUMN id": "id of the key goes",
    "DROP COLUMN id, ADD COLUMN id INT": "id of the key goes",
    "CONVERT TO CHARACTER SET utf8mb4": "CONVERT TO CHARACTER SET",
    "DROP PARTITION p0": "DROP PARTITION",
    "ADD SYSTEM VERSIONING": "ADD SYSTEM",
    "ADD PRIMARY KEY (name(3))": "a part of a column",
    "FROBNICATE ALL": "FROBNICATE",
}
KEYS = {
    "RENAME COLUMN id TO n, RENAME COLUMN n TO id": ["n"],
    "DROP COLUMN id, DROP PRIMARY KEY": [],
    "CHANGE n id INT UNSIGNED, CHANGE id n INT": ["n"],
    "ADD PRIMARY KEY (id, more), ADD COLUMN more INT NOT NULL DEFAULT 3": ["id", "more"],
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)": ["id", "n"],
    "CHANGE COLUMN id nr BIGINT NOT NULL AUTO_INCREMENT": ["nr"],
}


def reshaped(clauses, row=ROW, modes=DEFAULT_MODES):
    effect = effect_of(f"ALTER TABLE orders {clauses}", "shop")
    if isinstance(effect, Unclear):
        raise UnclearError(effect.reason)
    assert isinstance(effect, AlterTable)
    reshape = Reshape(SCHEMA, ["id"], effect.effects, has_rows=True, modes=modes)
    rows = pa.Table.from_pylist([row], SCHEMA)
    reshape.check([rows])
    return reshape, reshape.rows(rows).to_pylist()


@pytest.mark.parametrize("clauses", FOLLOWED)
def test_it_is_followed(clauses):
    reshape, rows = reshaped(clauses)
    wanted = {**ROW, **FOLLOWED[clauses]}
    wanted = {name: value for name, value in wanted.items() if value is not ...}
    assert rows == [wanted]
    assert reshape.key == KEYS.get(clauses, ["id"])


def test_a_default_of_minus_zero_is_zero():
    _, (row,) = reshaped("ADD a DOUBLE NOT NULL DEFAULT -0.0, ADD b FLOAT DEFAULT '-0e0'")
    assert (str(row["a"]), str(row["b"])) == ("0.0", "0.0")


@pytest.mark.parametrize("clauses", STOPPED)
def test_it_stops(clauses):
    with pytest.raises(Exception, match=STOPPED[clauses].replace("(", r"\(")):
        reshaped(clauses)


@pytest.mark.parametrize(
    "clauses",
    [
        "MODIFY name VARCHAR(20)",
        "MODIFY name VARCHAR(20) CHARACTER SET ascii",
        "MODIFY note TEXT",
        "MODIFY note TINYTEXT",
    ],
)
def test_letters_stop_it_that_another_character_set_may_lack(clauses):
    row = {**ROW, "name": "é", "note": "é"}
    with pytest.raises(UnclearError, match=r"may have another character set now.*not strict"):
        reshaped(clauses, row)
    assert reshaped(clauses, row, SessionModes(strict=True))[1] == [row]
    assert reshaped(clauses)[1] == [ROW]
    nothing = {**ROW, "name": None, "note": None}
    assert reshaped(clauses, nothing)[1] == [nothing]


@pytest.mark.parametrize("strict", [False, True])
def test_a_character_set_that_has_all_letters_stops_nothing(strict):
    row = {**ROW, "name": "é", "note": "é"}
    clauses = "MODIFY name VARCHAR(20) CHARACTER SET utf8mb4, MODIFY note TEXT CHARACTER SET latin1"
    assert reshaped(clauses, row, SessionModes(strict=strict))[1] == [row]


def test_a_timestamp_without_null_has_a_value_of_the_servers_where_they_are_not_explicit():
    implicit = SessionModes(explicit_timestamps=False)
    for clauses in ("ADD t TIMESTAMP", "ADD t TIMESTAMP(3) NOT NULL"):
        with pytest.raises(UnclearError, match=r"t is new: explicit_defaults_for_timestamp is off"):
            reshaped(clauses, modes=implicit)
    assert reshaped("ADD t TIMESTAMP")[1] == [{**ROW, "t": None}]
    assert reshaped("ADD t TIMESTAMP NULL", modes=implicit)[1] == [{**ROW, "t": None}]
    assert reshaped("ADD t DATETIME", modes=implicit)[1] == [{**ROW, "t": None}]
    with pytest.raises(UnclearError, match="an expression"):
        reshaped("ADD t TIMESTAMP DEFAULT NOW()", modes=implicit)
    with pytest.raises(UnclearError, match="at is NOT NULL now"):
        altered_moment("MODIFY at TIMESTAMP", implicit)
    for modes in (SessionModes(), implicit):
        altered_moment("MODIFY at TIMESTAMP NULL", modes)
    altered_moment("MODIFY at TIMESTAMP", SessionModes())


def altered_moment(clauses, modes):
    """Alter a table whose column `at` is null."""
    schema = pa.schema([column_field("id", "int(11)"), column_field("at", "timestamp")])
    effect = effect_of(f"ALTER TABLE t {clauses}", "shop")
    reshape = Reshape(schema, ["id"], effect.effects, has_rows=True, modes=modes)
    reshape.check([pa.Table.from_pylist([{"id": 1, "at": None}], schema)])


ORACLE = (("date", "datetime"), ("number", "double"), ("blob", "longblob"))


def test_types_are_what_the_mode_says():
    modes = SessionModes(types=ORACLE)
    clauses = (
        "ADD a DATE DEFAULT '2024-01-31', ADD b NUMBER DEFAULT 1.5, ADD c NUMBER(4,1) DEFAULT 2"
    )
    reshape, (row,) = reshaped(clauses, modes=modes)
    assert row == {**ROW, "a": datetime.fromisoformat("2024-01-31"), "b": 1.5, "c": Decimal("2.0")}
    kinds = [field.metadata[b"ibb.type"] for field in list(reshape.schema)[-3:]]
    assert kinds == [b"datetime", b"double", b"number(4,1)"]
    assert reshaped("MODIFY day DATE", modes=modes)[0].schema.field("day").type == "timestamp[us]"


def test_an_empty_default_is_null_where_the_mode_says_so():
    modes = SessionModes(empty_is_null=True)
    for clauses in ("ADD c VARCHAR(9) DEFAULT ''", "ADD c ENUM('','a') DEFAULT ''"):
        assert reshaped(clauses, modes=modes)[1] == [{**ROW, "c": None}]
        assert reshaped(clauses)[1] == [{**ROW, "c": ""}]
    assert reshaped("ADD c VARCHAR(9) NOT NULL", modes=modes)[1] == [{**ROW, "c": ""}]


def test_only_null_columns_are_added_without_writing_rows_anew():
    assert [field.name for field in reshaped("ADD a INT, ADD b INT AFTER id")[0].added_only] == [
        "a",
        "b",
    ]
    for clauses in ("ADD a INT DEFAULT 1", "MODIFY id BIGINT", "DROP n", "RENAME COLUMN n TO m"):
        assert reshaped(clauses)[0].added_only is None
    assert reshaped("ENGINE=InnoDB")[0].added_only == []


@pytest.mark.parametrize(
    ("clause", "is_followed"),
    [
        ("MODIFY id INT(5)", True),
        ("MODIFY id BIGINT", False),
        ("MODIFY name VARCHAR(40) CHARACTER SET latin1", True),
        ("MODIFY name VARCHAR(40) CHARACTER SET utf8mb4", False),  # of which LENGTH is another
        ("MODIFY price DECIMAL(12,3)", False),  # CONCAT
        ("MODIFY day DATE NOT NULL", True),
        ("CHANGE zero nought INT", True),
        ("RENAME COLUMN zero TO nought", True),
    ],
)
@pytest.mark.parametrize("kind", [b"", UNLOGGED, VIRTUAL, STORED])
def test_what_a_generated_column_may_be_computed_from_does_not_change(clause, is_followed, kind):
    schema = SCHEMA.append(column_field("g", "int(11)", "", kind))
    effects = effect_of(f"ALTER TABLE t {clause}", "shop").effects
    Reshape(schema, ["id"], effects, has_rows=False)
    if is_followed or kind in (b"", UNLOGGED):
        Reshape(schema, ["id"], effects, has_rows=True)
        return
    with pytest.raises(UnclearError, match="g is generated: what it is behind that is not known"):
        Reshape(schema, ["id"], effects, has_rows=True)


def test_a_key_must_be_logged():
    sql = "ALTER TABLE t ADD g INT AS (n) STORED, DROP PRIMARY KEY, ADD PRIMARY KEY (g)"
    effects = effect_of(sql, "shop").effects
    assert Reshape(SCHEMA, ["id"], effects, has_rows=False).key == ["g"]
    with pytest.raises(UnclearError, match="the generated column g, which is not logged"):
        Reshape(SCHEMA, ["id"], effects, has_rows=False, logs_generated=False)


def test_a_key_that_configuration_chose_stays():
    effect = effect_of("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)", "shop")
    assert Reshape(SCHEMA, ["id"], effect.effects, has_rows=True, keeps_key=True).key == ["id"]
