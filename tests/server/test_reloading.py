"""SIGHUP: what a running server takes, what waits, and that errors change nothing."""

from dataclasses import fields, replace
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.reloading import RELOADED, Reloading


@pytest.fixture
def told():
    """Return the lines of the log, as they come."""
    with capture_logs() as lines:
        yield lines


def line_of(told, event):
    (line,) = [line for line in told if line["event"] == event]
    return line


async def test_settings_that_can_be_taken_are_and_the_others_are_named(serve, store, told):
    server = await serve(store)
    now = replace(
        server.config,
        max_connections=77,
        dump_rate=1 << 20,
        expire_logs_days=2.5,
        page_size=8192,
        dump_threads=9,
    )
    assert await Reloading(server, lambda: now).reload()
    assert (server.config.max_connections, server.pacing.rate) == (77, 1 << 20)
    assert store.purger.settings.binlog_expire_logs_seconds == 216_000
    assert server.config.page_size != 8192
    assert line_of(told, "settings_need_restart")["settings"] == ["dump_threads", "page_size"]
    assert line_of(told, "reloaded")["settings"] == [
        "dump_rate",
        "expire_logs_days",
        "max_connections",
    ]


async def test_what_waits_for_a_restart_is_named_at_each_reload_until_it_is_taken_back(
    serve, store, told
):
    server = await serve(store)
    begun_with = server.config
    written = [replace(begun_with, page_size=8192)]
    reloading = Reloading(server, lambda: written[0])
    for _ in range(2):
        await reloading.reload()
        assert line_of(told, "settings_need_restart")["settings"] == ["page_size"]
        told.clear()
    written[0] = begun_with
    await reloading.reload()
    assert [line["event"] for line in told] == ["reloaded"]


async def test_default_means_what_is_written_now_and_set_global_stays(serve, store):
    server = await serve(store)
    written = [replace(server.config, wait_timeout=100.0)]
    reloading = Reloading(server, lambda: written[0])
    await reloading.reload()
    server.set_global("max_connections", 55)
    written[0] = replace(written[0], max_binlog_total_size=1 << 30)
    await reloading.reload()
    assert server.config.max_connections == 55
    server.set_global("wait_timeout", 5)
    server.reset_global("wait_timeout")
    assert server.config.wait_timeout == 100.0
    server.set_global("expire_logs_days", Decimal(3))
    server.reset_global("max_binlog_total_size")
    assert store.purger.settings.max_binlog_total_size == 1 << 30


@pytest.mark.parametrize("broken", ["accounts", "ssl_cert", "read"])
async def test_what_is_broken_changes_nothing(serve, store, told, tmp_path, broken):
    server = await serve(store)
    before, accounts, tls = server.config, server.accounts, server.tls
    missing = str(tmp_path / "missing")
    changes = {
        "accounts": {"accounts": missing},
        "ssl_cert": {"ssl_cert": missing, "ssl_key": missing},
        "read": {"max_connections": 0},
    }
    reloading = Reloading(
        server, lambda: replace(before, max_user_connections=3, **changes[broken])
    )
    assert not await reloading.reload()
    assert (server.config, server.accounts, server.tls) == (before, accounts, tls)
    assert line_of(told, "reload_failed")


async def test_another_accounts_file_is_taken(serve, store, tmp_path):
    server = await serve(store)
    path = str(tmp_path / "accounts.toml")
    AccountBook([make_account("new", "%", "x")]).save(path)
    await Reloading(server, lambda: replace(server.config, accounts=path)).reload()
    assert [account.user for account in server.accounts] == ["new"]


def test_what_is_reloaded_are_settings():
    assert {setting.name for setting in fields(Config)} >= RELOADED
