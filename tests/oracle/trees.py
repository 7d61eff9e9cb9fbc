"""
Out-of-band trees: the nodes of a list collected by their links, and the list built once more.

Source: ibb-format 6.
"""

from collections.abc import Mapping
from typing import NamedTuple

from .contents import Node, Reference
from .fields import DamageError
from .files import Place

NOWHERE = Place(0, 0)


class PlacedNode(NamedTuple):
    """A node and where its record begins."""

    place: Place
    node: Node


def collect(nodes: Mapping[Place, Node], reference: Reference) -> list[PlacedNode]:
    """Return the nodes of a list in the order of their bytes."""
    found = _below(nodes, reference.last, is_leftmost=True)
    if [placed.node.index for placed in found] != list(range(reference.count)):
        raise DamageError(f"indexes of the list of {reference} are not 0, 1, 2, ...")
    if found[0].place != reference.first:
        raise DamageError(f"the list of {reference} begins at {found[0].place}")
    _build_again(found)
    return found


def _below(nodes: Mapping[Place, Node], place: Place, *, is_leftmost: bool) -> list[PlacedNode]:
    """Return what comes before a node, and the node."""
    node = nodes.get(place)
    if node is None:
        raise DamageError(f"no out-of-band record at {place}")
    itself = [PlacedNode(place, node)]
    if node.left == NOWHERE:
        if not is_leftmost or node.right == NOWHERE:
            return itself
        if not node.right < place:
            raise DamageError(f"leaf at {place} points to {node.right}")
        return _below(nodes, node.right, is_leftmost=True) + itself
    if not node.left < node.right < place:
        raise DamageError(f"inner node at {place} points to {node.left} and {node.right}")
    left = _below(nodes, node.left, is_leftmost=is_leftmost)
    return left + _below(nodes, node.right, is_leftmost=False) + itself


def _build_again(found: list[PlacedNode]) -> None:
    """Write the nodes once more by the rules, and compare every link."""
    roots: list[tuple[Place, int]] = []  # place and height
    for place, node in found:
        if len(roots) >= 2 and roots[-1][1] == roots[-2][1]:
            left, right, height = roots[-2][0], roots[-1][0], roots[-1][1] + 1
            del roots[-2:]
        else:
            left, right, height = NOWHERE, roots[-1][0] if roots else NOWHERE, 1
        if (node.left, node.right) != (left, right):
            raise DamageError(
                f"node {node.index} at {place} has links {node.left} {node.right}, "
                f"the rules say {left} {right}"
            )
        roots.append((place, height))
