"""From a real server to Delta tables: SELECT here against SELECT there."""

import pyarrow.parquet as pq
import pytest

from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.history_reading import write_history_as_of
from ibb.pipeline.tables.row_changes import TableName
from ibb.protocol.gtid import GtidPosition

from ...integration.workload import TYPE_COLUMNS, TYPE_ROW
from .topology import selected, shown

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_all_types_by_snapshot_and_by_stream(topology, tmp_path, kind):
    primary = topology.primary
    primary.run("CREATE OR REPLACE DATABASE types", f"CREATE TABLE types.t ({TYPE_COLUMNS})")
    insert = f"INSERT INTO types.t VALUES {TYPE_ROW}"
    values = "(0.1, -0.0, '0000-00-00', '2024-02-31 01:02:03', 0, 'trail  ', '-00:00:00.000001')"
    strange = (
        "SET sql_mode='ALLOW_INVALID_DATES'",
        f"INSERT INTO types.t (f, d, da, dt, ts, c, t6) VALUES {values}",
        "INSERT INTO types.t () VALUES ()",
    )
    primary.run(insert, *strange)
    config = topology.config(tmp_path, include=("types.*",), format=kind)
    topology.run(config)
    assert topology.differences(config) == ([], 1)
    primary.run(insert, *strange, "UPDATE types.t SET f = f + 1, ub = ub - 1 WHERE id < 3")
    assert sum(applied.rows for _, applied in topology.run(config)) == 5
    assert topology.differences(config) == ([], 1)


@pytest.mark.parametrize("row_image", ["FULL", "MINIMAL", "NOBLOB"])
def test_keys_without_and_with_collations(topology, tmp_path, row_image):
    primary = topology.primary
    primary.run(
        "CREATE OR REPLACE DATABASE shop",
        "USE shop",
        "CREATE TABLE words (w VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT, b BLOB)",
        "CREATE TABLE bag (n INT, w VARCHAR(9))",
        "CREATE TABLE pair (a INT, b BINARY(3), v DOUBLE, PRIMARY KEY (b, a))",
        "INSERT INTO words VALUES ('a', 1, 'x'), ('B', 2, NULL)",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (NULL, NULL)",
        "INSERT INTO pair SELECT seq, CHAR(seq MOD 3), seq / 3 FROM seq_1_to_200",
    )
    config = topology.config(tmp_path, include=("shop.*",), batch_groups=3)
    topology.run(config)
    primary.run(
        f"SET SESSION binlog_row_image = {row_image}",
        "USE shop",
        "UPDATE words SET w = 'A' WHERE w = 'a'",
        "UPDATE words SET n = 7 WHERE w = 'A'",
        "UPDATE words SET w = 'b ' WHERE w = 'B'",
        "REPLACE INTO words VALUES ('B', 9, 'new')",
        "DELETE FROM bag WHERE n = 1 LIMIT 1",
        "UPDATE bag SET w = 'y' WHERE n = 1",
        "INSERT INTO bag VALUES (1, 'y'), (1, 'y')",
        "UPDATE pair SET a = a + 1000 WHERE a > 100",
        "DELETE FROM pair WHERE b = CHAR(1)",
        "BEGIN",
        "INSERT INTO words VALUES ('kept', 1, NULL)",
        "SAVEPOINT s",
        "INSERT INTO words VALUES ('gone', 1, NULL)",
        "ROLLBACK TO s",
        "COMMIT",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 3)


def test_a_server_that_logs_too_little_is_refused(topology, tmp_path):
    primary = topology.primary
    config = topology.config(tmp_path, include=("types.*",))
    primary.run("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        with pytest.raises(PipelineError, match="binlog_row_metadata must be FULL"):
            topology.run(config)
    finally:
        primary.run("SET GLOBAL binlog_row_metadata = FULL")


def test_xa_transactions_before_and_behind_a_snapshot(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE xa", "CREATE TABLE xa.t (id INT)", "CREATE TABLE xa.other (id INT)"
    )

    def prepare(table, *changes, end="XA PREPARE 'x'"):
        changes = changes or (f"INSERT INTO xa.{table} VALUES (1)",)
        primary.run("XA START 'x'", *changes, "XA END 'x'", end)

    config = topology.config(tmp_path, include=("xa.t",))
    prepare("t")
    with pytest.raises(PipelineError, match=r"would lose: .*Commit or roll them back"):
        topology.run(config)
    primary.run("XA COMMIT 'x'")
    topology.run(config)
    prepare("other")
    topology.run(config)
    primary.run("XA COMMIT 'x'")
    topology.run(config)
    prepare("t", "UPDATE xa.t SET id = 2", "SAVEPOINT s", "INSERT INTO xa.t VALUES (7), (7)")
    topology.run(config)
    primary.run("INSERT INTO xa.other VALUES (3)", "FLUSH BINARY LOGS")
    topology.run(config)
    primary.run("XA COMMIT 'x'", "UPDATE xa.t SET id = id + 1")
    topology.run(config)
    assert topology.differences(config) == ([], 1)
    prepare("t")
    primary.run("XA ROLLBACK 'x'")
    prepare("t", "DELETE FROM xa.t WHERE id = 8 LIMIT 1", end="XA COMMIT 'x' ONE PHASE")
    topology.run(config)
    assert topology.differences(config) == ([], 1)


def test_a_table_as_of_any_group(topology, tmp_path):
    primary = topology.primary
    primary.run(
        "CREATE DATABASE past",
        "CREATE TABLE past.t (id INT PRIMARY KEY, u UUID, note VARCHAR(20) CHARACTER SET latin1)",
        "CREATE TABLE past.other (id INT)",
    )
    config = topology.config(tmp_path, include=("past.t",), batch_groups=4)
    topology.run(config)
    primary.run("XA START 'q'", "INSERT INTO past.other VALUES (2)", "XA END 'q'", "XA PREPARE 'q'")
    then = []
    for number in range(30):
        primary.run(
            f"INSERT INTO past.t (id, u, note) VALUES ({number}, UUID(), 'é{number}')",
            f"UPDATE past.t SET note = CONCAT(note, '.') WHERE id MOD 3 = {number} MOD 3",
        )
        if number == 10:
            primary.run("ALTER TABLE past.t ADD n INT DEFAULT 4", "XA COMMIT 'q'")
        if number == 15:
            change = "INSERT INTO past.t (id, note) VALUES (-1, 'xa')"
            primary.run("XA START 'r'", change, "XA END 'r'", "XA PREPARE 'r'")
            more = [f"INSERT INTO past.t (id) VALUES ({100 + more})" for more in range(5)]
            primary.run(*more, "XA COMMIT 'r'")  # behind a version of the table
        if number == 20:
            primary.run("TRUNCATE TABLE past.t")
        rows = primary.rows("SELECT * FROM past.t ORDER BY id")
        then.append((GtidPosition.parse(primary.binlog_position()), rows))
    topology.run(config)
    file = tmp_path / "t.parquet"
    for position, rows in then:
        write_as_of(config, TableName("past", "t"), position, str(file))
        found = [tuple(row.values()) for row in pq.read_table(file).to_pylist()]
        assert [tuple(map(str, row)) for row in sorted(found)] == [
            tuple(map(str, row)) for row in rows
        ], position


@pytest.mark.parametrize("row_image", ["FULL", "MINIMAL"])
def test_histories_tell_what_a_table_was(topology, tmp_path, row_image):
    """Behind each group as SELECT saw it then, and as its versions and the binlog have it."""
    primary = topology.primary
    primary.run(
        "CREATE OR REPLACE DATABASE scd",
        "USE scd",
        "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20) CHARACTER SET latin1, b BLOB)",
        "INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', NULL)",
        "CREATE TABLE bag (n INT, w VARCHAR(9))",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'x'), (NULL, NULL)",
    )
    wanted = {"include": ("scd.*",), "history": ("scd.*",), "batch_groups": 4}
    config = topology.config(tmp_path, **wanted)
    topology.run(config)
    then = []
    for statement in (
        "INSERT INTO t VALUES (3, 'c', 'y')",
        "UPDATE t SET id = id + 10 WHERE id < 3",
        "BEGIN; UPDATE t SET note = 'in between'; UPDATE t SET note = 'last'; COMMIT",
        "DELETE FROM bag WHERE n = 1 LIMIT 1",
        "INSERT INTO bag VALUES (1, 'x'), (1, 'y')",
        "DELETE FROM t WHERE id = 11",
        "INSERT INTO t VALUES (11, 'again', 'z')",
        "ALTER TABLE t ADD n INT NOT NULL DEFAULT 4, MODIFY id BIGINT",
        "UPDATE t SET n = 5 WHERE id = 3",
        "ALTER TABLE t DROP b",
        "UPDATE bag SET w = 'z' WHERE n = 1",
        "ALTER TABLE bag ADD m INT DEFAULT 7",
        "ALTER TABLE t ADD b INT",
        "UPDATE t SET b = 1 WHERE id > 5",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (1, 'new', 0, 9)",
        "DELETE FROM bag WHERE w = 'z' LIMIT 2",
    ):
        primary.run(f"SET binlog_row_image = {row_image}", "USE scd", *statement.split("; "))
        position = GtidPosition.parse(primary.binlog_position())
        then.append((position, {name: selected(primary, f"scd.{name}") for name in ("t", "bag")}))
    topology.run(config)
    assert topology.differences(config) == ([], 4)
    file = tmp_path / "rows.parquet"
    for write in (write_history_as_of, write_as_of):
        for position, tables in then:
            for name, rows in tables.items():
                write(config, TableName("scd", name), position, str(file))
                found = pq.read_table(file)
                columns = sorted(found.column_names)
                found = found.select(columns).to_pylist()
                assert (columns, shown(row.values() for row in found)) == rows, (position, name)
