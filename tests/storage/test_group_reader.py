"""Groups come whole and in order, however their pieces lie, a page of them in memory at a time."""

import gc
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import REPORTS_MAX, GroupReader
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position

from .binlog_builder import BinlogBuilder, event, gtid_event

SIZE = 512

layouts = st.fixed_dictionaries(
    {
        "page_size": st.sampled_from([512, 1024, 2048]),
        "pages": st.integers(6, 9),
        "interval": st.integers(0, 4),
        "major": st.sampled_from([0, 1]),
    }
)
# What happens in turn: (what, which of four open groups, how much of it).
steps = st.lists(
    st.tuples(
        st.sampled_from(["piece", "piece", "piece", "other", "save", "back", "commit", "give up"]),
        st.integers(0, 3),
        st.integers(1, 900),
    ),
    max_size=60,
)


class OpenGroup:
    """A group that is being written: two lists of pieces, and one savepoint of the second."""

    def __init__(self):
        self.forests = OobForest(), OobForest()
        self.pieces = [], []
        self.mark = self.forests[1].save(), 0


def write_groups(builder, wanted):
    """Carry out the steps; return the groups that were committed: (gtid, place, bytes)."""
    groups, committed = [OpenGroup() for _ in range(4)], []
    for number, (what, which, size) in enumerate(wanted, start=1):
        group, piece = groups[which], bytes([number % 256]) * size
        if what in ("piece", "other"):
            # In the draft there is one list; the first of two is the statement list.
            index = 0 if what == "other" and builder.major else 1
            builder.oob(group.forests[index], piece)
            group.pieces[index].append(piece)
        elif what == "save":
            group.mark = group.forests[1].save(), len(group.pieces[1])
        elif what == "back":
            group.forests[1].restore(group.mark[0])
            del group.pieces[1][group.mark[1] :]
        elif what == "give up":
            groups[which] = OpenGroup()
        else:
            lists = [forest.reference() for forest in group.forests if forest.count]
            gtid = Gtid(which, 1, number)
            rest = [] if lists else [event(18 + size)]
            place = builder.commit(gtid, *rest, lists=lists)
            data = [gtid_event(gtid), *rest, *group.pieces[0], *group.pieces[1]]
            committed.append((gtid, place, b"".join(data)))
            groups[which] = OpenGroup()
    return committed


@given(layouts, steps)
def test_interleaved_groups_with_rollbacks_come_whole(layout, wanted):
    builder = BinlogBuilder(**layout)
    committed = write_groups(builder, wanted)
    with tempfile.TemporaryDirectory() as path:
        source = BinlogDirectory(OsDisk(), str(builder.write(Path(path))))
        reader, found = GroupReader(source, Position(0, 0)), []
        for group in iter(reader.next, None):
            pieces = list(group.pieces())
            assert all(0 < len(piece) < builder.page_size for piece in pieces[1:])
            found.append((group.gtid, group.position, b"".join(pieces)))
        assert found == committed
        assert reader.reports == []
        source.close()


@pytest.fixture
def directory(tmp_path):
    builder, forest = BinlogBuilder(pages=64, interval=0), OobForest()
    builder.commit(Gtid(0, 1, 1), event(2000))
    for letter in b"abc":
        builder.oob(forest, bytes([letter]) * 700)
    builder.commit(Gtid(0, 1, 2), lists=[forest.reference()])
    builder.commit(Gtid(0, 1, 3), event(50))
    return BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))


def test_pieces_are_taken_once(directory):
    group = GroupReader(directory, Position(0, 0)).next()
    group.pieces()
    with pytest.raises(AssertionError, match="taken before"):
        group.pieces()


def test_the_pieces_of_a_long_group_must_be_taken_before_the_next_group(directory):
    reader = GroupReader(directory, Position(0, 0))
    pieces = reader.next().pieces()
    next(pieces)
    assert reader.next().gtid.seq == 2
    with pytest.raises(AssertionError, match="gone on"):
        list(pieces)


def test_what_was_not_taken_is_discarded(directory):
    reader = GroupReader(directory, Position(0, 0))
    taken = []
    for group in iter(reader.next, None):
        pieces = group.pieces()
        next(pieces)
        taken.append(group.gtid.seq)
    assert taken == [1, 2, 3]


def test_the_position_is_behind_the_group_whether_it_was_read_or_not(directory):
    reader = GroupReader(directory, Position(0, 0))
    group = reader.next()
    behind = reader.position
    list(group.pieces())
    assert reader.position == behind
    again = GroupReader(directory, behind)
    assert again.next().gtid == reader.next().gtid == Gtid(0, 1, 2)


def test_a_group_waits_until_all_of_it_is_there(tmp_path):
    builder = BinlogBuilder(interval=0)
    builder.commit(Gtid(0, 1, 1), event(50))
    place = builder.commit(Gtid(0, 1, 2), event(2000))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    source.limit = Position(0, 4 * SIZE)
    reader = GroupReader(source, Position(0, 0))
    assert reader.next().gtid.seq == 1
    for _ in range(2):
        assert reader.next() is None
        assert reader.position == place
    source.limit = None
    assert len(b"".join(reader.next().pieces())) == 38 + 2000


def test_reports_are_bounded(tmp_path):
    builder = BinlogBuilder(page_size=16384)
    for _ in range(REPORTS_MAX + 50):
        builder.record(60, b"?")
    reader = GroupReader(BinlogDirectory(OsDisk(), str(builder.write(tmp_path))), Position(0, 0))
    assert reader.next() is None
    assert len(reader.reports) == REPORTS_MAX
    assert reader.unknown_records == REPORTS_MAX + 50


def test_a_large_group_takes_little_memory_though_nobody_looks_for_garbage(tmp_path):
    builder, forest = BinlogBuilder(page_size=16384, pages=1500, interval=0), OobForest()
    for number in range(600):
        builder.oob(forest, bytes([number % 256]) * 32768)
    builder.commit(Gtid(0, 1, 1), lists=[forest.reference()])
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    del builder
    group = GroupReader(source, Position(0, 0)).next()
    gc.disable()
    tracemalloc.start()
    try:
        assert sum(map(len, group.pieces())) == 38 + 600 * 32768
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak < 6 << 20  # of it 4 MiB page cache
