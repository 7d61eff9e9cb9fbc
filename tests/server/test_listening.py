"""Addresses: those that cannot be had are named, with the setting that asked for them."""

import asyncio
import errno
import socket

import pytest
import uvloop

from ibb.server.config import Config, ConfigError
from ibb.server.listening import TakenAddresses, bound_sockets
from ibb.server.server import Server
from ibb.storage import Store

from ..tiny import SMALL


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
    with pytest.raises(ConfigError, match=r"listen: a\.\.b:3307: "):
        await bound_sockets("listen", "a..b", 3307)


async def test_nobody_is_let_in_before_the_server_listens():
    taken = await TakenAddresses.of(Config(listen="127.0.0.1:0", admin_listen="127.0.0.1:0"))
    for each in (*taken.clients, *taken.admin):
        with socket.socket() as client, pytest.raises(ConnectionRefusedError):
            client.connect(each.getsockname())
    taken.close()
    taken.close()
    assert all(each.fileno() == -1 for each in (*taken.clients, *taken.admin))


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_server_that_listens_meanwhile_is_found_when_it_is_our_turn(tmp_path, loop):
    """A socket that is only bound keeps nobody off who sets SO_REUSEADDR, as servers do."""

    async def begin() -> None:
        with Store.open(tmp_path / "store", SMALL) as store, socket.socket() as other:
            server = Server(store, config=Config(listen="127.0.0.1:0"))
            bound = await bound_sockets("listen", "127.0.0.1", 0)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(bound[0].getsockname())
            other.listen()
            with pytest.raises(ConfigError, match="cannot be had: Address already in use"):
                await server.start(bound)
            assert bound[0].fileno() == -1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(begin())


async def test_one_address_is_not_for_both_ports():
    with pytest.raises(ConfigError, match="admin_listen and listen are the same address"):
        Config(listen="127.0.0.1:3307", admin_listen="127.0.0.1:3307")


async def test_a_system_without_ipv6_may_have_names_of_it(monkeypatch):
    made = socket.socket

    def without_ipv6(family=socket.AF_INET, *more):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return made(family, *more)

    async def found(*_, **__):
        return [
            (family, socket.SOCK_STREAM, 6, "", (host, 0))
            for family, host in ((socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"))
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found, raising=False)
    monkeypatch.setattr("ibb.server.listening.socket.socket", without_ipv6)
    (bound,) = await bound_sockets("listen", "localhost", 0)
    assert bound.getsockname()[0] == "127.0.0.1"
    bound.close()
