"""
Log lines that strangers cause: only so many, or whoever is refused could fill the disk.

What is left out is counted, and told with the next line that is written.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ibb.server.log import get_log

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES_MAX: Final = 10_000  # remembered; the one that was refused longest ago is forgotten first


class _Allowance:
    """So many lines at once, and another one each time that some seconds have passed."""

    __slots__ = ("_left", "_lines_max", "_seconds_each", "_since")

    def __init__(self, lines_max: int, seconds_each: float, now: float) -> None:
        self._lines_max = lines_max
        self._seconds_each = seconds_each
        self._left = float(lines_max)
        self._since = now

    def take(self, now: float) -> bool:
        """Tell whether another line may be written, and count it."""
        earned = (now - self._since) / self._seconds_each
        self._left = min(self._left + earned, self._lines_max)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class RefusalLog:
    """
    Writes warnings about clients that are sent away.

    Args:
        monotonic: the clock, in seconds.
        of_one: lines of one address at once, and the seconds that each later one takes.
        of_all: the same of all addresses together.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        of_one: tuple[int, float] = (20, 10.0),
        of_all: tuple[int, float] = (200, 0.5),
    ) -> None:
        self._monotonic = monotonic
        self._of_one = of_one
        self._all = _Allowance(*of_all, monotonic())
        self._addresses: OrderedDict[str, _Allowance] = OrderedDict()
        self._left_out = 0

    def tell(self, key: str, event: str, **values: object) -> None:
        """Write a line about a client at *key* (see `address_key`), unless there are too many."""
        now = self._monotonic()
        if key not in self._addresses:
            self._addresses[key] = _Allowance(*self._of_one, now)
        self._addresses.move_to_end(key)
        if len(self._addresses) > ADDRESSES_MAX:
            self._addresses.popitem(last=False)
        if not (self._addresses[key].take(now) and self._all.take(now)):
            self._left_out += 1
            return
        if self._left_out:
            values["left_out_before"] = self._left_out
            self._left_out = 0
        get_log().warning(event, **values)
