"""The privileges that a server of binlogs has a use for, by the names of MariaDB 10.11."""

from __future__ import annotations

from typing import Final

from ibb.server.config import ConfigError

REPLICATION_SLAVE: Final = "REPLICATION SLAVE"
CONNECTION_ADMIN: Final = "CONNECTION ADMIN"
ALL_PRIVILEGES: Final = "ALL PRIVILEGES"
SUPER: Final = "SUPER"
USAGE: Final = "USAGE"

# What SUPER stood for before it was cut up; who still grants it means these.
SUPER_STANDS_FOR: Final = frozenset(
    {
        "BINLOG ADMIN",
        "BINLOG MONITOR",
        "BINLOG REPLAY",
        CONNECTION_ADMIN,
        "READ_ONLY ADMIN",
        "REPLICATION MASTER ADMIN",
        "REPLICATION SLAVE ADMIN",
        "SLAVE MONITOR",
    }
)
PRIVILEGES: Final = SUPER_STANDS_FOR | {
    ALL_PRIVILEGES,
    "PROCESS",
    "RELOAD",
    REPLICATION_SLAVE,
    "SHUTDOWN",
    SUPER,
}
_ALIASES: Final = {
    "ALL": ALL_PRIVILEGES,
    "REPLICA MONITOR": "SLAVE MONITOR",
    "REPLICATION CLIENT": "BINLOG MONITOR",
    "REPLICATION REPLICA": REPLICATION_SLAVE,
    "REPLICATION REPLICA ADMIN": "REPLICATION SLAVE ADMIN",
}


def parse_grants(text: str) -> frozenset[str]:
    """
    Read privileges separated by commas, as GRANT has them, in upper or lower case.

    Raises:
        ConfigError: one is unknown.
    """
    grants = set()
    for word in text.split(","):
        name = " ".join(word.upper().split())
        name = _ALIASES.get(name, name)
        if name == USAGE:  # SQL's word for none
            continue
        if name not in PRIVILEGES:
            known = ", ".join(sorted(PRIVILEGES))
            raise ConfigError(f"unknown privilege: {word.strip()!r} (known: {known})")
        grants.add(name)
    return frozenset(grants)


def allows(grants: frozenset[str], privilege: str) -> bool:
    """Tell whether *grants* hold *privilege*, by its name, within SUPER, or with all."""
    if SUPER in grants and privilege in SUPER_STANDS_FOR:
        return True
    return not grants.isdisjoint((privilege, ALL_PRIVILEGES))
