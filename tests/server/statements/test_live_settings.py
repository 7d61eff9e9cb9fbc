"""SET GLOBAL: it takes effect, or it is refused; DEFAULT is what was configured."""

import asyncio
import contextlib
import threading

import pytest

from ibb.protocol.character_sets import UTF8MB4
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.server.automatic_purge import PURGE_VARIABLES
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.sql.parser import parse_statement
from ibb.server.sql.system_variables import DESCRIBING, FIXED, SYSTEM_VARIABLES
from ibb.server.statements.live_settings import SETTINGS
from ibb.server.statements.session_memory import SessionMemory, SharedMemory
from ibb.server.statements.statements import Statements
from ibb.server.statements.variables import SessionVariables

from ..conftest import publish
from ..raw_client import SECONDS_MAX, RawClient
from ..waiting import until

READ_ONLY = 1238
WRONG_VALUE = 1231
EXTREMES = (
    *("0", "-1", "99999999999999999999999", "-99999999999999999999999", "1.5", "1e300", "-1e-300"),
    *("'a'", "''", "NULL", "DEFAULT", "ON", "x'ff'", "NOW()", "@long"),
)
OF_HISTORY = {"gtid_binlog_state", "gtid_slave_pos"}
CONFIGURED = {
    "connect_timeout": 20.0,
    "wait_timeout": 3000.0,
    "interactive_timeout": 4000.0,
    "net_write_timeout": 50.0,
    "slave_net_timeout": 45.0,
    "gtid_strict_mode": True,
    "rpl_semi_sync_slave_enabled": True,
    "max_allowed_packet": 1 << 21,
    "max_connections": 100,
    "max_user_connections": 50,
    "max_connect_errors": 30,
    "dump_lease": 60,
    "dump_rate": 1 << 20,
    "dump_rate_total": 1 << 21,
    "dump_delay": 1,
    "rpl_semi_sync_master_enabled": True,
    "rpl_semi_sync_master_timeout": 777,
    "rpl_semi_sync_master_wait_no_slave": False,
    "require_tls": False,
}

READ_WHERE_USED = {"max_prepared_stmt_count"}


async def admin(server):
    return await RawClient.logged_in(server, "admin", "mighty")


def other(value):
    return 1 - value if value in (0, 1) else 70_000


def test_every_variable_of_the_server_is_refused_or_has_a_meaning():
    for name, variable in SYSTEM_VARIABLES.items():
        if not variable.server or variable.read_only:
            continue
        meanings = [
            name in SETTINGS,
            name in FIXED,
            name in DESCRIBING,
            name in OF_HISTORY,
            name in PURGE_VARIABLES,
            name in READ_WHERE_USED,
            variable.session and name not in FIXED | DESCRIBING | set(SETTINGS),
        ]
        assert sum(meanings) == 1, name


@pytest.mark.parametrize("name", sorted(SETTINGS))
async def test_default_is_what_was_configured(serve, store, name):
    server = await serve(store, **CONFIGURED)
    async with await admin(server) as client:
        before = int(await client.value(f"SELECT @@global.{name}"))
        assert before == int(CONFIGURED[SETTINGS[name]])
        await client.query(f"SET GLOBAL {name} = {other(before)}")
        assert int(await client.value(f"SELECT @@global.{name}")) == other(before)
        assert int(getattr(server.config, SETTINGS[name])) == other(before)
        await client.query(f"SET GLOBAL {name} = DEFAULT")
        assert int(await client.value(f"SELECT @@global.{name}")) == before
    assert server.config.wait_timeout == CONFIGURED["wait_timeout"]
    assert server.guard.failures_max == CONFIGURED["max_connect_errors"]
    assert server.semi_sync.timeout_ms == CONFIGURED["rpl_semi_sync_master_timeout"]
    assert server.pacing.delay == CONFIGURED["dump_delay"]


@pytest.mark.parametrize("name", sorted(FIXED))
async def test_what_cannot_change_takes_only_what_it_is(serve, store, name):
    server = await serve(store)
    async with await admin(server) as client:
        value = await client.value(f"SELECT @@global.{name}")
        text = f"'{value}'" if not value.replace(".", "").isdigit() else value
        await client.query(f"SET GLOBAL {name} = {text}")
        await client.query(f"SET GLOBAL {name} = DEFAULT")
        words = SYSTEM_VARIABLES[name].words
        changed = f"'{words[-1]}'" if words else "'SELECT 1'"
        if value.replace(".", "").isdigit():
            changed = other(int(float(value)))
        with pytest.raises(SqlError) as caught:
            await client.query(f"SET GLOBAL {name} = {changed}")
        assert (caught.value.code, await client.value(f"SELECT @@global.{name}")) == (
            READ_ONLY,
            value,
        )


@pytest.mark.parametrize(
    "assignment", ["dump_rate = 5", "dump_rate_total = 65535", "require_secure_transport = ON"]
)
async def test_what_a_configuration_may_not_have_sql_may_not_either(serve, store, assignment):
    server = await serve(store, skip_ssl=True)
    async with await admin(server) as client:
        with pytest.raises(SqlError, match="can't be set") as caught:
            await client.query(f"SET GLOBAL {assignment}")
        assert caught.value.code == WRONG_VALUE
        assert await client.value("SELECT 1") == "1"
    assert (server.pacing.rate, server.pacing.total_rate) == (0, 0)


async def test_an_upstream_that_may_be_silent_for_less_than_a_heartbeat_is_asked_more_often(
    serve, store
):
    server = await serve(store)
    async with await admin(server) as client:
        done = await client.query("SET GLOBAL slave_net_timeout = 5")
        assert done.warnings == 1
        warned = (await client.query("SHOW WARNINGS")).rows[0]
        assert warned[1] == b"1704"
        assert server.config.master_heartbeat_period == 2.5
        assert (await client.query("SET GLOBAL slave_net_timeout = 60")).warnings == 0


async def test_a_session_begins_with_the_servers_values_and_keeps_them(serve, store):
    server = await serve(store)
    async with await admin(server) as first:
        await first.query("SET GLOBAL sql_mode = 'ANSI', wait_timeout = 77, time_zone = '+03:00'")
        query = "SELECT CONCAT_WS(' ', @@sql_mode, @@wait_timeout, @@time_zone)"
        assert await first.value(query) != "ANSI 77 +03:00"
        async with await admin(server) as second:
            assert await second.value(query) == "ANSI 77 +03:00"
            await first.query("SET GLOBAL wait_timeout = DEFAULT, sql_mode = DEFAULT")
            assert await second.value(query) == "ANSI 77 +03:00"
            await second.query("SET wait_timeout = DEFAULT")
            assert await second.value("SELECT @@wait_timeout") == "28800"


async def test_reset_master_leaves_a_running_relay_its_place(serve, store):
    server = await serve(store)
    nobody = UpstreamAddress("127.0.0.1", 9, "repl", "secret")
    server.upstream = RelayControl(store, server, nobody, UpstreamTls())
    server.upstream.start()
    async with await admin(server) as client:
        with pytest.raises(SqlError, match="STOP SLAVE") as caught:
            await client.query("RESET MASTER")
        assert caught.value.code == 1198
        assert await client.value("SELECT @@gtid_binlog_pos") == "0-1-10"
        await client.query("STOP SLAVE")
        await client.query("RESET MASTER")
        assert await client.value("SELECT @@gtid_binlog_pos") == ""


async def test_who_begins_while_reset_master_is_at_work_waits_or_is_refused(
    serve, store, monkeypatch
):
    server = await serve(store)
    nobody = UpstreamAddress("127.0.0.1", 9, "repl", "secret")
    server.upstream = RelayControl(store, server, nobody, UpstreamTls())
    at_work, go_on = threading.Event(), threading.Event()
    reset = store.reset

    def reset_later():
        at_work.set()
        go_on.wait(SECONDS_MAX)
        reset()

    monkeypatch.setattr(store, "reset", reset_later)
    async with await admin(server) as client, await RawClient.logged_in(server) as replica:
        await replica.prepare("0-1-5")
        resetting = asyncio.create_task(client.query("RESET MASTER"))
        await asyncio.to_thread(at_work.wait, SECONDS_MAX)
        with pytest.raises(SqlError) as caught:
            server.upstream.start()
        assert (caught.value.code, server.upstream.is_running) == (4243, False)
        dump = await replica.dump(server_id=5)
        await until(server.has_dumps)
        go_on.set()
        await resetting
        publish(store, Gtid(5, 1, 1), wait=True)
        assert (await dump.next_group()).gtid == Gtid(5, 1, 1)


async def test_a_scope_holds_for_the_variables_behind_it(serve, store):
    server = await serve(store)
    async with await admin(server) as client:
        await client.query(
            "SET GLOBAL lock_wait_timeout = 7, @a = 1, wait_timeout = 6,"
            " SESSION lock_wait_timeout = 5, wait_timeout = 4"
        )
        await client.query("SET @@global.net_retry_count = 3, net_retry_count = 2")
        for name, shared, own in (
            ("lock_wait_timeout", "7", "5"),
            ("wait_timeout", "6", "4"),
            ("net_retry_count", "3", "2"),
        ):
            assert await client.value(f"SELECT @@global.{name}") == shared
            assert await client.value(f"SELECT @@session.{name}") == own


@pytest.mark.parametrize(
    ("assignment", "code"),
    [
        ("time_zone = 'Nowhere'", 1298),
        ("time_zone = '+14:00'", 1298),
        ("character_set_server = 'runes'", 1115),
        ("collation_server = 'by_colour'", 1273),
        ("sql_mode = NULL", 1231),
        ("sql_mode = 'loose'", 1231),
    ],
)
async def test_the_servers_values_are_checked_as_a_sessions_are(serve, store, assignment, code):
    server = await serve(store)
    async with await admin(server) as client:
        for scope in ("GLOBAL", "SESSION"):
            with pytest.raises(SqlError) as caught:
                await client.query(f"SET {scope} {assignment}")
            assert caught.value.code == code


async def test_no_assignment_is_an_internal_error(serve, store):
    """What a setting does not take is MariaDB's error or is cut: nothing else is raised."""
    server = await serve(store)
    variables = SessionVariables(UTF8MB4, SessionMemory(SharedMemory()))
    session = Statements(server, variables, 1, "dba@localhost")
    session.answer(parse_statement(f"SET @long = '{'a' * 1000}'"))
    done = set()
    for name in SYSTEM_VARIABLES:
        for value in EXTREMES:
            for scope in ("GLOBAL", "SESSION"):
                with contextlib.suppress(SqlError):
                    session.answer(parse_statement(f"SET {scope} {name} = {value}"))
                    done.add(name)
        session.answer(parse_statement("SELECT NOW(), FROM_UNIXTIME(0), @@timestamp"))
    settable = {name for name, found in SYSTEM_VARIABLES.items() if not found.read_only}
    assert done == settable - {"gtid_binlog_state"}  # not that of a binlog with groups
