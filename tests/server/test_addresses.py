"""Addresses that cannot both be listened on."""

import socket

import pytest

from ibb.demo.scratch_server import free_port
from ibb.server.addresses import overlap

CASES = [
    ("127.0.0.1", "127.0.0.1", True),
    ("127.0.0.1", "127.0.0.2", False),
    ("127.0.0.1", "0.0.0.0", True),
    ("0.0.0.0", "0.0.0.0", True),
    ("::1", "::", True),
    ("::", "127.0.0.1", False),
    ("::", "0.0.0.0", False),
]


@pytest.mark.parametrize(("one", "other", "is_overlap"), CASES)
def test_it_says_what_the_system_does(one, other, is_overlap):
    port = free_port()
    assert overlap((one, port), (other, port)) == overlap((other, port), (one, port)) == is_overlap
    with listening(one, port):
        try:
            listening(other, port).close()
        except OSError:
            assert is_overlap
        else:
            assert not is_overlap


def listening(host, port):
    link = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        if link.family == socket.AF_INET6:
            link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as ours
        link.bind((host, port))
        link.listen()
    except OSError:
        link.close()
        raise
    return link


def test_other_ports_and_any_free_one_are_apart():
    assert not overlap(("0.0.0.0", 0), ("0.0.0.0", 0))
    assert not overlap(("0.0.0.0", 1), ("0.0.0.0", 2))


def test_names_are_the_same_or_not():
    assert overlap(("localhost", 1), ("localhost", 1))
    assert not overlap(("localhost", 1), ("127.0.0.1", 1))
