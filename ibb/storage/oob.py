"""
Out-of-band trees as they are read: how the pieces of a large event group are put in order.

They are built as `oob_forest.py` says. Bytes come in the order of node indexes: prior trees, left
subtree, right subtree, the node itself. Source: ibb-format 6.
"""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Protocol

from ibb.protocol.errors import FormatError

from .position import NOWHERE, Position
from .record import OobHeader, OobReference

TREE_DEPTH_MAX = 1024  # entries on the stack of a walk; 2**32 nodes need fewer than 600


class OobNode(Protocol):
    """A node as it is read: its links, and its piece when it is wanted."""

    header: OobHeader

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the node's bytes in bounded pieces."""


class _Step(Enum):
    """What is left to do for a node on the stack."""

    OPEN = auto()
    RIGHT = auto()
    SELF = auto()


class _Entry:
    """A node on the stack; the node itself is read again when its bytes are due."""

    __slots__ = ("index", "leftmost", "position", "right", "step")

    def __init__(self, position: Position, *, leftmost: bool) -> None:
        self.position = position
        self.leftmost = leftmost
        self.step = _Step.OPEN
        self.right = NOWHERE
        self.index = 0


def walk_tree(
    read_node: Callable[[Position], OobNode],
    reference: OobReference,
    *,
    before: Position,
    lowest_file: int,
    report: Callable[[str], None],
) -> Iterator[bytes | memoryview]:
    """
    Yield the bytes of a list, in order, holding one node's links for each level only.

    Args:
        read_node: opens the oob record at a position; opened again after others in between.
        reference: as the commit record has it.
        before: the commit record; all nodes lie before it.
        lowest_file: no node lies in a file below it.
        report: takes a finding that leaves the data usable.

    Raises:
        FormatError: a link that does not lead back, a node out of order, a wrong count; and what
            *read_node* raises.

    Source: ibb-format 6.3.
    """
    expected = 0
    if reference.last >= before:
        raise FormatError(f"oob pointer {reference.last} not before its commit record {before}")
    stack = [_Entry(reference.last, leftmost=True)]
    while stack:
        entry = stack[-1]
        if entry.step is _Step.RIGHT:
            entry.step = _Step.SELF
            stack.append(_Entry(entry.right, leftmost=False))
            continue
        node: OobNode | None = None
        if entry.step is _Step.OPEN:
            if entry.position.file_no < lowest_file:
                raise FormatError(
                    f"oob pointer {entry.position} of the commit record {before} leads below"
                    f" the oob reference {lowest_file} of the file"
                )
            if len(stack) > TREE_DEPTH_MAX:
                raise FormatError(f"oob tree of commit record {before} is too deep")
            node = read_node(entry.position)
            entry.index = node.header.index
            if len(stack) == 1 and entry.index != reference.count - 1:
                raise FormatError(
                    f"commit record {before} counts {reference.count} oob records,"
                    f" the last one at {entry.position} has index {entry.index}"
                )
            following = _descend(entry, node.header)
            if following is not None:
                stack.append(following)
                continue
        if entry.index != expected:
            raise FormatError(
                f"oob record {entry.position} of commit record {before} has index"
                f" {entry.index}, expected {expected}"
            )
        if expected == 0 and entry.position != reference.first:
            report(
                f"commit record {before} says its first oob record is {reference.first},"
                f" it is {entry.position}"
            )
        expected += 1
        yield from (node or read_node(entry.position)).pieces()
        stack.pop()


def _descend(entry: _Entry, header: OobHeader) -> _Entry | None:
    """Return the node to visit before *entry*'s own bytes or right child, and note what is left."""
    if not header.is_leaf:
        if not header.left < header.right < entry.position:
            raise FormatError(
                f"oob record {entry.position} has links {header.left} and {header.right},"
                " which do not lead backward in order"
            )
        entry.step = _Step.RIGHT
        entry.right = header.right
        return _Entry(header.left, leftmost=entry.leftmost)
    entry.step = _Step.SELF
    if not entry.leftmost or header.right == NOWHERE:
        return None  # the link of a leaf further right is no child
    if header.right >= entry.position:
        raise FormatError(
            f"oob record {entry.position} has the link {header.right}, which does not lead backward"
        )
    return _Entry(header.right, leftmost=True)
