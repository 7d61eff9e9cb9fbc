"""Rounds of publishing, reading and SIGKILL on one store; each life checks the one before."""

from __future__ import annotations

import random
import re
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

from ibb.demo.installation import Installation
from ibb.server.config import STREAM_NAME
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import Severity, verify_directory

from ..integration.binlog_text import mariadb_binlog
from ..integration.mariadb_server import PASSWORD, USER
from ..oracle.binlog import Binlog
from ..oracle.references import check_references
from ..oracle.states import StateCheck
from .history import History, Round, WrongError, scan
from .killing_disk import OPERATIONS, KillPoint
from .publisher import DOMAINS, Settings, live
from .readers import Reader

OPENING_SECONDS_MAX = 60.0
LIFE_SECONDS = (0.02, 0.5)
LONGEST_LIFE_SECONDS = 0.8  # when the kill is to come from the disk
AIMED = 0.4  # of the rounds die at a chosen operation of the disk
DURING_OPENING = 0.15  # of the rounds die while the store is being opened
OPENING_SECONDS = 0.03  # about what it takes
READERS = 3
UNREAD = 0.3  # of the rounds have none: with one at the end all soon becomes durable
THOROUGH_EVERY = 10  # rounds
GTID_LINE = re.compile(rb"\tGTID (\d+-\d+-\d+)")


class Life:
    """One process; what it says is read as it comes."""

    def __init__(self, settings: Settings) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload([f"{__package__}.publisher"])
        self._connection, theirs = context.Pipe()
        self.told = Round()
        self.greeting: list[str] = []
        self.problem: BaseException | None = None
        self._killed = False
        self._opened, self._ended = Event(), Event()
        self._process = context.Process(target=live, args=(settings, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            while True:
                words = self._connection.recv_bytes().decode().split(" ")
                if words[0] == "opened":
                    self.greeting = words[1:]
                    self._opened.set()
                else:
                    self.told.take(words)
        except (EOFError, OSError):
            pass
        except WrongError as error:
            self.problem = error
        self._ended.set()
        self._opened.set()

    def wait_opened(self, seconds: float = OPENING_SECONDS_MAX) -> bool:
        """Return whether it has opened the store."""
        self._opened.wait(seconds)
        return bool(self.greeting)

    def go(self) -> None:
        self._connection.send_bytes(b"go")

    def wait_ended(self, seconds: float) -> None:
        self._ended.wait(seconds)

    def kill(self) -> None:
        """End it, and return when all that it said was read; a second call does nothing."""
        if self._killed:
            return
        self._killed = True
        self._process.kill()
        self._process.join()
        self._thread.join()
        self._connection.close()
        if self.problem is not None:
            raise self.problem
        status = self._process.exitcode
        self._process.close()
        if status != -9:
            raise WrongError(f"the publisher ended by itself with {status}")


class StoreRounds:
    """
    One store's lives.

    Args:
        folder: where its directory will be.
        mode: `flush_log_at_commit`.
        seed: of everything that is drawn here; what threads and kills do does not repeat.
        tool: whose mariadb-binlog reads too.
    """

    def __init__(
        self, folder: Path, mode: int, seed: int, tool: Installation | None = None
    ) -> None:
        self.history = History(mode)
        self.directory = folder / f"store-{mode}"
        self._mode = mode
        self._tool = tool
        self._rng = random.Random(seed)
        self._next_seq = dict.fromkeys(range(DOMAINS), 1)
        self._told = Round()
        self._reached = [0] * READERS  # groups of the history that each reader has
        self._readers: list[Reader] = []
        self._round = 0

    def run_round(self) -> None:
        """Open the store, check the life before, publish and be killed."""
        self._round += 1
        rng, counts = self._rng, self.history.counts
        if rng.random() < DURING_OPENING:
            life = Life(self._settings(self._kill_point(10)))
            if not life.wait_opened(rng.uniform(0, OPENING_SECONDS)):
                counts["killed while opening"] += 1
            life.kill()
        kill_at = self._kill_point(300) if rng.random() < AIMED else None
        life = Life(self._settings(kill_at))
        try:
            while not life.wait_opened():
                life.kill()
                counts["killed while opening"] += 1
                life = Life(self._settings(None))
            self._check(life.greeting, thorough=self._round % THOROUGH_EVERY == 0)
            self._connect(int(life.greeting[0]))
            life.go()
            longest = LONGEST_LIFE_SECONDS if kill_at else rng.uniform(*LIFE_SECONDS)
            life.wait_ended(longest)
        finally:
            life.kill()
        self._note(life.told)
        counts["rounds"] += 1

    def finish(self) -> None:
        """Check the last life."""
        life = Life(self._settings(None))
        try:
            if not life.wait_opened():
                raise WrongError("the store does not open")
            self._check(life.greeting, thorough=True)
        finally:
            life.kill()

    def _settings(self, kill_at: KillPoint | None) -> Settings:
        seed = self._rng.randrange(1 << 32)
        return Settings(str(self.directory), self._mode, seed, dict(self._next_seq), kill_at)

    def _kill_point(self, count_max: int) -> KillPoint:
        rng = self._rng
        return KillPoint(rng.choice(OPERATIONS), int(count_max ** rng.random()))

    def _connect(self, port: int) -> None:
        """Let readers go on where they were, one of them somewhere else; or none."""
        if self._rng.random() < UNREAD:
            return
        count = len(self.history.groups)
        purged = min(self.history.counts["purged"] + 1, count)
        self._reached[0] = self._rng.randrange(purged, count + 1) if count else 0
        self._readers = [
            Reader(port, USER, PASSWORD, self.history.position(reached), 1000 + number)
            for number, reached in enumerate(self._reached)
        ]

    def _note(self, told: Round) -> None:
        self._told = told
        for name in (*told.tried, *told.preparing):
            domain, number = int(name.split("-")[0]), int(name.split("-")[-1])
            self._next_seq[domain] = max(self._next_seq[domain], number + 1)
        for reader in self._readers:
            reader.join()

    def _check(self, greeting: list[str], *, thorough: bool) -> None:
        port, state, prepared = greeting
        found = scan(str(self.directory))
        self.history.survived(self._told, found, "" if state == "-" else state, prepared)
        for number, reader in enumerate(self._readers):
            reached = self.history.check_reader(self._reached[number], reader.received)
            self._reached[number] = len(self.history.groups) if reader.was_purged else reached
            self.history.counts["readers behind a purge"] += reader.was_purged
        self._told, self._readers = Round(), []
        if thorough:
            cut = {group.gtid for group in found if group.whole is None}
            self.history.counts["looked at by verify"] += 1
            self.history.counts["and by the independent reader"] += check_files(self.directory, cut)
            self._check_tool(int(port), cut)

    def _check_tool(self, port: int, cut: set[str]) -> None:
        """Compare what mariadb-binlog reads behind some group with the history."""
        groups = self.history.groups
        whole_from = max((at for at, (gtid, _) in enumerate(groups) if gtid in cut), default=-1)
        start = max(whole_from, self.history.counts["purged"]) + 1
        if start > len(groups) or self._tool is None:
            return
        start = self._rng.randrange(start, len(groups) + 1)
        position = f"--start-position={self.history.position(start)}"
        done = mariadb_binlog(self._tool, port, position, STREAM_NAME)
        if done.returncode != 0:
            raise WrongError(f"mariadb-binlog: {done.stderr.decode()}")
        found = [gtid.decode() for gtid in GTID_LINE.findall(done.stdout)]
        if found != [gtid for gtid, _ in groups[start:]]:
            raise WrongError(f"mariadb-binlog reads {found[:5]}... behind {position}")
        self.history.counts["groups read by mariadb-binlog"] += len(found)


def check_files(directory: Path, cut: set[str]) -> bool:
    """
    Have `ibb verify` and the independent reader look at every file.

    Args:
        directory: of the store.
        cut: groups whose first pieces have gone with a purged file; the independent reader takes
            that for damage, so it does not look then.

    Returns:
        Whether both have looked.

    Raises:
        WrongError: they find something.
    """
    for finding in verify_directory(OsDisk(), str(directory)):
        if finding.severity is not Severity.NOTE and finding.lost not in cut:
            raise WrongError(f"verify finds {finding}")
    if cut:
        return False
    binlog = Binlog(images(directory))
    problems = [*binlog.problems, *StateCheck(binlog).problems, *check_references(binlog)]
    if problems:
        raise WrongError(f"the independent reader finds {problems[0]}")
    return True


def images(directory: Path) -> dict[int, bytes]:
    """Return the contents of all files, with what only the redo log has yet."""
    disk = recovered_view(OsDisk(), str(directory))
    found = {}
    for name in disk.list(str(directory)):
        number = parse_binlog_name(name)
        if number is not None:
            file = disk.open(f"{directory}/{name}", read_only=True)
            found[number] = file.read_at(0, file.size())
            file.close()
    return found
