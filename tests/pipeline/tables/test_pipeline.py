"""What a pipeline knows after its snapshots."""

import threading
from dataclasses import replace

import pytest

from ibb.pipeline.tables.config import PipelineConfig, ServerConfig
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import TableName

from .changes import position

NAMES = [TableName("shop", "t"), TableName("shop", "u")]
MODULE = "ibb.pipeline.tables.pipeline"


class Source:
    """Stands in for a server that compares names in lower case."""

    def __init__(self, folder):
        self.config = PipelineConfig(
            "test", "", str(folder / "lake"), include=("Shop.*",), server=ServerConfig()
        )
        self.place = Place(position("0-1-5"), 7)
        self.state = Lake(self.config).state

    def take(self, _server, wants, *_):
        return self.place, [name for name in NAMES if wants(name)]

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
    monkeypatch.setattr(f"{MODULE}.compares_in_lower_case", lambda _: True)
    monkeypatch.setattr(f"{MODULE}.take_snapshot", made.take)
    return made


def test_the_first_snapshot_asks_how_names_are_compared(source, monkeypatch):
    ledger = source.ledger()
    assert ledger.lower_case
    assert (list(ledger.tables), ledger.place) == (NAMES, source.place)
    monkeypatch.delattr(f"{MODULE}.compares_in_lower_case")
    source.place = Place(position("0-1-9"), 8)
    ledger = source.ledger("Shop.T")
    assert ledger.tables[NAMES[0]] == source.place != ledger.tables[NAMES[1]]
    assert ledger.place.position == position("0-1-5")


def test_a_snapshot_of_everything_passes_over_the_stream_before_it(source):
    replace(source.ledger(), prepared=frozenset({"'x'"})).store(source.state)
    source.place = Place(position("0-1-9"), 8)
    assert source.ledger("shop.t").prepared == {"'x'"}
    ledger = source.ledger("*.*")
    assert (ledger.place, ledger.ahead, ledger.prepared) == (source.place, set(), frozenset())
