"""Compressed packets as plain ones read them, and plain ones that are none."""

import zlib

import pytest

from ibb.protocol.command import InitDb, Ping, Query, RegisterSlave
from ibb.protocol.compressed_packet import looks_compressed
from ibb.protocol.packet import frame


def as_plain_payload(data, before):
    """Return what a plain reader takes for the payload of a compressed packet."""
    return (before.to_bytes(3, "little") + data)[: len(data)]


@pytest.mark.parametrize("level", [0, 1, 6, 9])
@pytest.mark.parametrize("size", [20, 5000, 100_000])
def test_a_compressed_packet_is_noticed(level, size):
    plain = frame(Query("x" * size).encode(), 0)
    assert looks_compressed(as_plain_payload(plain, 0))
    assert looks_compressed(as_plain_payload(zlib.compress(plain, level), len(plain)))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        Ping().encode(),
        InitDb("db").encode(),
        Query("SELECT 1").encode(),
        Query("/* long */ SELECT '" + "x" * 5000 + "'").encode(),
        RegisterSlave(0x78, port=3306).encode(),
        bytes(20),
    ],
)
def test_a_plain_command_is_not_taken_for_one(payload):
    assert not looks_compressed(payload)
