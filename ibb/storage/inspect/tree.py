"""Drawings of out-of-band trees. Source: ibb-format 6."""

from typing import NamedTuple

from ibb.protocol.errors import FormatError
from ibb.storage.chunk import CONTINUATION, TYPE_MASK
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import (
    OOB_HEADER_BYTES_MAX,
    OobHeader,
    OobReference,
    RecordType,
    parse_oob_header,
)
from ibb.storage.record_reader import RecordReader

NODES_DRAWN_MAX = 1000  # of a list
INDENT_MAX = 60  # characters; deeper nodes are drawn no further to the right


class _Branch(NamedTuple):
    position: Position
    before: Position  # it must lie before this place
    lead: str  # what is drawn before its own line
    below: str  # what is drawn before the lines of its children
    leftmost: bool


def draw_tree(pages: BinlogDirectory, reference: OobReference) -> list[str]:
    """
    Return a list's trees as lines, the last one first; the bytes come in order of the numbers.

    What is damaged is said in its place.
    """
    lines = [f"{reference.count} pieces, first {reference.first}, last {reference.last}"]
    root, before = reference.last, Position(reference.last.file_no, reference.last.offset + 1)
    while root != NOWHERE:
        prior = NOWHERE
        stack = [_Branch(root, before, "", "", leftmost=True)]
        while stack:
            if len(lines) > NODES_DRAWN_MAX:
                lines.append(f"... more than {NODES_DRAWN_MAX} are not drawn")
                return lines
            branch = stack.pop()
            try:
                header, size = _read_node(pages, branch)
            except (FormatError, DiskError) as error:
                lines.append(f"{branch.lead}!! {branch.position}: {error}")
                continue
            what = "leaf" if header.is_leaf else "inner"
            lines.append(f"{branch.lead}{header.index} {what} {branch.position}, {size} bytes")
            if not header.is_leaf:
                stack += _children(branch, header)
            elif branch.leftmost:
                prior, before = header.right, branch.position
        root = prior
    return lines


def _children(branch: _Branch, header: OobHeader) -> tuple[_Branch, _Branch]:
    """Return the children of an inner node, the one to be drawn first last."""
    below = branch.below[:INDENT_MAX]
    right = _Branch(header.right, branch.position, f"{below}└── ", f"{below}    ", leftmost=False)
    left = _Branch(
        header.left, branch.position, f"{below}├── ", f"{below}│   ", leftmost=branch.leftmost
    )
    return right, left


def _read_node(pages: BinlogDirectory, branch: _Branch) -> tuple[OobHeader, int]:
    """
    Return a node's links and the size of its piece.

    Raises:
        FormatError: there is no such node.
    """
    position = branch.position
    if position >= branch.before:
        raise FormatError(f"the link does not lead backward from {branch.before}")
    header = pages.header(position.file_no)
    if header is None:
        raise FormatError("the file is missing")
    if position.offset < header.page_size:
        raise FormatError("no such place")
    reader = RecordReader(pages, position)
    type_byte = reader.peek()
    if type_byte is None or type_byte & (TYPE_MASK | CONTINUATION) != RecordType.OOB:
        raise FormatError("no out-of-band record begins there")
    record = reader.next()
    if record is None:
        raise FormatError("the record does not end")
    head, size = bytes(record.first[:OOB_HEADER_BYTES_MAX]), len(record.first)
    for part in record.rest():
        size += len(part)
        head += part[: max(OOB_HEADER_BYTES_MAX - len(head), 0)]
    links, start = parse_oob_header(head)
    return links, size - start
