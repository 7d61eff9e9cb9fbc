"""
Out-of-band pieces that are linked wrongly: cases of the corruption table, ibb-format 14.

All are of group 24, which is lost, and of no other.
"""

from ibb.protocol import compint
from ibb.storage.position import Position

from .verify_rig import report_at


def set_numbers(binlog, record, at_byte, data):
    """Change bytes of a record's contents."""
    binlog.sealed(Position(1, record.offset + 3 + at_byte), data)


def offset_bytes(offset):
    """Return an offset in the two bytes that those of the nodes take."""
    encoded = compint.encode(offset)
    assert len(encoded) == 2
    return encoded


def broken_tree(binlog, text, *others):
    """Return the report at the commit record, behind those of the pieces themselves."""
    return [*others, report_at("oob-tree", binlog.places[24], text, "0-1-24")]


def pointed_at(binlog, offset, text):
    """Return the report of what is wrong about the place that a pointer leads to."""
    where = f"oob record {Position(1, offset)} of commit record {binlog.places[24]}"
    return broken_tree(binlog, f"{where}: {text}")


# Links


def not_backward(node, left, right):
    """Return both reports of a node whose links do not lead back in their order."""
    own = f"links {left} and {right} do not lead backward in order"
    return report_at("oob-record", node, own)


def leaf_that_is_its_own_link(binlog):
    node = binlog.nodes[3]
    set_numbers(binlog, node, 4, offset_bytes(node.offset))
    text = f"oob record {node} has the link {node}, which does not lead backward"
    return broken_tree(binlog, text, not_backward(node, Position(0, 0), node))


def leaf_that_is_linked_to_a_later_one(binlog):
    node, later = binlog.nodes[3], binlog.nodes[4]
    set_numbers(binlog, node, 4, offset_bytes(later.offset))
    text = f"oob record {node} has the link {later}, which does not lead backward"
    return broken_tree(binlog, text, not_backward(node, Position(0, 0), later))


def leaf_with_a_wrong_link_that_nobody_follows(binlog):
    """The node that joins it with the tree before it tells where that is: nothing is lost."""
    node = binlog.nodes[1]
    set_numbers(binlog, node, 4, offset_bytes(node.offset))
    return [not_backward(node, Position(0, 0), node)]


def node_that_is_its_own_child(binlog):
    left, node = binlog.nodes[0], binlog.nodes[2]
    set_numbers(binlog, node, 5, offset_bytes(node.offset))
    text = f"oob record {node} has links {left} and {node}, which do not lead backward in order"
    return broken_tree(binlog, text, not_backward(node, left, node))


def children_in_the_wrong_order(binlog):
    left, right, node = binlog.nodes[:3]
    set_numbers(binlog, node, 2, offset_bytes(right.offset))
    set_numbers(binlog, node, 5, offset_bytes(left.offset))
    text = f"oob record {node} has links {right} and {left}, which do not lead backward in order"
    return broken_tree(binlog, text, not_backward(node, right, left))


def node_with_another_index(binlog):
    node = binlog.nodes[1]
    set_numbers(binlog, node, 0, b"\x10")
    text = f"oob record {node} of commit record {binlog.places[24]} has index 2, expected 1"
    return broken_tree(binlog, text)


def link_to_another_record(binlog):
    set_numbers(binlog, binlog.nodes[4], 4, offset_bytes(binlog.places[23].offset))
    return pointed_at(binlog, binlog.places[23].offset, "Wrong chunk type 0x01")


def link_into_the_header_page(binlog):
    set_numbers(binlog, binlog.nodes[4], 4, offset_bytes(40))
    return pointed_at(binlog, 40, "no such place")


# The commit record: count, file and offset of the first piece, file and offset of the last


def last_pointer_to_another_record(binlog):
    set_numbers(binlog, binlog.places[24], 5, offset_bytes(binlog.places[20].offset))
    return pointed_at(binlog, binlog.places[20].offset, "Wrong chunk type 0x41")


def last_pointer_behind_the_commit_record(binlog):
    set_numbers(binlog, binlog.places[24], 5, offset_bytes(2866))
    return not_before(binlog, Position(1, 2866))


def last_pointer_to_its_own_commit_record(binlog):
    set_numbers(binlog, binlog.places[24], 5, offset_bytes(2817))
    return not_before(binlog, Position(1, 2817))


def last_pointer_to_a_later_file(binlog):
    set_numbers(binlog, binlog.places[24], 4, b"\x28")
    return not_before(binlog, Position(5, binlog.nodes[4].offset))


def not_before(binlog, pointer):
    place = binlog.places[24]
    return broken_tree(binlog, f"oob pointer {pointer} not before its commit record {place}")


def count_that_is_too_high(binlog):
    return counts(binlog, 6)


def count_that_is_too_low(binlog):
    return counts(binlog, 4)


def counts(binlog, number):
    set_numbers(binlog, binlog.places[24], 0, compint.encode(number))
    text = f"commit record {binlog.places[24]} counts {number} oob records,"
    return broken_tree(binlog, f"{text} the last one at {binlog.nodes[4]} has index 4")


def first_pointer_to_another_piece(binlog):
    """The one pointer that nobody needs: all pieces are read."""
    first, second = binlog.nodes[:2]
    set_numbers(binlog, binlog.places[24], 2, offset_bytes(second.offset))
    text = f"commit record {binlog.places[24]} says its first oob record is {second}, it is {first}"
    return [report_at("oob-first", binlog.places[24], text)]


# Heads of pieces that a group needs


def head_past_the_end_of_its_piece(binlog):
    node = binlog.nodes[3]
    set_numbers(binlog, node, 0, b"\x07" * 16)
    return no_head(binlog, node, "Short chunk: compressed integer of 9 bytes has only 7")


def head_with_a_number_above_64_bits(binlog):
    node = binlog.nodes[3]
    set_numbers(binlog, node, 0, b"\xff" * 9)
    return no_head(binlog, node, "compressed integer is above 64 bits")


def no_head(binlog, node, what):
    where = f"oob record {node} of commit record {binlog.places[24]}"
    return broken_tree(binlog, f"{where}: {what}", report_at("oob-record", node, what))


DAMAGES = [
    leaf_that_is_its_own_link,
    leaf_that_is_linked_to_a_later_one,
    leaf_with_a_wrong_link_that_nobody_follows,
    node_that_is_its_own_child,
    children_in_the_wrong_order,
    node_with_another_index,
    link_to_another_record,
    link_into_the_header_page,
    last_pointer_to_another_record,
    last_pointer_behind_the_commit_record,
    last_pointer_to_its_own_commit_record,
    last_pointer_to_a_later_file,
    count_that_is_too_high,
    count_that_is_too_low,
    first_pointer_to_another_piece,
    head_past_the_end_of_its_piece,
    head_with_a_number_above_64_bits,
]
