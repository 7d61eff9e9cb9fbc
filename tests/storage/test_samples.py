"""Every sample binlog gives its exact groups, state and starts."""

import hashlib

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.dump_filter import DumpFilter, Verdict
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import TooOld, find_file_start, find_start
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.state_scan import find_state, read_state

from ..sample_directories import NAMES

STEP = 20  # of the groups, so many lie between two starts that are tried
RESTARTS = {"restarts-1": 14}  # format description records, where it is not one at the beginning


@pytest.fixture
def opened(sample):
    def open_sample(name):
        found = sample(name)
        return BinlogDirectory(OsDisk(), str(found.path)), found.expected

    return open_sample


def described(group):
    digest, size = hashlib.sha256(), 0
    for piece in group.pieces():
        digest.update(piece)
        size += len(piece)
    return {
        "gtid": str(group.gtid),
        "file": group.position.file_no,
        "offset": group.position.offset,
        "bytes": size,
        "sha256": digest.hexdigest(),
    }


def groups_from(source, start):
    reader = GroupReader(source, start)
    while (group := reader.next()) is not None:
        if group.gtid is not None:
            yield group


@pytest.mark.parametrize("name", NAMES)
def test_all_groups_have_their_place_size_and_bytes(name, opened):
    source, expected = opened(name)
    reader = GroupReader(source, Position(source.first_file(), 0))
    groups, descriptions = [], 0
    while (group := reader.next()) is not None:
        if group.gtid is None:
            descriptions += 1
            assert b"".join(group.pieces()) == group.head
        else:
            groups.append(described(group))
    assert groups == expected["groups"]
    assert descriptions == RESTARTS.get(name, 1)
    assert (reader.reports, reader.unknown_records, source.oddities.found) == ([], 0, [])
    assert reader.position == source.end()
    assert [source.first_file(), source.last_file()] == expected["files"]


@pytest.mark.parametrize("name", NAMES)
def test_the_state_at_the_end(name, opened):
    source, expected = opened(name)
    found = find_state(source)
    assert found.state == BinlogState(map(Gtid.parse, expected["state"]))
    full = read_state(source, source.last_file(), 1)
    assert found.base == (None if full is None else BinlogState(full.entries))


def test_the_offsets_and_sizes_of_groups_that_nobody_reads_do_not_matter(opened):
    source, expected = opened("oob-16k-1")
    reader = GroupReader(source, Position(source.first_file(), 0))
    gtids = []
    for index in range(len(expected["groups"]) + 1):
        group = reader.next()
        if index % 3 == 0:
            next(group.pieces())
        if group.gtid is not None:
            gtids.append(str(group.gtid))
    assert gtids == [group["gtid"] for group in expected["groups"]]
    assert reader.next() is None


@pytest.mark.parametrize("name", NAMES)
def test_reading_from_where_a_group_was_gives_it_and_the_rest(name, opened):
    source, expected = opened(name)
    groups = expected["groups"]
    for index in range(0, len(groups), 3 * STEP):
        place = Position(groups[index]["file"], groups[index]["offset"])
        following = groups_from(source, place)
        assert described(next(following)) == groups[index]
        assert [str(group.gtid) for group in following] == [
            group["gtid"] for group in groups[index + 1 :]
        ]


@pytest.mark.parametrize("name", NAMES)
def test_a_start_gives_exactly_the_rest_from_any_position(name, opened):
    source, expected = opened(name)
    gtids = [Gtid.parse(group["gtid"]) for group in expected["groups"]]
    first = read_state(source, source.first_file(), 1)
    before_all = BinlogState(first.entries if first and source.first_file() else ())
    states = [before_all]
    for gtid in gtids:
        states.append(states[-1].copy())
        states[-1].update(gtid)
    places = [Position(group["file"], group["offset"]) for group in expected["groups"]]
    for index in range(0, len(gtids), STEP):
        position = states[index].position()
        start = find_start(source, position)
        skipped = sum(place < start.position for place in places)
        assert skipped <= index
        assert start.state == states[skipped]
        wanted = DumpFilter(position, start.state)
        sent = [
            group.gtid
            for group in groups_from(source, start.position)
            if wanted.wants(group.gtid) is Verdict.SEND
        ]
        assert sent == gtids[index:]


@pytest.mark.parametrize("name", ["plain-16k-1", "oob-16k-1", "small-pages-512-2", "flushed-1"])
def test_a_start_is_less_than_two_intervals_early(name, opened):
    source, expected = opened(name)
    position = GtidPosition()
    for group, following in zip(expected["groups"], expected["groups"][1:], strict=False):
        position.set(Gtid.parse(group["gtid"]))
        start = find_start(source, position).position
        header = source.header(start.file_no)
        interval = header.state_interval * header.page_size
        if start.file_no == following["file"]:
            assert following["offset"] - start.offset < 2 * interval


def test_an_empty_position_is_too_old_once_the_beginning_is_purged(opened):
    source, expected = opened("starts-late-1")
    with pytest.raises(TooOld):
        find_start(source, GtidPosition())
    assert expected["files"][0] == source.first_file() == 7


def test_an_empty_position_starts_at_the_beginning(opened):
    source, _ = opened("plain-16k-1")
    start = find_start(source, GtidPosition())
    assert start == (Position(0, 16384), BinlogState())


def test_a_file_start_gives_the_groups_committed_from_there_on(opened):
    source, expected = opened("oob-16k-2")
    for file_no in (0, 5, 20):
        groups = groups_from(source, find_file_start(source, file_no))
        wanted = [group["gtid"] for group in expected["groups"] if group["file"] >= file_no]
        assert [str(group.gtid) for group in groups] == wanted
    empty = find_file_start(source, source.last_file() + 1)
    assert empty == Position(source.last_file() + 1, 0)
    assert list(groups_from(source, empty)) == []
