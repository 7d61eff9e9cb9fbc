"""
Patterns of accounts' hosts, as MariaDB has them: `%` and `_`, or a network and its mask.

    10.0.%   192.168.7.0/255.255.255.0   192.168.7.0/24   fd00::/8   localhost

The second form of the mask, a number of bits, is ours. Names other than localhost match nothing
unless the server knows them: client addresses are not looked up in the DNS.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from .config import ConfigError
from .like import is_like

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST_CHARS_MAX: Final = 255
_PARSED_MAX: Final = 4096

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def check_pattern(pattern: str) -> None:
    """
    Check an account's host.

    Raises:
        ConfigError: empty, too long, unprintable, or a network that is none.
    """
    if not 0 < len(pattern) <= HOST_CHARS_MAX:
        raise ConfigError(f"an account's host has 1 to {HOST_CHARS_MAX} characters")
    if not pattern.isprintable():
        raise ConfigError("an account's host is printable")
    if "/" in pattern and _network(pattern) is None:
        raise ConfigError(f"not a network: {pattern!r} (write 192.168.7.0/24)")


def matches(pattern: str, hosts: Iterable[str]) -> bool:
    """Tell whether *pattern* covers one of *hosts*, the names and addresses of one client."""
    if "/" not in pattern:
        return any(is_like(host, pattern) for host in hosts)
    network = _network(pattern)
    return network is not None and any(_is_in(host, network) for host in hosts)


def vagueness(pattern: str) -> tuple[int, int]:
    """Return a key that is least for literal hosts, then small networks, then long beginnings."""
    network = _network(pattern) if "/" in pattern else None
    if network is not None:
        return 1, network.max_prefixlen - network.prefixlen
    literal = re.match(r"[^%_]*", pattern)
    assert literal is not None
    return (2 if literal.end() < len(pattern) else 0), -literal.end()


@lru_cache(maxsize=_PARSED_MAX)
def _network(pattern: str) -> Network | None:
    try:
        return ipaddress.ip_network(pattern)
    except ValueError:
        return None


def _is_in(host: str, network: Network) -> bool:
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False  # a name
