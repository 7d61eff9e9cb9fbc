"""
Addresses that fail to log in: turned away for a while once there were too many failures.

After `max_connect_errors` failures an address is blocked, at first for a second; each failure
behind that doubles the time. A login forgives the failures of its own user alone: else whoever has
any account could guess at the others for ever, with a login of his own now and then.

MariaDB counts only handshakes that break off, not wrong passwords, and blocks until FLUSH HOSTS,
which would let a mistyped password lock out the replicas beside it for ever.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES_MAX: Final = 10_000  # remembered; the one that failed longest ago is forgotten first
BLOCK_SECONDS_MIN: Final = 1.0
BLOCK_SECONDS_MAX: Final = 300.0
FORGET_SECONDS: Final = 3600.0  # without a failure
USERS_MAX: Final = 16  # of an address whose failures are told apart; no login forgives the others'
NOBODY: Final = ""
_DOUBLINGS_MAX: Final = 16
_OTHERS: Final = None
_IPV6_SITE_BITS: Final = 64  # whoever has one such address has them all


@dataclass(slots=True)
class _Record:
    failures: Counter[int | None] = field(default_factory=Counter)  # by hash of the user's name
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
    if parsed.ipv4_mapped is not None:  # whoever comes by IPv4 to a socket of both
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE_BITS), strict=False))


class LoginGuard:
    """
    Counts failures by address.

    Args:
        failures_max: before an address is blocked; may change.
        monotonic: the clock, in seconds.
    """

    def __init__(self, failures_max: int, monotonic: Callable[[], float]) -> None:
        self.failures_max = failures_max
        self._monotonic = monotonic
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def is_blocked(self, key: str) -> bool:
        """Tell whether logins from *key* (see `address_key`) are refused now."""
        return self.seconds_blocked(key) > 0

    def seconds_blocked(self, key: str) -> float:
        """Return for how much longer logins from *key* are refused, 0 if they are not."""
        record = self._records.get(key)
        return 0.0 if record is None else max(0.0, record.blocked_until - self._monotonic())

    def failed(self, key: str, user: str) -> float:
        """
        Count a failed login; return for how many seconds the address is blocked now.

        Args:
            key: the address.
            user: whom the client claimed to be, `NOBODY` if it did not get so far.
        """
        now = self._monotonic()
        record = self._records.setdefault(key, _Record())
        self._records.move_to_end(key)
        if now - record.failed_at > FORGET_SECONDS:
            record.failures.clear()
        record.failed_at = now
        name: int | None = hash(user)  # the name itself may be long, or a password
        if name not in record.failures and len(record.failures) >= USERS_MAX:
            name = _OTHERS
        record.failures[name] += 1
        above = record.failures.total() - self.failures_max
        seconds = 0.0
        if above >= 0:
            doublings = min(above, _DOUBLINGS_MAX)
            seconds = min(BLOCK_SECONDS_MIN * 2**doublings, BLOCK_SECONDS_MAX)
            record.blocked_until = now + seconds
        if len(self._records) > ADDRESSES_MAX:
            self._records.popitem(last=False)
        return seconds

    def succeeded(self, key: str, user: str) -> None:
        """Forget the failures of *user* at an address, and those of nobody in particular."""
        record = self._records.get(key)
        if record is None:
            return
        for name in (user, NOBODY):
            record.failures.pop(hash(name), None)
        if not record.failures:
            del self._records[key]

    def clear(self) -> None:
        """Forget all failures, as FLUSH HOSTS does."""
        self._records.clear()
