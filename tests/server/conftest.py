"""Histories to serve, and servers over them that end with the test."""

import asyncio
import socket
from dataclasses import replace

import pytest
import uvloop

from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ..sample_directories import expected_of, unpack
from ..storage.events import transaction
from ..tiny import IS_TINY, SMALL


def pytest_asyncio_loop_factories(config, item):
    """`ibb serve` runs on uvloop; a program that serves its own store may not."""
    if IS_TINY:
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory):
    """Return the folder of a sample, and the groups that it holds."""
    name = "plain-16k-1"
    path = tmp_path_factory.mktemp(name)
    unpack(name, path)
    return path, expected_of(name)


@pytest.fixture
def sample(sample_folder):
    """Return a history and its groups; named before what serves it, it is closed behind that."""
    history = ReadOnlyHistory(OsDisk(), str(sample_folder[0]))
    yield history, sample_folder[1]
    history.close()


@pytest.fixture
def ends():
    """Return our end of a connection, which does not block, and the other side's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(20.0)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def store(tmp_path):
    """A store that holds ten transactions 0-1-1 to 0-1-10."""
    options = replace(SMALL, server_id=7)
    with Store.open(tmp_path / "store", options) as opened:
        for seq in range(1, 11):
            publish(opened, Gtid(0, 1, seq))
        opened.sync()
        yield opened


def publish(store, gtid, size=0, *, wait=False):
    with store.begin() as group:
        group.write(transaction(f"insert {gtid}", size))
        group.commit(gtid, wait=wait)


@pytest.fixture
def accounts():
    return AccountBook(
        [
            make_account("repl", "%", "secret", ["REPLICATION SLAVE"]),
            make_account("watcher", "%", "looking", []),
            make_account("admin", "localhost", "mighty", ["ALL PRIVILEGES"]),
        ]
    )


@pytest.fixture
async def serve(accounts):
    """Return a function that starts a server over a history."""
    servers = []

    async def start(history, **settings):
        config = Config(**{"listen": "127.0.0.1:0", "server_id": 99} | settings)
        server = Server(history, config=config, accounts=accounts)
        servers.append(server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.stop()


@pytest.fixture
def target(tmp_path):
    """Return the store that a relay writes."""
    options = replace(SMALL, format_description="upstream")
    with Store.open(tmp_path / "relay", options) as opened:
        yield opened
