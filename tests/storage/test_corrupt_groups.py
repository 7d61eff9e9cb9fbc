"""Commit records and out-of-band pieces that cannot be: cases of the corruption table."""

import pytest

from ibb.protocol import compint
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import OobHeader, OobReference, encode_oob_header

from .binlog_builder import BinlogBuilder, event, gtid_event

SIZE = 512


def numbered(seq):
    return Gtid(0, 1, seq)


GTID = gtid_event(numbered(2))


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (b"\xff\xff\xff", "Short chunk"),
        (b"\xff" * 8 + b"\x08" + bytes(30), "above 64 bits"),
        (b"\x28\x00\x59", "Short chunk"),
        (b"\x08" + bytes(4) + b"\0" + GTID, "points to none"),
        (b"\0" + GTID[:18], "Short chunk"),
        (b"\0" + GTID[:37], "Short chunk"),
        (b"\0" + GTID[:9] + b"\x12" + GTID[10:], "says that it has 18 bytes"),
        (b"\0" + GTID[:9] + b"\x1f" + GTID[10:31], "says that it has 31 bytes"),
        (b"\0" + GTID[:9] + b"\x27" + GTID[10:], "Short chunk"),
        (b"\0" + GTID[:9] + b"\xff\xff\xff\xff" + GTID[13:], "says that it has 4294967295 bytes"),
    ],
)
def test_a_commit_record_that_is_too_short_or_impossible(tmp_path, contents, text):
    builder = BinlogBuilder(interval=0)
    builder.commit(numbered(1), event(50))
    place = builder.record(1, contents)
    builder.commit(numbered(3), event(50))
    builder.write(tmp_path)
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    reader = GroupReader(source, Position(0, 0))
    assert reader.next().gtid == numbered(1)
    with pytest.raises(FormatError, match=text) as caught:
        reader.next()
    error = caught.value
    assert (error.file, error.page, error.offset) == (
        "binlog-000000.ibb", *divmod(place.offset, SIZE),
    )  # fmt: skip


def test_a_record_that_begins_with_another_event_is_no_group_and_is_reported(tmp_path):
    builder = BinlogBuilder()
    place = builder.record(1, b"\0" + event(60, event_type=16))
    builder.commit(numbered(1), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    reader = GroupReader(source, Position(0, 0))
    assert reader.next().gtid == numbered(1)
    assert len(reader.reports) == 1
    assert str(place) in reader.reports[0]


@pytest.fixture
def large_group(tmp_path):
    """A group of four out-of-band pieces behind a small one; the forest and the builder."""
    builder, forest = BinlogBuilder(interval=0, pages=20), OobForest()
    builder.commit(numbered(1), event(50))
    for letter in b"abcd":
        builder.oob(forest, bytes([letter]) * 300)
    return builder, forest, tmp_path


def read_large(builder, path, reference):
    """Commit a group with the list *reference* and return its pieces."""
    builder.commit(numbered(2), lists=[reference])
    builder.write(path)
    reader = GroupReader(BinlogDirectory(OsDisk(), str(path)), Position(builder.first, 0))
    assert reader.next().gtid == numbered(1)
    group = reader.next()
    return b"".join(group.pieces()), reader.reports


def test_a_large_group_is_whole(large_group):
    builder, forest, path = large_group
    data, reports = read_large(builder, path, forest.reference())
    assert data == GTID + b"a" * 300 + b"b" * 300 + b"c" * 300 + b"d" * 300
    assert reports == []


def test_a_wrong_first_pointer_is_reported(large_group):
    builder, forest, path = large_group
    good = forest.reference()
    data, reports = read_large(builder, path, OobReference(4, Position(0, 600), good.last))
    assert len(data) == len(GTID) + 1200
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (Position(0, 508), "no such place"),
        (Position(0, 517), "Wrong chunk type 0x41"),
        (Position(0, 1024), "Wrong chunk type 0xc3"),
        (Position(0, 19 * SIZE), "not before its commit record"),
        (Position(3, 600), "not before its commit record"),
    ],
)
def test_a_pointer_that_does_not_lead_to_a_piece(large_group, last, text):
    builder, _, path = large_group
    builder.prepare_page()
    place = builder.position
    with pytest.raises(FormatError, match=text) as caught:
        read_large(builder, path, OobReference(4, Position(0, 600), last))
    assert str(place) in str(caught.value)
    assert (caught.value.file, caught.value.page) == ("binlog-000000.ibb", place.offset // SIZE)


def test_a_pointer_into_a_purged_or_missing_file_names_both_places(tmp_path):
    builder = BinlogBuilder(interval=0, first=4)
    builder.oob_references[4] = 2
    piece = Position(2, 700)
    place = builder.commit(numbered(1), lists=[OobReference(1, piece, piece)])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(4, 0)).next()
    with pytest.raises(FormatError, match="the file is missing") as caught:
        list(group.pieces())
    assert str(piece) in str(caught.value)
    assert str(place) in str(caught.value)


def test_a_pointer_below_the_oob_reference_of_the_file(tmp_path):
    builder, forest = BinlogBuilder(interval=0, first=4), OobForest()
    builder.oob(forest, b"x" * 50)
    builder.fill_file()
    builder.oob_references[5] = 5
    builder.commit(numbered(1), lists=[forest.reference()])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(4, 0)).next()
    with pytest.raises(FormatError, match="below the oob reference 5"):
        list(group.pieces())


def test_a_pointer_behind_the_data_of_an_earlier_file(tmp_path):
    builder = BinlogBuilder(interval=0)
    builder.record(3, b"x" * 50)
    builder.fill_file()
    nowhere = Position(0, 6 * SIZE)
    builder.commit(numbered(1), lists=[OobReference(1, nowhere, nowhere)])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(0, 0)).next()
    with pytest.raises(FormatError, match="Unexpected EOF, expected oob chunk"):
        list(group.pieces())


@pytest.mark.parametrize(
    "contents",
    [b"\0\0\0\0", b"\0\0\0\0\0", b"\xff" * 8, compint.encode(2**64 - 1) * 4],
)
def test_a_piece_without_all_of_its_header_or_without_data(tmp_path, contents):
    builder = BinlogBuilder(interval=0)
    place = builder.record(3, contents)
    builder.commit(numbered(1), lists=[OobReference(1, place, place)])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(0, 0)).next()
    with pytest.raises(FormatError, match="Short chunk"):
        list(group.pieces())


def test_a_piece_with_a_number_above_64_bits_is_named_with_its_commit_record(tmp_path):
    builder = BinlogBuilder(interval=0)
    piece = builder.record(3, b"\xff" * 9 + b"x" * 20)
    commit = builder.commit(numbered(1), lists=[OobReference(1, piece, piece)])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(0, 0)).next()
    with pytest.raises(FormatError) as caught:
        list(group.pieces())
    where = f"oob record {piece} of commit record {commit}"
    assert caught.value.what == f"{where}: compressed integer is above 64 bits"
    assert caught.value.file == "binlog-000000.ibb"


def test_a_link_to_itself_does_not_loop(tmp_path):
    builder = BinlogBuilder(interval=0)
    builder.prepare_page()
    place = builder.position
    builder.record(3, encode_oob_header(OobHeader(1, NOWHERE, place)) + b"x")
    builder.commit(numbered(1), lists=[OobReference(2, place, place)])
    builder.write(tmp_path)
    group = GroupReader(BinlogDirectory(OsDisk(), str(tmp_path)), Position(0, 0)).next()
    with pytest.raises(FormatError, match="does not lead backward"):
        list(group.pieces())
