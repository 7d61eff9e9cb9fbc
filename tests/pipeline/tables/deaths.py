"""Every state of a disk in which a pipeline may have died: those before each of its writes."""

import os
import shutil
import threading
from dataclasses import replace

from deltalake import DeltaTable
from deltalake.table import TableMerger, TableOptimizer

from ibb.pipeline.tables import dead_letters, delta_commits, pipeline, snapshot
from ibb.pipeline.tables.config import PipelineConfig, ServerConfig
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.pipeline import Pipeline, Progress
from ibb.pipeline.tables.server_traits import ServerTraits
from ibb.pipeline.tables.state_folder import StateFolder


class Deaths:
    """
    Runs a pipeline on *source*, and keeps the disk as it was before each write.

    Args:
        monkeypatch: puts the source in place of a server and its binlog, and counts writes.
        folder: for disks.
        source: of `modelled`.
    """

    def __init__(self, monkeypatch, folder, source):
        self.source = source
        self.runs = 0
        self._folder = folder
        self._lake = None
        self._kept = None
        self.config = PipelineConfig("test", "", "", include=("shop.*",), server=ServerConfig())
        for place, name in (
            (delta_commits, "write_deltalake"),
            (dead_letters, "write_deltalake"),
            (TableMerger, "execute"),
            (TableOptimizer, "compact"),
            (os, "rename"),
            (os, "replace"),
            (StateFolder, "new_file"),
            (StateFolder, "remove"),
        ):
            self._watch(monkeypatch, place, name)
        monkeypatch.setattr(os, "fsync", lambda _: None)  # a process dies here, no machine
        monkeypatch.setattr(pipeline, "read_batches", source.read)
        monkeypatch.setattr(pipeline, "server_traits", lambda _: ServerTraits(False, True))
        monkeypatch.setattr(snapshot, "view_of_tables", source.view)
        monkeypatch.setattr(Pipeline, "_wait_for", lambda *_: None)

    def run(self, lake, *snapshot, dies=True):
        """Run a process to its end on the disk *lake*; return the disks it may have left."""
        self._lake, self._kept = lake if dies else None, []
        self.runs += 1
        try:
            progress = Progress(lambda *_: None, lambda *_: None)
            # Only where there are letters: merges are strict without them.
            undecoded = "keep" if self.source.letters else "stop"
            config = replace(self.config, target=str(lake), undecoded=undecoded)
            Pipeline(config, progress).run(threading.Event(), once=True, snapshot=snapshot)
        finally:
            self._lake = None
        return self._kept

    def check(self, lake):
        """Check that the tables are those of the source, and that the ledger knows where."""
        config = replace(self.config, target=str(lake))
        opened, everything = Lake(config), self.source.models[-1]
        model = {name: made for name, made in everything.items() if config.wants(name)}
        ledger = Ledger.load(opened.state)
        assert ledger.place.position == self.source.stream.state
        found = {}
        for path in (lake / "shop").iterdir():
            name = next(name for name in {*model, *ledger.tables} if name.table == path.name)
            target = opened.open(name)
            rows = [row for batch in target.batches() for row in batch.to_pylist()]
            found[name] = (set(target.schema.names), target.key, sorted(rows, key=repr))
            assert ledger.tables[name] == target.place
        wanted = {
            name: (set(made.columns), list(made.key), sorted(made.rows, key=repr))
            for name, made in model.items()
        }
        assert found == wanted
        assert ledger.tables.keys() == wanted.keys()
        assert not [*lake.glob("_ibb/renamed*/*/*")]
        letters = lake / "_ibb/dead_letters"
        kept = DeltaTable(str(letters)).to_pyarrow_table().to_pylist() if letters.exists() else []
        letters = sorted((row["gtid"], row["reason"]) for row in kept)
        assert letters == sorted(self.source.letters), letters

    def _watch(self, monkeypatch, place, name):
        write = getattr(place, name)

        def watched(*args, **options):
            if self._lake is not None:
                copy = self._folder / f"{self.runs}-{len(self._kept)}"
                lake, self._lake = self._lake, None  # the copy is not to be watched
                shutil.copytree(lake, copy)
                self._lake = lake
                self._kept.append(copy)
            return write(*args, **options)

        monkeypatch.setattr(place, name, watched)
