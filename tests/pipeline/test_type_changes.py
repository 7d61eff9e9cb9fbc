"""Values of before an ALTER TABLE ... MODIFY: as a real server converts them, or a stop."""

import pytest

from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import plan_read
from ibb.pipeline.rows import columns_of, rows_of
from ibb.protocol.errors import FormatError

from ..integration.conftest import mariadb_10, new_rig
from ..integration.mariadb_server import PASSWORD, USER

__all__ = ["mariadb_10"]
pytestmark = pytest.mark.live

SAME = (  # old type, a literal, new type
    ("TINYINT", "-7", "BIGINT"),
    ("BIGINT UNSIGNED", "7", "INT"),
    ("INT", "-7", "DECIMAL(20,2)"),
    ("INT", "-7", "DOUBLE"),
    ("INT", "-7", "VARCHAR(20)"),
    ("BIGINT", "7", "CHAR(20)"),
    ("FLOAT", "0.1", "DOUBLE"),
    ("DOUBLE", "0.5", "FLOAT"),
    ("DECIMAL(10,4)", "-1.25", "DECIMAL(20,2)"),
    ("DECIMAL(20,10)", "0", "VARCHAR(40)"),
    ("DECIMAL(50,3)", "1.25", "TEXT"),
    ("VARCHAR(9) CHARACTER SET latin1", "'é'", "TEXT CHARACTER SET utf8mb4"),
    ("CHAR(9)", "'a'", "VARCHAR(9)"),
    ("VARCHAR(9)", "'a'", "CHAR(9)"),
    ("VARBINARY(9)", "X'C3A900'", "BLOB"),
    ("BINARY(3)", "'a'", "VARBINARY(9)"),
    ("BIT(1)", "1", "INT"),
    ("BIT(8)", "200", "SMALLINT"),
    ("BIT(1)", "1", "BIT(8)"),
    ("YEAR", "2024", "INT"),
    ("ENUM('x','y')", "'y'", "VARCHAR(9)"),
    ("ENUM('x','y')", "'y'", "ENUM('y','x')"),
    ("SET('a','b')", "'b,a'", "VARCHAR(9)"),
    ("SET('a','b')", "'b,a'", "SET('a','c','b')"),
    ("DATE", "'2024-01-31'", "DATETIME"),
    ("DATETIME", "'2024-01-31'", "DATE"),
    ("DATETIME", "'2024-01-31 12:00:00'", "DATETIME(6)"),
)
STOPS = (
    ("BIGINT", "20240131120000", "DATETIME"),
    ("DATE", "'2024-01-31'", "INT"),
    ("INT", "123", "DATE"),
    ("DATETIME", "'2024-01-31 12:00:00'", "BIGINT"),
    ("DATETIME", "'2024-01-31 12:00:00'", "VARCHAR(30)"),
    ("DATETIME", "'2024-01-31 12:00:00'", "DATE"),
    ("TIME", "'12:00:00'", "VARCHAR(30)"),
    ("BIGINT", "120000", "TIME"),
    ("BIT(1)", "1", "VARCHAR(5)"),
    ("VARCHAR(9) CHARACTER SET latin1", "'é'", "VARBINARY(9)"),
    ("VARBINARY(9)", "X'C3A9'", "VARCHAR(9) CHARACTER SET latin1"),
    ("DOUBLE", "1e20", "VARCHAR(30)"),
    ("DOUBLE", "0.1", "DECIMAL(30,20)"),
    ("INT(5) ZEROFILL", "42", "VARCHAR(9)"),
    ("SMALLINT", "24", "YEAR"),
    ("VARCHAR(9)", "'a '", "CHAR(9)"),
    ("VARBINARY(9)", "'a'", "BINARY(3)"),
    ("SET('a','b')", "'a,b'", "SET('b','a')"),
    ("VARCHAR(9)", "'Y'", "ENUM('x','y')"),
    ("TIMESTAMP NULL", "'2024-01-31 12:00:00'", "DATETIME"),
)


@pytest.fixture(scope="module")
def primary(mariadb_10):
    with new_rig() as rig:
        primary = rig.primary(mariadb_10, "--binlog-format=ROW", "--binlog-row-metadata=FULL")
        primary.run("CREATE DATABASE d CHARACTER SET utf8mb4")
        for number, (old, value, new) in enumerate(SAME + STOPS):
            primary.run(
                "SET NAMES utf8mb4",
                "SET sql_mode = ''",
                f"CREATE TABLE d.t{number} (id INT PRIMARY KEY, v {old})",
                f"INSERT INTO d.t{number} VALUES (1, {value})",
                f"ALTER TABLE d.t{number} MODIFY v {new} NULL",
                f"INSERT INTO d.t{number} VALUES (2, NULL)",
            )
        yield primary


def old_value(primary, number):
    url = f"mariadb://{USER}@127.0.0.1:{primary.port}"
    options = SourceOptions.parse({"url": url, "password": PASSWORD, "table": f"d.t{number}"})
    columns = columns_of(options)
    found = [batch for task in plan_read(options) for batch in rows_of(task, options, columns)]
    return found[0].to_pylist()[0]["v"]


@pytest.mark.parametrize("number", range(len(SAME)), ids=[" to ".join(x[::2]) for x in SAME])
def test_a_value_is_what_the_server_makes_of_it(primary, number):
    shown = old_value(primary, number)
    with primary.connection() as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute(f"SELECT v FROM d.t{number} WHERE id = 1")
        ((value,),) = cursor.fetchall()
    if isinstance(value, bytes) and isinstance(shown, int):
        value = int.from_bytes(value, "big")  # BIT
    if isinstance(value, set):
        value = ",".join(sorted(value))
    assert (shown, str(shown)) == (value, str(value))


@pytest.mark.parametrize("number", range(len(STOPS)), ids=[" to ".join(x[::2]) for x in STOPS])
def test_a_value_that_means_something_else_stops_the_read(primary, number):
    table = len(SAME) + number
    with pytest.raises(FormatError, match=rf"d\.t{table}: in group .* column v is of type"):
        old_value(primary, table)
