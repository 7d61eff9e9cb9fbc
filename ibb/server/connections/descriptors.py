"""
File descriptors: every connection takes one, and the system gives a process only so many.

Where they run out, a client would wait for a greeting that does not come, and the log would not
tell: so connections for which there are none are refused before that.
"""

from __future__ import annotations

import resource
from typing import Final

from ibb.server.log import get_log

RESERVED: Final = 192  # for files, sockets that listen, connections turned away, senders of dumps
DESCRIPTORS_MAX: Final = 100_000 + RESERVED  # of use: `max_connections` ends there
_KIND: Final = resource.RLIMIT_NOFILE


def raise_limit() -> None:
    """Let this process have as many descriptors as it may, and could use."""
    soft, hard = resource.getrlimit(_KIND)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(_KIND, (wanted, hard))
        except (OSError, ValueError) as error:  # some sandboxes let nobody
            get_log().warning("descriptors_not_raised", possible=soft, error=str(error))


def connections_possible() -> int:
    """Return for how many connections there are descriptors."""
    soft, _ = resource.getrlimit(_KIND)
    if soft == resource.RLIM_INFINITY:
        return DESCRIPTORS_MAX
    return max(1, soft - min(RESERVED, soft // 2))


def spare_beside(connections: int) -> int:
    """Return how many descriptors are left when so many connections have theirs."""
    return max(0, connections_possible() - connections)
