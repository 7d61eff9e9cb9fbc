"""
Functions that take their time: SLEEP, MASTER_GTID_WAIT.

No thread sleeps for them. The first attempt at the statement ends with `StatementWaits`; the
session waits on the loop, notes how that ended in the context, and answers the statement again.
The waits of a statement come in the same order each time, and are told apart by their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.server.gtid_waits import has_come

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ibb.protocol.gtid import Gtid

    from .context import Context

WAIT_SECONDS_MAX = 365 * 24 * 3600.0


class StatementWaits(Exception):  # noqa: N818 - a state of the statement
    """
    The statement cannot be answered yet.

    Attributes:
        key: what it waits for, in `Context.waited`.
        gtids: that it waits for; None: only time counts.
        seconds: at most so long; None: for ever.
    """

    def __init__(self, key: Hashable, gtids: Sequence[Gtid] | None, seconds: float | None) -> None:
        super().__init__()
        self.key = key
        self.gtids = gtids
        self.seconds = seconds


def wait_for(
    context: Context, key: Hashable, gtids: Sequence[Gtid] | None, seconds: float | None
) -> bool:
    """
    Return whether all of *gtids* came in time; for a mere pause, False when it is over.

    Raises:
        StatementWaits: that is not known yet.
    """
    if context.probing:
        return False
    context.waits += 1
    numbered = (context.waits, key)
    if numbered in context.waited:
        return context.waited[numbered]
    if gtids is not None:
        state = context.facts.history.state()
        if all(has_come(state, gtid) for gtid in gtids):
            return True
    if seconds is not None:
        if seconds <= 0:
            return False
        seconds = min(seconds, WAIT_SECONDS_MAX)
    raise StatementWaits(numbered, gtids, seconds)
