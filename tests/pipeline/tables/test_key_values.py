"""Keys of a real server's rows that would become one in a change table."""

from dataclasses import replace
from itertools import count

import pytest

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.row_changes import TableName

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("change_tables")]

NUMBERS = count(1)  # of databases
NO_DATES = {
    "dates": ("DATE", "0000-00-00", "2024-00-00"),
    "datetimes": ("DATETIME(3)", "0000-00-00 00:00:00", "2024-02-00 01:02:03.004"),
    "timestamps": ("TIMESTAMP(6)", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
}


@pytest.fixture
def database(topology, tmp_path):
    """A database of its own with sql_mode '', and a pipeline of what it has."""
    name = f"keys{next(NUMBERS)}"
    topology.primary.run(f"CREATE DATABASE {name}")

    def run(*statements):
        return topology.primary.run(f"USE {name}", "SET sql_mode = ''", *statements)

    def config(folder="lake", **settings):
        keys = {TableName(name, table): key for table, key in settings.pop("keys", {}).items()}
        return topology.config(tmp_path / folder, include=(f"{name}.*",), keys=keys, **settings)

    return run, config


@pytest.mark.parametrize("kind", NO_DATES)
def test_dates_that_no_calendar_has_are_no_keys(topology, database, kind):
    run, config = database
    column, *values = NO_DATES[kind]
    rows = [f"({number}, '{value}')" for number, value in enumerate(values)]
    run(
        f"CREATE TABLE t (n INT, d {column} NOT NULL, PRIMARY KEY (d, n))",
        f"INSERT INTO t VALUES {rows[0]}",
    )
    with pytest.raises(PipelineError, match=r"\.t at \d+-\d+-\d+: the key column d holds a date"):
        topology.run(config("snapshot"))
    run("DELETE FROM t")
    topology.run(config())
    run("INSERT INTO t VALUES (9, '2024-02-03')", f"INSERT INTO t VALUES {', '.join(rows)}")
    at = topology.primary.binlog_position()
    for _ in range(2):  # it stays so
        with pytest.raises(PipelineError, match=rf"\.t at {at}: the key column d holds a date"):
            topology.run(config())
    run("DELETE FROM t WHERE n < 9")
    topology.run(config(), snapshot=("*.t",))
    assert topology.differences(config()) == ([], 1)


@pytest.mark.parametrize("undecoded", ["stop", "keep"])
def test_a_key_that_becomes_a_date_that_no_calendar_has_stops(topology, database, undecoded):
    """Dead letters are of what cannot be read: these rows can, and snapshots have none."""
    run, config = database
    run("CREATE TABLE t (d DATE PRIMARY KEY, n DATE)", "INSERT INTO t VALUES ('2024-01-01', 0)")
    topology.run(config(undecoded=undecoded))
    run(
        "UPDATE t SET n = '2024-00-00'",
        "INSERT INTO t VALUES ('2024-01-02', NULL)",
        "UPDATE t SET d = '2024-00-00' WHERE d = '2024-01-01'",
    )
    at = topology.primary.binlog_position()
    with pytest.raises(PipelineError, match=rf"at {at}: the key column d holds a date"):
        topology.run(config(undecoded=undecoded))


def test_a_named_key_is_unique_and_not_null_in_the_snapshot(topology, database):
    run, config = database
    run("CREATE TABLE t (a INT, b VARCHAR(9))", "INSERT INTO t VALUES (1, 'a'), (1, 'A'), (2, 'b')")
    with pytest.raises(PipelineError, match=r"2 rows have the key \(a\) = \(1\), and would be one"):
        topology.run(config("one", keys={"t": ("a",)}))
    right = config(keys={"t": ("a", "b")})
    topology.run(right)
    assert topology.differences(right) == ([], 1)
    run("INSERT INTO t VALUES (3, NULL)")
    with pytest.raises(PipelineError, match=r"the key column b holds NULL"):
        topology.run(config("two", keys={"t": ("a", "b")}))


def test_a_named_key_that_is_not_unique_stops_the_stream(topology, database):
    run, config = database
    run("CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (1, 1)")
    settings = {"keys": {"t": ("a",)}}
    topology.run(config(**settings))
    run("INSERT INTO t VALUES (2, 2)", "INSERT INTO t VALUES (1, 7)")
    at = topology.primary.binlog_position()
    for _ in range(2):
        with pytest.raises(PipelineError, match=rf"\.t at {at}: .* row whose key \(a\) the change"):
            topology.run(config(**settings))
    run("DELETE FROM t WHERE b = 7")
    topology.run(config(**settings), snapshot=("*.t",))
    assert topology.differences(config(**settings)) == ([], 1)


@pytest.mark.parametrize("kind", ["delta", "parquet"])
@pytest.mark.parametrize("change", ["UPDATE t SET b = 5 WHERE a = 7", "DELETE FROM t WHERE a = 7"])
def test_a_row_that_came_without_the_binlog_stops_the_stream(topology, database, change, kind):
    run, config = database
    run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1)")
    topology.run(config(format=kind))
    run("SET sql_log_bin = 0", "INSERT INTO t VALUES (7, 7)")
    run("UPDATE t SET b = 4 WHERE a = 1", change)
    at = topology.primary.binlog_position()
    for _ in range(2):
        with pytest.raises(PipelineError, match=rf"\.t at {at}: .* changes a row that is not in"):
            topology.run(config(format=kind))
    topology.run(config(format=kind), snapshot=("*.t",))
    assert topology.differences(config(format=kind)) == ([], 1)


def test_where_rows_may_be_lacking_the_stream_goes_on(topology, database):
    """Dead letters are rows that a table lacks."""
    run, config = database
    run("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1)")
    topology.run(config(undecoded="keep"))
    run("SET sql_log_bin = 0", "INSERT INTO t VALUES (7, 7)")
    run("UPDATE t SET b = 4")
    topology.run(config(undecoded="keep"))
    assert topology.differences(config(undecoded="keep")) == ([], 1)


def test_without_a_snapshot_rows_may_be_lacking_and_none_is_too_many(topology, database):
    run, config = database
    settings = {"keys": {"t": ("a",)}}
    run("CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (1, 1)")
    run("SET sql_log_bin = 0", "INSERT INTO t VALUES (7, 7)")
    run("UPDATE t SET b = 4")
    alone = replace(config(**settings), server=None)
    topology.run(alone)
    assert topology.differences(config(**settings)) == ([], 1)
    run("INSERT INTO t VALUES (1, 9)")
    with pytest.raises(PipelineError, match=r"row whose key \(a\) the change table has"):
        topology.run(alone)


def test_labels_and_characters_that_become_one_are_no_keys(topology, database):
    """The ENUM's error value is read as '' is, and two codes of cp932 as one character."""
    run, config = database
    run(
        "CREATE TABLE t (e ENUM('', 'a') PRIMARY KEY)",
        "INSERT INTO t VALUES (''), ('nothing of it'), ('a')",
    )
    with pytest.raises(PipelineError, match=r"2 rows have the key \(e\) = \(''\)"):
        topology.run(config("labels"))
    run(
        "DROP TABLE t",
        "CREATE TABLE t (c CHAR(3) CHARACTER SET cp932 COLLATE cp932_bin PRIMARY KEY)",
        "INSERT INTO t VALUES (_cp932 0x81E6), (_cp932 0x879A)",
    )
    with pytest.raises(PipelineError, match=r"2 rows have the key \(c\) = \('∵'\)"):
        topology.run(config("characters"))
    run("DELETE FROM t WHERE HEX(c) = '879A'")
    topology.run(config("stream"))
    run("INSERT INTO t VALUES (_cp932 0x879A)")
    with pytest.raises(PipelineError, match=r"row whose key \(c\) the change table has"):
        topology.run(config("stream"))


KINDS = {
    "CHAR(5)": ("'a  '", "'b'"),
    "VARCHAR(5) COLLATE utf8mb4_general_ci": ("'a'", "'A'"),
    "BINARY(5)": ("'a'", "'b\\0'"),
    "VARBINARY(5)": ("'a\\0'", "'a '"),
    "FLOAT": ("0.1", "-0.1"),
    "DOUBLE": ("0e0", "1e300"),
    "DECIMAL(10,3)": ("1.50", "-0.001"),
    "DECIMAL(60,3)": ("1.50", "-0.001"),
    "BIGINT UNSIGNED": ("18446744073709551615", "0"),
    "BIT(1)": ("b'0'", "b'1'"),
    "BIT(64)": ("b'101'", "0xFFFFFFFFFFFFFFFF"),
    "TIME(2)": ("'-838:59:59.99'", "'00:00:00.01'"),
    "DATETIME(6)": ("'2024-02-03 04:05:06.000001'", "'2024-02-03 04:05:06'"),
    "TIMESTAMP(3)": ("'2024-02-03 04:05:06.001'", "'2024-02-03 04:05:06'"),
    "DATE": ("'2024-02-03'", "'9999-12-31'"),
    "YEAR": ("'0000'", "2155"),
    "ENUM('a', 'b')": ("'neither'", "'b'"),
    "SET('a', 'b')": ("''", "'a,b'"),
    "UUID": ("'f47ac10b-58cc-4372-a567-0e02b2c3d479'", "'00000000-0000-0000-0000-000000000000'"),
    "INET6": ("'::1'", "'::ffff:1.2.3.4'"),
}


def test_rows_of_every_kind_of_key_are_found_again(topology, database):
    """As the snapshot has them, and as the stream does: each must find the other's."""
    run, config = database
    for number, (kind, (one, _)) in enumerate(KINDS.items()):
        run(
            f"CREATE TABLE t{number} (k {kind} PRIMARY KEY, n INT)",
            f"INSERT INTO t{number} VALUES ({one}, 1)",
        )
    topology.run(config())
    for number, (_, other) in enumerate(KINDS.values()):
        run(f"UPDATE t{number} SET n = 2", f"UPDATE t{number} SET k = {other}")
    topology.run(config())
    for number, (one, other) in enumerate(KINDS.values()):
        run(f"DELETE FROM t{number}", f"INSERT INTO t{number} VALUES ({other}, 3)")
        run(f"UPDATE t{number} SET k = {one}")
    topology.run(config())
    assert topology.differences(config()) == ([], len(KINDS))
