"""
How fast and how fresh a reader is served: a rate for each, one for all together, and a delay.

A bucket lets bytes pass at a rate. Whoever takes more than it holds gets them all the same and is
told how long to wait before the next: so a batch is never cut, and readers that share a bucket
take turns. A delay keeps groups back until they are old enough, in the order of the history: the
first one that is too young stops those behind it as well.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ibb.server.config import RATE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from ibb.storage.clock import Clock

BURST_SECONDS: Final = 0.25  # of its rate that a bucket holds: what may pass at once


class TokenBucket:
    """
    Bytes that may pass now. Safe to use from several threads.

    Args:
        rate: bytes a second, 0 for no limit; may be changed at any time.
        monotonic: seconds since some moment.
    """

    def __init__(self, rate: int, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._mutex = threading.Lock()
        self._rate = 0
        self._held = 0.0  # bytes; below zero is debt
        self._filled_at = monotonic()
        self.rate = rate

    @property
    def rate(self) -> int:
        """Bytes a second, 0 for no limit."""
        return self._rate

    @rate.setter
    def rate(self, rate: int) -> None:
        assert 0 <= rate <= RATE_MAX
        if rate == self._rate:
            return
        with self._mutex:
            self._rate = rate
            self._held = rate * BURST_SECONDS
            self._filled_at = self._monotonic()

    def take(self, size: int) -> float:
        """Let *size* bytes pass; return the seconds to wait before the next are taken."""
        with self._mutex:
            rate = self._rate
            if not rate:
                return 0.0
            now = self._monotonic()
            grown = self._held + (now - self._filled_at) * rate
            self._held = min(grown, rate * BURST_SECONDS) - size
            self._filled_at = now
            return max(0.0, -self._held / rate)

    def left(self) -> float:
        """Return the seconds still to wait before the next bytes are taken."""
        return self.take(0)


class Pace:
    """
    What one reader is allowed: what its account says, else what the server says just then.

    Args:
        pacing: the server's limits.
        rate: of its account in bytes a second, 0 for the server's.
        delay: of its account in seconds, 0 for the server's.
        clock: the time.
    """

    def __init__(self, pacing: Pacing, rate: int, delay: float, clock: Clock) -> None:
        self._pacing = pacing
        self._rate = rate
        self._delay = delay
        self._own = TokenBucket(rate or pacing.rate, clock.monotonic)
        self.now: Final = clock.now

    @property
    def own(self) -> TokenBucket:
        """Its own bucket."""
        self._own.rate = self._rate or self._pacing.rate
        return self._own

    @property
    def delay(self) -> float:
        """Seconds that a group must be old; 0: none."""
        return self._delay or self._pacing.delay

    @property
    def limited(self) -> bool:
        """Whether any rate is set just now."""
        return bool(self.own.rate or self._pacing.shared.rate)

    def sent(self, size: int) -> None:
        """Note that *size* bytes go out."""
        self.own.take(size)
        self._pacing.shared.take(size)

    def rest(self) -> float:
        """Return the seconds still to wait before the next batch."""
        return max(self.own.left(), self._pacing.shared.left())

    def too_young(self, written_at: float) -> float:
        """
        Return the seconds until a group may be served, 0 for now.

        Args:
            written_at: when it was written, in seconds since 1970.
        """
        delay = self.delay
        return max(0.0, written_at + delay - self.now()) if delay else 0.0


class Pacing:
    """
    The limits of one server.

    Args:
        rate: bytes a second for each reader that has no limit of its own, 0 for none.
        total_rate: bytes a second for all readers together, 0 for none.
        clock: the time.
        delay: seconds that a group must be old for readers that have no delay of their own.

    Attributes:
        rate, delay: as above; may be changed at any time.
        shared: the bucket of all readers.
    """

    def __init__(self, rate: int, total_rate: int, clock: Clock, *, delay: float = 0.0) -> None:
        self.rate = rate
        self.delay = delay
        self.shared = TokenBucket(total_rate, clock.monotonic)
        self._clock = clock

    @property
    def total_rate(self) -> int:
        """Bytes a second for all readers together, 0 for no limit; may be changed at any time."""
        return self.shared.rate

    @total_rate.setter
    def total_rate(self, rate: int) -> None:
        self.shared.rate = rate

    def for_reader(self, *, rate: int = 0, delay: float = 0.0) -> Pace:
        """
        Return the pace of a reader.

        Args:
            rate: its account's own limit in bytes a second, 0 for the server's.
            delay: seconds that its account's groups must be old, 0 for the server's delay.
        """
        return Pace(self, rate, delay, self._clock)
