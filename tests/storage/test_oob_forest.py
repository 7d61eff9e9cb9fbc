"""A forest tells what each node links to, by itself as one that keeps every tree as an object."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.storage.oob_forest import ROOTS_MAX, ForestMark, OobForest, Root
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import OOB_HEADER_BYTES_MAX, OobHeader, encode_oob_header

pytestmark = pytest.mark.kernel


class Model:
    """A forest by the words of ibb-format 6.1: its trees, as lists of the nodes that they have."""

    def __init__(self, trees=()):
        self.trees = [list(tree) for tree in trees]

    @property
    def count(self):
        return sum(map(len, self.trees))

    @property
    def joins(self):
        return len(self.trees) > 1 and len(self.trees[-1]) == len(self.trees[-2])

    def header(self):
        left = self.trees[-2][-1] if self.joins else NOWHERE
        return OobHeader(self.count, left, self.trees[-1][-1] if self.trees else NOWHERE)

    def add(self, position):
        below = [*self.trees.pop(-2), *self.trees.pop()] if self.joins else []
        self.trees.append([*below, position])

    def roots(self):
        nodes, found = 0, []
        for tree in self.trees:
            nodes += len(tree)
            found.append(Root(tree[-1], nodes - 1, len(tree).bit_length()))
        return tuple(found)


def same(forest, model):
    head = bytearray(b"?" * (OOB_HEADER_BYTES_MAX + 8))
    end = forest.put_head(head, 5)
    assert bytes(head[5:end]) == encode_oob_header(model.header())
    assert head[:5] + head[end:] == b"?" * (len(head) - end + 5)
    assert forest.next_node() == model.header()
    assert forest.count == model.count
    assert forest.roots == model.roots()
    if model.count:
        reference = forest.reference()
        assert (reference.count, reference.last) == (model.count, model.trees[-1][-1])
        assert reference.first == model.trees[0][0]
    return True


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 1), st.integers(1, 2**40)),
        st.tuples(st.just("run"), st.integers(0, 1), st.lists(st.integers(1, 99), max_size=20)),
        st.tuples(st.just("save"), st.just(0), st.just(0)),
        st.tuples(st.just("copy"), st.just(0), st.just(0)),
        st.tuples(st.just("restore"), st.integers(0, 4), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_it_is_as_one_of_objects_whatever_is_done(steps):
    forest, model, marks, left_behind = OobForest(), Model(), [], []
    at = Position(3, 1000)
    for what, which, more in steps:
        if what == "add":
            at = Position(at.file_no + which, at.offset + more)
            forest.add(at)
            model.add(at)
        elif what == "run":
            at, starts = Position(at.file_no + which, at.offset), []
            for size in more:
                at = Position(at.file_no, at.offset + size)
                starts.append(at.offset)
                model.add(at)
            forest.add_run(at.file_no, array("q", [*starts, 1 << 50]), len(starts))
        elif what == "save":
            marks.append((forest.save(), Model(model.trees)))
        elif what == "copy":
            left_behind.append((forest, Model(model.trees)))
            forest = forest.copy()
        elif which < len(marks):
            mark, then = marks[which]
            forest.restore(mark)
            model = Model(then.trees)
        assert same(forest, model)
    for other, then in left_behind:
        assert same(other, then)


def test_the_first_record_is_that_of_the_first_node_that_stayed():
    forest = OobForest()
    empty = forest.save()
    forest.add(Position(0, 600))
    forest.restore(empty)
    forest.add(Position(0, 700))
    mark = forest.save()
    forest.add(Position(1, 800))
    forest.restore(mark)
    forest.add(Position(1, 900))
    assert forest.reference().first == Position(0, 700)
    assert forest.reference().last == Position(1, 900)
    assert forest.copy().reference() == forest.reference()


def test_a_savepoint_behind_one_that_was_gone_back_to_has_its_own_first_node():
    forest = OobForest()
    empty = forest.save()
    forest.add(Position(0, 600))
    one = forest.save()
    forest.restore(empty)
    forest.add(Position(0, 700))
    forest.restore(one)
    assert forest.reference().first == Position(0, 600)


def test_what_is_not_behind_the_last_node_is_no_node():
    forest = OobForest()
    forest.add(Position(1, 900))
    with pytest.raises(AssertionError):
        forest.add(Position(1, 900))
    with pytest.raises(AssertionError):
        forest.add_run(1, array("q", [1000]), 2)
    with pytest.raises(AssertionError):
        OobForest().reference()


def test_there_is_room_for_as_many_trees_as_there_can_be():
    heights = [*range(62, 0, -1), 1]  # of as many nodes as a count of 63 bits has
    roots, nodes = [], 0
    for place, height in enumerate(heights):
        nodes += 2**height - 1
        roots.append(Root(Position(0, 600 + place), nodes - 1, height))
    forest = OobForest()
    forest.restore(ForestMark(tuple(roots), roots[0].position))
    assert forest.roots == tuple(roots)
    forest.add(Position(1, 600))
    assert [root.height for root in forest.roots] == [*range(62, 1, -1), 2]
    assert len(roots) + 1 < ROOTS_MAX
