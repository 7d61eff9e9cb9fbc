"""Connections for which the system has no descriptors are refused in time."""

import resource
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest

from ibb.protocol.reply import parse_err
from ibb.server.connections import descriptors
from ibb.server.connections.descriptors import (
    DESCRIPTORS_MAX,
    RESERVED,
    connections_possible,
    raise_limit,
    spare_beside,
)

from ..raw_client import RawClient

NO_LIMIT = resource.RLIM_INFINITY
RAISE = """
import resource, sys
from ibb.server.connections.descriptors import raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
raise_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard", "raised"), [(200, 300, 300), (300, 300, 300)])
def test_the_limit_is_raised_as_far_as_it_may_be(soft, hard, raised):
    command = [sys.executable, "-c", RAISE, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(raised), str(hard)]


def test_where_it_may_not_be_raised_the_server_goes_on_with_what_it_has(monkeypatch, capfd):
    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, NO_LIMIT))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    raise_limit()
    assert "descriptors_not_raised" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("soft", "possible"),
    [
        (1024, 1024 - RESERVED),
        (128, 64),
        (1, 1),
        (NO_LIMIT, DESCRIPTORS_MAX),
    ],
)
def test_some_are_kept_for_everything_else(monkeypatch, soft, possible):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connections_possible() == possible


async def test_above_them_clients_are_told(serve, store, monkeypatch, capfd):
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: (8, 8))
    server = await serve(store)
    assert "possible=4" in capfd.readouterr().out
    async with AsyncExitStack() as stack:
        for _ in range(4):
            await stack.enter_async_context(await RawClient.logged_in(server))
        spare = await stack.enter_async_context(await RawClient.connect(server.address))
        await spare.read_greeting()  # for an administrator
        async with await RawClient.connect(server.address) as client:
            assert parse_err(await client.packet()).code == 1040


async def test_where_there_are_enough_nothing_is_said(serve, store, capfd):
    await serve(store, max_connections=5)
    assert "connections_limited" not in capfd.readouterr().out


@pytest.mark.parametrize(("soft", "spare"), [(1024, 1024 - RESERVED - 512), (600, 0)])
def test_what_connections_do_not_take_is_spare(monkeypatch, soft, spare):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert spare_beside(512) == spare
