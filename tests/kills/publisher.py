"""
The process that gets killed: it publishes through a store and serves readers from it.

It tells its parent of everything in short messages, each sent before an attempt or after its
answer, so that a message that is missing says as much as one that came.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection

from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.log import set_up_log
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage import Store, StoreOptions
from ibb.storage.os_disk import OsDisk
from ibb.storage.record import Xid

from ..integration.mariadb_server import PASSWORD, USER
from ..simulation.open_group import OpenGroup
from .killing_disk import KillingDisk, KillPoint

DOMAINS = 4  # each written by a thread of its own
GROUPS_MAX = 3  # open at a time, of a thread
PREPARED_MAX = 1  # transactions at a time, of a thread
EVENT_SIZES = (0, 10, 60, 480, 4000, 20_000)
PAUSE_SECONDS_MAX = 0.004  # of a writer between two steps
ADMIN_SECONDS_MAX = (0.03, 0.5)  # between two steps of the administrator, in this life or that
CLEAN = 0.9  # of the purges leave no group without its first pieces, if they can
XID_FORMAT = 1


@dataclass(frozen=True)
class Settings:
    """
    One life of a publisher.

    Attributes:
        directory: of the store.
        mode: `flush_log_at_commit`.
        seed: of everything that it draws.
        next_seq: first free sequence number, by domain.
        kill_at: the disk operation that it does not survive, or None.
    """

    directory: str
    mode: int
    seed: int
    next_seq: dict[int, int]
    kill_at: KillPoint | None


def random_options(rng: random.Random, mode: int) -> StoreOptions:
    """Return settings that bring switches, checkpoints, pieces and purges all the time."""
    page_size = rng.choice((512, 1024, 4096))
    return StoreOptions(
        page_size=page_size,
        max_binlog_size=page_size * rng.choice((8, 16, 64)),
        state_interval=page_size * rng.choice((1, 2, 4)),
        fifo_pages_max=rng.choice((4, 16, 64)),
        redo_segment_size=256 << 10,
        oob_piece_size=rng.choice((256, 1000, 5000)),
        flush_log_at_commit=mode,
        flush_log_interval=rng.choice((0.01, 0.1, 10.0)),
    )


class Publisher:
    """The store with its writers; *connection* leads to the parent."""

    def __init__(self, settings: Settings, connection: Connection) -> None:
        self._settings = settings
        self._connection = connection
        self._mutex = threading.Lock()
        rng = random.Random(settings.seed)
        disk = KillingDisk(settings.kill_at) if settings.kill_at else OsDisk()
        options = random_options(rng, settings.mode)
        self.store = Store.open(settings.directory, options, disk=disk)
        # What this life writes must be there when the next one is checked: it goes later.
        self._may_go = [file.name for file in self.store.files()][:-1]
        self._clean_cuts = clean_cuts(self.store)

    def tell(self, *words: object) -> None:
        """Send a message."""
        with self._mutex:
            self._connection.send_bytes(" ".join(map(str, words)).encode())

    def tell_opened(self, port: int) -> None:
        """Say what was found, and return when the parent has looked at it."""
        prepared = ",".join(xid.gtrid.decode() for xid, *_ in self.store.prepared())
        self.tell("opened", port, self.store.state() or "-", prepared or "-")
        self._connection.recv_bytes()

    def start(self) -> None:
        """Begin to publish and to administer."""
        if self._settings.seed % 2:
            self.store.switch_file()  # no group is open: a place for a clean cut later
        left = [xa.xid for xa in self.store.prepared()]
        for domain in range(DOMAINS):
            mine = [xid for xid in left if int(xid.gtrid.split(b"-")[0]) == domain]
            self._run(Writer(self, domain, self._settings, mine).run)
        self._run(self._administer)

    def _run(self, target) -> None:
        def run() -> None:
            try:
                target()
            except BaseException as error:
                self.tell("failed", repr(error))
                raise

        threading.Thread(target=run, daemon=True).start()

    def _administer(self) -> None:
        rng = random.Random(f"{self._settings.seed} admin")
        longest = rng.choice(ADMIN_SECONDS_MAX)
        pause = threading.Event()
        while not pause.wait(rng.uniform(0, longest)):
            step = rng.choice(("switch", "purge", "sync", "read"))
            if step == "switch":
                self.store.switch_file()
            elif step == "purge":
                is_clean = self._clean_cuts and rng.random() < CLEAN
                self.store.purge_to(rng.choice(self._clean_cuts if is_clean else self._may_go))
            elif step == "sync":
                self.store.sync()
            else:
                for _ in self.store.reader(str(self.store.state().position())):
                    pass


class Writer:
    """One thread's groups; *prepared* are transactions that an earlier life has left."""

    def __init__(
        self, publisher: Publisher, domain: int, settings: Settings, prepared: list[Xid]
    ) -> None:
        self._publisher = publisher
        self._store = publisher.store
        self._tell = publisher.tell
        self._domain = domain
        self._seq = settings.next_seq[domain]
        self._rng = random.Random(f"{settings.seed} {domain}")
        self._groups: list[OpenGroup] = []
        self._prepared: dict[Xid, str] = dict.fromkeys(prepared, "-")

    def run(self) -> None:
        """Write until killed."""
        rng = self._rng
        steps = (self._begin, self._add, self._save, self._go_back, self._commit, self._roll_back,
                 self._prepare, self._end_prepared)  # fmt: skip
        pause = threading.Event()
        while True:
            (step,) = rng.choices(steps, (4, 10, 1, 1, 6, 1, 1, 3))
            step()
            if rng.random() < 0.2:
                pause.wait(rng.uniform(0, PAUSE_SECONDS_MAX))

    def _next(self) -> int:
        self._seq += 1
        return self._seq - 1

    def _group(self) -> OpenGroup | None:
        return self._rng.choice(self._groups) if self._groups else None

    def _begin(self) -> None:
        if len(self._groups) < GROUPS_MAX:
            self._groups.append(OpenGroup(self._store.begin(), 0))
            self._add()

    def _add(self) -> None:
        if group := self._group():
            text = f"{self._domain}-{self._seq} " + "x" * self._rng.choice(EVENT_SIZES)
            group.add(text, self._rng, statement=self._rng.random() < 0.2)

    def _save(self) -> None:
        if group := self._group():
            group.save()

    def _go_back(self) -> None:
        group = self._group()
        if group and group.marks:
            group.go_back(self._rng)

    def _roll_back(self) -> None:
        if group := self._group():
            self._groups.remove(group)
            group.writer.rollback()

    def _commit(self) -> None:
        group = self._group()
        if group is None:
            return
        self._groups.remove(group)
        gtid = Gtid(self._domain, 1, self._next())
        group.finish()
        self._tell("try", gtid, body_hash(group.data))
        position = group.writer.commit(gtid)
        self._tell("done", gtid, position.file_no, position.offset)

    def _prepare(self) -> None:
        groups = [group for group in self._groups if group.transaction and not group.statement]
        if not groups or len(self._prepared) >= PREPARED_MAX:
            return
        group = groups[0]
        self._groups.remove(group)
        xid = Xid(XID_FORMAT, b"%d-%d" % (self._domain, self._next()), b"b")
        group.finish()
        name, digest = xid.gtrid.decode(), body_hash(group.data)
        self._tell("prepare", name, digest)
        group.writer.prepare(xid)
        self._tell("prepared", name)
        self._prepared[xid] = digest

    def _end_prepared(self) -> None:
        if not self._prepared:
            return
        xid = self._rng.choice(sorted(self._prepared))
        digest, name = self._prepared.pop(xid), xid.gtrid.decode()
        self._tell("end", name)
        if self._rng.random() < 0.3:
            self._store.rollback_prepared(xid)
        else:
            gtid = Gtid(self._domain, 1, self._next())
            self._tell("try", gtid, digest, name)
            position = self._store.commit_prepared(xid, gtid)
            self._tell("done", gtid, position.file_no, position.offset)
        self._tell("ended", name)


def clean_cuts(store: Store) -> list[str]:
    """Return the files before which nothing lies that a later file refers to."""
    clean: list[str] = []
    lowest: int | None = None
    for file in reversed(store.files()):
        header = store.pages.header(file.file_no)
        if header is not None:
            lowest = min(header.lowest_oob_file, lowest or header.lowest_oob_file)
            if lowest == file.file_no:
                clean.append(file.name)
    return clean


def body_hash(data: bytes) -> str:
    """Return the hash of a group's events without its GTID event."""
    return hashlib.sha256(data).hexdigest()


def live(settings: Settings, connection: Connection) -> None:
    """Open, serve and publish until killed: what the child process runs."""
    set_up_log(level="error", shape="text")
    asyncio.run(_live(Publisher(settings, connection)))


async def _live(publisher: Publisher) -> None:
    config = Config(listen="127.0.0.1:0", server_id=99)
    accounts = AccountBook([make_account(USER, "%", PASSWORD, ["REPLICATION SLAVE"])])
    server = Server(publisher.store, config=config, accounts=accounts)
    await server.start()
    await asyncio.to_thread(publisher.tell_opened, server.address[1])
    publisher.start()
    await asyncio.Event().wait()
