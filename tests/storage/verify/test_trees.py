"""Out-of-band trees that are linked wrongly or have lost pieces: what the check finds."""

import pytest

from ibb.protocol import compint
from ibb.storage.oob import OobForest
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import (
    OobHeader,
    RecordType,
    encode_oob_header,
)
from ibb.storage.verify.finding import NOTHING

from ..binlog_builder import event
from .verify_rig import SIZE, Binlog, at, findings, numbered, told, totals

HEADER = 512  # bytes of page 0


@pytest.fixture
def binlog(tmp_path):
    return Binlog(tmp_path)


def wrap(binlog, record_type, data, gtid=None):
    """Put a record between good groups; return its place."""
    binlog.groups(3)
    place = binlog.builder.record(record_type, data, gtid)
    binlog.groups(7)
    binlog.write()
    return place


@pytest.fixture
def tree(binlog):
    binlog.groups(3).large_group().groups(3).write()
    assert [place.offset for place in binlog.nodes] == [1258, 1286, 1325, 1742, 1761]
    assert binlog.places[4] == (0, 1780)
    return binlog


def set_numbers(binlog, position, at_byte, data):
    binlog.sealed(Position(0, position.offset + 3 + at_byte), data)


def offset_bytes(offset):
    """Return an offset in the two bytes that those of the nodes take."""
    encoded = compint.encode(offset)
    assert len(encoded) == 2
    return encoded


def own_place_as_link(binlog):
    node = binlog.nodes[3]
    set_numbers(binlog, node, 4, offset_bytes(node.offset))
    return [at("oob-record", node)], "does not lead backward"


def children_in_the_wrong_order(binlog):
    node = binlog.nodes[2]
    set_numbers(binlog, node, 2, offset_bytes(1286) + b"\0" + offset_bytes(1258))
    return [at("oob-record", node)], "do not lead backward"


def wrong_index(binlog):
    set_numbers(binlog, binlog.nodes[1], 0, b"\x10")
    return [], "has index 2, expected 1"


def link_to_another_record(binlog):
    set_numbers(binlog, binlog.nodes[3], 4, offset_bytes(1001))
    return [], "Wrong chunk type 0x01"


def link_to_nothing(binlog):
    set_numbers(binlog, binlog.nodes[3], 4, offset_bytes(40))
    return [], "no such place"


def last_pointer_behind_the_commit_record(binlog):
    set_numbers(binlog, binlog.places[4], 5, offset_bytes(1790))
    return [], "not before its commit record"


def last_pointer_to_a_missing_file(binlog):
    binlog.builder.oob_references[0] = 0
    set_numbers(binlog, binlog.places[4], 4, b"\x28")
    return [], "not before its commit record"


def wrong_count(binlog):
    set_numbers(binlog, binlog.places[4], 0, b"\x30")
    return [], "counts 6 oob records"


@pytest.mark.parametrize(
    "damage",
    [
        own_place_as_link,
        children_in_the_wrong_order,
        wrong_index,
        link_to_another_record,
        link_to_nothing,
        last_pointer_behind_the_commit_record,
        last_pointer_to_a_missing_file,
        wrong_count,
    ],
    ids=lambda damage: damage.__name__,
)
def test_trees_that_are_linked_wrongly(tree, damage):
    """The group is lost, at its commit record; a node that is wrong in itself is told as well."""
    others, text = damage(tree)
    assert told(tree.path) == [*others, at("oob-tree", tree.places[4], "0-1-4")]
    assert text in findings(tree.path)[-1].text
    assert totals(tree.path).groups == 7


def test_a_wrong_first_pointer_loses_nothing(tree):
    set_numbers(tree, tree.places[4], 2, offset_bytes(1286))
    assert told(tree.path) == [at("oob-first", tree.places[4])]


def test_a_damaged_page_costs_the_groups_with_a_piece_there(tmp_path):
    binlog = Binlog(tmp_path, interval=0).groups(1)
    binlog.large_group((100, 500, 300)).groups(1).write()
    binlog.raw(Position(0, 2 * SIZE + 99), b"\x5a")
    assert told(tmp_path) == [
        ("page-checksum", "binlog-000000.ibb", 2, None, "unknown: no GTID state follows"),
        at("oob-unreadable", binlog.places[2], "0-1-2"),
    ]


def test_pieces_in_files_that_were_purged(tmp_path):
    binlog = Binlog(tmp_path, interval=0).groups(1)
    forest = OobForest()
    binlog.builder.oob(forest, event(50))
    binlog.groups(15)
    assert binlog.builder.file_no == 1
    place = binlog.builder.commit(numbered(17), lists=[forest.reference()])
    binlog.write()
    binlog.file(0).unlink()
    assert told(tmp_path) == [at("oob-purged", place, "0-1-17")]
    assert "the file is missing" in findings(tmp_path)[0].text


def test_pieces_below_the_reference_of_the_header(tmp_path):
    binlog = Binlog(tmp_path, interval=0).groups(1)
    forest = OobForest()
    binlog.builder.oob(forest, event(50))
    binlog.groups(15)
    place = binlog.builder.commit(numbered(17), lists=[forest.reference()])
    binlog.builder.oob_references[1] = 1
    binlog.write()
    assert told(tmp_path) == [at("oob-tree", place, "0-1-17")]
    assert "below the oob reference 1" in findings(tmp_path)[0].text


@pytest.mark.parametrize(
    "data", [encode_oob_header(OobHeader(0, NOWHERE, NOWHERE)), b"\0\0\0", b"\0" * 4 + b"\x06"]
)
def test_pieces_without_a_head_or_without_data(binlog, data):
    place = wrap(binlog, RecordType.OOB, data)
    assert told(binlog.path) == [at("oob-record", place)]
    assert findings(binlog.path)[0].text.startswith("Short chunk")
    assert findings(binlog.path)[0].lost == NOTHING
