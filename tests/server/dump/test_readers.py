"""Who reads, how far behind, and what that keeps: SHOW BINLOG READERS, leases, refused purges."""

import time
from dataclasses import replace

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.protocol.reply import is_err, parse_err
from ibb.server.dump import groups_ahead
from ibb.server.dump.dump_batch import Place
from ibb.server.dump.groups_ahead import look_ahead
from ibb.server.dump.pacing import Pacing
from ibb.server.dump.readers import SENDING, SENT_ALL, Progress, bytes_between
from ibb.server.login.accounts import AccountBook, make_account
from ibb.storage.clock import SystemClock
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.position import Position
from ibb.storage.store import Store

from ...storage.events import TIMESTAMP, transaction
from ..conftest import SMALL, publish
from ..raw_client import RawClient, dumping
from ..waiting import until

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
    (session,) = [session for session in server.sessions if session.dump_server_id == 33]
    await until(lambda: session.is_idle_dump)  # the client may know sooner than the loop
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["User"], reader["Server_id"], reader["Gtid_pos"]) == ("repl", "33", "0-1-10")
    assert (reader["Groups_behind"], reader["Bytes_behind"]) == ("0", "0")
    assert (reader["Seconds_behind"], reader["State"]) == ("0", SENT_ALL)
    assert reader["Holds_from"] == "binlog-000000.ibb"
    assert reader["Ack_age"] is None
    await dump.client.close()


async def test_groups_are_counted_whatever_their_numbers(serve, tmp_path):
    """A domain may begin anywhere, and go on with lower numbers of another server."""
    with Store.open(tmp_path / "numbers", replace(SMALL, server_id=7)) as store:
        for seq in range(1_000_001, 1_000_012):
            publish(store, Gtid(0, 1, seq))
        for seq in (5, 6, 7):
            publish(store, Gtid(0, 2, seq))
        publish(store, Gtid(8, 1, 1 << 40))
        store.sync()
        server = await serve(store)
        server.pacing = Pacing(0, 0, SystemClock(), delay=1 << 31)
        async with await RawClient.logged_in(server) as dba:
            for start, ahead in (("", 15), ("0-1-1000011", 4), ("0-2-6", 2), ("8-1-5", 15)):
                dump = await dumping(server, start, server_id=33, non_block=False)
                await until(lambda: [one.oldest for one in [ahead_of(server)] if one])
                (reader,) = await rows(dba, "SHOW BINLOG READERS")
                assert (reader["Groups_behind"], reader["State"]) == (str(ahead), SENDING), start
                assert int(reader["Seconds_behind"]) == pytest.approx(age(), abs=60)
                await dump.client.close()
                await until(lambda: not server.has_dumps())


def age():
    """Return how old the groups are that tests publish, in seconds."""
    return time.time() - TIMESTAMP


def ahead_of(server):
    """Return what the one dump has ahead, None before it has looked at a group."""
    for session in server.sessions:
        progress = session.progress()
        if progress is not None and progress.at is not None and progress.at.unsent is not None:
            return look_ahead(server.history, progress, progress.at)
    return None


async def test_beyond_what_is_counted_numbers_say_how_many(serve, store, monkeypatch):
    monkeypatch.setattr(groups_ahead, "GROUPS_COUNTED_MAX", 3)
    publish(store, Gtid(5, 1, 70))
    store.sync()
    at = Place(Position(0, store.pages.header(0).page_size))
    ahead = look_ahead(store, Progress(at, GtidPosition(), 0, None), at)
    assert ahead.groups == 3 + 7 + 1
    assert ahead.oldest is not None


async def test_behind_a_place_that_was_purged_numbers_say_how_many(store):
    """What a connection has not taken yet is not held."""
    store.switch_file()
    publish(store, Gtid(0, 1, 11))
    store.switch_file()
    at = Place(Position(0, store.pages.header(0).page_size))
    store.purge_to("binlog-000001.ibb")
    had = GtidPosition.parse("0-1-4")
    assert look_ahead(store, Progress(at, had, 0, had), at).groups == 7


async def test_damage_ahead_leaves_the_numbers(store):
    at = Place(Position(0, store.pages.header(0).page_size + 3))  # no record begins there
    had = GtidPosition.parse("0-1-4")
    assert look_ahead(store, Progress(at, had, 0, had), at) == (at.position, 6, None)


async def test_a_lag_is_the_age_of_what_was_not_sent(server, store, dba):
    """Not of what was: behind a quiet day a reader is not a day behind."""
    dump = await dumping(server, "0-1-9", server_id=33, non_block=False)
    await dump.groups(1)
    server.pacing.delay = HOUR
    with store.begin() as group:
        gtid = Gtid(0, 1, 11)
        group.write(encode_gtid_event(gtid, int(time.time()) - 100, 0) + transaction("late"))
        group.commit(gtid)
    await until(lambda: ahead_of(server))
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["Gtid_pos"], reader["Groups_behind"]) == ("0-1-10", "1")
    assert 100 <= int(reader["Seconds_behind"]) < 160
    server.pacing.delay = 0
    await dump.groups(1)
    await until(lambda: next(server.readers()).bytes_behind == 0)
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["Groups_behind"], reader["Seconds_behind"]) == ("0", "0")
    await dump.client.close()


@pytest.mark.parametrize("tiny_groups_behind", [0, 3])
async def test_a_group_in_flight_is_not_sent(server, store, dba, tiny_groups_behind):
    """Not to its end: an operator would take a replica for whole that has nothing of it."""
    dump = await dumping(server, "0-1-7", server_id=33, non_block=False)
    await dump.groups(3)
    await until(lambda: next(server.readers()).bytes_behind == 0)
    size = 30 << 20
    publish(store, Gtid(0, 1, 11), size)
    for seq in range(12, 12 + tiny_groups_behind):
        publish(store, Gtid(0, 1, seq))
    store.sync()
    (dumping_session,) = [session for session in server.sessions if session._dump]
    await until(lambda: not dumping_session._dump._stream.between_groups)
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["Groups_behind"], reader["State"]) == (str(1 + tiny_groups_behind), SENDING)
    assert size < int(reader["Bytes_behind"]) < size * 1.1
    assert int(reader["Seconds_behind"]) == pytest.approx(age(), abs=60)
    assert reader["Gtid_pos"] == "0-1-10"
    await dump.client.close()


async def test_what_the_connection_does_not_take_is_not_sent(server, store):
    for seq in range(11, 211):
        publish(store, Gtid(0, 1, seq), 100_000)
    store.sync()
    dump = await dumping(server, "0-1-10", server_id=33, non_block=False)
    (session,) = [session for session in server.sessions if session.progress()]
    stream, sender = session._dump._stream, session._dump._session
    await until(lambda: session._connection.unsent)  # it reads nothing, so this is where it stays
    (line,) = server.readers()
    assert line.state != SENT_ALL
    taken = Gtid.parse(line.position).seq
    assert 10 <= taken < 210
    here = Position(parse_binlog_name(line.file), line.offset)
    assert sender.at.position <= here < stream._at.position
    assert line.groups_behind == 210 - taken
    await dump.client.close()


async def test_a_reader_that_is_kept_back_is_behind_in_groups_and_bytes(server, store, dba):
    server.pacing = Pacing(0, 0, SystemClock(), delay=1 << 31)  # nothing is ever old enough
    dump = await dumping(server, "0-1-4", server_id=33, non_block=False)
    (stream,) = [session._dump._stream for session in server.sessions if session._dump]
    await until(lambda: stream._held is not None)  # the first group that it has to keep back
    (reader,) = await rows(dba, "SHOW BINLOG READERS")
    assert (reader["Gtid_pos"], reader["Groups_behind"]) == ("0-1-4", "6")
    assert int(reader["Bytes_behind"]) > 0
    assert int(reader["Seconds_behind"]) == pytest.approx(age(), abs=60)
    assert reader["State"] == SENDING
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
        ("CREATE BINLOG LEASE x FOR '0-1-1' EXPIRE 1e300", 1105),
        ("CREATE BINLOG LEASE x FOR '0-1-1' EXPIRE NULL", 1105),
        ("CREATE BINLOG LEASE x FOR @unset", 1105),
        ("CREATE BINLOG LEASE x FOR NULL", 1105),
        ("CREATE BINLOG LEASE x FOR '0-1-999999'", 1105),
        ("CREATE OR REPLACE BINLOG LEASE taken FOR '0-2-1'", 1105),
    ],
)
async def test_leases_that_cannot_be_are_refused(dba, sql, code):
    await dba.query("CREATE BINLOG LEASE taken FOR '0-1-1'")
    assert (await refused(dba, sql)).code == code
    assert [one["Name"] for one in await rows(dba, "SHOW BINLOG LEASES")] == ["taken"]


async def test_one_that_is_too_old_is_shown_as_lapsed_before_anybody_purges(store, dba):
    store.leases.renew("spark", "0-1-1", age_limit=1e-6)
    (lease,) = await rows(dba, "SHOW BINLOG LEASES")
    assert (lease["Expires_after"], lease["Lapsed"], lease["Holds_from"]) == ("0", "Yes", None)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE BINLOG LEASE x FOR '0-1-1'",
        "DROP BINLOG LEASE x",
        "SHOW BINLOG LEASES",
        "SHOW BINLOG READERS",
        "SHOW BINLOG STORAGE",
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
            while "server id 33" in warning["Message"]:  # a thread lets go of what it held
                await client.query(f"PURGE BINARY LOGS TO '{newest}'")
                (warning,) = await rows(client, "SHOW WARNINGS")
            assert await rows(client, "SHOW BINLOG READERS") == []
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


async def test_files_of_another_program_are_not_changed(sample, serve):
    server = await serve(sample[0])
    async with await RawClient.logged_in(server) as client:
        for sql in ("FLUSH BINARY LOGS", "CREATE BINLOG LEASE x FOR ''", "RESET MASTER"):
            error = await refused(client, sql)
            assert isinstance(error, SqlError)
            assert (error.code, "--read-only" in error.message) == (1290, True)
