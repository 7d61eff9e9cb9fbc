"""Whole files of the format's description, byte by byte."""

import hashlib

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage.chunk import CONTINUATION, LAST
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_start
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import RecordType, encode_commit_prefix, parse_xa_complete, parse_xa_prepare
from ibb.storage.record_reader import RecordReader
from ibb.storage.state_scan import find_state, read_state

from .binlog_builder import BinlogBuilder

FILE_SHA256 = "56636dbf69881bd48166d8fbd9c05785ed9fa84d775b95ad5798d86f31c3fe7c"
FIRST_GROUP = bytes.fromhex(
    "00 f1 53 65 a2 01 00 00 00 26 00 00 00 00 00 00 00 08 00 01 00 00 00"
    "00 00 00 00 00 00 00 00 29 00 00 00 00 00 00 00"
    "f1 53 65 02 01 00 00 00 3c 00 00 00 00 00 00 00 00 00 01 00 00 00"
    "00 00 00 00 04 00 00 00 00 74 65 73 74 00 43 52 45 41 54 45 20 54 41 42 4c 45"
    "20 74 31 20 28 61 20 49 4e 54 29"
)
SECOND_GTID = bytes.fromhex(
    "00 f1 53 65 a2 01 00 00 00 26 00 00 00 00 00 00 00 08 00 02 00 00 00"
    "00 00 00 00 00 00 00 00 0c 00 00 00 00 00 00"
)


@pytest.fixture
def small_file(tmp_path):
    """The file of six records, cut by FLUSH, and the beginning of the next."""
    builder = BinlogBuilder()
    builder.record(RecordType.COMMIT, b"\0" + FIRST_GROUP, Gtid(0, 1, 1))
    forest = OobForest()
    for piece in (b"A" * 20, b"B" * 30, b"C" * 400, b"D" * 10, b"E" * 10):
        builder.oob(forest, piece)
    data = encode_commit_prefix([forest.reference()]) + SECOND_GTID
    builder.record(RecordType.COMMIT, data, Gtid(0, 1, 2))
    builder.full = BinlogState([Gtid(0, 1, 2)])
    builder.fill_file()
    builder.oob_references[1] = 1
    builder.prepare_page()
    return builder.write(tmp_path)


def test_the_small_file_is_built_as_described(small_file):
    image = (small_file / "binlog-000000.ibb").read_bytes()
    assert hashlib.sha256(image).hexdigest() == FILE_SHA256
    following = (small_file / "binlog-000001.ibb").read_bytes()
    assert following[508:512] == bytes.fromhex("89 ce 79 73")
    assert following[512:520] == bytes.fromhex("42 05 00 08 00 00 08 10")
    assert following[1020:1024] == bytes.fromhex("c7 a9 c7 54")
    assert not any(following[1024:])


def test_the_small_file_gives_its_two_groups(small_file):
    source = BinlogDirectory(OsDisk(), str(small_file))
    reader = GroupReader(source, Position(0, 512))
    first = reader.next()
    assert (first.gtid, first.position) == (Gtid(0, 1, 1), Position(0, 0x205))
    assert b"".join(first.pieces()) == FIRST_GROUP
    assert first.timestamp == 0x6553F100
    second = reader.next()
    assert (second.gtid, second.position) == (Gtid(0, 1, 2), Position(0, 0x47D))
    assert second.lists[0].count == 5
    pieces = b"A" * 20 + b"B" * 30 + b"C" * 400 + b"D" * 10 + b"E" * 10
    assert b"".join(second.pieces()) == SECOND_GTID + pieces
    assert second.head == SECOND_GTID
    assert reader.next() is None
    assert find_state(source).state == BinlogState([Gtid(0, 1, 2)])
    assert source.end() == Position(1, 520)


def test_the_small_file_has_its_states_where_they_are_due(small_file):
    source = BinlogDirectory(OsDisk(), str(small_file))
    assert read_state(source, 0, 1).entries == []
    assert read_state(source, 0, 2).entries == [Gtid(0, 1, 1)]
    assert read_state(source, 1, 1).entries == [Gtid(0, 1, 2)]
    # One server alone has logged this file, so a place is found to the group, not to the state.
    start = find_start(source, GtidPosition([Gtid(0, 1, 1)]))
    assert start == (Position(0, 0x26B), BinlogState([Gtid(0, 1, 1)]))


def test_the_chunks_of_the_small_file_are_where_they_are_described(small_file):
    source = BinlogDirectory(OsDisk(), str(small_file))
    reader, places = RecordReader(source, Position(0, 512)), []
    while (record := reader.next()) is not None and record.position.file_no == 0:
        places.append((record.position.offset, record.type, len(record.contents())))
    assert places == [
        (0x200, 2, 2), (0x205, 1, 99), (0x26B, 3, 25), (0x287, 3, 36), (0x2AE, 3, 407),
        (0x457, 3, 16), (0x46A, 3, 16), (0x47D, 1, 46), (0x4AE, 4, 331),
    ]  # fmt: skip


def test_the_published_commit_record_of_the_draft(tmp_path):
    event = bytes.fromhex(
        "91 8e 01 68 a2 01 00 00 00 26 00 00 00 00 00 00 00 08 00"
        "01 00 00 00 00 00 00 00 00 00 00 00 29 00 00 00 00 00 00"
        "91 8e 01 68 02 01 00 00 00 a1 00 00 00 00 00 00 00 00 00"
    ).ljust(199, b"x")
    builder = BinlogBuilder(page_size=4096, interval=0, major=0)
    builder.record(RecordType.COMMIT, b"\0" + event)
    path = builder.write(tmp_path)
    image = (path / "binlog-000000.ibb").read_bytes()
    assert image[0x1000:0x100C] == bytes.fromhex("42 01 00 00 41 c8 00 00 91 8e 01 68")
    group = GroupReader(BinlogDirectory(OsDisk(), str(path)), Position(0, 4096)).next()
    assert (group.gtid, group.timestamp) == (Gtid(0, 1, 1), 0x68018E91)
    assert b"".join(group.pieces()) == event


def test_two_lists_in_a_sample(sample):
    source = BinlogDirectory(OsDisk(), str(sample("small-pages-512-1").path))
    group = GroupReader(source, Position(0, 11987)).next()
    statement, transaction = group.lists
    assert (statement.count, statement.first, statement.last) == (
        20, Position(0, 8462), Position(0, 10404),
    )  # fmt: skip
    assert (transaction.count, transaction.first, transaction.last) == (
        15, Position(0, 10444), Position(0, 11970),
    )  # fmt: skip
    assert len(group.head) == 38


def test_xa_records_in_a_sample(sample):
    source = BinlogDirectory(OsDisk(), str(sample("oob-16k-1").path))
    reader = RecordReader(source, Position(1, 0x375A5))
    prepare, complete, commit = reader.next(), reader.next(), reader.next()
    assert complete.position == Position(1, 0x375BD)
    assert [record.type for record in (prepare, complete, commit)] == [5, 6, 1]
    prepared = parse_xa_prepare(prepare.contents())
    assert (prepared.xid.gtrid, prepared.oob.count) == (b"tx6", 20)
    completed = parse_xa_complete(complete.contents())
    assert (completed.xid, completed.rolled_back) == (prepared.xid, False)


def test_a_full_state_over_three_pages_in_a_sample(sample):
    path = sample("wide-state-1").path
    image = (path / "binlog-000004.ibb").read_bytes()
    assert image[1024:1027] == bytes((RecordType.GTID_STATE, 0xF9, 0x03))
    assert image[2048:2051] == bytes((RecordType.GTID_STATE | CONTINUATION, 0xF9, 0x03))
    assert image[3072:3075] == bytes((RecordType.GTID_STATE | CONTINUATION | LAST, 0x56, 0))
    source = BinlogDirectory(OsDisk(), str(path))
    assert len(read_state(source, 4, 1).entries) > 300
    assert read_state(source, 4, 2) is None
    assert read_state(source, 4, 3) is None
    assert read_state(source, 4, 8) is not None
