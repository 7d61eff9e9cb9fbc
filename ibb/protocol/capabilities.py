"""
Capability bits of both sides: what each can do, of which the common part is in effect.

Bits 0 to 31 are the old ones. Bits 32 to 63 are MariaDB's and count only from a side that leaves
bit 0 clear; a side that sets it speaks as MySQL does.
Source: dump-protocol 1.2, 8.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class Capability(IntFlag):
    """One bit each, under MariaDB's names without CLIENT_."""

    MYSQL = 1 << 0  # set: not MariaDB, bits 32 and up are not meant
    FOUND_ROWS = 1 << 1
    LONG_FLAG = 1 << 2
    CONNECT_WITH_DB = 1 << 3
    NO_SCHEMA = 1 << 4
    COMPRESS = 1 << 5
    ODBC = 1 << 6
    LOCAL_FILES = 1 << 7
    IGNORE_SPACE = 1 << 8
    PROTOCOL_41 = 1 << 9
    INTERACTIVE = 1 << 10
    SSL = 1 << 11
    IGNORE_SIGPIPE = 1 << 12
    TRANSACTIONS = 1 << 13
    RESERVED = 1 << 14
    SECURE_CONNECTION = 1 << 15
    MULTI_STATEMENTS = 1 << 16
    MULTI_RESULTS = 1 << 17
    PS_MULTI_RESULTS = 1 << 18
    PLUGIN_AUTH = 1 << 19
    CONNECT_ATTRS = 1 << 20
    PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21
    CAN_HANDLE_EXPIRED_PASSWORDS = 1 << 22
    SESSION_TRACK = 1 << 23
    DEPRECATE_EOF = 1 << 24
    SSL_VERIFY_SERVER_CERT = 1 << 30
    REMEMBER_OPTIONS = 1 << 31
    PROGRESS = 1 << 32
    STMT_BULK_OPERATIONS = 1 << 34
    EXTENDED_METADATA = 1 << 35
    CACHE_METADATA = 1 << 36
    BULK_UNIT_RESULTS = 1 << 37


REQUIRED_CAPABILITIES: Final = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION

# What MariaDB 10.11 without a certificate announces (f7fe, 81ff, 1d), less what changes the
# layout of packets or promises what this server does not do.
SERVER_CAPABILITIES: Final = Capability(0x1D_81FF_F7FE) & ~(
    Capability.COMPRESS
    | Capability.SESSION_TRACK
    | Capability.DEPRECATE_EOF
    | Capability.PROGRESS
    | Capability.STMT_BULK_OPERATIONS
    | Capability.EXTENDED_METADATA
    | Capability.CACHE_METADATA
)

# What the relay asks of its upstream primary.
CLIENT_CAPABILITIES: Final = (
    Capability.LONG_FLAG
    | Capability.PROTOCOL_41
    | Capability.TRANSACTIONS
    | Capability.SECURE_CONNECTION
    | Capability.MULTI_RESULTS
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRS
)


def effective(server: Capability, client: Capability) -> Capability:
    """Return what both sides can do and therefore do."""
    return server & client


def join(low: int, extended: int) -> Capability:
    """Return one side's bits from its 32 old ones and, unless bit 0 is set, its 32 new ones."""
    if low & Capability.MYSQL:
        extended = 0
    return Capability(extended << 32 | low)
