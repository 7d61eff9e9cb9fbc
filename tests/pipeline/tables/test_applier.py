"""Batches over many tables: each change once, through crashes, old checkpoints and lost ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.pipeline.tables.applier import Applier
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.prepared_xa import Prepared
from ibb.pipeline.tables.row_changes import MicroBatch, TableName
from ibb.pipeline.tables.server_traits import ServerTraits
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage.position import Position

from .changes import SCHEMA, Stream, delete, insert, position, update
from .memory_target import CrashError, MemoryTarget

NAMES = [TableName("shop", name) for name in ("keyed", "other", "bag")]
KEYED, OTHER, BAG = NAMES


class MemoryFolder:
    """Documents that outlive the process."""

    def __init__(self):
        self.documents = {}

    def read(self, name):
        return self.documents.get(name)

    def write(self, name, value):
        self.documents[name] = value


class NoOthers:
    """There is nothing but rows."""

    def making(self, steps):
        return set()

    def keeps_key(self, name):
        return False


class World:
    """Tables and ledger as a disk holds them, and a process that may end."""

    def __init__(self, stream):
        self.stream = stream
        self.folder = MemoryFolder()
        self.commits_left = None
        begin = Place(GtidPosition(), 0)
        self.targets = {name: MemoryTarget(name, self._count_down) for name in NAMES}
        for name, target in self.targets.items():
            target.create(SCHEMA, [] if name == BAG else ["id"], begin)
        Ledger(begin, dict.fromkeys(NAMES, begin)).store(self.folder)

    def process(self):
        ledger = Ledger.load(self.folder)
        return Applier(ledger, self.folder, self.targets.get, lambda _: True, NoOthers())

    def place(self):
        return self.stream.behind(Ledger.load(self.folder).place.position)

    def apply(self, first, last, commits=None):
        """Apply groups in a new process, which ends before so many commits."""
        self.commits_left = commits
        try:
            return self.process().apply(self.stream.batch(first, last))
        except CrashError:
            return None
        finally:
            self.commits_left = None

    def _count_down(self):
        if self.commits_left is not None:
            self.commits_left -= 1
            if self.commits_left < 0:
                raise CrashError


def row(number, name="a"):
    return {"id": number, "name": name, "price": None}


def three_tables():
    """Return a history in which each group matters to another table."""
    stream = Stream()
    stream.add_rows(insert(row(1)), name=KEYED)
    stream.add_rows(insert(row(1)), insert(row(1)), name=BAG)
    stream.add_rows(insert(row(5)), name=OTHER, domain=7)
    stream.add_rows(update(row(1), row(2)), name=KEYED)
    stream.add_rows(delete(row(1)), name=BAG)
    stream.add_rows(insert(row(6)), name=OTHER)
    return stream


FINAL = {KEYED: [(2, "a", None)], BAG: [(1, "a", None)], OTHER: [(5, "a", None), (6, "a", None)]}


def check(world):
    assert {name: target.rows() for name, target in world.targets.items()} == FINAL
    assert world.place() == len(world.stream.groups)


def test_a_table_that_knows_another_time_of_its_position_is_as_it_should_be():
    world = World(three_tables())
    world.apply(0, 3)
    world.apply(3, 4)
    for target in world.targets.values():  # brought to where it is once more, without a write
        target.advance(replace(target.place, time=target.place.time + 9))
    world.apply(4, 6)
    check(world)


@pytest.mark.parametrize("commits", range(7))
@pytest.mark.parametrize("cut", range(7))
def test_a_batch_that_was_cut_short_is_finished_in_whatever_pieces(commits, cut):
    world = World(three_tables())
    world.apply(0, 6, commits)
    if world.place() == 0:
        world.apply(0, cut)
    world.apply(world.place(), 6)
    check(world)


def test_a_checkpoint_from_a_backup_is_passed_over_until_there_is_news():
    world = World(three_tables())
    world.apply(0, 4)
    assert world.apply(0, 2).skipped
    assert world.apply(2, 3).skipped
    assert not world.apply(1, 6).skipped
    check(world)


def test_a_checkpoint_that_is_ahead_stops():
    world = World(three_tables())
    world.apply(0, 2)
    with pytest.raises(PipelineError, match="what lies between would be lost"):
        world.apply(3, 6)


def test_a_table_from_a_backup_stops():
    world = World(three_tables())
    world.apply(0, 1)
    old = world.targets[KEYED]
    kept = (dict(old.stored), old.place)
    world.apply(1, 4)
    old.stored, old.place = kept
    with pytest.raises(PipelineError, match=r"shop.keyed: .* put back from a backup"):
        world.process().apply(
            MicroBatch(position("0-1-3,7-1-1"), position("0-1-3,7-1-1,8-1-1"), 0, (), ())
        )
        world.stream.add_rows(insert(row(9)), name=KEYED)
        world.apply(4, 7)


def test_numbers_that_fall_are_fine_until_groups_must_be_told_apart():
    stream = Stream()
    stream.add_rows(insert(row(1)), name=KEYED)
    first = stream.add_rows(insert(row(2)), name=KEYED)
    stream.state.set(first._replace(seq=0))
    stream.add_rows(insert(row(3)), name=KEYED, server=2)
    world = World(stream)
    world.apply(0, 2)
    with pytest.raises(PipelineError, match="it cannot be told"):
        world.apply(1, 3)
    world.apply(2, 3)
    assert world.targets[KEYED].rows() == [(1, "a", None), (2, "a", None), (3, "a", None)]


def test_a_ledger_that_is_damaged_is_named():
    world = World(three_tables())
    world.folder.documents["ledger.json"] = {"version": 1, "position": "0-1", "time": 0}
    with pytest.raises(PipelineError, match=r"ledger.json is damaged"):
        world.process()


def test_a_table_that_is_not_there_stops_before_its_rows():
    world = World(three_tables())
    world.targets[OTHER] = MemoryTarget(OTHER)
    begin = Place(GtidPosition())
    Ledger(begin, dict.fromkeys([KEYED, BAG], begin)).store(world.folder)
    with pytest.raises(PipelineError, match=r"shop.other: .* it needs a snapshot"):
        world.apply(0, 3)


wishes = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)),
    max_size=25,
)
lives = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5), st.booleans()), max_size=12)


@given(wishes, lives)
def test_any_history_in_any_lives_ends_as_in_a_model(history, lives):
    """Crashes between any two commits, batches cut anew, checkpoints that are old."""
    stream, model = Stream(), {name: [] for name in NAMES}
    for name, op, number, domain in history:
        rows = model[name]
        old = next((found for found in rows if found["id"] == number), None)
        if op == 0 and (old is None or name == BAG):
            rows.append(row(number))
            stream.add_rows(insert(row(number)), name=name, domain=domain)
        elif op == 1 and old:
            rows.remove(old)
            stream.add_rows(delete(old), name=name, domain=domain)
        elif op == 2 and old:
            rows[rows.index(old)] = row(number, "b")
            stream.add_rows(update(old, row(number, "b")), name=name, domain=domain)
    world = World(stream)
    for groups, commits, is_old in lives:
        first = max(0, world.place() - (3 if is_old else 0))
        world.apply(first, min(first + groups, len(stream.groups)), commits)
    world.apply(world.place(), len(stream.groups))
    for name, rows in model.items():
        wanted = sorted((tuple(found.values()) for found in rows), key=repr)
        assert world.targets[name].rows() == wanted


def test_prepared_transactions_go_with_the_place_to_the_next_process():
    world = World(Stream())
    world.stream.add_rows(insert(row(1)), name=KEYED)
    prepared = {"'x'": Prepared(Gtid(0, 1, 1), Position(0, 4711), changes=True)}
    world.process().apply(replace(world.stream.batch(0, 1), prepared=prepared))
    assert Ledger.load(world.folder).prepared == prepared
    world.process().apply(replace(world.stream.batch(0, 1), prepared={}))  # done before
    assert Ledger.load(world.folder).copy().prepared == prepared


def test_the_ledger_keeps_how_the_source_is():
    folder = MemoryFolder()
    traits = ServerTraits(lower_case=True, logs_generated=False)
    Ledger(Place.nowhere(), traits=traits).copy().store(folder)
    assert Ledger.load(folder).traits == traits
    for key in ServerTraits._fields:
        del folder.documents["ledger.json"][key]  # as it was written before
    assert Ledger.load(folder).traits == ServerTraits(lower_case=False, logs_generated=True)
