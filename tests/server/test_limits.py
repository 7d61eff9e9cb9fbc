"""Limits of connections and of failed logins, and what clients beyond them are told."""

import asyncio
import os
from contextlib import AsyncExitStack

import pytest

from ibb.protocol.handshake import Greeting
from ibb.protocol.reply import is_ok, parse_err
from ibb.server.connections import connection
from ibb.server.login import login_guard
from ibb.server.login.accounts import make_account
from ibb.server.login.login_guard import (
    ADDRESSES_MAX,
    BLOCK_SECONDS_MAX,
    FORGET_SECONDS,
    NOBODY,
    USERS_MAX,
    LoginGuard,
    address_key,
)

from .raw_client import RawClient, until_sessions


@pytest.fixture
async def clients():
    """Hold connections open until the test ends."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def long_blocks(monkeypatch):
    """Let a block outlast the test, however slow the machine."""
    monkeypatch.setattr(login_guard, "BLOCK_SECONDS_MIN", 60.0)


async def log_in(server, clients, user="repl", password="secret"):
    """Connect, and return the answer to the login or to the connection."""
    client = await clients.enter_async_context(await RawClient.connect(server.address))
    first = await client.packet()
    if first[:1] == b"\xff":
        return first
    client.greeting = Greeting.parse(first)
    return await client.log_in(user, password)


async def test_an_account_has_its_own_limit_and_others_go_on(serve, store, accounts, clients):
    accounts.add(make_account("few", "%", "secret", max_connections=2))
    server = await serve(store)
    assert is_ok(await log_in(server, clients, "few"))
    assert is_ok(await log_in(server, clients, "few"))
    error = parse_err(await log_in(server, clients, "few"))
    assert (error.code, error.sqlstate) == (1226, "42000")
    assert error.message == (
        "User 'few' has exceeded the 'max_user_connections' resource (current value: 2)"
    )
    assert is_ok(await log_in(server, clients))
    assert not server.guard.is_blocked("127.0.0.1")


async def test_all_accounts_have_one_limit_but_administrators(serve, store, clients):
    server = await serve(store, max_user_connections=1)
    assert is_ok(await log_in(server, clients))
    error = parse_err(await log_in(server, clients))
    assert (error.code, error.sqlstate) == (1203, "42000")
    assert error.message == (
        "User repl already has more than 'max_user_connections' active connections"
    )
    for _ in range(3):
        assert is_ok(await log_in(server, clients, "admin", "mighty"))


async def test_an_address_has_a_limit_and_unix_sockets_have_none(serve, store, clients, tmp_path):
    server = await serve(store, max_connections_per_address=2, socket=str(tmp_path / "s"))
    assert is_ok(await log_in(server, clients))
    assert is_ok(await log_in(server, clients))
    error = parse_err(await log_in(server, clients))
    assert (error.code, error.message) == (1040, "Too many connections from 127.0.0.1")
    for _ in range(3):
        client = await clients.enter_async_context(await RawClient.connect(str(tmp_path / "s")))
        assert is_ok(await client.log_in())


async def test_strangers_cannot_fill_the_server_from_one_address(serve, store, clients):
    server = await serve(store, max_logins_per_address=3)
    for _ in range(5):
        assert is_ok(await log_in(server, clients))
    strangers = [await RawClient.connect(server.address) for _ in range(3)]
    for stranger in strangers:
        await stranger.packet()
    assert parse_err(await log_in(server, clients)).code == 1040
    await strangers[0].close()
    await until_sessions(server, 7)
    assert is_ok(await log_in(server, clients))
    for stranger in strangers:
        await stranger.close()


@pytest.mark.usefixtures("long_blocks")
async def test_failed_logins_block_an_address_for_a_while(serve, store, clients, tmp_path):
    server = await serve(store, max_connect_errors=3, socket=str(tmp_path / "s"))
    for _ in range(2):
        assert parse_err(await log_in(server, clients, password="wrong")).code == 1045
    assert is_ok(await log_in(server, clients))  # and the count begins anew
    for _ in range(3):
        assert parse_err(await log_in(server, clients, password="wrong")).code == 1045
    answer = await log_in(server, clients)
    error = parse_err(answer)
    assert error.code == 1129
    assert error.message == (
        "Host 'localhost' is blocked because of many connection errors; unblock with "
        "'mariadb-admin flush-hosts'"
    )
    assert b"#" not in answer  # in place of the greeting there is no sqlstate
    admin = await clients.enter_async_context(await RawClient.connect(server.config.socket))
    assert is_ok(await admin.log_in("admin", "mighty"))  # on the socket it is somebody else
    await admin.query("FLUSH HOSTS")
    assert is_ok(await log_in(server, clients))


@pytest.mark.usefixtures("long_blocks")
async def test_a_login_forgives_nobody_elses_failures(serve, store, clients):
    server = await serve(store, max_connect_errors=5)
    answers = []
    for number in range(7):
        answers.append(await log_in(server, clients, "repl", f"guess {number}"))
        assert is_ok(await log_in(server, clients, "watcher", "looking")) == (number < 4)
    assert [parse_err(answer).code for answer in answers] == [1045] * 5 + [1129] * 2


@pytest.mark.usefixtures("long_blocks")
async def test_users_of_the_system_block_only_themselves_on_a_unix_socket(
    serve, store, clients, tmp_path, monkeypatch
):
    uid = os.getuid()
    monkeypatch.setattr(connection, "peer_uid", lambda _: uid)
    path = str(tmp_path / "s")
    await serve(store, max_connect_errors=3, max_logins_per_address=4, socket=path)
    for _ in range(3):
        client = await clients.enter_async_context(await RawClient.connect(path))
        assert parse_err(await client.log_in("admin", "wrong")).code == 1045
    client = await clients.enter_async_context(await RawClient.connect(path))
    assert parse_err(await client.packet()).code == 1129
    uid += 1
    for _ in range(4):
        client = await clients.enter_async_context(await RawClient.connect(path))
        await client.read_greeting()
    another = await clients.enter_async_context(await RawClient.connect(path))
    error = parse_err(await another.packet())
    assert (error.code, error.message) == (
        1040,
        "Too many connections from this user of the system",
    )
    assert is_ok(await client.log_in("admin", "mighty"))


async def test_a_unix_socket_tells_who_is_at_its_other_end(serve, store, clients, tmp_path):
    path = str(tmp_path / "s")
    server = await serve(store, socket=path)
    client = await clients.enter_async_context(await RawClient.connect(path))
    assert is_ok(await client.log_in())
    (session,) = server.sessions
    assert session.limit_key == f"unix:{os.getuid()}"


@pytest.mark.usefixtures("long_blocks")
async def test_logins_begun_before_the_block_are_blocked_too(serve, store, clients):
    server = await serve(store, max_connect_errors=1)
    early = await clients.enter_async_context(await RawClient.connect(server.address))
    await early.read_greeting()
    assert parse_err(await log_in(server, clients, password="wrong")).code == 1045
    assert parse_err(await early.log_in()).code == 1129


@pytest.mark.usefixtures("long_blocks")
async def test_garbage_counts_as_a_failed_login_and_looking_in_does_not(serve, store, clients):
    server = await serve(store, max_connect_errors=2)
    for _ in range(5):
        async with await RawClient.connect(server.address) as client:
            await client.packet()
    await until_sessions(server, 0)
    assert is_ok(await log_in(server, clients))
    for _ in range(2):
        async with await RawClient.connect(server.address) as client:
            await client.packet()
            client.writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert parse_err(await client.packet()).code == 1156
    await until_sessions(server, 1)
    assert parse_err(await log_in(server, clients)).code == 1129


async def test_a_large_packet_before_the_login_is_refused_unread(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.packet()
        client.writer.write((17 << 10).to_bytes(3, "little") + b"\1" + bytes(100))
        assert parse_err(await client.packet()).code == 1153
        async with asyncio.timeout(10):
            assert await client.packet() is None


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_the_block_doubles_up_to_its_limit_and_is_forgotten():
    clock = Clock()
    guard = LoginGuard(2, clock)
    assert guard.failed("a", "u") == 0.0
    assert not guard.is_blocked("a")
    seconds = [guard.failed("a", "u") for _ in range(12)]
    assert seconds == [min(1.0 * 2**n, BLOCK_SECONDS_MAX) for n in range(12)]
    assert guard.is_blocked("a")
    assert not guard.is_blocked("b")
    clock.now += BLOCK_SECONDS_MAX
    assert not guard.is_blocked("a")
    assert guard.failed("a", "u") == BLOCK_SECONDS_MAX
    clock.now += FORGET_SECONDS + 1
    assert guard.failed("a", "u") == 0.0


def test_a_success_forgives_its_own_user_and_broken_handshakes():
    guard = LoginGuard(4, Clock())
    for user in ("known", "known", NOBODY):
        assert guard.failed("a", user) == 0.0
    guard.succeeded("a", "known")
    for _ in range(3):
        assert guard.failed("a", "guessed") == 0.0
    guard.succeeded("a", "known")
    assert guard.failed("a", "guessed") == 1.0
    guard.succeeded("a", "guessed")
    assert not guard.is_blocked("a")


def test_only_so_many_users_of_an_address_are_told_apart():
    guard = LoginGuard(100 * USERS_MAX, Clock())
    for number in range(99 * USERS_MAX):
        assert guard.failed("a", str(number)) == 0.0
    guard.succeeded("a", str(USERS_MAX))  # the first that was not told apart
    assert len(guard._records["a"].failures) == USERS_MAX + 1
    assert [guard.failed("a", "x") > 0 for _ in range(USERS_MAX)] == [False] * 15 + [True]


def test_only_so_many_addresses_are_remembered():
    guard = LoginGuard(1, Clock())
    for number in range(ADDRESSES_MAX + 1):
        guard.failed(str(number), "u")
    assert not guard.is_blocked("0")
    assert guard.is_blocked("1")
    assert guard.is_blocked(str(ADDRESSES_MAX))


def test_ipv4_counts_by_address_also_at_a_socket_of_both():
    assert address_key("::ffff:192.0.2.7") == address_key("192.0.2.7") == "192.0.2.7"


def test_ipv6_counts_by_site():
    assert address_key("2001:db8:0:7::1") == address_key("2001:db8:0:7:ffff::2")
    assert address_key("2001:db8:0:7::1") != address_key("2001:db8:0:8::1")
    assert address_key("10.0.0.1") == "10.0.0.1"
