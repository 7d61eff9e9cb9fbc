"""Servers with pages, and browsers without a screen."""

import gc
import re
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.measured_disk import MeasuredDisk
from ibb.server.storage_figures import StorageFigures
from ibb.server.web.admin_listener import AdminListener
from ibb.storage.store import Store

from ...tiny import SMALL


@pytest.fixture(autouse=True)
def no_task_ends_unheard(caplog):
    """Fail where a task of the server has ended by an error that nobody asked for."""
    yield
    gc.collect()  # only then it is told
    records = [*caplog.get_records("call"), *caplog.get_records("teardown")]
    assert not [one.getMessage() for one in records if one.name == "asyncio"]


@pytest.fixture
def accounts():
    return AccountBook(
        [
            make_account("watcher", "%", "looking", ["REPLICATION CLIENT"]),
            make_account("repl", "%", "secret", ["REPLICATION SLAVE"]),
            make_account("chief", "%", "mighty", ["ALL PRIVILEGES"]),
            make_account("strict", "%", "private", ["REPLICATION CLIENT"], require="SSL"),
            make_account(
                "modern",
                "localhost",
                "looking",
                ["BINLOG MONITOR"],
                methods=["parsec", "ed25519", "caching_sha2_password"],
            ),
        ]
    )


@pytest.fixture
def measured(tmp_path):
    """Return a store for a relay, and its figures."""
    directory, options = str(tmp_path / "measured"), replace(SMALL, format_description="upstream")
    disk = MeasuredDisk(directory)
    with Store.open(directory, options, disk=disk) as opened:
        yield opened, StorageFigures(opened, directory, disk, options)


class Pages:
    """The pages of one server, and clients of them."""

    def __init__(self, listener, server):
        self.listener = listener
        self.server = server
        self.url = f"http://127.0.0.1:{listener.address[1]}"

    def browser(self, **options):
        return httpx.AsyncClient(base_url=self.url, timeout=20, trust_env=False, **options)

    @asynccontextmanager
    async def logged_in(self, user="watcher", password="looking", **options):
        async with self.browser(**options) as browser:
            answer = await browser.post("/login", data={"user": user, "password": password})
            assert answer.status_code == 303, re.sub("<[^>]*>", "", answer.text)
            yield browser


@pytest.fixture
async def pages(serve):
    """Return a function that starts a server with pages over a history."""
    listeners = []

    async def start(history, *, connections_max=8, **settings):
        server = await serve(history, admin_listen="127.0.0.1:0", **settings)
        listener = AdminListener(server, connections_max=connections_max)
        await listener.start()
        listeners.append(listener)
        return Pages(listener, server)

    yield start
    for listener in listeners:
        await listener.stop()
