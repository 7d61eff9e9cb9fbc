"""
Addresses that fail to log in: turned away for a while once there were too many failures.

After `max_connect_errors` failures without a success between them an address is blocked, at first
for a second; each failure behind that doubles the time. MariaDB blocks until FLUSH HOSTS, which
would let a mistyped password lock out the replicas beside it for ever.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES_MAX: Final = 10_000  # remembered; the one that failed longest ago is forgotten first
BLOCK_SECONDS_MIN: Final = 1.0
BLOCK_SECONDS_MAX: Final = 300.0
FORGET_SECONDS: Final = 3600.0  # without a failure
_DOUBLINGS_MAX: Final = 16
_IPV6_SITE_BITS: Final = 64  # whoever has one such address has them all


@dataclass(slots=True)
class _Record:
    failures: int = 0
    failed_at: float = 0.0
    blocked_until: float = 0.0


def address_key(address: str) -> str:
    """Return what limits count by: the address, of IPv6 the network that one site has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    return str(ipaddress.ip_network((parsed, _IPV6_SITE_BITS), strict=False))


class LoginGuard:
    """
    Counts failures by address.

    Args:
        failures_max: in a row, before an address is blocked.
        monotonic: the clock, in seconds.
    """

    def __init__(self, failures_max: int, monotonic: Callable[[], float]) -> None:
        self._failures_max = failures_max
        self._monotonic = monotonic
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def is_blocked(self, key: str) -> bool:
        """Tell whether logins from *key* (see `address_key`) are refused now."""
        record = self._records.get(key)
        return record is not None and self._monotonic() < record.blocked_until

    def failed(self, key: str) -> float:
        """Count a failed login; return for how many seconds the address is blocked now."""
        now = self._monotonic()
        record = self._records.setdefault(key, _Record())
        self._records.move_to_end(key)
        if now - record.failed_at > FORGET_SECONDS:
            record.failures = 0
        record.failures += 1
        record.failed_at = now
        above = record.failures - self._failures_max
        seconds = 0.0
        if above >= 0:
            doublings = min(above, _DOUBLINGS_MAX)
            seconds = min(BLOCK_SECONDS_MIN * 2**doublings, BLOCK_SECONDS_MAX)
            record.blocked_until = now + seconds
        if len(self._records) > ADDRESSES_MAX:
            self._records.popitem(last=False)
        return seconds

    def succeeded(self, key: str) -> None:
        """Forget the failures of an address."""
        self._records.pop(key, None)

    def clear(self) -> None:
        """Forget all failures, as FLUSH HOSTS does."""
        self._records.clear()
