"""Addresses that cannot both be listened on."""

from contextlib import asynccontextmanager

import pytest

from ibb.demo.scratch_server import free_port
from ibb.server.addresses import overlap
from ibb.server.config import ConfigError
from ibb.server.listening import LISTEN, bound_sockets, listen_on

CASES = [
    ("127.0.0.1", "127.0.0.1", True),
    ("127.0.0.1", "127.0.0.2", False),
    ("127.0.0.1", "0.0.0.0", True),
    ("0.0.0.0", "0.0.0.0", True),
    ("::1", "::", True),
    ("::1", "0.0.0.0", False),
    ("::", "127.0.0.1", True),
    ("::", "0.0.0.0", True),
]


@pytest.mark.parametrize(("one", "other", "is_overlap"), CASES)
async def test_it_says_what_the_system_does(one, other, is_overlap):
    port = free_port()
    assert overlap((one, port), (other, port)) == overlap((other, port), (one, port)) == is_overlap
    async with listening(one, port):
        try:
            async with listening(other, port):
                assert not is_overlap
        except ConfigError:
            assert is_overlap


@asynccontextmanager
async def listening(host, port):
    """Listen as a server does."""
    sockets = await bound_sockets(LISTEN, host, port)
    try:
        listen_on(LISTEN, sockets, 1)
        yield
    finally:
        for each in sockets:
            each.close()


def test_other_ports_and_any_free_one_are_apart():
    assert not overlap(("0.0.0.0", 0), ("0.0.0.0", 0))
    assert not overlap(("0.0.0.0", 1), ("0.0.0.0", 2))


def test_names_are_the_same_or_not():
    assert overlap(("localhost", 1), ("localhost", 1))
    assert not overlap(("localhost", 1), ("127.0.0.1", 1))
