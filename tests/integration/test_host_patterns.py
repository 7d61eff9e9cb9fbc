"""Which account a client gets, by where it comes from: a real server and ours, side by side."""

import asyncio
import random

import pytest

from ibb.protocol.reply import is_ok, parse_err
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.store import Store

from ..server.conftest import SMALL
from ..server.raw_client import RawClient

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("logins")]

PASSWORD = "wh3re-from"
ADDRESSES = (
    *("127.0.0.1", "127.0.0.2", "127.0.0.12", "127.1.2.3"),
    *("127.1.2.33", "127.1.9.9", "127.200.0.2"),
)
WILD = (
    *("%", "127.%", "127.0.%", "127.0.0.%", "127.1.%", "127.1.2.%", "%.1", "%.2.3", "%2%", "1%3"),
    *("127.0.0._", "127.0.0.1_", "127.1.2._", "127._.2.3", "_27.0.0.1", "12_.%.2.3", "%.%.%._"),
    *("local%", "l%", "%localhost%", "localho__", "127.0.0.\\_", "127.0.0.1\\%", "::%"),
)
# Real servers do not order these among themselves, and those that match one client are left out.
LITERAL = ("127.0.0.2", "127.0.0.12", "127.1.2.3", "10.0.0.1", "::1")
MASKED = ("127.200.0.0/255.255.0.0", "127.1.9.0/255.255.255.0", "127.0.0.0/255.255.255.255")
SEED = 5


def samples():
    """Return patterns alone, then some of them together, of which the most specific counts."""
    chosen = random.Random(SEED)
    every = (*WILD, *LITERAL, *MASKED)
    alone = [[pattern] for pattern in (*every, "localhost", "127.0.0.1", "127.0.0.0/255.0.0.0")]
    return alone + [chosen.sample(every, 5) for _ in range(60)]


@pytest.fixture(scope="module")
def primary(rig, mariadb_10):
    primary = rig.primary(mariadb_10, "--bind-address=0.0.0.0", "--skip-name-resolve=0")
    primary.run("SET sql_log_bin = 0", "DROP USER IF EXISTS ''@localhost")
    yield primary
    primary.stop()


@pytest.fixture
async def server(tmp_path):
    config = Config(listen="0.0.0.0:0", server_id=9, skip_ssl=True, max_connect_errors=1 << 20)
    with Store.open(tmp_path / "store", SMALL) as store:
        server = Server(store, config=config, accounts=AccountBook())
        await server.start()
        yield server
        await server.stop()


async def account_from(address, port):
    """Return the account that a client at *address* logs in as, or what it is told."""
    link = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    async with RawClient(*link) as client:
        answer = await client.log_in("u", PASSWORD)
        if is_ok(answer):
            return await client.value("SELECT CURRENT_USER()")
        return parse_err(answer).message


async def test_the_same_account_counts_wherever_a_client_is(primary, server):
    matched = set()
    for patterns in samples():
        users = [f"u@'{pattern.replace(chr(92), chr(92) * 2)}'" for pattern in patterns]
        made = [f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}'" for user in users]
        primary.run("SET sql_log_bin = 0", *made)
        server.reload(AccountBook(make_account("u", pattern, PASSWORD) for pattern in patterns))
        for address in ADDRESSES:
            real, ours = [
                await account_from(address, port) for port in (primary.port, server.port())
            ]
            assert ours == real, (patterns, address)
            matched.add(real.partition("@")[2])
        primary.run("SET sql_log_bin = 0", *(f"DROP USER {user}" for user in users))
    assert matched > {
        pattern.lower() for pattern in WILD if "\\" not in pattern and pattern != "::%"
    }
