"""
XA transactions of the stream that are prepared and not ended yet.

The rows of an XA transaction are logged where it is prepared, and happen where it is committed,
by a group of its own. Nothing of them is held meanwhile: they are read once more, from the files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ibb.pipeline.prepared_groups import PreparedGroups
from ibb.protocol.gtid import Gtid
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import NOWHERE, Position

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.gtid_event import XaId
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.page_source import PageSource

PREPARED_MAX: Final = 10_000  # at a time
AGAIN: Final = (
    "Take the snapshot again (--snapshot '*.*') when nothing is prepared: XA RECOVER lists it"
)
_EVERYWHERE: Final = Position(1 << 62, 0)


class Prepared(NamedTuple):
    """
    A prepared transaction.

    Args:
        gtid: of the group that prepared it.
        place: of that group in the files.
        changes: whether it changes tables of the pipeline.
    """

    gtid: Gtid
    place: Position
    changes: bool

    def as_json(self) -> dict[str, object]:
        """Return what `from_json` takes."""
        file_no, offset = self.place
        return {"gtid": str(self.gtid), "file": file_no, "offset": offset, "changes": self.changes}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Prepared:
        """
        Return what `as_json` was called on.

        Raises:
            ValueError, KeyError, TypeError, SqlError: it is something else.
        """
        place = Position(int(value["file"]), int(value["offset"]))
        return cls(Gtid.parse(value["gtid"]), place, bool(value["changes"]))


def prepared_from_json(value: dict[str, Any] | list[str]) -> dict[str, Prepared]:
    """
    Return the prepared transactions of a ledger, by their XID.

    In a list, as it was stored once, are those that change nothing of the pipeline.

    Raises:
        ValueError, KeyError, TypeError, SqlError: it is something else.
    """
    if isinstance(value, list):
        return dict.fromkeys(value, Prepared(Gtid(0, 0, 0), NOWHERE, changes=False))
    return {xid: Prepared.from_json(found) for xid, found in value.items()}


class PreparedXa:
    """
    The transactions that were seen being prepared.

    One that was prepared before the snapshot is in neither: the snapshot did not see it yet, and
    the stream begins behind it.

    Args:
        known: those of the place where the stream begins, by their XID.
        pages: where their groups are.
    """

    def __init__(self, known: Mapping[str, Prepared], pages: PageSource) -> None:
        self._known = dict(known)
        self._pages = pages

    @property
    def known(self) -> dict[str, Prepared]:
        """Those that are prepared now."""
        return dict(self._known)

    def prepare(self, xa_id: XaId, group: StoredGroup, *, changes: bool) -> None:
        """
        Take note that *group* prepares a transaction.

        Args:
            xa_id: its XID.
            group: with its rows.
            changes: whether these are of tables of the pipeline.

        Raises:
            PipelineError: too many are prepared at a time.
        """
        assert group.gtid is not None
        self._known[str(xa_id)] = Prepared(group.gtid, group.position, changes)
        if len(self._known) > PREPARED_MAX:
            raise PipelineError(
                f"{group.gtid}: more than {PREPARED_MAX} XA transactions are prepared and not "
                f"ended. End them at the source. {AGAIN}"
            )

    def commit(self, xa_id: XaId, group: StoredGroup) -> StoredGroup | None:
        """
        Take note that *group* commits a transaction; return the group with its rows.

        Returns:
            None if that is not in the files any more, and had no rows of these tables.

        Raises:
            PipelineError: nobody knows what it changes: it was not seen being prepared, or is gone.
            FormatError: the files are damaged.
        """
        if str(xa_id) not in self._known:
            raise PipelineError(
                f"{group.gtid} commits the XA transaction {xa_id}, which was prepared before the "
                f"snapshot: its rows are neither there nor in the stream behind it. {AGAIN}"
            )
        prepared = self._known.pop(str(xa_id))
        found = None
        if prepared.place.file_no >= self._pages.first_file():
            found = GroupReader(self._pages, prepared.place).next()
        if found is not None and found.gtid == prepared.gtid:
            return found
        if prepared.changes:
            raise _gone(group, xa_id)
        return None

    def roll_back(self, xa_id: XaId) -> None:
        """Take note that a transaction was rolled back, whoever saw it before."""
        self._known.pop(str(xa_id), None)


class PassedXa(PreparedXa):
    """
    Those of groups that were gone through before: they may have been prepared at any time.

    Args:
        pages: where their groups are.
    """

    def __init__(self, pages: PageSource) -> None:
        super().__init__({}, pages)
        self._groups = PreparedGroups(pages, _EVERYWHERE)

    def commit(self, xa_id: XaId, group: StoredGroup) -> StoredGroup | None:
        """
        Return the group with the rows of the transaction that *group* commits.

        Raises:
            PipelineError: it is not in the files any more.
            FormatError: the files are damaged.
        """
        if str(xa_id) in self._known:
            return super().commit(xa_id, group)
        found = self._groups.last(xa_id, group.position)
        if found is None:
            raise _gone(group, xa_id)
        return found


def _gone(group: StoredGroup, xa_id: XaId) -> PipelineError:
    return PipelineError(
        f"{group.gtid} commits the XA transaction {xa_id}, and the group with its rows, which "
        f"prepared it, is not in the binlog any more. {AGAIN}"
    )
