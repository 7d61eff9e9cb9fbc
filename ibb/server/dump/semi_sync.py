"""
The semi-synchronous master: a commit returns when one replica has acknowledged it (AFTER_COMMIT).

A group is noted before anybody can see it, so that the dump which meets it knows to ask for an
acknowledgement. One that comes counts for all groups before it too. When a commit waits longer
than the timeout, waiting is switched off for all, and on again when a replica has the newest
commit. Source: dump-protocol 7.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ibb.server.config import SEMI_SYNC_TIMEOUT_MS_MAX
from ibb.server.latencies import MICROSECONDS
from ibb.storage.position import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.protocol.gtid import Gtid
    from ibb.storage.commit_position import CommitPosition
    from ibb.storage.group_committer import GroupCommitter

NOTED_MAX: Final = 100_000  # groups without an acknowledgement; above, the oldest is given up
_BEFORE_ALL: Final = Position(-1, 0)


class _Noted:
    """A group that no replica has acknowledged; `end` is None until it is written."""

    __slots__ = ("acknowledged", "decided", "end", "gtid")

    def __init__(self, gtid: Gtid) -> None:
        self.gtid = gtid
        self.end: Position | None = None
        self.acknowledged = False
        self.decided: threading.Event | None = None  # made by who waits

    def decide(self, *, acknowledged: bool) -> None:
        self.acknowledged = acknowledged
        if self.decided is not None:
            self.decided.set()


class SemiSync:
    """
    Who acknowledged how far, and which commits wait for it; used from any thread.

    Args:
        enabled: commits wait at all.
        timeout_ms: milliseconds that a commit may wait.
        wait_no_slave: also while no semi-synchronous replica is connected.
        monotonic: seconds since some moment.
    """

    def __init__(
        self,
        *,
        enabled: bool = False,
        timeout_ms: int = 10_000,
        wait_no_slave: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        assert 0 <= timeout_ms <= SEMI_SYNC_TIMEOUT_MS_MAX
        self.timeout_ms = timeout_ms
        self._monotonic = monotonic
        self._mutex = threading.Lock()
        self._enabled = enabled
        self._is_on = enabled
        self._let_go = False  # nobody waits, for now
        self._wait_no_slave = wait_no_slave
        self._noted: dict[Gtid, _Noted] = {}  # in the order of the history
        self._newest: _Noted | None = None  # of all groups, acknowledged or not
        self._reached = _BEFORE_ALL  # a replica has everything up to here
        self._clients = 0
        self._sessions = 0  # commits that wait right now
        self._requests = self._replies = 0
        self._yes = self._no = self._switched_off = 0
        self._waits = 0
        self._waited_seconds = 0.0
        self._commits: GroupCommitter | None = None

    def guard(self, commits: GroupCommitter | None) -> None:
        """
        Stand behind a store's commits from the moment on that they are to wait; None: let it go.

        Not before: what has a gate is written group by group, else whole runs are at once. Once
        there the gate stays, since a commit under way may be about to ask it.
        """
        with self._mutex:
            self._commits = commits
            self._stand_behind()

    @property
    def enabled(self) -> bool:
        """Commits wait for replicas; switching it off lets those go that wait."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        with self._mutex:
            if enabled == self._enabled:
                return
            self._enabled = enabled
            self._stand_behind()
            if enabled:
                self._is_on = True
                self._newest = None
            else:
                self._switch_off()

    @property
    def wait_no_slave(self) -> bool:
        """Commits wait although no semi-synchronous replica is connected."""
        return self._wait_no_slave

    @wait_no_slave.setter
    def wait_no_slave(self, wait_no_slave: bool) -> None:
        with self._mutex:
            self._wait_no_slave = wait_no_slave
            self._switch_off_if_alone()

    # Those who commit: a `CommitGate`

    def expect(self, gtid: Gtid) -> None:
        """Note a group before it is written."""
        if not self._enabled:
            return
        with self._mutex:
            self._newest = noted = _Noted(gtid)
            if not self._is_on:
                self._no += 1
                return
            self._noted[gtid] = noted
            if len(self._noted) > NOTED_MAX:
                self._drop(next(iter(self._noted)))

    def give_up(self, gtid: Gtid) -> None:
        """Forget a group that was not written after all."""
        with self._mutex:
            self._noted.pop(gtid, None)
            self._newest = None

    def written(self, position: CommitPosition) -> None:
        """Note where the newest group ends."""
        with self._mutex:
            if self._newest is not None and self._newest.gtid == position.gtid:
                self._newest.end = Position(position.file_no, position.offset)

    def wait(self, position: CommitPosition) -> None:
        """Return when a replica has the group, or when nobody waits any more."""
        self.was_acknowledged(position)

    def was_acknowledged(self, position: CommitPosition) -> bool:
        """Wait as `wait` does; return whether a replica has the group."""
        if not self._enabled:
            return False
        end = Position(position.file_no, position.offset)
        with self._mutex:
            self._switch_off_if_alone()
            noted = None if position.gtid is None else self._noted.get(position.gtid)
            if noted is None or self._let_go:
                return end <= self._reached
            if noted.decided is None:
                noted.decided = threading.Event()
            self._sessions += 1
        started = self._monotonic()
        in_time = noted.decided.wait(self.timeout_ms / 1000)
        with self._mutex:
            self._sessions -= 1
            if noted.acknowledged:
                self._waits += 1
                self._waited_seconds += self._monotonic() - started
            elif not in_time and self._is_on:
                self._switch_off()
            return noted.acknowledged

    @contextmanager
    def nobody_waits(self) -> Iterator[None]:
        """Let go who waits for replicas, and whoever would while a block runs."""
        with self._mutex:
            self._let_go = True
            for gtid in list(self._noted):
                self._drop(gtid)
        try:
            yield
        finally:
            self._let_go = False

    def forget_history(self) -> None:
        """Begin anew, as RESET MASTER does: positions start again, nobody waits for the old."""
        with self._mutex:
            for gtid in list(self._noted):
                self._drop(gtid)
            self._reached = _BEFORE_ALL
            self._newest = None

    # Those who dump

    def join(self) -> None:
        """A semi-synchronous replica has connected."""
        with self._mutex:
            self._clients += 1

    def leave(self) -> None:
        """One has gone."""
        with self._mutex:
            self._clients -= 1
            self._switch_off_if_alone()

    def wants(self, gtid: Gtid) -> bool:
        """Tell whether to ask for an acknowledgement of the group *gtid*, which is to be sent."""
        if not self._enabled:
            return False
        with self._mutex:
            newest = None if self._is_on else self._newest
            wanted = gtid in self._noted or (newest is not None and newest.gtid == gtid)
            self._requests += wanted
            return wanted

    def reply(self, gtid: Gtid, end: Position) -> None:
        """
        Take a replica's word that it has the group *gtid* and all before it.

        Args:
            gtid: the group.
            end: of the binlog behind it.
        """
        with self._mutex:
            self._replies += 1
            self._advance(end, gtid)

    def has_all_before(self, position: Position) -> None:
        """Note that a replica which connects has everything before *position*."""
        with self._mutex:
            self._advance(position, None)

    def status(self) -> dict[str, str]:
        """Return the rows of SHOW STATUS, under the names and with the meaning of 10.11."""
        with self._mutex:
            waited = int(self._waited_seconds * MICROSECONDS)
            values = {
                "clients": self._clients,
                "get_ack": self._replies,
                "net_avg_wait_time": 0,
                "net_wait_time": 0,
                "net_waits": self._replies,
                "no_times": self._switched_off,
                "no_tx": self._no,
                "request_ack": self._requests,
                "status": "ON" if self._is_on else "OFF",
                "timefunc_failures": 0,
                "tx_avg_wait_time": waited // max(self._waits, 1),
                "tx_wait_time": waited,
                "tx_waits": self._waits,
                "wait_pos_backtraverse": 0,
                "wait_sessions": self._sessions,
                "yes_tx": self._yes,
            }
        return {f"Rpl_semi_sync_master_{name}": str(value) for name, value in values.items()}

    # With the mutex held

    def _stand_behind(self) -> None:
        if self._enabled and self._commits is not None:
            self._commits.gate = self

    def _advance(self, end: Position, gtid: Gtid | None) -> None:
        """Take it that a replica has all groups up to *gtid*, or whose end is not behind *end*."""
        self._reached = max(self._reached, end)
        by_gtid = gtid in self._noted
        while self._noted:
            oldest = next(iter(self._noted.values()))
            if not by_gtid and (oldest.end is None or oldest.end > end):
                break
            del self._noted[oldest.gtid]
            oldest.decide(acknowledged=True)
            self._yes += 1
            by_gtid = by_gtid and oldest.gtid != gtid
        newest = self._newest
        if newest is None or newest.gtid == gtid or (newest.end is not None and newest.end <= end):
            self._is_on = self._enabled

    def _drop(self, gtid: Gtid) -> None:
        """Let who waits for a group go without an acknowledgement."""
        self._noted.pop(gtid).decide(acknowledged=False)
        self._no += 1

    def _switch_off_if_alone(self) -> None:
        if self._is_on and not self._clients and not self._wait_no_slave:
            self._switch_off()

    def _switch_off(self) -> None:
        """Stop waiting, and let everybody go who waits."""
        self._switched_off += self._is_on
        self._is_on = False
        for gtid in list(self._noted):
            self._drop(gtid)
