"""Addresses that a server listens on, beside each other, and those that its clients have."""

from __future__ import annotations

import ipaddress
from typing import Final

EVERY_ADDRESS: Final = "::"  # of IPv6 and of IPv4, as MariaDB's bind_address has it


_MAPPED: Final = "::ffff:"  # before an address of IPv4, as a socket of both tells it


def plain_address(host: str) -> str:
    """Return the address of a client; of IPv4, whatever socket it came by."""
    return host.removeprefix(_MAPPED)


def overlap(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """
    Tell whether two addresses cannot both be listened on, as far as they say it themselves.

    Args:
        one: host and port; 0: any that is free.
        other: likewise.
    """
    (host, port), (other_host, other_port) = one, other
    if port == 0 or port != other_port:
        return False
    try:
        found = ipaddress.ip_address(host), ipaddress.ip_address(other_host)
    except ValueError:  # what a name stands for is known at the start
        return host == other_host
    if EVERY_ADDRESS in map(str, found):
        return True
    if found[0].version != found[1].version:
        return False
    return found[0] == found[1] or any(address.is_unspecified for address in found)
