"""Addresses: those that cannot be had are named, with the setting that asked for them."""

import socket

import pytest

from ibb.server.config import Config, ConfigError
from ibb.server.listening import TakenAddresses, bound_sockets


async def test_a_taken_address_is_named_with_its_setting():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        wanted = rf"listen: 127.0.0.1:{port} cannot be had: Address already in use .*--listen"
        with pytest.raises(ConfigError, match=wanted):
            await bound_sockets("listen", "127.0.0.1", port)
        with pytest.raises(ConfigError, match=r"admin_listen: .*--admin-listen"):
            await TakenAddresses.of(Config(listen="127.0.0.1:0", admin_listen=f"127.0.0.1:{port}"))


async def test_a_host_without_an_address_is_named():
    with pytest.raises(ConfigError, match=r"listen: nowhere\.invalid:3307: "):
        await bound_sockets("listen", "nowhere.invalid", 3307)


async def test_nobody_is_let_in_before_the_server_listens():
    taken = await TakenAddresses.of(Config(listen="127.0.0.1:0", admin_listen="127.0.0.1:0"))
    for each in (*taken.clients, *taken.admin):
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(each.getsockname())
    taken.close()
    taken.close()
    assert all(each.fileno() == -1 for each in (*taken.clients, *taken.admin))
