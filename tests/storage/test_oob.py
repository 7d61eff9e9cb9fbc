"""Out-of-band trees: built, rolled back, walked in order, and never walked for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.storage.oob import TREE_DEPTH_MAX, walk_tree
from ibb.storage.oob_forest import OobForest
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import OobHeader, OobReference


class Node:
    def __init__(self, header, piece):
        self.header = header
        self.piece = piece

    def pieces(self):
        yield self.piece[:1]
        yield self.piece[1:]


class Nodes:
    """Nodes at made-up places, in memory."""

    def __init__(self):
        self.at = {}
        self.place = 512
        self.reports = []

    def add(self, forest, piece):
        position = Position(0, self.place)
        self.at[position] = Node(forest.next_node(), piece)
        forest.add(position)
        self.place += 50
        return position

    def walk(self, reference, *, before=None, lowest_file=0):
        pieces = walk_tree(
            self.at.__getitem__,
            reference,
            before=before or Position(0, self.place),
            lowest_file=lowest_file,
            report=self.reports.append,
        )
        return b"".join(pieces)


def piece(number):
    return f"<{number}>".encode()


def build(count):
    nodes, forest = Nodes(), OobForest()
    for number in range(count):
        nodes.add(forest, piece(number))
    return nodes, forest


def test_the_forest_of_twelve_nodes_is_as_drawn():
    nodes, forest = build(12)
    by_place = {position: node.header.index for position, node in nodes.at.items()}
    links = {
        node.header.index: tuple(
            by_place.get(link) for link in (node.header.left, node.header.right)
        )
        for node in nodes.at.values()
    }
    assert [root.index for root in forest.roots] == [6, 9, 10, 11]
    assert links == {
        0: (None, None), 1: (None, 0), 2: (0, 1), 3: (None, 2), 4: (None, 3), 5: (3, 4), 6: (2, 5),
        7: (None, 6), 8: (None, 7), 9: (7, 8), 10: (None, 9), 11: (None, 10),
    }  # fmt: skip
    assert forest.next_node().left == forest.roots[2].position
    nodes.add(forest, b"12")
    header = forest.next_node()
    assert (header.left, header.right) == (forest.roots[1].position, forest.roots[2].position)


def test_asking_for_the_next_node_changes_nothing():
    _, forest = build(5)
    assert forest.next_node() == forest.next_node()
    assert forest.count == 5


@given(st.integers(1, 300))
def test_a_walk_yields_all_pieces_in_order(count):
    nodes, forest = build(count)
    assert nodes.walk(forest.reference()) == b"".join(map(piece, range(count)))
    assert nodes.reports == []
    assert len(forest.roots) <= count.bit_length() + 1


@given(st.lists(st.one_of(st.just("add"), st.just("save"), st.integers(0, 5)), max_size=80))
def test_what_was_rolled_back_is_not_walked(steps):
    nodes, forest = Nodes(), OobForest()
    live, marks, number = [], [], 0
    for step in steps:
        if step == "add":
            nodes.add(forest, piece(number))
            live.append(number)
            number += 1
        elif step == "save":
            marks.append((forest.save(), len(live)))
        elif step < len(marks):
            mark, length = marks[step]
            del marks[step + 1 :]
            forest.restore(mark)
            del live[length:]
    assert forest.count == len(live)
    if live:
        assert nodes.walk(forest.reference()) == b"".join(map(piece, live))
        assert nodes.reports == []


def test_a_million_nodes_need_a_stack_of_hundreds():
    forest, headers, deepest = OobForest(), {}, 0
    for number in range(1, 50_001):
        headers[Position(0, 1000 + number)] = forest.next_node()
        forest.add(Position(0, 1000 + number))
    opened = []

    def read(position):
        opened.append(position)
        return Node(headers[position], b"xy")

    pieces = walk_tree(
        read, forest.reference(), before=Position(1, 0), lowest_file=0, report=pytest.fail
    )
    for _ in range(2):
        next(pieces)
    deepest = len(opened)  # all of them are on the stack before the first byte comes
    assert deepest < 150


def damaged(number, **changes):
    """Return a forest of 12 where one node has other links or another index."""
    nodes, forest = build(12)
    for node in nodes.at.values():
        if node.header.index == number:
            old = node.header
            node.header = OobHeader(
                changes.get("index", old.index),
                changes.get("left", old.left),
                changes.get("right", old.right),
            )
    return nodes, forest.reference()


def place_of(index):
    return Position(0, 512 + 50 * index)


@pytest.mark.parametrize(
    ("number", "changes", "text"),
    [
        (6, {"left": place_of(6)}, "do not lead backward"),
        (6, {"right": place_of(6)}, "do not lead backward"),
        (6, {"right": place_of(7)}, "do not lead backward"),
        (6, {"left": place_of(5), "right": place_of(2)}, "do not lead backward"),
        (7, {"right": place_of(7)}, "does not lead backward"),
        (7, {"right": place_of(9)}, "does not lead backward"),
        (7, {"right": NOWHERE}, "has index 7, expected 0"),
        (7, {"right": place_of(5)}, "has index 7, expected 6"),
        (3, {"index": 4}, "has index 4, expected 3"),
        (11, {"index": 10}, "counts 12 oob records"),
        (11, {"index": 2**63}, "counts 12 oob records"),
    ],
)
def test_wrong_links_and_indexes_end_the_walk(number, changes, text):
    nodes, reference = damaged(number, **changes)
    with pytest.raises(FormatError, match=text):
        nodes.walk(reference)


@pytest.mark.parametrize("count", [11, 13])
def test_a_wrong_count_ends_the_walk_before_the_first_byte(count):
    nodes, forest = build(12)
    reference = forest.reference()
    with pytest.raises(FormatError, match=f"counts {count} oob records"):
        nodes.walk(OobReference(count, reference.first, reference.last))


def test_a_wrong_first_pointer_is_reported_and_the_data_is_used():
    nodes, forest = build(3)
    reference = forest.reference()
    wrong = OobReference(reference.count, place_of(1), reference.last)
    assert nodes.walk(wrong) == b"<0><1><2>"
    assert len(nodes.reports) == 1
    assert "first oob record" in nodes.reports[0]


def test_a_tree_behind_its_commit_record_or_below_the_references_is_damage():
    nodes, forest = build(3)
    with pytest.raises(FormatError, match="not before its commit record"):
        nodes.walk(forest.reference(), before=place_of(2))
    with pytest.raises(FormatError, match="below the oob reference 1"):
        nodes.walk(forest.reference(), lowest_file=1)


def test_a_chain_without_end_is_cut():
    def read(position):
        link = Position(0, position.offset - 1)
        return Node(OobHeader(9, NOWHERE, link), b"x")

    reference = OobReference(10, place_of(0), Position(0, 10**9))
    pieces = walk_tree(read, reference, before=Position(1, 0), lowest_file=0, report=pytest.fail)
    with pytest.raises(FormatError, match="too deep"):
        list(pieces)
    assert TREE_DEPTH_MAX < 5000
