"""
XA records: what belongs to what, and whether states point far enough back.

Source: ibb-format 5.2, 5.5, 5.6.
"""

from typing import NamedTuple

from ibb.storage.record import (
    GtidState,
    OobReference,
    RecordType,
    Xid,
    parse_xa_complete,
    parse_xa_prepare,
)

from .finding import Finding, Kind, Place
from .losses import Losses

PREPARED_MAX = 10_000  # transactions that are followed; above that the oldest is forgotten


class _Prepared(NamedTuple):
    oob: OobReference
    file_no: int  # the lowest that a restart needs


class XaCheck:
    """
    Follows the prepared transactions.

    Args:
        losses: takes findings.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._prepared: dict[Xid, _Prepared] = {}
        self._completed: OobReference | None = None  # its commit record must come next

    @property
    def is_completing(self) -> bool:
        """Whether a transaction was completed whose commit record must come next."""
        return self._completed is not None

    def record(self, record_type: int, contents: bytes, place: Place) -> None:
        """
        Take an XA record.

        Raises:
            FormatError: it means nothing.
        """
        if record_type == RecordType.XA_PREPARE:
            prepare = parse_xa_prepare(contents)
            file_no = prepare.oob.first.file_no if prepare.oob.count else place.file_no
            self._prepared[prepare.xid] = _Prepared(prepare.oob, file_no)
            if len(self._prepared) > PREPARED_MAX:
                del self._prepared[next(iter(self._prepared))]
            return
        complete = parse_xa_complete(contents)
        prepared = self._prepared.pop(complete.xid, None)
        if prepared is not None and not complete.rolled_back:
            self._completed = prepared.oob

    def forget(self) -> None:
        """Records may be missing from here on: what is still prepared is not known."""
        self._prepared.clear()
        self._completed = None

    def commit(self, lists: tuple[OobReference, ...], place: Place) -> None:
        """Take a commit record: directly behind an XA complete record it publishes that one."""
        expected, self._completed = self._completed, None
        if expected is None or expected.count == 0 or expected in lists:
            return
        text = f"commit record does not hold the {expected.count} pieces of the prepared XA"
        text += f" transaction that was completed before it, {expected.first} to {expected.last}"
        self._losses.report(Finding.at(Kind.XA_RECORD, place, text))

    def state(self, state: GtidState, place: Place) -> None:
        """Compare how far back a state says that a restart must look."""
        needed = min((prepared.file_no for prepared in self._prepared.values()), default=None)
        if needed is None or (state.xa_file is not None and state.xa_file <= needed):
            return
        said = "no file" if state.xa_file is None else f"file {state.xa_file}"
        text = f"a prepared XA transaction needs file {needed}, the state says {said}"
        self._losses.report(Finding.at(Kind.XA_REFERENCE, place, text))
