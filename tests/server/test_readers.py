"""Who reads, how far behind, and what that keeps: SHOW BINLOG READERS, leases, refused purges."""

from dataclasses import replace

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.protocol.reply import is_err, parse_err
from ibb.server.accounts import AccountBook, make_account
from ibb.server.pacing import Pacing
from ibb.server.readers import SENDING, SENT_ALL, bytes_between
from ibb.storage.clock import SystemClock
from ibb.storage.position import Position
from ibb.storage.store import Store

from .conftest import SMALL, publish
from .raw_client import RawClient, dumping

HOUR = 3600
WEEK = 7 * 24 * 3600


@pytest.fixture
def accounts():
    return AccountBook(
        [
            make_account("repl", "%", "secret", ["ALL PRIVILEGES"]),
            make_account("poor", "%", "secret", ["REPLICATION SLAVE"]),
        ]
    )


@pytest.fixture
async def server(serve, store):
    return await serve(store)


@pytest.fixture
async def dba(server):
    async with await RawClient.logged_in(server) as client:
        yield client


async def rows(client, sql):
    """Return the rows of an answer as dictionaries of texts."""
    result = await client.query(sql)
    names = [column.name for column in result.columns]
    return [
        dict(zip(names, (None if value is None else value.decode() for value in row), strict=True))
        for row in result.rows
    ]


async def refused(client, sql):
    await client.send(Query(sql).encode())
    payload = await client.packet()
    assert is_err(payload)
    return parse_err(payload)


async def test_a_reader_that_has_everything_is_not_behind(server, dba):
    dump = await dumping(server, "0-1-3", server_id=33, non_block=False)
    await dump.groups(7)
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["User"], reader["Server_id"], reader["Gtid_pos"]) == ("repl", "33", "0-1-10")
    assert (reader["Groups_behind"], reader["Bytes_behind"]) == ("0", "0")
    assert (reader["Seconds_behind"], reader["State"]) == ("0", SENT_ALL)
    assert reader["Holds_from"] == "binlog-000000.ibb"
    await dump.client.close()


async def test_a_reader_that_is_kept_back_is_behind_in_groups_and_bytes(server, store, dba):
    server.pacing = Pacing(0, 0, SystemClock(), delay=1 << 31)  # nothing is ever old enough
    dump = await dumping(server, "0-1-4", server_id=33, non_block=False)
    (stream,) = [session._dump._stream for session in server.sessions() if session._dump]
    while stream._held is None:  # it looks for the first group that it has to keep back
        await rows(dba, "SHOW BINLOG READERS")
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["Gtid_pos"], reader["Groups_behind"]) == ("0-1-4", "6")
    assert int(reader["Bytes_behind"]) > 0
    assert (reader["Seconds_behind"], reader["State"]) == (None, SENDING)
    publish(store, Gtid(0, 1, 11))
    store.sync()
    (later,) = await rows(dba, "SHOW BINLOG READERS")
    assert later["Groups_behind"] == "7"
    assert int(later["Bytes_behind"]) > int(reader["Bytes_behind"])
    await dump.client.close()


def test_bytes_are_counted_over_files():
    sizes = {0: 1000, 1: 2000, 2: 3000}
    assert bytes_between(Position(0, 400), Position(0, 900), sizes) == 500
    assert bytes_between(Position(0, 400), Position(2, 100), sizes) == 600 + 2000 + 100
    assert bytes_between(Position(2, 100), Position(0, 400), sizes) == 0


async def test_leases_are_made_renewed_shown_and_dropped(dba):
    assert await rows(dba, "SHOW BINLOG LEASES") == []
    await dba.query("CREATE BINLOG LEASE spark FOR '0-1-5'")
    (lease,) = await rows(dba, "SHOW BINLOG LEASES")
    assert (lease["Name"], lease["Gtid_pos"], lease["Lapsed"]) == ("spark", "0-1-5", "No")
    assert lease["Holds_from"] == "binlog-000000.ibb"
    assert WEEK - HOUR < int(lease["Expires_after"]) <= WEEK
    await dba.query("CREATE OR REPLACE BINLOG LEASE spark FOR @@gtid_binlog_pos EXPIRE 60")
    (lease,) = await rows(dba, "SHOW BINLOG LEASES")
    assert lease["Gtid_pos"] == "0-1-10"
    assert int(lease["Expires_after"]) <= 60
    await dba.query("CREATE BINLOG LEASE 'night replica' FOR '' EXPIRE NEVER")
    first, _ = await rows(dba, "SHOW BINLOG LEASES")
    assert (first["Name"], first["Expires_after"]) == ("night replica", None)
    await dba.query("DROP BINLOG LEASE spark")
    await dba.query("DROP BINLOG LEASE IF EXISTS spark")
    assert [one["Name"] for one in await rows(dba, "SHOW BINLOG LEASES")] == ["night replica"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("DROP BINLOG LEASE nosuch", 1105),
        ("CREATE BINLOG LEASE x FOR 'garbage'", 1941),
        ("CREATE BINLOG LEASE x FOR '0-1-1' EXPIRE 0", 1105),
        ("CREATE BINLOG LEASE x FOR '0-1-1' EXPIRE -5", 1105),
        ("CREATE BINLOG LEASE '' FOR '0-1-1'", 1105),
        ("CREATE BINLOG LEASE x", 1064),
        ("CREATE BINLOG LEASE taken FOR '0-1-1'", 1105),
    ],
)
async def test_leases_that_cannot_be_are_refused(dba, sql, code):
    await dba.query("CREATE BINLOG LEASE taken FOR '0-1-1'")
    assert (await refused(dba, sql)).code == code
    assert [one["Name"] for one in await rows(dba, "SHOW BINLOG LEASES")] == ["taken"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE BINLOG LEASE x FOR '0-1-1'",
        "DROP BINLOG LEASE x",
        "SHOW BINLOG LEASES",
        "SHOW BINLOG READERS",
        "PURGE BINARY LOGS TO 'binlog-000001.ibb'",
    ],
)
async def test_who_may_only_replicate_may_not_do_this(server, sql):
    async with await RawClient.logged_in(server, "poor") as client:
        assert (await refused(client, sql)).code == 1227


async def test_a_refused_purge_names_the_replica_and_the_lease(serve, tmp_path):
    options = replace(SMALL, server_id=7, max_binlog_size=64 << 10)
    with Store.open(tmp_path / "files", options) as store:
        for seq in range(1, 5):
            publish(store, Gtid(0, 1, seq), 20_000)
            store.switch_file()
        server = await serve(store)
        server.pacing = Pacing(0, 0, SystemClock(), delay=1 << 31)
        dump = await dumping(server, "0-1-1", server_id=33, non_block=False)
        async with await RawClient.logged_in(server) as client:
            await client.query("CREATE BINLOG LEASE archive FOR '0-1-2'")
            newest = [row["Log_name"] for row in await rows(client, "SHOW BINARY LOGS")][-1]
            await client.query(f"PURGE BINARY LOGS TO '{newest}'")
            (warning,) = await rows(client, "SHOW WARNINGS")
            assert (warning["Level"], warning["Code"]) == ("Note", "1375")
            assert "server id 33" in warning["Message"]
            await dump.client.close()
            await client.query("KILL USER nobody")
            while await rows(client, "SHOW BINLOG READERS"):
                pass
            await client.query(f"PURGE BINARY LOGS TO '{newest}'")
            (warning,) = await rows(client, "SHOW WARNINGS")
            assert "server id 33" not in warning["Message"]
            assert "lease 'archive' needs it" in warning["Message"]
            await client.query("DROP BINLOG LEASE archive")
            await client.query(f"PURGE BINARY LOGS TO '{newest}'")
            assert "archive" not in str(await rows(client, "SHOW WARNINGS"))


async def test_reset_master_is_refused_while_somebody_reads(server, dba, store):
    dump = await dumping(server, "0-1-3", non_block=False)
    assert (await refused(dba, "RESET MASTER")).code == 4243
    await dump.client.close()
    while await rows(dba, "SHOW BINLOG READERS"):
        pass
    await dba.query("RESET MASTER")
    assert str(store.state()) == ""


async def test_files_of_another_program_are_not_changed(serve, sample):
    server = await serve(sample[0])
    async with await RawClient.logged_in(server) as client:
        for sql in ("FLUSH BINARY LOGS", "CREATE BINLOG LEASE x FOR ''", "RESET MASTER"):
            error = await refused(client, sql)
            assert isinstance(error, SqlError)
            assert (error.code, "--read-only" in error.message) == (1290, True)
