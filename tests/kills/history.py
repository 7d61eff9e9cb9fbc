"""
What the parent knows of a store that is killed again and again, and what it must find there.

A round's groups are those that its publisher tried. What of them survived becomes history when
the next life has opened the store; from then on it must stay, but for files that are purged.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import NamedTuple

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position


class WrongError(AssertionError):
    """The store broke a promise."""


class StoredGroup(NamedTuple):
    """A group in the files; no hashes: pieces of it were purged."""

    gtid: str
    body: str | None  # hash of the events behind the GTID event
    whole: str | None
    position: Position


class Attempt(NamedTuple):
    """A group that was tried: when, counted in messages, and the hash of its events."""

    at: int
    body: str


class Answer(NamedTuple):
    """A commit's answer: when it came, and where the binlog ended behind the group."""

    at: int
    end: Position


def scan(path: str) -> list[StoredGroup]:
    """Read all groups from the files of a store that nobody writes just now."""
    directory = BinlogDirectory(OsDisk(), path)
    try:
        first = directory.first_file()
        reader = GroupReader(directory, Position(first, 0))
        found = []
        while (group := reader.next()) is not None:
            if group.gtid is None:
                continue
            try:
                data = b"".join(group.pieces())
            except FormatError:
                if all(reference.first.file_no >= first for reference in group.lists):
                    raise
                found.append(StoredGroup(str(group.gtid), None, None, group.position))
                continue
            body, whole = (
                hashlib.sha256(part).hexdigest() for part in (data[len(group.head) :], data)
            )
            found.append(StoredGroup(str(group.gtid), body, whole, group.position))
        if reader.reports:
            raise WrongError(f"the reader reports {reader.reports}")
        return found
    finally:
        directory.close()


class Round:
    """What one life has told: groups by GTID, transactions by name."""

    def __init__(self) -> None:
        self.messages = 0
        self.tried: dict[str, Attempt] = {}
        self.answered: dict[str, Answer] = {}
        self.preparing: dict[str, str] = {}
        self.prepared: set[str] = set()
        self.ending: set[str] = set()
        self.ended: set[str] = set()
        self.xid_of: dict[str, str] = {}

    def take(self, words: list[str]) -> None:
        """Learn a message."""
        self.messages += 1
        match words:
            case ["try", gtid, digest, *xid]:
                self.tried[gtid] = Attempt(self.messages, digest)
                if xid:
                    self.xid_of[gtid] = xid[0]
            case ["done", gtid, file_no, offset]:
                end = Position(int(file_no), int(offset))
                self.answered[gtid] = Answer(self.messages, end)
            case ["prepare", xid, digest]:
                self.preparing[xid] = digest
            case ["prepared", xid]:
                self.prepared.add(xid)
            case ["end", xid]:
                self.ending.add(xid)
            case ["ended", xid]:
                self.ended.add(xid)
            case _:
                raise WrongError(f"the publisher says {' '.join(words)}")


class History:
    """
    All groups that were ever found, oldest first, and the prepared transactions.

    Args:
        mode: `flush_log_at_commit`.

    Attributes:
        groups: hashes of whole groups with their GTIDs.
        counts: of what was checked.
    """

    def __init__(self, mode: int) -> None:
        self.groups: list[tuple[str, str | None]] = []
        self.counts: Counter[str] = Counter()
        self._index: dict[str, int] = {}
        self._state = BinlogState()
        self._prepared: dict[str, str] = {}  # hash of its events, by name
        self._mode = mode

    def position(self, count: int) -> str:
        """Return the GTID position behind the first *count* groups."""
        position = GtidPosition()
        for gtid, _ in self.groups[:count]:
            position.set(Gtid.parse(gtid))
        return str(position)

    def survived(self, told: Round, found: list[StoredGroup], state: str, prepared: str) -> None:
        """
        Compare what the next life finds with what the last one told, and take it over.

        Raises:
            WrongError: something was lost, doubled, changed or moved.
        """
        new = self._check_old(found)
        self._check_new(told, new)
        for group in new:
            self._index[group.gtid] = len(self.groups)
            self.groups.append((group.gtid, group.whole))
            self._state.update(Gtid.parse(group.gtid))
        if BinlogState.parse(state) != self._state:
            raise WrongError(f"the state is {state}, a full scan gives {self._state}")
        self._check_prepared(told, {group.gtid for group in new}, set(prepared.split(",")) - {"-"})
        self.counts["groups checked"] += len(found)

    def _check_old(self, found: list[StoredGroup]) -> list[StoredGroup]:
        """Return what is new of what was found; the rest must be the history's end."""
        first = self._index.get(found[0].gtid, len(self.groups)) if found else len(self.groups)
        old = self.groups[first:]
        for (gtid, whole), group in zip(old, found, strict=False):
            if gtid != group.gtid or (group.whole is not None and whole != group.whole):
                raise WrongError(f"{group.gtid} at {group.position} where {gtid} was")
        if len(found) < len(old):
            raise WrongError(f"{old[len(found)][0]} was there before and is lost")
        self.counts["purged"] = first
        return found[len(old) :]

    def _check_new(self, told: Round, new: list[StoredGroup]) -> None:
        there = [group.gtid for group in new]
        if len(set(there)) != len(there) or self._index.keys() & set(there):
            raise WrongError(f"groups are there twice among {there}")
        latest = 0
        for group in new:
            attempt = told.tried.get(group.gtid)
            if attempt is None or group.body not in (
                None,
                attempt.body,
                self._body_of(told, group),
            ):
                raise WrongError(f"{group.gtid} at {group.position} is not what was committed")
            answer = told.answered.get(group.gtid)
            if answer is not None and answer.at < latest:
                raise WrongError(f"{group.gtid} comes behind a group that was tried later")
            latest = max(latest, attempt.at)
        lost = told.answered.keys() - set(there)
        if lost and self._mode != 0:
            raise WrongError(f"acknowledged and lost: {sorted(lost)}")
        ends = [told.answered[gtid].end for gtid in there if gtid in told.answered]
        if lost and ends and max(ends) > min(told.answered[gtid].end for gtid in lost):
            raise WrongError(f"lost from the middle: {sorted(lost)}")
        self.counts["acknowledged"] += len(told.answered)
        self.counts["lost"] += len(lost)
        self.counts["kept though not answered"] += len(set(there) - told.answered.keys())

    def _body_of(self, told: Round, group: StoredGroup) -> str | None:
        """Return the hash of the prepared transaction that became a group."""
        return self._prepared.get(told.xid_of.get(group.gtid, ""))

    def _check_prepared(self, told: Round, there: set[str], prepared: set[str]) -> None:
        known = self._prepared | told.preparing
        committed = {xid for gtid, xid in told.xid_of.items() if gtid in there}
        if wrong := (prepared - known.keys()) | (prepared & committed):
            raise WrongError(f"{sorted(wrong)} cannot be prepared")
        surely = (told.prepared if self._mode else set()) | self._prepared.keys()
        if lost := surely - told.ending - prepared:
            raise WrongError(f"prepared transactions {sorted(lost)} are lost")
        if self._mode and (back := told.ended & prepared):
            raise WrongError(f"{sorted(back)} are prepared again after their end")
        self.counts["prepared transactions"] += len(told.prepared)
        self._prepared = {xid: known[xid] for xid in prepared}

    def check_reader(self, begun_at: int, received: list[tuple[str, str]]) -> int:
        """
        Compare what a reader got behind its first *begun_at* groups; return what it has now.

        Raises:
            WrongError: it is not the beginning of what is there.
        """
        end = begun_at + len(received)
        expected = self.groups[begun_at:end]
        for (gtid, digest), (wanted, whole) in zip(received, expected, strict=False):
            if gtid != wanted or whole not in (None, digest):
                raise WrongError(f"a reader got {gtid} where {wanted} is")
        if len(expected) < len(received):
            raise WrongError(f"a reader got {received[len(expected)][0]}, which is lost")
        self.counts["groups read"] += len(received)
        return end
