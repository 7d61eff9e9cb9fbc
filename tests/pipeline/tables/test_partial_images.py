"""
Images that lack columns: followed where they are as they were, and else a stop before a wrong row.

What servers log is asked of real ones: 10.11, and 11.8, which logs no generated column at all.
"""

import pytest

from ibb.pipeline.tables import mariadb_source, source_tables
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.row_changes import TableName

from ...integration.conftest import new_rig
from ...integration.installations import mariadb_10_11, mariadb_11_8
from .topology import ROW_OPTIONS, Topology

pytestmark = [pytest.mark.live, pytest.mark.slow]
TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, b BLOB, u INT UNIQUE,"
    " v INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED, d INT DEFAULT 7)"
)
PLAIN = "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, b BLOB, u INT UNIQUE)"
ROWS = "INSERT INTO t (id, a, b, u) VALUES (1, 10, 'x', 1), (2, 20, 'y', 2), (3, 30, 'z', 3)"
STOP = "the binlog does not hold all columns of rows that"


@pytest.fixture(scope="module", params=[mariadb_10_11, mariadb_11_8])
def topology(request):
    """A primary of either release, and a relay behind it."""
    with new_rig() as rig:
        primary = rig.primary(request.param(), *ROW_OPTIONS)
        relay = rig.ibb().relay_from(primary.port).start()
        yield Topology(primary, relay)


@pytest.fixture
def run(topology):
    """Run statements in a database of the test's own, under some image."""

    def statements(*sql, image="FULL"):
        mode = f"SET SESSION binlog_row_image = {image}"
        topology.primary.run("USE images", "SET SESSION sql_mode = ''", mode, *sql)

    topology.primary.run("CREATE OR REPLACE DATABASE images")
    return statements


def begun(topology, run, tmp_path, *tables, **settings):
    """Return the configuration of a pipeline that has read its tables."""
    run(*tables)
    config = topology.config(tmp_path, include=("images.*",), **settings)
    topology.run(config)
    return config


def assert_stops(topology, config, what, at=r"0-\d+-\d+"):
    """Assert that a pipeline stops at rows of the table t that something changed."""
    with pytest.raises(PipelineError, match=rf"^images\.t at {at}: {STOP} {what} changed"):
        topology.run(config)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_generated_columns_are_as_at_the_source_or_null(topology, run, tmp_path, kind):
    keyless = "CREATE TABLE bag (a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a * 2) STORED)"
    config = begun(
        topology, run, tmp_path, TABLE, ROWS, keyless, "INSERT INTO bag (a) VALUES (1), (1), (2)",
        format=kind, history=("images.*",),
    )  # fmt: skip
    assert topology.differences(config) == ([], 4)
    run(
        "UPDATE t SET a = 11 WHERE id = 1",
        "REPLACE INTO t (id, u) VALUES (9, 2)",
        "DELETE FROM t WHERE id = 3",
        "UPDATE bag SET a = 5 WHERE a = 1 LIMIT 1",
        "INSERT INTO bag (a) VALUES (7)",
        "DELETE FROM bag WHERE a = 2",
        "CREATE TABLE made (id INT PRIMARY KEY, w INT GENERATED ALWAYS AS (id * 3) PERSISTENT)",
        "INSERT INTO made (id) VALUES (4)",
        "UPDATE made SET id = 5",
        "CREATE TABLE alike LIKE t",
        "INSERT INTO alike (id, a, u) VALUES (1, 1, 1)",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 8)


def test_a_generated_column_that_comes_later_is_there_or_stops(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, PLAIN, ROWS)
    logged = topology.primary.value("VERSION()").startswith("10.")
    run(
        "ALTER TABLE t ADD w INT AS (a * 2) STORED AFTER a",
        "INSERT INTO t (id, a, u) VALUES (4, 4, 4)",
    )
    if logged:  # what rows have in it that were there is not in the binlog
        with pytest.raises(PipelineError, match="column w is new: the server computes them"):
            topology.run(config)
    else:
        topology.run(config)
        assert topology.differences(config) == ([], 1)


@pytest.mark.parametrize(
    ("clause", "of_10", "of_11"),
    [
        ("MODIFY s INT", "", "column s is generated no more"),  # it keeps the values that it had
        ("MODIFY s BIGINT AS (a + 2) STORED", "column s: the server computes", ""),
        ("CHANGE v w INT AS (a + 3) VIRTUAL", "column v: the server computes", ""),
        ("MODIFY a BIGINT", "column a changes, and v is generated", ""),
        ("RENAME COLUMN s TO w", "", ""),
        ("DROP s", "", ""),
    ],
)
def test_what_alter_makes_of_generated_columns(topology, run, tmp_path, clause, of_10, of_11):
    config = begun(topology, run, tmp_path, TABLE, ROWS)
    run(f"ALTER TABLE t {clause}", "INSERT INTO t (id, a, u) VALUES (4, 4, 4)")
    stop = of_10 if topology.primary.value("VERSION()").startswith("10.") else of_11
    if stop:
        with pytest.raises(PipelineError, match=stop):
            topology.run(config)
    else:
        topology.run(config)
        assert topology.differences(config) == ([], 1)


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_behind_an_upgrade_from_10_rows_stop_until_a_snapshot(
    topology, run, tmp_path, monkeypatch, image
):
    if topology.primary.value("VERSION()").startswith("10."):
        return  # it is the later one that stops
    table = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b BLOB, s INT AS (a * 2) STORED)"
    with monkeypatch.context() as patched:
        for module in (source_tables, mariadb_source):
            patched.setattr(module, "logs_generated", lambda _: True)
        config = begun(topology, run, tmp_path, table, "INSERT INTO t (id, a) VALUES (1, 5)")
    run("UPDATE t SET a = 50", image=image)
    with pytest.raises(PipelineError, match="does not hold the generated column s behind that"):
        topology.run(config)
    topology.run(config, snapshot=("*.*",))
    run("UPDATE t SET a = 51", "CREATE TABLE later LIKE t", image=image)
    topology.run(config)
    assert topology.differences(config) == ([], 2)


def test_a_key_that_is_not_logged_is_refused(topology, run, tmp_path):
    table = "CREATE TABLE t (a INT, k INT AS (a + 1) STORED)"
    rows = "INSERT INTO t (a) VALUES (1), (2)"
    keys = {TableName("images", "t"): ("k",)}
    if topology.primary.value("VERSION()").startswith("10."):
        config = begun(topology, run, tmp_path, table, rows, keys=keys)
        run("UPDATE t SET a = 8 WHERE a = 1")
        topology.run(config)
        assert topology.differences(config) == ([], 1)
        return
    with pytest.raises(PipelineError, match=r"images\.t: the key has the generated column k"):
        begun(topology, run, tmp_path, table, rows, keys=keys)
    config = begun(topology, run, tmp_path / "empty", "DROP TABLE t", keys=keys)
    run(table)
    with pytest.raises(PipelineError, match="the key has the generated column k, which is not log"):
        topology.run(config)
    model = TableName("images", "model")
    like = begun(topology, run, tmp_path / "like", "DROP TABLE t", table.replace(" t ", " model "),
                 keys={TableName("images", "t"): ("k",), model: ("a",)})  # fmt: skip
    run("CREATE TABLE t LIKE model")
    with pytest.raises(PipelineError, match="the key has the generated column k, which is not log"):
        topology.run(like)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_updates_that_leave_columns_as_they_were_are_followed(topology, run, tmp_path, image):
    config = begun(topology, run, tmp_path, PLAIN, ROWS)
    run(
        "CREATE PROCEDURE plain() UPDATE t SET b = 'called', a = a + 1 WHERE id = 2",
        "CREATE VIEW seen AS SELECT id, a FROM t",
        "CREATE TABLE `a``b` LIKE t",
        "INSERT INTO `a``b` SELECT * FROM t",
        "CREATE TRIGGER of_it BEFORE UPDATE ON `a``b` FOR EACH ROW SET NEW.b = 'by a trigger'",
        "CREATE TABLE plain LIKE t",
        "INSERT INTO plain SELECT * FROM t",
    )
    run(
        "UPDATE seen SET a = 13 WHERE id = 2",
        "UPDATE `a``b` SET a = a + 1",
        "UPDATE plain AS p JOIN t USING (id) SET t.a = t.a + 100, p.a = 0 WHERE id = 2",
        "UPDATE t, (SELECT 2 AS two) AS s SET a = 14 WHERE id = two",
        "SET STATEMENT max_statement_time = 9 FOR UPDATE t SET a = 15 WHERE id = 2",
        "BEGIN NOT ATOMIC UPDATE t SET a = a + 1; END",
        "UPDATE t SET a = 11 WHERE id = 1",
        "/* by hand */ update images.t SET id = 8, u = 8 WHERE id = 3",
        "INSERT INTO t (id, u) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = 12",
        "CALL plain()",
        image=image,
    )
    topology.run(config)
    assert topology.differences(config) == ([], 3)


def test_a_trigger_that_keeps_a_count_is_followed(topology, run, tmp_path):
    config = begun(
        topology, run, tmp_path, PLAIN, ROWS, "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TRIGGER o AFTER INSERT ON other FOR EACH ROW UPDATE t SET a = a + 1 WHERE id = 1",
    )  # fmt: skip
    run("INSERT INTO other VALUES (1), (2)", "DELETE FROM other WHERE id = 1", image="MINIMAL")
    topology.run(config)
    assert topology.differences(config) == ([], 2)


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_an_insert_over_a_row_with_a_trigger_stops(topology, run, tmp_path, image):
    config = begun(
        topology, run, tmp_path, PLAIN, ROWS,
        "CREATE TRIGGER of_it BEFORE UPDATE ON t FOR EACH ROW SET NEW.b = 'by a trigger'",
    )  # fmt: skip
    run("INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE a = 9", image=image)
    assert_stops(topology, config, "an INSERT or a trigger")


def test_a_trigger_on_a_table_of_the_same_name_elsewhere_stops(topology, run, tmp_path):
    table = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT DEFAULT 7)"
    config = begun(topology, run, tmp_path, table, "INSERT INTO t VALUES (1, 1, 1)")
    run(
        "CREATE OR REPLACE DATABASE elsewhere",
        "CREATE TABLE elsewhere.t (id INT)",
        "CREATE TRIGGER elsewhere.o AFTER INSERT ON elsewhere.t FOR EACH ROW"
        " REPLACE INTO images.t (id, a) VALUES (NEW.id, NEW.id)",
        "INSERT INTO elsewhere.t VALUES (1)",
        image="MINIMAL",
    )
    assert_stops(topology, config, "what may be a REPLACE")


def test_a_replace_that_does_not_name_the_key_stops(topology, run, tmp_path):
    table = "CREATE TABLE t (id INT DEFAULT 1 PRIMARY KEY, a INT, b INT DEFAULT 7)"
    config = begun(topology, run, tmp_path, table, "INSERT INTO t VALUES (1, 2, 100)")
    run("SET STATEMENT max_statement_time = 9 FOR REPLACE INTO t (a) VALUES (3)", image="MINIMAL")
    assert_stops(topology, config, "a REPLACE")


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("REPLACE INTO t (id, u) VALUES (9, 1)", "a REPLACE"),
        ("/* so */ replace t SET id = 9, u = 1", "a REPLACE"),
        ("CALL replaces()", "a REPLACE"),
        ("INSERT INTO other VALUES (1)", "what may be a REPLACE"),  # by a trigger
        ("SET STATEMENT max_statement_time = 9 FOR REPLACE t (id, u) VALUES (9, 1)", "a REPLACE"),
    ],
)
def test_a_replace_that_leaves_columns_out_stops(topology, run, tmp_path, image, statement, what):
    replaces = "REPLACE INTO t (id, u) VALUES (9, 1)"
    config = begun(
        topology, run, tmp_path, PLAIN, ROWS, "CREATE TABLE other (id INT PRIMARY KEY)",
        f"CREATE PROCEDURE replaces() {replaces}",
        f"CREATE TRIGGER after_other AFTER INSERT ON other FOR EACH ROW {replaces}",
    )  # fmt: skip
    run(statement, image=image)
    assert_stops(topology, config, what)
    topology.run(config, snapshot=("images.t",))
    assert topology.differences(config) == ([], 2)
    run("UPDATE t SET a = 1 WHERE id = 2", image=image)
    topology.run(config)
    assert topology.differences(config) == ([], 2)


def test_images_that_leave_out_what_is_as_before_are_followed(topology, run, tmp_path):
    logged = topology.primary.value("VERSION()").startswith("10.")  # which has no FULL_NODUP
    config = begun(topology, run, tmp_path, TABLE, ROWS, history=("images.*",))
    run(
        "UPDATE t SET a = 11, b = NULL WHERE id = 1",
        "REPLACE INTO t (id, u) VALUES (9, 1)",
        "REPLACE INTO t (id, a, u) VALUES (9, 2, 2)",
        "INSERT INTO t (id, u) VALUES (9, 2) ON DUPLICATE KEY UPDATE id = 10, b = 'new'",
        "UPDATE t SET id = id + 100",
        image="FULL" if logged else "FULL_NODUP",
    )
    topology.run(config)
    assert topology.differences(config) == ([], 2)


def test_a_replace_among_updates_of_a_batch_is_found_and_those_before_it_are_not(
    topology, run, tmp_path
):
    config = begun(topology, run, tmp_path, PLAIN, ROWS)
    run(
        "UPDATE t SET a = 11 WHERE id = 1",
        "UPDATE t SET a = 12 WHERE id = 2",
        "REPLACE INTO t (id, u) VALUES (9, 1)",
        image="NOBLOB",
    )
    assert_stops(topology, config, "a REPLACE", at=topology.primary.binlog_position())


def test_a_statement_that_is_logged_is_not_taken_for_the_next_one(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, PLAIN, ROWS)
    run(
        "SET SESSION autocommit = 0",
        "UPDATE t SET a = 11 WHERE id = 3",
        "SET SESSION binlog_annotate_row_events = 0",
        "REPLACE INTO t (id, u) VALUES (9, 1)",
        "COMMIT",
        image="NOBLOB",
    )
    assert_stops(topology, config, "what may be a REPLACE")


def test_without_the_statements_what_names_the_key_stops(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, PLAIN, ROWS)
    quiet = "SET SESSION binlog_annotate_row_events = 0"
    run(quiet, "UPDATE t SET a = 11 WHERE id = 1", image="MINIMAL")
    topology.run(config)
    assert topology.differences(config) == ([], 1)
    run(quiet, "UPDATE t SET a = 11 WHERE id = 2", image="NOBLOB")
    assert_stops(topology, config, "what may be a REPLACE")


def test_a_virtual_column_that_an_image_lacks_stops(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, TABLE, ROWS)
    run("UPDATE t SET d = 8 WHERE id = 1", image="MINIMAL")
    if topology.primary.value("VERSION()").startswith("10."):
        with pytest.raises(PipelineError, match="does not hold the generated column v"):
            topology.run(config)
    else:
        topology.run(config)
        assert topology.differences(config) == ([], 1)


def test_a_row_of_nothing_but_defaults_stops(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, "CREATE TABLE t (id INT DEFAULT 0 PRIMARY KEY, a INT)")
    run("INSERT INTO t VALUES ()", image="MINIMAL")
    with pytest.raises(PipelineError, match=r"images\.t.* 0-\d+-\d+.*without columns"):
        topology.run(config)


def test_an_insert_without_a_column_that_has_a_default_stops(topology, run, tmp_path):
    config = begun(topology, run, tmp_path, "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5)")
    run("INSERT INTO t VALUES (1, 1)", "INSERT INTO t (id) VALUES (2)", image="MINIMAL")
    gtid = topology.primary.binlog_position()
    with pytest.raises(
        PipelineError,
        match=rf"^images\.t at {gtid}: .* without column a.*binlog_row_image=FULL.*snapshot",
    ):
        topology.run(config)
