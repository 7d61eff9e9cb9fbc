"""
Patterns of accounts' hosts, as MariaDB has them: `%` and `_`, or a network and its mask.

    10.0.%   192.168.7.0/255.255.255.0   192.168.7.0/24   fd00::/8   localhost

The second form of the mask, a number of bits, is ours. Client addresses are not looked up in the
DNS: the only name is localhost, and others are refused where they would never match.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.server.config import ConfigError
from ibb.server.sql.like import is_like

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST_CHARS_MAX: Final = 255
LOCALHOST: Final = "localhost"
_PARSED_MAX: Final = 4096
_ESCAPED: Final = re.compile(r"\\.")
_WILD: Final = re.compile(r"[%_]")
_RUNS: Final = re.compile(r"%+")
_OF_ADDRESSES: Final = re.compile(r"[0-9a-f:.%_\\]+")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def check_pattern(pattern: str) -> None:
    """
    Check an account's host.

    Raises:
        ConfigError: empty, too long, unprintable, or nothing that a client can be known by.
    """
    if not 0 < len(pattern) <= HOST_CHARS_MAX:
        raise ConfigError(f"an account's host has 1 to {HOST_CHARS_MAX} characters")
    if not pattern.isprintable():
        raise ConfigError("an account's host is printable")
    if pattern != pattern.lower():
        raise ConfigError(f"an account's host is in lower case: write {pattern.lower()}")
    if "/" in pattern:
        if _network(pattern) is None:
            raise ConfigError(f"not a network: {pattern!r} (write 192.168.7.0/24)")
    elif _WILD.search(pattern) is None:
        _check_literal(pattern)
    elif not (_OF_ADDRESSES.fullmatch(pattern) or is_like(LOCALHOST, pattern)):
        raise ConfigError(
            f"no client's address is like {pattern!r}, and host names are not looked up"
        )


def matches(pattern: str, hosts: Iterable[str]) -> bool:
    """Tell whether *pattern* covers one of *hosts*, the names and addresses of one client."""
    if "/" not in pattern:
        return any(is_like(host, pattern) for host in hosts)
    network = _network(pattern)
    return network is not None and any(_is_in(host, network) for host in hosts)


@lru_cache(maxsize=_PARSED_MAX)
def vagueness(pattern: str) -> tuple[int, ...]:
    """
    Return a key that is least for the pattern that fewest hosts match, by MariaDB's reckoning.

    That is hosts without wildcards, networks, patterns with `_` alone, and those with `%`, where
    the characters count that must be there. Of equal ones MariaDB takes the later first wildcard
    for the vaguer. It does not order literal hosts and networks, all of which are alike to it.
    """
    network = _network(pattern) if "/" in pattern else None
    if network is not None:
        return 1, network.max_prefixlen - network.prefixlen
    plain = _ESCAPED.sub("x", pattern)
    first = _WILD.search(plain)
    if first is None:
        return (0,)
    singles, runs = plain.count("_"), len(_RUNS.findall(plain))
    if not runs:
        return 2, singles, first.start()
    return 3, plain.count("%") - len(plain), runs, singles, first.start()


def _check_literal(host: str) -> None:
    """Raise ConfigError unless *host* is what some client is known by."""
    if host == LOCALHOST:
        return
    try:
        address = ipaddress.ip_address(host)
    except ValueError as error:
        raise ConfigError(
            f"not an address: {host!r} (host names are not looked up; write an address, "
            "192.168.7.0/24, a pattern such as 192.168.7.%, or localhost)"
        ) from error
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    known_by = str(mapped or address)
    if host != known_by:
        raise ConfigError(f"no client is known by {host!r}: write {known_by}")


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
