"""XA transactions: their rows come once, where they are committed, whatever happens between."""

import struct
import threading

import pytest

from ibb.pipeline.tables.config import PipelineConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.pipeline.tables.prepared_xa import PassedXa, Prepared, PreparedXa
from ibb.pipeline.tables.row_changes import TableName
from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, XaId
from ibb.storage import Store
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from ...protocol.rows import row_encoder as enc
from ...storage.events import TIMESTAMP, query, xid
from ..published import OPTIONS, publish_events

COLUMNS = [("id", enc.integer(8, unsigned=True)), ("note", enc.varchar(50))]
SPECS = [spec for _, spec in COLUMNS]
MAP = enc.table_map(COLUMNS, key=[0])
CREATE = "CREATE TABLE d.t (id BIGINT UNSIGNED PRIMARY KEY, note VARCHAR(50) CHARSET utf8mb4)"
ONE, TWO, OTHER = XaId(1, b"one", b""), XaId(1, b"two", b"x"), XaId(7, b"other", b"")


def row(number, text):
    return (number, text.encode())


def insert(*rows):
    return MAP + enc.rows_event(enc.WRITE, SPECS, [[one] for one in rows])


def update(old, new):
    return MAP + enc.rows_event(enc.UPDATE, SPECS, [[old, new]])


class Binlog:
    """A store, and the pipeline of its only table."""

    def __init__(self, folder):
        self.path = folder / "binlogs"
        self.store = Store.open(self.path, OPTIONS)
        self.seq = 0
        self.config = PipelineConfig("test", str(self.path), str(folder / "lake"), batch_groups=1)
        self.groups(query(CREATE), flags=GtidFlag.STANDALONE | GtidFlag.DDL)

    def groups(self, *events, flags=GtidFlag.TRANSACTIONAL, xa_id=None):
        self.seq += 1
        gtid = Gtid(0, 1, self.seq)
        head = GtidEvent(gtid, TIMESTAMP + self.seq, flags, xa_id=xa_id).encode()
        with self.store.begin() as group:
            group.write(head + b"".join(events))
            group.commit(gtid)

    def change(self, *events):
        self.groups(*events, xid(self.seq))

    def prepare(self, xa_id, *events):
        body = struct.pack("<BIII", 0, 1, len(xa_id.gtrid), 0) + xa_id.gtrid
        end = build_event(EventType.XA_PREPARE, body, timestamp=TIMESTAMP, server_id=1)
        start = query(f"XA START {xa_id}")
        flags = GtidFlag.PREPARED_XA | GtidFlag.TRANSACTIONAL
        self.groups(start, *events, query(f"XA END {xa_id}"), end, flags=flags, xa_id=xa_id)

    def end(self, xa_id, word):
        flags = GtidFlag.COMPLETED_XA | GtidFlag.STANDALONE
        self.groups(query(f"XA {word} {xa_id}"), flags=flags, xa_id=xa_id)

    def fill(self):
        """Begin another file."""
        for _ in range(100):
            publish_events(self.store, self._next(), query("." * 3000), xid(1))

    def _next(self):
        self.seq += 1
        return Gtid(0, 1, self.seq)

    def run(self):
        """Run the pipeline once; return the rows."""
        progress = Progress(lambda *_: None, lambda *_: None)
        Pipeline(self.config, progress).run(threading.Event(), once=True)
        target = self.lake.open(TableName("d", "t"))
        rows = [row for batch in target.batches() for row in batch.to_pylist()]
        return sorted((int(row["id"]), row["note"]) for row in rows)

    @property
    def lake(self):
        return Lake(self.config)


@pytest.fixture
def binlog(tmp_path):
    made = Binlog(tmp_path)
    with made.store:
        yield made


def steps(binlog):
    """Return what happens, and the rows behind each of it."""
    return [
        (lambda: binlog.change(insert(row(1, "a"))), [(1, "a")]),
        (lambda: binlog.prepare(ONE, insert(row(10, "x"))), [(1, "a")]),
        (lambda: binlog.change(update(row(1, "a"), row(1, "b"))), [(1, "b")]),
        (lambda: binlog.prepare(TWO, insert(row(20, "y"))), [(1, "b")]),
        (binlog.fill, [(1, "b")]),
        (lambda: binlog.end(TWO, "COMMIT"), [(1, "b"), (20, "y")]),
        (
            lambda: binlog.change(update(row(20, "y"), row(20, "z"))),
            [(1, "b"), (20, "z")],
        ),
        (lambda: binlog.prepare(TWO, insert(row(30, "never"))), [(1, "b"), (20, "z")]),
        (lambda: binlog.end(TWO, "ROLLBACK"), [(1, "b"), (20, "z")]),
        (lambda: binlog.end(ONE, "COMMIT"), [(1, "b"), (10, "x"), (20, "z")]),
        (
            lambda: binlog.change(update(row(10, "x"), row(10, "w"))),
            [(1, "b"), (10, "w"), (20, "z")],
        ),
    ]


def test_rows_come_at_the_commit_across_restarts(binlog):
    binlog.run()
    for happens, rows in steps(binlog):
        happens()
        assert binlog.run() == rows
    assert Ledger.load(binlog.lake.state).prepared == {}


@pytest.mark.parametrize("batch_groups", [1, 3, 1000])
def test_rows_come_in_their_order_and_once(binlog, batch_groups):
    for happens, _ in steps(binlog):
        happens()
    settings = {**vars(binlog.config), "batch_groups": batch_groups}
    binlog.config = PipelineConfig(**settings)
    assert binlog.run() == steps(binlog)[-1][1]


def test_a_batch_that_was_cut_short_behind_the_tables_is_applied_once(binlog):
    binlog.change(MAP + insert(row(1, "a")))
    binlog.prepare(ONE, update(row(1, "a"), row(2, "b")))
    binlog.run()
    before = binlog.lake.state.read("ledger.json")
    binlog.end(ONE, "COMMIT")
    binlog.change(update(row(2, "b"), row(1, "a")))
    assert binlog.run() == [(1, "a")]
    binlog.lake.state.write("ledger.json", before)
    assert binlog.run() == [(1, "a")]


def test_rows_that_are_in_the_binlog_no_more_stop(binlog, monkeypatch):
    binlog.prepare(ONE, insert(row(1, "a")))
    binlog.prepare(OTHER)
    binlog.run()
    known = Ledger.load(binlog.lake.state).prepared
    assert [found.changes for found in known.values()] == [True, False]
    assert Prepared.from_json(known[str(ONE)].as_json()) == known[str(ONE)]
    binlog.fill()
    monkeypatch.setattr("ibb.storage.directory.BinlogDirectory.first_file", lambda _: 1)
    history = ReadOnlyHistory(recovered_view(OsDisk(), str(binlog.path)), str(binlog.path))
    pending = PreparedXa(known, history.pages)
    assert pending.commit(OTHER, Committing()) is None
    for gone in (pending, PassedXa(history.pages)):
        with pytest.raises(PipelineError, match=r"^0-1-9 commits .*not in the binlog any more"):
            gone.commit(ONE, Committing())
    history.close()


class Committing:
    """The group that commits it."""

    gtid = Gtid(0, 1, 9)
    position = Position(1, 4096)


def test_another_group_where_the_rows_were_is_not_taken_for_them(binlog):
    binlog.prepare(ONE, insert(row(1, "a")))
    binlog.run()
    ledger = Ledger.load(binlog.lake.state)
    found = ledger.prepared[str(ONE)]
    ledger.prepared[str(ONE)] = found._replace(gtid=Gtid(0, 1, 99))
    ledger.store(binlog.lake.state)
    binlog.end(ONE, "COMMIT")
    with pytest.raises(PipelineError, match=r"the group with its rows, .*not in the binlog"):
        binlog.run()


def test_a_ledger_of_before_knows_those_that_change_nothing(binlog):
    binlog.prepare(OTHER)
    binlog.run()
    document = binlog.lake.state.read("ledger.json")
    document["prepared"] = [str(OTHER)]
    binlog.lake.state.write("ledger.json", document)
    binlog.end(OTHER, "COMMIT")
    assert binlog.run() == []
