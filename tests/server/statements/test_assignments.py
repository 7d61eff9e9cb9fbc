"""SET of several variables: all of it or nothing, and every value as it was before."""

import pytest

from ibb.protocol.errors import SqlError

from ..raw_client import RawClient


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        yield client


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ("nosuch = 1", 1193),
        ("autocommit = 'abc'", 1231),
        ("sql_mode = 'NOPE'", 1231),
        ("@y = nofunc()", 1305),
        ("max_connections = DEFAULT", 1229),
        ("character_set_client = 'ucs2'", 1231),
        ("NAMES bogus", 1115),
        ("NAMES utf8mb4 COLLATE latin1_swedish_ci", 1253),
        ("CHARACTER SET bogus", 1115),
        ("GLOBAL nosuch = 1", 1193),
        ("GLOBAL wait_timeout = 'abc'", 1232),
        ("GLOBAL server_id = 12345", 1238),
    ],
)
async def test_what_is_wrong_leaves_all_as_it_was(client, wrong, code):
    await client.query("SET @x = 1")
    with pytest.raises(SqlError) as refused:
        await client.query(f"SET @x = 2, tx_isolation = 'SERIALIZABLE', {wrong}")
    assert refused.value.code == code
    assert await client.rows("SELECT @x, @@tx_isolation") == [("1", "REPEATABLE-READ")]


@pytest.mark.parametrize(
    "wrong",
    ["wait_timeout = 'abc'", "server_id = 12345", "gtid_binlog_state = 'x'", "dump_rate = 5"],
)
async def test_what_is_wrong_leaves_all_settings_as_they_were(client, wrong):
    asked = "SELECT @@GLOBAL.max_connections, @@GLOBAL.max_user_connections"
    before = await client.rows(asked)
    with pytest.raises(SqlError):
        await client.query(f"SET GLOBAL max_connections = 77, max_user_connections = 5, {wrong}")
    assert await client.rows(asked) == before


async def test_without_the_privilege_for_one_none_is_set(serve, store):
    async with await RawClient.logged_in(await serve(store), "watcher", "looking") as client:
        for wrong in ("GLOBAL wait_timeout = 100", "GLOBAL TRANSACTION READ ONLY"):
            with pytest.raises(SqlError) as refused:
                await client.query(f"SET @b = 1, {wrong}")
            assert refused.value.code == 1227
            assert await client.value("SELECT @b") is None


async def test_values_are_those_from_before(client):
    await client.query("SET @a = 1")
    await client.query("SET @a = 5, @b = @a + 1, autocommit = 0, @c = @@autocommit")
    assert await client.rows("SELECT @a, @b, @c, @@autocommit") == [("5", "2", "1", "0")]


async def test_the_next_group_is_not_chosen_inside_a_transaction(client):
    await client.query("BEGIN")
    for sql in ("gtid_domain_id = 5", "gtid_seq_no = 5", "gtid_domain_id = DEFAULT"):
        with pytest.raises(SqlError) as refused:
            await client.query(f"SET SESSION {sql}")
        assert refused.value.code == 1953
    await client.query("COMMIT")
    await client.query("SET SESSION gtid_domain_id = 5")


async def test_a_variable_keeps_its_type_to_the_end_of_a_statement(client):
    await client.query("SET @n = 1")
    assert await client.rows("SELECT @n := 'a', @n") == [("a", "0")]
    assert await client.value("SELECT @n") == "a"


async def test_preparing_an_assignment_does_not_make_it(client):
    await client.query("SET @n = 1")
    await client.send(b"\x16SELECT @n := 2")
    for _ in range(3):
        await client.packet()  # the statement, its column, EOF
    assert await client.value("SELECT @n") == "1"


@pytest.mark.parametrize(
    "sql", ["SELECT @n := @n + 1, SLEEP(0.01)", "DO @n := @n + 1, SLEEP(0.01)"]
)
async def test_a_statement_that_waits_assigns_once(client, sql):
    await client.query("SET @n = 1, @long = REPLACE('aaaaaaaaaa', 'a', 'aaaaaaaaaa')")
    await client.query(sql)
    assert await client.value("SELECT @n") == "2"
    await client.query("SELECT @long := 'a', @new := 'b', SLEEP(0.01)")
    assert await client.rows("SELECT @long, @new") == [("a", "b")]
