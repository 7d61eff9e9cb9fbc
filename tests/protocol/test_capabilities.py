"""The announced bits are a real server's, less those that would change a layout."""

from ibb.protocol.capabilities import (
    CLIENT_CAPABILITIES,
    REQUIRED_CAPABILITIES,
    SERVER_CAPABILITIES,
    Capability,
    effective,
    join,
)

REPLICA_10_11 = 0x8038A205
BINLOG_TOOL = 0x00BEA284


def test_server_announces_what_10_11_does_less_what_it_does_not_do():
    assert SERVER_CAPABILITIES & 0xFFFF == 0xF7DE
    assert SERVER_CAPABILITIES >> 16 & 0xFFFF == 0x807F
    assert SERVER_CAPABILITIES >> 32 == 0
    assert not SERVER_CAPABILITIES & (Capability.SSL | Capability.MYSQL)
    assert SERVER_CAPABILITIES & REQUIRED_CAPABILITIES == REQUIRED_CAPABILITIES


def test_nothing_that_changes_a_layout_is_ever_in_effect():
    everything = Capability((1 << 64) - 1)
    both = effective(SERVER_CAPABILITIES, everything)
    assert not both & (
        Capability.COMPRESS
        | Capability.SESSION_TRACK
        | Capability.DEPRECATE_EOF
        | Capability.EXTENDED_METADATA
        | Capability.CACHE_METADATA
    )


def test_relay_asks_for_the_plain_protocol():
    assert CLIENT_CAPABILITIES == 0x001AA204
    assert effective(SERVER_CAPABILITIES, CLIENT_CAPABILITIES) == CLIENT_CAPABILITIES


def test_extended_bits_count_only_with_bit_0_clear():
    assert join(BINLOG_TOOL, 0x1D) == 0x1D_00BE_A284
    assert join(BINLOG_TOOL, 0x1D) & Capability.EXTENDED_METADATA
    assert join(REPLICA_10_11, 0x1D) == REPLICA_10_11
