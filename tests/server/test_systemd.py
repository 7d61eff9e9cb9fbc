"""What systemd is told, and that nothing is said to nobody."""

import os
import socket

import pytest

from ibb.server.systemd import Systemd


@pytest.fixture
def manager(tmp_path):
    """Return a socket as systemd's, and the environment that names it."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind(path)
        link.settimeout(20)
        yield link, {"NOTIFY_SOCKET": path}


def said(link):
    return link.recv(4096).decode().splitlines()


async def test_the_life_of_a_service_is_told(manager):
    link, environment = manager
    systemd = Systemd(environment)
    systemd.ready("serving")
    assert said(link) == ["READY=1", "STATUS=serving"]
    systemd.reloading()
    word, moment = said(link)
    assert word == "RELOADING=1"
    assert int(moment.removeprefix("MONOTONIC_USEC=")) > 0
    systemd.stopping()
    assert said(link) == ["STOPPING=1"]
    await systemd.close()


async def test_the_watchdog_hears_at_twice_its_pace(manager):
    link, environment = manager
    link.setblocking(False)
    systemd = Systemd(environment | {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())})
    assert systemd._alive_seconds == 0.01
    systemd.ready("")
    import asyncio

    for words in ("READY=1\nSTATUS=", "WATCHDOG=1", "WATCHDOG=1"):
        data = await asyncio.get_running_loop().sock_recv(link, 4096)
        assert data.decode() == words
    await systemd.close()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "vsock:2:1"},
        {"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "x"},
        {"NOTIFY_SOCKET": "@nobody-listens-here", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"},
    ],
)
async def test_who_cannot_be_told_harms_nobody(environment):
    systemd = Systemd(environment)
    systemd.ready("")
    systemd.stopping()
    assert not systemd._telling.is_running
    await systemd.close()
