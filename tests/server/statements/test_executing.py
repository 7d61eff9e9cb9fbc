"""Statements prepared by name, and EXECUTE IMMEDIATE: whatever they execute."""

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.reply import parse_err

from ..raw_client import RawClient, until_sessions
from ..waiting import until


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        yield client


async def refusal(client, sql):
    with pytest.raises(SqlError) as refused:
        await client.query(sql)
    return refused.value.code


async def test_a_prepared_kill_is_one(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server, "admin", "mighty") as client,
        await RawClient.logged_in(server) as other,
    ):
        number = await other.value("SELECT CONNECTION_ID()")
        await client.query("PREPARE k FROM 'KILL ?'")
        assert await refusal(client, "EXECUTE k USING 999999") == 1094
        await client.query(f"EXECUTE k USING {number}")
        await until_sessions(server, 1)
        assert await client.value("SELECT 1") == "1"


async def test_execute_immediate_executes_a_text(client):
    assert await client.value("EXECUTE IMMEDIATE 'SELECT ? + ?' USING 2, 3") == "5"
    assert await client.value("EXECUTE IMMEDIATE CONCAT('SELECT ', 7)") == "7"
    assert await client.value("EXECUTE IMMEDIATE 'SELECT SLEEP(?)' USING 0.01") == "0"
    assert await refusal(client, "EXECUTE IMMEDIATE 'SELECT ?'") == 1210
    assert await refusal(client, "EXECUTE IMMEDIATE 'KILL 999999'") == 1094
    assert await refusal(client, "EXECUTE IMMEDIATE 'EXECUTE k'") == 1295


async def test_immediate_is_a_name_like_others(client):
    await client.query("PREPARE immediate FROM 'SELECT ?'")
    assert await client.value("EXECUTE immediate USING 1") == "1"


async def test_values_of_an_execution_are_not_kept(client):
    await client.query("PREPARE p FROM 'SELECT ?'")
    assert await client.value("EXECUTE p USING 1") == "1"
    assert await refusal(client, "EXECUTE p") == 1210


@pytest.mark.parametrize(
    "sql",
    ["BEGIN NOT ATOMIC SELECT 1; END", "(SELECT 1)", "SELECT * FROM information_schema.INNODB_TRX"],
)
async def test_good_sql_that_is_not_here_is_told_so(client, sql):
    assert await refusal(client, sql) == 1235


async def test_functions_that_are_not_here_are_told_so_whatever_their_grammar(client):
    for sql in (
        "TRIM(BOTH 'x' FROM 'x')",
        "EXISTS(SELECT 1)",
        "EXTRACT(YEAR FROM '2024-01-01')",
        "GROUP_CONCAT(1 ORDER BY 1)",
        "MAX(1)",
    ):
        assert await refusal(client, f"SELECT {sql}") == 1235
    assert await refusal(client, "SELECT DATE_ADD('2024-01-31', INTERVAL 1 MONTH)") == 1235
    assert await refusal(client, "SELECT nofunc(1)") == 1305


async def test_drop_prepare_deallocates(client):
    await client.query("PREPARE p FROM 'SELECT 1'")
    await client.query("DROP PREPARE p")
    assert await refusal(client, "EXECUTE p") == 1243


async def test_a_number_that_no_double_holds_is_refused(client):
    assert await refusal(client, "SELECT 1e400") == 1367
    assert await client.value("SELECT 1e308") == "1e308"


async def test_a_character_set_or_collation_that_nobody_knows_is_refused(client):
    assert await refusal(client, "SELECT 'a' COLLATE nonsense") == 1273
    assert await refusal(client, "SELECT CONVERT('a' USING nonsense)") == 1115
    assert await refusal(client, "SELECT CONVERT('a' USING gbk)") == 1235


async def test_the_values_of_an_execution_are_computed_in_the_time_of_the_statement(client):
    await client.query("PREPARE p FROM 'SELECT ?'")
    await client.query("SET max_statement_time = 0.1")
    assert await refusal(client, "EXECUTE p USING SLEEP(1)") == 1969
    assert await refusal(client, "EXECUTE IMMEDIATE 'SELECT ?' USING SLEEP(1)") == 1969


async def test_the_values_of_an_execution_are_of_the_moment_that_the_session_set(client):
    await client.query("SET timestamp = 1000000000")
    value = await client.value("EXECUTE IMMEDIATE 'SELECT ?' USING UNIX_TIMESTAMP()")
    assert float(value) == 1_000_000_000


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("PREPARE p FROM CONCAT('CHANGE MASTER TO MASTER_PASSWORD = ''x''', SLEEP(20))", "PREPARE"),
        ("EXECUTE IMMEDIATE CONCAT('SELECT ''x''', SLEEP(20))", "EXECUTE IMMEDIATE"),
        ("EXECUTE IMMEDIATE 'SELECT ''x'', ?' USING SLEEP(20)", "EXECUTE IMMEDIATE"),
        ("EXECUTE q USING SLEEP(20)", "EXECUTE q USING SLEEP(20)"),
    ],
)
async def test_others_see_what_is_executed_without_a_text_that_passwords_may_stand_in(
    serve, store, sql, shown
):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server, "admin", "mighty") as client,
        await RawClient.logged_in(server, "admin", "mighty") as other,
    ):
        number = await client.value("SELECT CONNECTION_ID()")
        await client.query("PREPARE q FROM 'SELECT ?'")
        await client.send(Query(sql).encode())
        await until(lambda: server.sessions.get(int(number)).runner._waiting is not None)
        infos = {row[0]: row[7] for row in await other.rows("SHOW FULL PROCESSLIST")}
        assert infos[number] == shown
        await other.query(f"KILL QUERY {number}")
        assert parse_err(await client.packet()).code == 1317
