"""
A store's life by seed, and a diary of it: what was published, and which groups were open when.

Groups interleave, take the statement list or the transaction list, go back to savepoints, are
rolled back or prepared; files are switched, domains deleted; the store is closed, or loses power at
any operation, and goes on with other settings, another `flush_log_at_commit` among them.
"""

import random
from contextlib import suppress
from dataclasses import dataclass, field

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DomainInUse, StateTooLarge
from ibb.storage.group_writer import GroupWriter, Savepoint
from ibb.storage.position import Position
from ibb.storage.record import Xid

from ..faults.sim_disk import PowerLost, SimDisk
from .events import annotation, query, xid

DIRECTORY = "/s"
FILE_BYTES_MAX = 1 << 20
GROUPS_OPEN_MAX = 6
XA_FORMAT = 7
FIRST_DOMAIN = 1000  # and above: domains that only the first state has


@dataclass
class OpenGroup:
    """A group on its way, and what it must hold."""

    number: int
    writer: GroupWriter
    statement: bytes = b""
    transaction: bytes = b""
    pending: bytes = b""  # rest of an event that was begun in the transaction list
    savepoints: list[tuple[Savepoint, int, int]] = field(default_factory=list)

    @property
    def events(self) -> bytes:
        return self.statement + self.transaction


@dataclass
class Diary:
    """
    What happened.

    Attributes:
        published: GTID, number and events of each group, in the order of commits.
        acknowledged: so many of them were durable at some time.
        ends: where the binlog ended behind a group's commit record, by GTID.
        gone: where the binlog ended when a group that is not published was given up, by number.
        restarts: where the binlog ended when the store was opened.
        deleted: domains of which the deletion has returned.
        losses: groups whose commit had returned without being durable, and that the power took.
        perhaps_deleted: the one that was being deleted when the power went.
    """

    published: list[tuple[Gtid, int, bytes]] = field(default_factory=list)
    acknowledged: int = 0
    ends: dict[Gtid, Position] = field(default_factory=dict)
    gone: dict[int, Position] = field(default_factory=dict)
    restarts: list[Position] = field(default_factory=list)
    deleted: set[int] = field(default_factory=set)
    losses: int = 0
    perhaps_deleted: set[int] = field(default_factory=set)


class RandomHistory:
    """
    A run.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = SimDisk()
        self.diary = Diary()
        self._page_size = self.rng.choice((512, 512, 1024, 2048, 4096, 16384, 65536))
        self._domains = self.rng.choice((1, 3, 3, 40))
        self._pairs_at_first = self.rng.choice((0, 0, 2, 90, 200))
        self._first_seq = self.rng.choice((1, 1, 1 << 20, (1 << 53) - 40))
        self._domains_at_first: set[int] = set()
        self._begun = 0
        self._open: list[OpenGroup] = []
        self._mode = 1  # flush_log_at_commit
        self._prepared: dict[Xid, OpenGroup] = {}
        self._named: dict[Xid, OpenGroup] = {}  # all that were ever to be prepared
        self._uncertain: set[Xid] = set()  # power may take their prepare or complete record away

    def run(self) -> None:
        """Live, and close the store in the end."""
        rng = self.rng
        for _ in range(rng.choice((1, 2, 4))):
            crashes = rng.random() < 0.5
            if crashes:
                self.disk.crash_at = self.disk.operations + rng.choice((20, 100, 400, 1500))
            try:
                store = self._open_store()
                for _ in range(rng.choice((30, 120, 300))):
                    self._step(store)
                if rng.random() < 0.5:
                    store.close()
                    self._all_is_durable()
            except PowerLost:
                pass
            self.disk = self.disk.crashed(rng, keep=rng.choice((0.0, 0.5, 1.0)))
        store = self._open_store()
        self._publish_small(store)
        store.close()
        self.final_state = store.state()

    def images(self) -> dict[int, bytes]:
        """Return the files by number."""
        names = [name for name in self.disk.list(DIRECTORY) if name.endswith(".ibb")]
        return {int(name[7:-4]): self.disk.contents(f"{DIRECTORY}/{name}") for name in names}

    # Opening

    def _options(self) -> StoreOptions:
        rng = self.rng
        if rng.random() < 0.1:
            self._page_size = rng.choice((512, 4096))
        page_size = self._page_size
        self._mode = rng.choice((0, 1, 1, 2))
        pages = min(rng.choice((4, 5, 8, 13, 32, 64)), FILE_BYTES_MAX // page_size)
        return StoreOptions(
            page_size=page_size,
            max_binlog_size=page_size * pages,
            state_interval=page_size * rng.choice((1, 2, 4, 8, 256)),
            fifo_pages_max=rng.choice((4, 16, 512)),
            redo_segment_size=max(256 << 10, 16 * page_size),
            oob_piece_size=rng.choice((256, 300, 1000, 5000, 30_000)),
            flush_log_at_commit=self._mode,
            format_description="upstream",
            background=False,
        )

    def _open_store(self) -> Store:
        store = Store.open(DIRECTORY, self._options(), disk=self.disk)
        self._compare_after_opening(store)
        if self._pairs_at_first and not len(store.state()) and not self.diary.deleted:
            self._set_first_state(store)
        if self.rng.random() < 0.5:
            store.write_format_description(FormatDescription.default("12.3.1", 1, 7).to_store())
        return store

    def _set_first_state(self, store: Store) -> None:
        """Begin with a state that may need several pages."""
        pairs = range(self._pairs_at_first)
        entries = [Gtid(FIRST_DOMAIN + pair // 3, pair % 3, 1 + (pair << 24)) for pair in pairs]
        with suppress(StateTooLarge):
            store.set_binlog_state(BinlogState(entries))
            self.diary.restarts = [store.end()]
            self._domains_at_first = _domains_at_first(store)

    def _compare_after_opening(self, store: Store) -> None:
        """Forget what was lost, which nobody was promised."""
        diary, end = self.diary, store.end()
        diary.restarts.append(end)
        found = [str(group.gtid) for group in store.reader() if group.gtid is not None]
        assert found == [str(gtid) for gtid, _, _ in diary.published[: len(found)]]
        assert len(found) >= diary.acknowledged
        for gtid, _, _ in diary.published[len(found) :]:
            diary.losses += diary.ends.pop(gtid, None) is not None
        del diary.published[len(found) :]
        diary.acknowledged = len(found)
        prepared = {prepared.xid for prepared in store.prepared()}
        assert prepared ^ self._prepared.keys() <= self._uncertain
        self._prepared = {name: self._named[name] for name in prepared}
        kept = {number for _, number, _ in diary.published}
        kept |= {group.number for group in self._prepared.values()}
        for number in kept & diary.gone.keys():
            del diary.gone[number]  # its rollback was lost
        for number in set(range(self._begun)) - kept:
            diary.gone[number] = min(diary.gone.get(number, end), end)
        self._open.clear()
        self._uncertain.clear()
        there = _domains_at_first(store)
        self._domains_at_first |= there
        gone = self._domains_at_first - there
        assert diary.deleted <= gone <= diary.deleted | diary.perhaps_deleted
        diary.deleted = gone

    def _all_is_durable(self) -> None:
        self.diary.acknowledged = len(self.diary.published)
        self._uncertain.clear()

    # Steps

    def _step(self, store: Store) -> None:
        rng = self.rng
        dice = rng.random()
        if dice < 0.02:
            self._switch_file(store)
        elif dice < 0.025:
            store.sync()
            self._all_is_durable()
        elif dice < 0.05 and self._prepared:
            self._end_prepared(store, rng.choice(list(self._prepared)))
        elif dice < 0.3 or not self._open:
            if len(self._open) < GROUPS_OPEN_MAX and rng.random() < 0.5:
                self._open.append(OpenGroup(self._begun, store.begin()))
                self._begun += 1
            else:
                self._publish_small(store)
        else:
            index = rng.randrange(len(self._open))
            if not self._move(store, self._open[index]):
                del self._open[index]

    def _switch_file(self, store: Store) -> None:
        """Go on in the next file; now and then without a domain, if no file has groups of it."""
        known = sorted({gtid.domain for gtid in store.state().entries()})
        domains = self.rng.sample(known, 1) if known and self.rng.random() < 0.4 else []
        self.diary.perhaps_deleted = set(domains)
        try:
            assert store.switch_file(delete_domains=domains) == []
        except DomainInUse:
            assert any(gtid.domain in domains for gtid, _, _ in self.diary.published)
            return
        except StateTooLarge:
            assert domains
            return
        self.diary.deleted.update(domains)
        self._all_is_durable()

    def _publish_small(self, store: Store) -> None:
        group = OpenGroup(self._begun, store.begin())
        self._begun += 1
        self._write(group, self.rng.randrange(60))
        self._commit(group)

    def _move(self, store: Store, group: OpenGroup) -> bool:
        """Do something with a group; tell whether it is still open."""
        rng = self.rng
        dice = rng.random()
        if dice < 0.06:
            group.writer.rollback()
            self.diary.gone[group.number] = _written_end(store)
            return False
        if dice < 0.25:
            self._commit(group)
            return False
        if dice < 0.30 and not group.statement:
            self._prepare(group)
            return False
        if dice < 0.40 and not group.pending:
            sizes = len(group.statement), len(group.transaction)
            group.savepoints.append((group.writer.savepoint(), *sizes))
        elif dice < 0.50 and group.savepoints:
            index = rng.randrange(len(group.savepoints))
            savepoint, statement, transaction = group.savepoints[index]
            group.writer.rollback_to(savepoint)
            del group.savepoints[index + 1 :]
            group.statement = group.statement[:statement]
            group.transaction = group.transaction[:transaction]
            group.pending = b""
        else:
            page = self._page_size
            self._write(group, rng.choice((0, 11, 100, page // 3, page, 3 * page + 1)))
        return True

    def _write(self, group: OpenGroup, size: int) -> None:
        """Add an event; in the transaction list it may be cut anywhere."""
        marker = marker_of(group.number)
        text = marker * (1 + size // len(marker)) + "." * (size % len(marker))
        event = annotation(text) if size % 2 else query(text)
        if not group.pending and self.rng.random() < 0.2:
            group.writer.write(event, statement=True)
            group.statement += event
            return
        data = group.pending + event
        cut = self.rng.choice((len(data), self.rng.randrange(1, len(data) + 1)))
        cut = max(cut, len(group.pending))
        group.pending = data[cut:]
        group.writer.write(data[:cut])
        group.transaction += data[:cut]

    def _finish(self, group: OpenGroup) -> None:
        data = group.pending + query(marker_of(group.number)) + xid(group.number)
        group.writer.write(data)
        group.transaction += data
        group.pending = b""

    def _commit(self, group: OpenGroup) -> None:
        self._finish(group)
        gtid = self._note(group)
        wait = self.rng.random() < 0.7
        place = group.writer.commit(gtid, wait=wait)
        self._noted(gtid, Position(place.file_no, place.offset), durable=wait)

    def _prepare(self, group: OpenGroup) -> None:
        self._finish(group)
        name = Xid(XA_FORMAT, b"%d" % group.number, b"")
        self._named[name] = group
        self._uncertain.add(name)
        group.writer.prepare(name)
        self._prepared[name] = group
        self._synced_by_commit()

    def _end_prepared(self, store: Store, name: Xid) -> None:
        group = self._prepared[name]
        self._uncertain.add(name)
        if self.rng.random() < 0.6:
            gtid = self._note(group)
            del self._prepared[name]
            place = store.commit_prepared(name, gtid)
            self._noted(gtid, Position(place.file_no, place.offset), durable=True)
        else:
            store.rollback_prepared(name)
            del self._prepared[name]
            self.diary.gone[group.number] = _written_end(store)
            self._synced_by_commit()

    def _note(self, group: OpenGroup) -> Gtid:
        number = len(self.diary.published)
        gtid = Gtid(
            self.rng.randrange(self._domains), self.rng.randrange(1, 4), self._first_seq + number
        )
        self.diary.published.append((gtid, group.number, group.events))
        return gtid

    def _noted(self, gtid: Gtid, end: Position, *, durable: bool) -> None:
        self.diary.ends[gtid] = end
        if durable:
            self._synced_by_commit()

    def _synced_by_commit(self) -> None:
        if self._mode == 1:
            self._all_is_durable()


def marker_of(number: int) -> str:
    """Return what every piece of a group holds, save the last."""
    return f"<{number}>"


def _written_end(store: Store) -> Position:
    return store._engine.writer.end


def _domains_at_first(store: Store) -> set[int]:
    return {gtid.domain for gtid in store.state().entries() if gtid.domain >= FIRST_DOMAIN}
