"""Statements that may have done something else than they say: a stop, unless it does not matter."""

import pytest

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.place import Place

from .changes import insert
from .test_statement_follower import CREATE, Lakeside, T


@pytest.fixture
def side(tmp_path):
    side = Lakeside(tmp_path)
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    return side


def stops(side, words):
    with pytest.raises(PipelineError, match=rf"^0-1-3: .*{words}.*new snapshot"):
        side.apply()
    return True


@pytest.mark.parametrize(
    "sql", ["CREATE OR REPLACE TABLE t (id INT)", "DROP TABLE t, x", "ALTER TABLE t DROP name"]
)
def test_what_failed_at_the_source_stops(side, sql):
    side.sql(sql, error=1005)
    assert stops(side, "failed at the source by error 1005")


@pytest.mark.parametrize(
    "sql",
    ["CREATE OR REPLACE TABLE other.t (id INT)", "CREATE TABLE u (id INT)", "DROP USER t, x"],
)
def test_what_failed_without_any_table_of_ours_goes_by(side, sql):
    side.sql(sql, error=1396)
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}]


def test_a_database_that_is_dropped_has_gone_whatever_was_said_then(side):
    side.sql("DROP DATABASE shop", error=1317)
    side.apply()
    assert not side.lake.open(T).exists


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t ADD zz INT", "ALTER TABLE t RENAME TO x", "CREATE TABLE u LIKE t"]
)
def test_where_a_temporary_table_may_be_meant_it_stops(side, sql):
    side.sql(sql, uses_temporary=True)
    assert stops(side, "temporary table")


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE TABLE t",
        "ALTER TABLE x ADD zz INT",
        "ALTER TABLE t ADD INDEX (id)",
        "DROP TABLE x",
    ],
)
def test_what_is_done_to_temporary_tables_goes_by(side, sql):
    side.sql(sql, uses_temporary=True)
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}]


def test_drop_never_means_a_temporary_table_without_saying_so(side):
    side.sql("DROP TABLE t", uses_temporary=True)
    side.apply()
    assert not side.lake.open(T).exists


@pytest.mark.parametrize(
    ("database", "name"), [("shop", "u"), ("other", "shop.u"), ("shop", "IF NOT EXISTS u")]
)
def test_a_table_whose_first_rows_are_not_logged_stops(side, database, name):
    side.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY) SELECT 1 AS id", database=database)
    assert stops(side, "rows are logged as a statement")


@pytest.mark.parametrize("name", ["other.u", "IF NOT EXISTS t"])
def test_but_not_where_it_is_none_of_ours_or_was_there(side, name):
    side.sql(f"CREATE TABLE {name} SELECT * FROM t")
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}]


def test_rows_logged_as_statements_stop_where_they_name_a_database_of_ours(side):
    side.sql("UPDATE shop.v SET a = 1", database="other")
    assert stops(side, "rows are logged as a statement")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO t VALUES (2, 'b')", {}),
        ("ALTER TABLE t TRUNCATE PARTITION p0", {}),
        ("ALTER TABLE t DROP name", {"uses_temporary": True}),
    ],
)
def test_what_a_table_that_was_read_anew_has_already_stops_nothing(side, sql, said):
    side.apply()
    side.sql(sql, **said)
    side.lake.open(T).advance(Place(side.stream.place(3), 0))
    side.apply(2)
    assert side.table() == [{"id": 1, "name": "a"}]
    side.sql(sql, **said)
    with pytest.raises(PipelineError, match=r"^0-1-4: "):
        side.apply(3)
