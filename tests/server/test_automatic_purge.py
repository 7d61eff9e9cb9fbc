"""Files that go by themselves: settings that change, what holds back, what the log says."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server import automatic_purge
from ibb.server.automatic_purge import AutomaticPurge
from ibb.server.config import Config, ConfigError
from ibb.server.config_file import config_from
from ibb.server.dump.dump_lease import lease_name, logged_name
from ibb.server.login.accounts import AccountBook, make_account
from ibb.storage.leases import Renewal
from ibb.storage.purge import TOO_FEW_REPLICAS, PurgeSettings
from ibb.storage.store import Store

from .conftest import SMALL, publish
from .raw_client import RawClient, dumping
from .waiting import until

FILE = 64 << 10  # bytes
EXPIRY = "SELECT @@binlog_expire_logs_seconds, @@expire_logs_days"


@pytest.fixture
def accounts():
    return AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])


@pytest.fixture
def background():
    """Tell whether files are made by a thread, which purges behind that, too."""
    return True


@pytest.fixture
def store(tmp_path, background):
    """A store of five files, a group in each."""
    options = replace(
        SMALL,
        server_id=7,
        max_binlog_size=FILE,
        page_size=512,
        state_interval=1024,
        background=background,
    )
    with Store.open(tmp_path / "files", options) as opened:
        for seq in range(1, 6):
            publish(opened, Gtid(0, 1, seq))
            opened.switch_file()
        yield opened


def names(store):
    return [file.name for file in store.files()]


def events(lines, name):
    return [line for line in lines if line["event"] == name]


async def test_days_and_seconds_are_one_setting(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as dba:
        for sql, shown in (
            ("binlog_expire_logs_seconds = 86400", ("86400", "1.000000")),
            ("binlog_expire_logs_seconds = 8000000", ("8000000", "92.592593")),
            ("expire_logs_days = 45.5", ("3931200", "45.500000")),
            ("expire_logs_days = 98.123456789", ("8477866", "98.123457")),
            ("binlog_expire_logs_seconds = DEFAULT", ("0", "0.000000")),
            ("expire_logs_days = 3", ("259200", "3.000000")),
            ("expire_logs_days = DEFAULT", ("0", "0.000000")),
        ):
            await dba.query(f"SET GLOBAL {sql}")
            assert await dba.rows(EXPIRY) == [shown], sql
        await dba.query("SET GLOBAL slave_connections_needed_for_purge = 5")
        assert await dba.rows("SHOW VARIABLES LIKE 'slave_conn%'") == [
            ("slave_connections_needed_for_purge", "5")
        ]
    assert len(names(store)) >= 5


@pytest.mark.parametrize(
    "name",
    [
        "binlog_expire_logs_seconds",
        "expire_logs_days",
        "max_binlog_total_size",
        "slave_connections_needed_for_purge",
    ],
)
def test_default_is_what_was_configured(store, name):
    configured = PurgeSettings(43_200, 1 << 40, 7)
    store.purger.settings = configured
    purging = AutomaticPurge(store, days=0.5)
    before = purging.value(name)
    purging.set(name, Decimal(9) if name == "expire_logs_days" else 9 << 20)
    assert store.purger.settings != configured
    purging.reset(name)
    assert (store.purger.settings, purging.value(name)) == (configured, before)
    assert purging.value("expire_logs_days") == Decimal("0.5")


async def test_a_setting_counts_at_once_and_the_log_names_what_went(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as dba:
        with capture_logs() as lines:
            await dba.query("SET GLOBAL slave_connections_needed_for_purge = 0")
            size = sum(file.size for file in store.files()[2:])
            freed = sum(file.size for file in store.files()[:2])
            await dba.query(f"SET GLOBAL max_binlog_total_size = {size}")
        (line,) = events(lines, "binlog_purged_automatically")
        assert line["files"] == ["binlog-000000.ibb", "binlog-000001.ibb"]
        assert (line["removed"], line["bytes_freed"]) == (2, freed)
        assert names(store)[0] == "binlog-000002.ibb"


async def test_what_holds_a_file_back_is_logged_once_and_what_lets_it_go_is_seen(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-1", server_id=33, non_block=False)
    with capture_logs() as lines:
        store.leases.renew("spark", "0-1-3")
        server.purging.set("slave_connections_needed_for_purge", 2)
        server.purging.set("max_binlog_total_size", 1)
        for _ in range(3):
            server.purging._look()
        (line,) = events(lines, "purge_held_back")
        assert line["file"] == "binlog-000000.ibb"
        assert TOO_FEW_REPLICAS in line["reasons"]
        await dump.groups(4)
        await until(lambda: next(server.readers()).position == "0-1-5")
        server.purging.set("slave_connections_needed_for_purge", 1)
        await until(lambda: server.purging._look() or names(store)[0] == "binlog-000003.ibb")
        for _ in range(3):
            server.purging._look()
        held = [line for line in events(lines, "purge_held_back") if "000003" in line["file"]]
        told = [reason for line in held for reason in line["reasons"]]
        assert told.count("lease 'spark' needs it") == 1
        assert len(told) == len(set(told))
    await dump.client.close()


async def test_leases_lapse_without_a_purge_and_the_log_has_no_account(serve, store):
    server = await serve(store)
    name = lease_name("someone", 33)
    store.leases.renew_all([Renewal(name, GtidPosition(), 1e-6, "someone")])
    store.leases.renew("spark", "", age_limit=1e-6)
    with capture_logs() as lines:
        server.purging._look()
    assert [line["lease"] for line in events(lines, "lease_lapsed")] == ["replica 33", "spark"]
    assert [lease.name for lease in store.leases.all()] == ["spark"]
    reason = logged_name(f"lease '{name}' needs it")
    assert reason == "lease 'replica 33' needs it"


async def test_a_setting_counts_though_another_purge_is_at_work(serve, store):
    """The other one had begun by the setting of before."""
    server = await serve(store)
    server.purging.set("max_binlog_total_size", 1)
    assert names(store)[0] == "binlog-000000.ibb", "no replica has got past it"
    with store.purger.kept_out():
        change = asyncio.create_task(
            asyncio.to_thread(server.purging.set, "slave_connections_needed_for_purge", 0)
        )
        await until(lambda: store.purger.settings.slave_connections_needed_for_purge == 0)
        assert names(store)[0] == "binlog-000000.ibb"
    await change
    assert names(store)[0] > "binlog-000000.ibb"


@pytest.mark.parametrize("background", [False])
async def test_what_went_while_the_store_was_opened_is_logged_too(serve, store):
    store.purger.settings = PurgeSettings(0, 1, 0)
    store.purger.purge_automatically()
    with capture_logs() as lines:
        await serve(store)
    assert len(events(lines, "binlog_purged_automatically")) == 1


async def test_a_look_that_fails_is_logged_and_the_next_one_comes(serve, store, monkeypatch):
    looks = []

    def look(_):
        looks.append(None)
        raise RuntimeError("as if")

    monkeypatch.setattr(automatic_purge, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(AutomaticPurge, "_look", look)
    with capture_logs() as lines:
        await serve(store)
        await until(lambda: len(looks) > 2)
    assert len(events(lines, "purge_look_failed")) > 1


async def test_files_of_another_program_never_go(sample, serve):
    server = await serve(sample[0])
    async with await RawClient.logged_in(server) as dba:
        for name in ("max_binlog_total_size", "expire_logs_days"):
            with pytest.raises(SqlError, match="--read-only") as caught:
                await dba.query(f"SET GLOBAL {name} = 1")
            assert caught.value.code == 1290
        assert await dba.rows(EXPIRY) == [("0", "0.000000")]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"expire_logs_days": 1.0, "binlog_expire_logs_seconds": 60}, "say the same"),
        ({"expire_logs_days": 100.0}, "expire_logs_days must be 0 to 99"),
        ({"binlog_expire_logs_seconds": -1}, "binlog_expire_logs_seconds must be 0 to 8553600"),
        ({"max_binlog_total_size": -1}, "max_binlog_total_size must be 0 to"),
        ({"slave_connections_needed_for_purge": -1}, "slave_connections_needed_for_purge must be"),
        ({"read_only": True, "max_binlog_total_size": 1}, "the files are another program's"),
    ],
)
def test_settings_without_sense_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        Config(**settings)


def test_days_are_configured_as_in_mariadb():
    assert config_from({"expire_logs_days": 0.5}).expire_seconds == 43_200
    assert config_from({"expire_logs_days": 2}).expire_seconds == 172_800
    assert config_from({"max_binlog_total_size": "10G"}).max_binlog_total_size == 10 << 30
