"""Tables that go, and rows that come, in ways that are easily missed, at a real server."""

import pymysql
import pytest

from ibb.pipeline.tables.errors import PipelineError

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]

NEW = "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, n INT)"
MIXED = "SET SESSION binlog_format = MIXED"
FAILED_QUERY = "CREATE OR REPLACE TABLE t (PRIMARY KEY (id)) SELECT 1 AS id UNION ALL SELECT 1"
FAILED_KEY = "CREATE OR REPLACE TABLE t (id INT, FOREIGN KEY (id) REFERENCES nope (x))"
TEMPORARY = (MIXED, "CREATE TEMPORARY TABLE t (id INT)")


@pytest.fixture
def database(topology, request):
    """A database of its own with a table t of two rows; returns the name and what runs there."""
    name = f"slip_{abs(hash(request.node.name))}"

    def run(*sql):
        topology.primary.run(f"USE {name}", *sql)

    topology.primary.run(f"CREATE DATABASE {name}")
    run(NEW, "INSERT INTO t VALUES (1, 1), (2, 2)")
    return name, run


@pytest.fixture
def config(topology, database, tmp_path):
    config = topology.config(tmp_path, include=(f"{database[0]}.*",))
    topology.run(config)
    return config


def test_of_a_database_that_is_replaced_nothing_is_left(topology, database, config):
    name, run = database
    topology.primary.run(f"CREATE OR REPLACE DATABASE {name}")
    run(NEW, "INSERT INTO t VALUES (3, 3)")
    topology.run(config)
    assert topology.differences(config) == ([], 1)


def test_a_failed_replacement_by_a_query_has_dropped_the_table(topology, database, config):
    _, run = database
    with pytest.raises(pymysql.err.IntegrityError):
        run(FAILED_QUERY)
    run(NEW, "INSERT INTO t VALUES (3, 3)")
    topology.run(config)
    assert topology.differences(config) == ([], 1)


def test_a_sequence_takes_the_place_of_a_table(topology, database, config):
    _, run = database
    run("CREATE OR REPLACE SEQUENCE t", "DROP SEQUENCE t", NEW, "INSERT INTO t VALUES (3, 3)")
    topology.run(config)
    assert topology.differences(config) == ([], 1)


def test_a_replacement_that_failed_otherwise_stops(topology, database, config):
    _, run = database
    with pytest.raises(pymysql.err.OperationalError):
        run(FAILED_KEY)
    run(NEW, "INSERT INTO t VALUES (3, 3)")
    with pytest.raises(PipelineError, match="failed at the source by error 1005"):
        topology.run(config)
    topology.run(config, snapshot=("*.*",))
    assert topology.differences(config) == ([], 1)


def test_a_temporary_table_hides_one_and_is_emptied(topology, database, config):
    _, run = database
    run(*TEMPORARY, "TRUNCATE TABLE t")
    topology.run(config)
    assert topology.differences(config) == ([], 1)
    run("TRUNCATE TABLE t")
    topology.run(config)
    assert topology.differences(config) == ([], 1)


@pytest.mark.parametrize("sql", ["ALTER TABLE t ADD zz INT", "CREATE TABLE u LIKE t"])
def test_or_is_changed_and_it_stops_until_the_table_is_read_anew(topology, database, config, sql):
    name, run = database
    run(*TEMPORARY, sql)
    with pytest.raises(PipelineError, match=r"a temporary table .*may be meant"):
        topology.run(config)
    topology.run(config, snapshot=(f"{name}.*",))
    topology.run(config)
    assert topology.differences(config)[0] == []


def test_a_table_of_a_query_comes_with_its_rows_or_stops(topology, database, config):
    name, run = database
    run("CREATE TABLE r (id INT PRIMARY KEY) SELECT id FROM t")
    topology.run(config)
    assert topology.differences(config) == ([], 2)
    run(MIXED, "CREATE TABLE u (id INT PRIMARY KEY) SELECT id FROM t")
    with pytest.raises(PipelineError, match="rows are logged as a statement"):
        topology.run(config)
    topology.run(config, snapshot=(f"{name}.u",))
    assert topology.differences(config) == ([], 3)
