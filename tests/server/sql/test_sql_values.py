"""Values at and beyond every limit: an answer or MariaDB's error, soon and in little memory."""

import time
import tracemalloc

import pytest

from ibb.protocol.errors import SqlError

from ..raw_client import RawClient

SECONDS_MAX = 1.0
BYTES_MAX = 64 << 20
LONG = 1_000_000  # characters: as long as a statement may be


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT 'a'+1", "1"),
        ("SELECT 7/2*2", "7.0000"),
        (f"SELECT CAST('{'1' * 500}' AS SIGNED)", str((1 << 63) - 1)),
        (f"SELECT CAST('-{'1' * 500}' AS SIGNED)", str(-1 << 63)),
        (f"SELECT CAST('{'1' * 500}' AS DECIMAL(65,30))", f"{'9' * 35}.{'9' * 30}"),
        ("SELECT FROM_UNIXTIME(1e300)", None),
        ("SELECT FROM_UNIXTIME(-1)", None),
        (f"SELECT {'9' * 100}", "9" * 65),
        ("SELECT 1e308 * 10", 1690),
        ("SELECT 1e308 DIV 1e-308", 1690),
        (f"SELECT {'*'.join(['9' * 60] * 100)}", 1690),
        ("SELECT 9223372036854775807 + 1", 1690),
        ("KILL 1e300", 1094),
        ("KILL -1e300", 1094),
    ],
)
async def test_numbers_out_of_range(serve, store, sql, wanted):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        if not isinstance(wanted, int):
            assert await client.value(sql) == wanted
            return
        with pytest.raises(SqlError) as refused:
            await client.query(sql)
        assert refused.value.code == wanted


async def error_code(client, sql):
    """Return the code of the error that answers *sql*, 0 for none."""
    try:
        await client.query(sql)
    except SqlError as error:
        return error.code
    return 0


@pytest.mark.parametrize(
    "sql",
    [
        "/*!" * (LONG // 3),
        "! /*" * (LONG // 4),
        "!'" + "\\'" * (LONG // 2),
        "SELECT 1 /* " + "/*!" * (LONG // 3),
        "SHOW VARIABLES LIKE '" + "%a" * (LONG // 2) + "'",
        "SHOW STATUS LIKE '" + "_" * LONG + "'",
        "SELECT 'a' LIKE '" + "%" * LONG + "'",
        "SELECT REPLACE('" + "a" * (LONG // 2) + "','a','" + "b" * (LONG // 2) + "')",
        "SELECT CONCAT(" + ",".join(["@a"] * 90) + ")",
        "SELECT CONCAT_WS(@a," + ",".join(["@a"] * 90) + ")",
        "KILL " + "9" * LONG,
        "SELECT SUBSTRING('abc'," + "9" * LONG + ")",
        "SELECT 1+'" + "1" * LONG + "x'",
        "SELECT '" + "\\\\" * (LONG // 2) + "'",
        "SELECT " + "1," * (LONG // 2) + "1",
        "SELECT 1 IN (" + "1," * (LONG // 2) + "1)",
        ";" * LONG,
        "#\n" * (LONG // 2),
    ],
    ids=lambda sql: sql[:24],
)
async def test_the_longest_statements_end_soon_and_take_little_memory(serve, store, sql):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query(f"SET @a = '{'a' * (LONG - 100)}'")
        began = time.process_time()
        code = await error_code(client, sql)
        spent = time.process_time() - began
        tracemalloc.start()
        assert await error_code(client, sql) == code
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert code in (0, 1064, 1065, 1094, 1235)
        assert await client.value("SELECT 1") == "1"
    assert spent < SECONDS_MAX
    assert most < BYTES_MAX
