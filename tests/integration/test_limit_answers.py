"""What clients beyond a limit are told, byte by byte, by a real server and by ours."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from ibb.protocol.handshake import Greeting
from ibb.protocol.reply import is_ok
from ibb.server.config import Config
from ibb.server.login import login_guard
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.store import Store

from ..server.conftest import SMALL
from ..server.raw_client import RawClient

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("logins")]

ROOM = 10  # connections: the least that a real server can be told
FAILURES = 3  # handshakes that fail before an address is blocked
PASSWORD = "lim1t-pw"
LOOPBACK = "127.0.0.1"
GUESSING = "127.0.0.3"
FOREIGN = "127.0.0.2"  # real servers block no address but those behind the host cache


@pytest.fixture(scope="module")
def primary(rig, mariadb_10):
    primary = rig.primary(
        mariadb_10,
        f"--max-connections={ROOM}",
        f"--max-connect-errors={FAILURES}",
        "--max-user-connections=2",
        "--bind-address=0.0.0.0",
        "--skip-name-resolve=0",
    )
    primary.run(
        "SET sql_log_bin = 0",
        "DROP USER IF EXISTS ''@localhost",
        f"CREATE USER few@'%' IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS 1",
        f"CREATE USER many@'%' IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS 100",
        f"CREATE USER plain@'%' IDENTIFIED BY '{PASSWORD}'",
        f"CREATE USER chief@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT CONNECTION ADMIN ON *.* TO chief@'%'",
        f"CREATE USER boss@'%' IDENTIFIED BY '{PASSWORD}' WITH MAX_USER_CONNECTIONS 1",
        "GRANT CONNECTION ADMIN ON *.* TO boss@'%'",
    )
    yield primary
    primary.stop()


@pytest.fixture
async def ports(primary, tmp_path):
    """Return the ports of the real server and of ours, with the same accounts and limits."""
    book = AccountBook(
        [
            make_account("few", "%", PASSWORD, max_connections=1),
            make_account("many", "%", PASSWORD, max_connections=100),
            make_account("plain", "%", PASSWORD),
            make_account("chief", "%", PASSWORD, ["CONNECTION ADMIN"]),
            make_account("boss", "%", PASSWORD, ["CONNECTION ADMIN"], max_connections=1),
        ]
    )
    config = Config(
        listen="0.0.0.0:0",
        server_id=9,
        max_connections=ROOM,
        max_user_connections=2,
        max_connect_errors=FAILURES,
    )
    with Store.open(tmp_path / "store", replace(SMALL, server_id=9)) as store:
        server = Server(store, config=config, accounts=book)
        await server.start()
        yield primary.port, server.port()
        await server.stop()


async def answers(port, logins, *, address=LOOPBACK):
    """Log in as each of *logins* in turn, keep every connection, and return what was answered."""
    told = []
    async with AsyncExitStack() as stack:
        for user, password in logins:
            client = RawClient(
                *await asyncio.open_connection(address, port, local_addr=(address, 0))
            )
            await stack.enter_async_context(client)
            first = await client.packet()
            if first[:1] != b"\x0a":
                told.append((client.seq, first, await client.packet()))
                continue
            client.greeting = Greeting.parse(first)
            answer = await client.log_in(user, password)
            told.append("welcome" if is_ok(answer) else (client.seq, answer))
    return told


@pytest.mark.parametrize(
    "logins",
    [
        [("plain", "wrong"), ("nobody", PASSWORD)],
        [("plain", ""), ("nobody", "")],
        [("few", PASSWORD)] * 2,
        [("plain", PASSWORD)] * 3,
        [*[("chief", PASSWORD)] * 3, *[("boss", PASSWORD)] * 2],
    ],
    ids=["denied", "without password", "of the account", "of all accounts", "of administrators"],
)
async def test_logins_are_refused_in_the_same_words(ports, logins):
    real, ours = [await answers(port, logins) for port in ports]
    assert ours == real
    assert "welcome" not in ours[-1:]


async def test_a_server_that_is_full_has_one_more_place_for_an_administrator(ports):
    told = []
    for port in ports:
        welcome = [("many", PASSWORD)] * ROOM
        told.append((await answers(port, [*welcome, ("many", PASSWORD)]))[ROOM:])
        told.append((await answers(port, [*welcome, *[("chief", PASSWORD)] * 2]))[ROOM:])
    assert told[:2] == told[2:]
    assert told[1][0] == "welcome"


async def test_only_ours_blocks_an_address_for_wrong_passwords(ports, monkeypatch):
    """The difference that docs/accounts.md names: real servers let passwords be guessed."""
    monkeypatch.setattr(login_guard, "BLOCK_SECONDS_MIN", 60.0)
    told = []
    for port in ports:
        told.append(await answers(port, [("many", "wrong")] * FAILURES, address=GUESSING))
        told.append(await answers(port, [("many", PASSWORD)], address=GUESSING))
    assert told[2] == told[0]
    assert told[1] == ["welcome"]
    assert told[3][0][1][:3] == b"\xff" + (1129).to_bytes(2, "little")


async def test_an_address_that_fails_too_often_is_blocked_in_the_same_words(ports):
    told = []
    for port in ports:
        for _ in range(FAILURES):
            client = RawClient(
                *await asyncio.open_connection(FOREIGN, port, local_addr=(FOREIGN, 0))
            )
            async with client:
                await client.packet()
                client.writer.write(b"\x04\x00\x00\x01junk")
                await client.packet()
        told += await answers(port, [("many", PASSWORD)], address=FOREIGN)
    assert told[0] == told[1]
    assert told[0][1][:3] == b"\xff" + (1129).to_bytes(2, "little")
