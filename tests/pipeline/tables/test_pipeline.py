"""What a pipeline knows after its snapshots."""

import shutil
import threading
from dataclasses import replace

import pytest

from ibb.pipeline.history_mark import NO_MARK, HistoryMark
from ibb.pipeline.tables.config import PipelineConfig, ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.prepared_xa import Prepared
from ibb.pipeline.tables.row_changes import TableName
from ibb.pipeline.tables.server_traits import ServerTraits
from ibb.pipeline.tables.snapshot import Taken
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.position import Position

from ...storage.events import transaction
from ..published import made_store, publish, publish_events
from .changes import SCHEMA, position

NAMES = [TableName("shop", "t"), TableName("shop", "u")]
XA = {"'x'": Prepared(Gtid(0, 1, 1), Position(1, 4096), changes=False)}
MODULE = "ibb.pipeline.tables.pipeline"


class Source:
    """Stands in for a server that compares names in lower case."""

    def __init__(self, folder):
        self.config = PipelineConfig(
            "test", "", str(folder / "lake"), include=("Shop.*",), server=ServerConfig()
        )
        self.place = Place(position("0-1-5"), 7)
        self.gone = {}  # filled before the snapshot began once more
        self.state = Lake(self.config).state

    def take(self, _server, wants, *_):
        return Taken(self.place, [name for name in NAMES if wants(name)], self.gone)

    def ledger(self, *snapshot):
        """Return the ledger after a run that ends before the stream."""
        stop = threading.Event()
        stop.set()
        progress = Progress(lambda *_: None, lambda *_: None)
        Pipeline(self.config, progress).run(stop, once=True, snapshot=snapshot)
        return Ledger.load(self.state)


@pytest.fixture
def source(tmp_path, monkeypatch):
    made = Source(tmp_path)
    monkeypatch.setattr(f"{MODULE}.server_traits", lambda _: ServerTraits(True, False))
    monkeypatch.setattr(f"{MODULE}.take_snapshot", made.take)
    return made


def test_the_first_snapshot_asks_how_names_are_compared(source, monkeypatch):
    ledger = source.ledger()
    assert ledger.traits == ServerTraits(True, False)
    assert (list(ledger.tables), ledger.place) == (NAMES, source.place)
    monkeypatch.setattr(f"{MODULE}.server_traits", lambda _: ServerTraits(False, True))
    source.place = Place(position("0-1-9"), 8)
    ledger = source.ledger("Shop.T")
    assert ledger.traits == ServerTraits(True, True)
    assert ledger.tables[NAMES[0]] == source.place != ledger.tables[NAMES[1]]
    assert ledger.place.position == position("0-1-5")


def test_a_snapshot_of_everything_passes_over_the_stream_before_it(source):
    made = replace(source.ledger(), prepared=XA, mark=HistoryMark(1, "a"))
    made.store(source.state)
    source.place = Place(position("0-1-9"), 8)
    assert source.ledger("shop.t").prepared == XA
    ledger = source.ledger("*.*")
    assert (ledger.place, ledger.ahead, ledger.prepared) == (source.place, set(), {})
    assert (ledger.mark, ledger.due) == (NO_MARK, ())


def test_tables_that_the_server_has_no_more_are_put_aside_by_a_snapshot_of_everything(source):
    gone = TableName("shop", "gone")
    ledger = source.ledger()
    ledger.left_at(gone, source.place, ahead=False)
    ledger.store(source.state)
    lake = Lake(source.config)
    lake.open(gone).create(SCHEMA, [], source.place)
    assert gone in source.ledger("shop.*").tables  # the stream tells what became of it
    assert gone not in source.ledger("*.*").tables
    assert not lake.open(gone).exists


def test_tables_that_went_while_a_snapshot_was_taken_are_where_they_were_filled(source):
    gone, before = TableName("shop", "gone"), Place(position("0-1-7"), 7)
    source.ledger()
    source.gone, source.place = {gone: before}, Place(position("0-1-9"), 8)
    Lake(source.config).open(gone).create(SCHEMA, [], before)
    ledger = source.ledger("shop.*")
    assert ledger.tables == {gone: before} | dict.fromkeys(NAMES, source.place)
    assert ledger.ahead == set(ledger.tables)
    assert gone not in source.ledger("*.*").tables
    assert not Lake(source.config).open(gone).exists


def run_on(folder, binlogs):
    """Run a pipeline that has no tables on a directory; return its ledger."""
    config = PipelineConfig("test", str(binlogs), str(folder / "lake"), include=("none.*",))
    progress = Progress(lambda *_: None, lambda *_: None)
    Pipeline(config, progress).run(threading.Event(), once=True)
    return Ledger.load(Lake(config).state)


class Waits(threading.Event):
    """Notes how long it is waited for; is set at the third time."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def wait(self, timeout=None):
        self.seconds.append(timeout)
        return len(self.seconds) == 3 or super().wait(0)


def test_tables_that_have_everything_wait_before_the_next_batch(tmp_path, monkeypatch):
    """And what the batches were made in is given back meanwhile."""
    trims = []
    monkeypatch.setattr(f"{MODULE}.malloc_trim", lambda: lambda: trims.append(len(batches)))
    binlogs = tmp_path / "binlogs"
    with Store.open(binlogs) as store:
        publish(store, 3)
    config = replace(
        PipelineConfig("test", str(binlogs), str(tmp_path / "lake"), include=("none.*",)),
        batch_groups=1,
        batch_seconds=77,
    )
    stop, batches = Waits(), []
    progress = Progress(lambda *_: None, lambda *applied: batches.append(applied))
    Pipeline(config, progress).run(stop, once=False)
    assert (stop.seconds, len(batches)) == ([77, 77, 77], 3)
    assert trims == [3, 3, 3]


def test_another_history_under_the_same_numbers_stops(tmp_path):
    """After RESET MASTER numbers begin at 1 again, and the same second may have both of them."""
    binlogs = tmp_path / "binlogs"
    binlogs.mkdir()
    gtids = [Gtid.parse(gtid) for gtid in made_store(binlogs, 30)]
    ledger = run_on(tmp_path, binlogs)
    assert run_on(tmp_path, binlogs) == ledger
    shutil.rmtree(binlogs)
    with Store.open(binlogs) as store:
        for gtid in gtids:
            publish_events(store, gtid, transaction("SELECT 1"))
    with pytest.raises(PipelineError, match=r"begun anew \(RESET MASTER\).*--snapshot '\*\.\*'"):
        run_on(tmp_path, binlogs)


def test_a_history_is_marked_before_any_of_it_is_applied(tmp_path, monkeypatch):
    """Tables that a first batch left behind, cut short, are of this history and of no other."""
    (tmp_path / "binlogs").mkdir()
    made_store(tmp_path / "binlogs", 30)
    monkeypatch.setattr(f"{MODULE}.read_batches", lambda *_: ())
    ledger = run_on(tmp_path, tmp_path / "binlogs")
    assert ledger.place == Place.nowhere()
    assert ledger.mark.mark
