"""Statements of a real server, followed by Delta tables: SELECT here against SELECT there."""

import pytest
from deltalake import DeltaTable

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.row_changes import TableName

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables_ddl")]


def test_statements_in_mid_stream(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE ddl",
        "USE ddl",
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10), e ENUM('a','b'))",
        "INSERT INTO t VALUES (1, 'one', 'a'), (2, NULL, 'b')",
    )
    config = topology.config(tmp_path, include=("ddl.*",))
    topology.run(config)
    primary.run(
        "USE ddl",
        "ALTER TABLE t ADD x BIGINT UNSIGNED NOT NULL DEFAULT 7 FIRST, ADD y DATE",
        "INSERT INTO t (id, s) VALUES (3, 'three')",
        "ALTER TABLE t MODIFY id BIGINT, CHANGE s name VARCHAR(200), MODIFY e ENUM('b','c','a')",
        "UPDATE t SET e = 'c', id = id + 10000000000 WHERE id = 3",
        "SET binlog_alter_two_phase = 1",
        "ALTER TABLE t DROP y, ALGORITHM=COPY",
        "SET binlog_alter_two_phase = 0",
        "CREATE TABLE made LIKE t",
        "INSERT INTO made SELECT * FROM t",
        "CREATE TABLE selected AS SELECT id, name FROM t",
        "ALTER TABLE t RENAME TO u",
        "TRUNCATE TABLE made",
        "INSERT INTO u (id, name) VALUES (4, 'four')",
        "CREATE TABLE gone (id INT)",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
        "CREATE INDEX i ON u (name)",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 3)
    narrower = "ALTER TABLE ddl.u MODIFY name VARCHAR(3)"
    primary.run("SET sql_mode = ''", narrower, "INSERT INTO ddl.u (id) VALUES (9)")
    primary.run(
        "ALTER TABLE ddl.u ADD z INT",
        "CREATE TABLE ddl.like_u LIKE ddl.u",
        "INSERT INTO ddl.like_u (id, z) VALUES (1, 2)",
        "ALTER TABLE ddl.u DROP z, CHANGE name label VARCHAR(3)",
    )
    with pytest.raises(PipelineError, match=r"name changes from varchar\(200\) to varchar\(3\)"):
        topology.run(config)
    topology.run(config, snapshot=["ddl.u"])
    assert topology.differences(config) == ([], 4)


def test_names_of_views_and_names_that_are_missing(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE names",
        "USE names",
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10))",
        "CREATE TABLE u (n INT)",
        "CREATE VIEW v AS SELECT id FROM t",
        "CREATE VIEW w AS SELECT n FROM u",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO u VALUES (7), (7)",
    )
    config = topology.config(tmp_path, include=("names.*",), history=("names.*",))
    topology.run(config)
    primary.run(
        "USE names",
        "RENAME TABLE v TO x, w TO v, x TO w",
        "RENAME TABLE v TO y",
        "INSERT INTO t VALUES (3, 'c')",
        "RENAME TABLE IF EXISTS none TO t",
        "RENAME TABLE IF EXISTS t TO s, none TO t, u TO t, s TO u, s TO z",
        "UPDATE u SET s = 'd' WHERE id = 3",
        "INSERT INTO t VALUES (8)",
        "ALTER TABLE IF EXISTS none RENAME TO u",
        "ALTER TABLE IF EXISTS none ADD x INT",
        "DELETE FROM u WHERE id = 1",
        "CREATE TABLE none (id INT)",
        "INSERT INTO none VALUES (1)",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 6)  # with the histories
    lake = Lake(config)
    names = [TableName("names", name) for name in ("t", "u", "none")]
    assert [lake.open_history(name).versions for name in names] == [3, 4, 1]


def test_labels_and_statements_in_binary(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE bytewise",
        "USE bytewise",
        "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a', 'é', 0xE4, 0xFF41) CHARACTER SET binary,"
        " s SET('x', 'ö') CHARACTER SET binary)",
        "INSERT INTO t VALUES (1, 2, 3), (2, 3, 1), (3, 4, ''), (4, NULL, NULL)",
    )
    config = topology.config(tmp_path, include=("bytewise.*",))
    topology.run(config)
    primary.run(
        "USE bytewise",
        "INSERT INTO t VALUES (5, 4, 2), (6, 3, 3)",
        "UPDATE t SET e = 1 WHERE id = 2",
        "SET NAMES binary",
        "ALTER TABLE t ADD `größe` INT NOT NULL DEFAULT 7, ADD v VARCHAR(9) DEFAULT 'a'",
        "UPDATE t SET e = 3, `größe` = 8 WHERE id = 1",
        "CREATE TABLE u (e ENUM('ß', 0x61) CHARACTER SET binary, `ñ` INT)",
        "INSERT INTO u VALUES (1, 2), ('a', 3)",
        "ALTER TABLE u ADD f ENUM(0x61, x'62') NOT NULL DEFAULT 'b'",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 2)
    (folder,) = tmp_path.glob("lake/**/t")
    rows = {row["id"]: row for row in DeltaTable(folder).to_pyarrow_table().to_pylist()}
    assert {key: row["e"] for key, row in rows.items()} == {
        1: r"\xe4",
        2: "a",
        3: r"\xffA",
        4: None,
        5: r"\xffA",
        6: r"\xe4",
    }
    assert [rows[key]["s"] for key in range(1, 7)] == ["x,ö", "x", "", None, "ö", "x,ö"]
    for clauses, why in (
        ("ADD w VARCHAR(9) CHARACTER SET latin1 DEFAULT 'ä'", "w is new: its DEFAULT is of bytes"),
        ("MODIFY s SET('x', 'ö', 'ü') CHARACTER SET binary", "s has labels of bytes"),
    ):
        primary.run("SET NAMES binary", f"ALTER TABLE bytewise.t {clauses}")
        with pytest.raises(PipelineError, match=f"column {why}"):
            topology.run(config)
        topology.run(config, snapshot=["bytewise.t"])
    assert topology.differences(config) == ([], 2)


ALTERS = {
    "ADD COLUMN c INT": True,
    "ADD COLUMN c INT NOT NULL DEFAULT 5 AFTER id": True,
    "ADD COLUMN c VARCHAR(9) NOT NULL FIRST": True,
    "ADD COLUMN (c DECIMAL(6,3) DEFAULT -1.5, f DATE DEFAULT '2024-02-29')": True,
    "ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP": False,
    "ADD COLUMN c INT AS (n + 1) STORED": False,
    "ADD COLUMN c BIGINT NOT NULL AUTO_INCREMENT UNIQUE": False,
    "ADD COLUMN c UUID DEFAULT (UUID())": False,
    "ADD COLUMN c INT INVISIBLE DEFAULT 4": True,
    "ADD COLUMN c INT NOT NULL DEFAULT 2, ALTER c SET DEFAULT 9": False,
    "ALTER COLUMN c DROP DEFAULT, ADD COLUMN c INT NOT NULL DEFAULT 4": False,
    "ADD COLUMN c INT DEFAULT 2, ALTER IF EXISTS c SET DEFAULT 9, ALTER n SET DEFAULT 3": True,
    r"ADD COLUMN c VARCHAR(9) DEFAULT 'a\_b\%c\d'": True,
    "ADD COLUMN c DOUBLE NOT NULL DEFAULT -0.0, ADD f FLOAT DEFAULT '-0e0'": True,
    "ADD COLUMN c CHAR(3) BYTE NOT NULL": False,
    "ADD COLUMN c YEAR(2)": False,
    "ADD COLUMN c YEAR": True,
    "ADD COLUMN c VARCHAR(3) BYTE NOT NULL": True,
    "ADD COLUMN IF NOT EXISTS n BIGINT": True,
    "DROP COLUMN s": True,
    "DROP COLUMN IF EXISTS nothing, DROP COLUMN d": True,
    "RENAME COLUMN s TO t": True,
    "CHANGE id number BIGINT NOT NULL": True,
    "CHANGE s t VARCHAR(100) CHARACTER SET utf8mb4": True,
    "MODIFY n BIGINT UNSIGNED": True,
    "MODIFY n SMALLINT": False,
    "MODIFY n VARCHAR(20)": False,
    "MODIFY s VARCHAR(2)": False,
    "MODIFY s MEDIUMTEXT CHARACTER SET latin1": True,
    "MODIFY s VARCHAR(20)": False,
    "MODIFY s VARCHAR(9) CHARACTER SET ascii": False,
    "MODIFY e ENUM('x','b','a')": True,
    "MODIFY e ENUM('a')": False,
    "MODIFY m SET('x','a','y','b')": True,
    "MODIFY m SET('b','a')": False,
    "MODIFY p DECIMAL(14,4)": True,
    "MODIFY p DECIMAL(10,1)": False,
    "MODIFY d DATETIME(3)": True,
    "MODIFY d DATE NOT NULL": False,
    "CONVERT TO CHARACTER SET utf8mb4": False,
    "DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)": True,
    "DROP PRIMARY KEY": True,
    "ADD INDEX (s), ENGINE=InnoDB, COMMENT='x'": True,
    "ADD SYSTEM VERSIONING": False,
}


def test_kinds_of_alter_give_right_rows_or_stop_before_a_wrong_one(topology, tmp_path):
    """At the server: what is followed is equal afterwards, with rows written in the new shape."""
    primary = topology.primary
    columns = (
        "id INT PRIMARY KEY, n INT UNSIGNED NOT NULL, s VARCHAR(9) CHARACTER SET latin1,"
        " e ENUM('a','b') CHARACTER SET utf8mb4, p DECIMAL(10,2), d DATE,"
        " m SET('a','b')"
    )
    primary.run("CREATE DATABASE kinds DEFAULT CHARACTER SET utf8mb4", "USE kinds")
    configs = {}
    for number, clauses in enumerate(ALTERS):
        name = f"kinds.t{number}"
        primary.run(
            f"CREATE TABLE {name} ({columns})",
            f"INSERT INTO {name} VALUES (1, 2, 'é', 'a', 1.25, NULL, 'a,b'),"
            " (2, 3, 'abc', 'b', -1, 0, '')",
        )
        configs[clauses] = topology.config(tmp_path / str(number), include=(name,))
        topology.run(configs[clauses])
        primary.run(
            "SET sql_mode = ''",
            f"ALTER TABLE {name} {clauses}",
            f"UPDATE {name} SET n = n + 1",
            f"INSERT INTO {name} SELECT * FROM {name} LIMIT 0",
            f"DELETE FROM {name} WHERE n = 3",
        )
    followed = {
        clauses: topology.is_followed(config, clauses) for clauses, config in configs.items()
    }
    assert followed == ALTERS
