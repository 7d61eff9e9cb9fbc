"""The files: SHOW BINARY LOGS, what begins in each and when, and who keeps which from a purge."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.server.automatic_purge import PURGE_VARIABLES
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_file_start
from ibb.storage.holds import HoldKind
from ibb.storage.store import Store

from .group_look import HOLDER

if TYPE_CHECKING:
    from ibb.server.server import Server
    from ibb.storage.history import BinlogFileInfo, History
    from ibb.storage.purge import Need

    from .statement_rows import Row

FILES_MAX: Final = 200  # of one answer
NEEDS_MAX: Final = 100  # of one answer, those that keep the oldest files
NEEDS_SECONDS: Final = 10.0  # for which what was found counts: each lease is looked up in the files
LOOK_SECONDS_MAX: Final = 1.0  # for the beginnings of files
_REASONS_MAX: Final = 3  # beside one file
_RECORDS_MAX: Final = 64  # without a group at the beginning of a file


class FilePage(NamedTuple):
    """
    Some files, the newest first.

    Attributes:
        total: files there are, of `bytes` in all.
        rows: with the columns of SHOW BINARY LOGS, the first group and its time, and who needs it.
        needs: who keeps files from purge, the oldest file first; `more_needs` are not listed.
        settings: when files go by themselves.
        last_purge: what the last automatic purge could not do, "" if there is nothing to say.
    """

    total: int
    bytes: int
    rows: list[Row]
    needs: list[Row]
    more_needs: int
    settings: Row
    last_purge: str


class FileTable:
    """
    The files of one server; calls may come from any thread.

    Args:
        server: whose.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._begins: dict[int, tuple[str, int]] = {}  # first GTID and its time, by file
        self._generation = -1
        self._needs: tuple[float, list[Need]] = (float("-inf"), [])

    def page(self, offset: int, limit: int) -> FilePage:
        """
        Return files and what keeps them; blocking.

        Args:
            offset: of the newest ones so many are left out.
            limit: `FILES_MAX` at most.
        """
        history = self._server.history
        files = history.files()
        needs = self._who_needs()
        offset, limit = max(0, offset), max(1, min(limit, FILES_MAX))
        chosen = files[::-1][offset : offset + limit]
        with history.hold(HoldKind.READER, HOLDER):
            self._look_at(history, chosen, files)
        rows = [self._row(file, needs) for file in chosen]
        return FilePage(
            len(files),
            sum(file.size for file in files),
            rows,
            [_need_row(need) for need in needs[:NEEDS_MAX]],
            max(0, len(needs) - NEEDS_MAX),
            {name: _plain(self._server.purging.value(name)) for name in PURGE_VARIABLES},
            self._last_purge(),
        )

    def _who_needs(self) -> list[Need]:
        """Return who needs files, the oldest first."""
        store = self._server.history
        if not isinstance(store, Store):
            return []
        found_at, found = self._needs
        if time.monotonic() - found_at > NEEDS_SECONDS:
            found = sorted(n for n in store.purger.needs() if HOLDER not in n.reason)
            self._needs = (time.monotonic(), found)
        return found

    def _look_at(
        self, history: History, chosen: list[BinlogFileInfo], files: list[BinlogFileInfo]
    ) -> None:
        """Find out with what files begin; what a file begins with does not change."""
        if self._generation != history.generation or not self._begins.keys() <= {
            file.file_no for file in files
        }:
            self._begins.clear()
            self._generation = history.generation
        until = time.monotonic() + LOOK_SECONDS_MAX
        for file in chosen:
            if time.monotonic() > until:
                return
            if file.file_no not in self._begins and file.file_no <= history.pages.last_file():
                begin = _first_group(history, file.file_no)
                if begin is not None:
                    self._begins[file.file_no] = begin

    def _row(self, file: BinlogFileInfo, needs: list[Need]) -> Row:
        gtid, moment = self._begins.get(file.file_no, (None, None))
        reasons = list(dict.fromkeys(n.reason for n in needs if n.file_no <= file.file_no))
        more = len(reasons) - _REASONS_MAX
        shown = reasons[:_REASONS_MAX] + ([f"and {more} more"] if more > 0 else [])
        return {
            "Log_name": file.name,
            "File_size": file.size,
            "First_gtid": gtid,
            "First_time": moment,
            "Needed_because": "; ".join(shown),
        }

    def _last_purge(self) -> str:
        store = self._server.history
        result = store.purger.last_automatic if isinstance(store, Store) else None
        if result is None:
            return ""
        if result.failure is not None:
            return f"the last automatic purge failed: {result.failure}"
        if result.kept is None or not result.lasting:
            return ""
        return f"{result.kept} should have gone by itself, but {'; '.join(result.lasting[:10])}"


def _first_group(history: History, file_no: int) -> tuple[str, int] | None:
    """Return the first group that is committed in a file and its time, if there is one near."""
    try:
        reader = GroupReader(history.pages, find_file_start(history.pages, file_no))
        for _ in range(_RECORDS_MAX):
            group = reader.next()
            if group is None or group.position.file_no != file_no:
                return None
            if group.gtid is not None:
                return str(group.gtid), group.timestamp
    except (FormatError, DiskError):
        return None  # who looks into the file is told
    return None


def _need_row(need: Need) -> Row:
    return {
        "Holds_from": binlog_name(need.file_no),
        "Reason": need.reason,
        "Lasts": "No" if need.passes else "Yes",
    }


def _plain(value: object) -> str | int:
    return value if isinstance(value, int) else str(value)
