"""Rounds of SIGKILL on a relay, between a primary under load and those who follow the relay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from threading import Timer

from ibb.demo.installation import Installation
from ibb.demo.serve_process import ServeProcessError
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from ..integration import compare
from ..integration.binlog_text import gtids_in_order
from ..integration.conftest import Rig
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.steady_writer import SteadyWriter
from ..integration.stored_groups import stored_groups
from .history import WrongError
from .readers import Reader, receive_all

LIFE_SECONDS = (0.05, 1.0)
OPENING_SECONDS = (0.2, 0.8)  # a start that is killed lives so long
DURING_OPENING = 0.2  # chance of such a start before a real one
PACE_SECONDS = 0.005  # between groups of the load
READER_ID = 999
SETTINGS = (
    "--page-size=4096",
    "--max-binlog-size=64K",
    "--state-interval=8K",
    "--flush-log-interval=0.2",
    "--log-level=warning",
)


class RelayRounds:
    """
    A primary, a relay that is killed, a replica, and a raw reader that keeps all that it gets.

    Args:
        rig: makes the servers.
        primary, replica: the versions.
        modes: `flush_log_at_commit`, in turn after each kill.
        seed: of when kills come.
    """

    def __init__(
        self,
        rig: Rig,
        primary: Installation,
        replica: Installation,
        modes: Sequence[int],
        seed: int,
    ) -> None:
        self._modes = cycle(modes)
        self.counts: Counter[str] = Counter()
        self._rng = random.Random(seed)
        self._primary = rig.primary(primary)
        self._relay = rig.ibb(*SETTINGS).relay_from(self._primary.port)
        self._relay.arguments.append("")
        self._start_in_next_mode()
        self._replica = rig.replica(replica)
        self._replica.replicate_from(self._relay.port)
        self._received: list[tuple[str, str]] = []

    @contextmanager
    def load(self) -> Iterator[None]:
        """Write to the primary meanwhile, and compare everything at the end."""
        with SteadyWriter(self._primary, PACE_SECONDS) as writer:
            yield
        self.counts["groups written"] = writer.written
        self._finish()

    def run_round(self) -> None:
        """Read from the relay, kill it, look at what it would find, and start it again."""
        rng = self._rng
        reader = Reader(self._relay.port, USER, PASSWORD, self._position(), READER_ID)
        reader.wait(rng.uniform(*LIFE_SECONDS))
        self._relay.kill()
        self._received += reader.join()
        self._check_left()
        if rng.random() < DURING_OPENING:
            self._kill_while_opening()
        self._start_in_next_mode()
        self.counts["rounds"] += 1

    def _start_in_next_mode(self) -> None:
        self._relay.arguments[-1] = f"--flush-log-at-commit={next(self._modes)}"
        self._relay.start()

    def _kill_while_opening(self) -> None:
        timer = Timer(self._rng.uniform(*OPENING_SECONDS), self._relay.strike)
        timer.start()
        try:
            self._relay.start()
        except ServeProcessError:
            self.counts["killed while opening"] += 1
        finally:
            timer.join()
            self._relay.kill()
        self._check_left()

    def _position(self) -> str:
        """Return where the reader is."""
        position = GtidPosition()
        for gtid, _ in self._received:
            position.set(Gtid.parse(gtid))
        return str(position)

    def _check_left(self) -> None:
        """What the reader has must be there when the relay is opened again, and the state true."""
        history = ReadOnlyHistory(
            recovered_view(OsDisk(), str(self._relay.directory)), str(self._relay.directory)
        )
        try:
            state = history.state()
            left = [group.gtid for group in groups_between(history) if group.gtid is not None]
        finally:
            history.close()
        received = [gtid for gtid, _ in self._received]
        if received != [str(gtid) for gtid in left[: len(received)]]:
            raise WrongError(f"the reader has {received[-3:]}, the relay is left with {state}")
        if sorted(state.entries()) != sorted(BinlogState(left).entries()):
            raise WrongError(f"the state is {state}, the groups end with {left[-3:]}")
        self.counts["states compared"] += 1

    def _finish(self) -> None:
        """The load has stopped: everybody must come to hold the same."""
        compare.assert_equal(self._primary, self._replica)
        wanted = gtids_in_order(self._primary.binlog_files())
        self._received += receive_all(self._relay.port, USER, PASSWORD, self._position(), READER_ID)
        if self._relay.stop() != 0:
            raise WrongError(f"the relay did not end in order: {self._relay.log_tail()}")
        stored = [
            (group["gtid"], group["sha256"]) for group in stored_groups(self._relay.directory)
        ]
        if [gtid for gtid, _ in stored] != wanted:
            raise WrongError(f"the relay holds other groups: {difference(stored, wanted)}")
        if self._received != stored:
            raise WrongError("the reader has got other groups than the relay holds")
        self.counts["groups stored and read"] = len(stored)


def difference(stored: list[tuple[str, str]], wanted: list[str]) -> str:
    """Say where two histories part."""
    found = [gtid for gtid, _ in stored]
    at = 0
    while found[at : at + 1] == wanted[at : at + 1] != []:
        at += 1
    return f"{found[at : at + 3]} where {wanted[at : at + 3]} must be, at {at}"
