"""XA transactions of the stream that are prepared and not ended yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ibb.protocol.gtid import Gtid

PREPARED_MAX: Final = 10_000  # at a time
AGAIN: Final = (
    "Take the snapshot again (--snapshot '*.*') when nothing is prepared: XA RECOVER lists it"
)


class PreparedXa:
    """
    The XIDs of transactions that were seen being prepared, and change no table of the pipeline.

    The rows of an XA transaction are logged where it is prepared. One that was prepared before
    the snapshot is in neither: the snapshot did not see it yet, and the stream begins behind it.

    Args:
        xids: those of the place where the stream begins.
    """

    def __init__(self, xids: Iterable[str] = ()) -> None:
        self._xids = set(xids)

    @property
    def xids(self) -> frozenset[str]:
        """Those that are prepared now."""
        return frozenset(self._xids)

    def prepare(self, xid: str, gtid: Gtid) -> None:
        """
        Take note that *gtid* prepares *xid*, without rows of the pipeline's tables.

        Raises:
            PipelineError: too many are prepared at a time.
        """
        self._xids.add(xid)
        if len(self._xids) > PREPARED_MAX:
            raise PipelineError(
                f"{gtid}: more than {PREPARED_MAX} XA transactions are prepared and not ended. "
                f"End them at the source. {AGAIN}"
            )

    def commit(self, xid: str, gtid: Gtid) -> None:
        """
        Take note that *gtid* commits *xid*.

        Raises:
            PipelineError: it was not seen being prepared, so nobody knows what it changes.
        """
        if xid not in self._xids:
            raise PipelineError(
                f"{gtid} commits the XA transaction {xid}, which was prepared before the snapshot: "
                f"its rows are neither there nor in the stream behind it. {AGAIN}"
            )
        self._xids.discard(xid)

    def roll_back(self, xid: str) -> None:
        """Take note that *xid* was rolled back, whoever saw it before."""
        self._xids.discard(xid)


class PassedXa(PreparedXa):
    """Those of groups that were gone through before, where nothing of them was missed."""

    def commit(self, xid: str, gtid: Gtid) -> None:
        """Take note that *gtid* commits *xid*, which changes none of the tables."""
        del gtid
        self.roll_back(xid)
