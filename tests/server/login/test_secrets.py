"""No password, hash or account in the log, an error for others, or the list of processes."""

import asyncio
import io
import re

import pytest
import structlog

from ibb.protocol.command import Query
from ibb.protocol.packet import frame
from ibb.server.config import Config, ConfigError
from ibb.server.config_file import config_from, read_config_file
from ibb.server.log import set_up_log
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.relay.relay import Relay
from ibb.server.relay.upstream import Upstream, UpstreamAddress
from ibb.server.server import Server
from ibb.storage.store import Store

from ..conftest import SMALL
from ..raw_client import RawClient, until_sessions
from ..waiting import until

PASSWORD = "xyzzy-plugh"
USERS = ("quuxuser", "corgeuser", "fullaccount", "graultuser")
METHODS = ("mysql_native_password", "ed25519", "parsec", "caching_sha2_password")


@pytest.fixture
def log():
    """Log everything there is, and return a function that returns what was logged."""
    before = structlog.get_config()
    set_up_log(level="debug", shape="text")
    written = io.StringIO()
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(file=written))
    yield written.getvalue
    structlog.configure(**before)


@pytest.fixture
async def guarded(store, log):
    book = AccountBook([make_account(USERS[0], "%", PASSWORD, ["ALL PRIVILEGES"], methods=METHODS)])
    book.add(make_account(USERS[1], "%", PASSWORD, require="SSL"))
    book.add(make_account(USERS[2], "%", PASSWORD, max_connections=1))
    server = Server(store, config=Config(listen="127.0.0.1:0", server_id=99), accounts=book)
    await server.start()
    yield server
    await server.stop()


def assert_clean(server, text):
    hashes = [kept for account in server.accounts for _, kept in account.auth]
    for secret in (PASSWORD, *USERS, *hashes):
        assert secret not in text, secret


async def test_nothing_that_clients_do_writes_a_secret_into_the_log(guarded, log):
    server = guarded
    for user, password in (
        (USERS[0], "wrong"),
        (USERS[1], PASSWORD),
        (USERS[3], PASSWORD),
        (PASSWORD, "typed into the wrong field"),
    ):
        async with await RawClient.connect(server.address) as client:
            await client.log_in(user, password, attributes={"_client_name": PASSWORD})
            answers = frame(b"w" * 64, client.seq + 1) + frame(PASSWORD.encode(), client.seq + 3)
            client.writer.write(answers)
            if client.writer.can_write_eof() and not client.writer.is_closing():
                client.writer.write_eof()
            while await client.packet() is not None:
                pass
    async with (
        await RawClient.logged_in(server, USERS[2], PASSWORD),
        await RawClient.connect(server.address) as client,
    ):
        await client.log_in(USERS[2], PASSWORD)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        client.writer.write(frame(f"{USERS[3]} {PASSWORD}".encode(), 1))
        assert await client.packet() is not None
    async with await RawClient.logged_in(server, USERS[0], PASSWORD) as client:
        for sql in (
            f"SET PASSWORD = PASSWORD('{PASSWORD}')",
            f"CREATE USER {USERS[3]} IDENTIFIED BY '{PASSWORD}'",
            f"SELECT '{PASSWORD}' FROM {USERS[0]}.t",
            f"CHANGE MASTER TO MASTER_USER='{USERS[3]}', MASTER_PASSWORD='{PASSWORD}', oops",
            "FLUSH BINARY LOGS",
            "PURGE BINARY LOGS BEFORE '2001-01-01'",
            "RESET MASTER",
            "SHOW PROCESSLIST",
        ):
            await client.send(Query(sql).encode())
            await client.packet()
        client.writer.write(frame(b"\x11" + USERS[3].encode() + b"\0\x05wrong\0", 0))
        assert await client.packet() is not None
    await until_sessions(server, 0)
    text = log()
    assert text.count("client_refused") >= 6
    assert "binlog_reset" in text
    assert_clean(server, text)


async def test_an_upstream_that_refuses_our_account_is_logged_without_it(guarded, log, tmp_path):
    async def no_sleep(seconds):
        waited.append(seconds)
        await asyncio.sleep(0)

    for user, password, code in ((USERS[2], "wrong", 1045), (USERS[2], PASSWORD, 1226)):
        waited = []
        address = UpstreamAddress("127.0.0.1", guarded.port(), user, password)
        holding = await Upstream.connect(address) if code == 1226 else None
        with Store.open(tmp_path / f"relay{code}", SMALL) as target:
            relay = Relay(
                target, address, config=Config(), server_id=5, port=lambda: 1, sleep=no_sleep
            )
            task = asyncio.create_task(relay.run())
            await until(lambda waited=waited: waited)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert user in str(relay.last_error)
        if holding is not None:
            await holding.close()
        text = log()
        assert f"{code} (" in text
        assert_clean(guarded, text)


async def test_a_statement_with_a_password_is_nobody_elses_to_see(guarded, monkeypatch):
    seen = []

    async def upstream_command(_):
        seen.extend(session.runner.running for session in guarded.sessions)
        return []

    monkeypatch.setattr(guarded, "upstream_command", upstream_command)
    async with await RawClient.logged_in(guarded, USERS[0], PASSWORD) as client:
        await client.query(f"CHANGE MASTER TO MASTER_PASSWORD='{PASSWORD}'")
    assert seen == ["CHANGE MASTER"]


@pytest.mark.parametrize(
    "url",
    [f"mariadb://u:{PASSWORD}@host", f"mariadb://u:{PASSWORD}/1@host", f"mariadb://u@h:{PASSWORD}"],
)
def test_an_upstream_with_a_password_is_refused_without_showing_it(url):
    with pytest.raises(ConfigError) as refused:
        UpstreamAddress.parse(url, "")
    assert PASSWORD not in str(refused.value)


def test_settings_of_the_wrong_kind_show_no_password(tmp_path):
    with pytest.raises(ConfigError, match="upstream_password must be text") as refused:
        config_from({"upstream_password": 123456})
    assert "123456" not in str(refused.value)
    path = tmp_path / "ibb.toml"
    path.write_text(f"upstream_password = {PASSWORD}\n")
    with pytest.raises(ConfigError) as refused:
        read_config_file(str(path))
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize("damage", ["", "host = 5\n", "[account.auth]\n", "grants = ['no']\n", '"'])
def test_a_broken_accounts_file_is_named_without_what_is_in_it(tmp_path, damage):
    account = make_account(USERS[0], "%", PASSWORD, methods=METHODS)
    path = tmp_path / "accounts.toml"
    AccountBook([account]).save(str(path))
    whole = path.read_text()
    hashes = [kept for _, kept in account.auth]
    broken = whole + damage if damage else whole.replace("= '", "= 'x", 1).replace('= "', '= "x', 3)
    path.write_text(re.sub(r"(?m)^host.*\n", "", broken, count=1) if "host" in damage else broken)
    with pytest.raises(ConfigError, match=re.escape(str(path))) as refused:
        AccountBook.load(str(path))
    for secret in (USERS[0], *hashes):
        assert secret not in str(refused.value)
