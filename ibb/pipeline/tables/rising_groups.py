"""
The groups behind a place, whose numbers must rise.

Change tables know where they are by GTIDs. Where a server gives a number for the second time, or
a lower one than before (`SET gtid_seq_no`), a GTID does not name one place any more: groups would
be applied twice or left out, so it stops there, before anything is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.pipeline.cuts import cut_behind, groups_behind
from ibb.protocol.binlog_state import BinlogState
from ibb.storage.errors import BegunAnewError
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position

from .errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.pipeline.history_mark import HistoryMark
    from ibb.protocol.gtid import Gtid, GtidPosition
    from ibb.storage.group_reader import StoredGroup
    from ibb.storage.history import History


def rising_groups(
    history: History, position: GtidPosition, mark: HistoryMark
) -> Iterator[StoredGroup]:
    """
    Yield the groups behind a position, oldest first; each must be used before the next is taken.

    Args:
        history: where they are.
        position: the last group of each domain that is had.
        mark: of that position; with an offset, reading begins right there.

    Raises:
        PipelineError: the number of a server falls.
        SqlError: 1236, *position* is not in the history, or it cannot be told where it is.
        TooOld: groups behind it were purged.
        FormatError: the binlog is damaged.
        BegunAnewError: another process deleted the files meanwhile; all before was of them.
    """
    generation, seen = history.generation, BinlogState(position)
    for group in _behind(history, position, mark):
        if not history.is_still(generation):
            raise BegunAnewError(binlog_name(group.position.file_no))
        assert group.gtid is not None
        _check_rises(seen, group.gtid)
        yield group
        seen.update(group.gtid)
    if not history.is_still(generation):
        raise BegunAnewError(binlog_name(history.pages.last_file()))


def _behind(history: History, position: GtidPosition, mark: HistoryMark) -> Iterator[StoredGroup]:
    """Yield the groups behind a position that have a GTID."""
    reader = _reader_behind_last(history, position, mark)
    if reader is None:
        cut = cut_behind(history.pages, history.state(), position)
        yield from groups_behind(history.pages, cut)
        return
    while (group := reader.next()) is not None:
        if group.gtid is not None:
            yield group


def _reader_behind_last(
    history: History, position: GtidPosition, mark: HistoryMark
) -> GroupReader | None:
    """Return what reads on behind the group that *mark* tells of; None if it is not there."""
    if not mark.offset or mark.file < history.pages.first_file():
        return None
    reader = GroupReader(history.pages, Position(mark.file, mark.offset))
    last = reader.next()
    if last is None or last.gtid is None or position.get(last.gtid.domain) != last.gtid:
        return None
    return reader


def _check_rises(seen: BinlogState, gtid: Gtid) -> None:
    before = seen.seq(gtid.domain, gtid.server)
    if before is not None and gtid.seq <= before:
        raise PipelineError(
            f"{gtid} comes behind {gtid._replace(seq=before)} in the binlog: numbers of a server "
            "must rise, or GTIDs do not tell what the tables have (gtid_strict_mode=1 at the "
            "source sees to that). Read all tables anew: --snapshot '*.*'"
        )
