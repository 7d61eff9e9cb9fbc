"""Streams, by the calls that Spark makes: offsets, limits, restarts, and histories that change."""

import functools
import json
import operator
import shutil
from contextlib import closing

import pytest

from ibb.pipeline.cuts import cut_behind, cut_of_what_is_left
from ibb.pipeline.directories import open_view
from ibb.pipeline.errors import DataLossError, OptionError
from ibb.pipeline.group_rows import GROUP_COLUMNS
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.pipeline.stream_reader import StreamReader
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store

from ..storage.events import transaction
from .published import OPTIONS, made_store, publish, publish_events


def reader_of(path, **options):
    return StreamReader(SourceOptions.parse({"path": str(path), **options}), GROUP_COLUMNS)


def gtids(reader, start, end):
    partitions = reader.partitions(start, end)
    return [str(group.gtid) for part in partitions for group in groups_of(part.value)]


def through_json(offset):
    return json.loads(json.dumps(offset))


def drain(reader, offset):
    """Return the GTIDs of each micro-batch until there is nothing new, and the last offset."""
    batches = []
    while (end := through_json(reader.latestOffset(offset))) != offset:
        batches.append(gtids(reader, offset, end))
        offset = end
    return batches, offset


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("binlogs")
    return path, made_store(path, 1500)


def test_offsets_are_readable_positions(directory):
    path, _ = directory
    reader = reader_of(path)
    assert reader.initialOffset() == {"gtid": "", "file": -1, "mark": ""}
    end = reader.latestOffset(reader.initialOffset())
    assert end["gtid"] == "2-1-500,0-1-500,1-1-500" or sorted(end["gtid"].split(",")) == [
        "0-1-500",
        "1-1-500",
        "2-1-500",
    ]
    assert end["mark"]


def test_batches_of_a_store_in_use_follow_each_other(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        reader = reader_of(tmp_path, minPartitions="3")
        wanted, offset, found = [], reader.initialOffset(), []
        assert reader.latestOffset(offset) == offset
        for count in (1, 10, 400, 7):
            wanted += publish(store, count, skip=len(wanted))
            batches, offset = drain(reader, offset)
            found += functools.reduce(operator.iadd, batches, [])
            assert found == wanted
    assert reader.latestOffset(offset) == offset
    reader.stop()


def test_a_stream_may_begin_where_only_the_domain_of_the_last_group_is_at_its_end(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        for gtid in ("0-1-1", "0-1-2", "1-1-1"):
            publish_events(store, gtid, transaction("x"))
        for limit in ({}, {"maxGroupsPerTrigger": "9"}):
            reader = reader_of(tmp_path, startingGtid="1-1-1", **limit)
            assert drain(reader, reader.initialOffset())[0] == [["0-1-1", "0-1-2"]]
            reader.stop()


def test_limits_cut_between_groups_and_restarts_go_on(directory):
    path, wanted = directory
    offset, found = reader_of(path).initialOffset(), []
    for _ in range(3):  # each time another driver
        reader = reader_of(path, maxGroupsPerTrigger="100")
        end = reader.latestOffset(offset)
        batch = gtids(reader, offset, end)
        assert len(batch) == 100
        assert gtids(reader_of(path), offset, end) == batch  # the same again
        found, offset = found + batch, through_json(end)
    batches, _ = drain(reader_of(path, maxBytesPerTrigger="20k"), offset)
    assert len(batches) > 5
    assert found + functools.reduce(operator.iadd, batches, []) == wanted


def test_a_group_above_the_limit_comes_alone(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        for number, size in enumerate((10, 10, 100_000, 10, 10), 1):
            publish_events(store, f"0-1-{number}", transaction("x", size))
    reader = reader_of(tmp_path, maxBytesPerTrigger="2k")
    batches, _ = drain(reader, reader.initialOffset())
    assert batches == [["0-1-1", "0-1-2"], ["0-1-3"], ["0-1-4", "0-1-5"]]


def test_available_now_ends_where_it_began(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        wanted = publish(store, 50)
        reader = reader_of(tmp_path, maxGroupsPerTrigger="20")
        reader.prepareForTriggerAvailableNow()
        publish(store, 50, skip=50)
        batches, _ = drain(reader, reader.initialOffset())
        assert [len(batch) for batch in batches] == [20, 20, 10]
        assert functools.reduce(operator.iadd, batches, []) == wanted


@pytest.mark.parametrize("more", [1, 300], ids=["in one domain", "in other files"])
@pytest.mark.parametrize("limit", [{}, {"maxGroupsPerTrigger": "9"}])
def test_a_stream_that_is_ahead_of_its_end_stays_where_it_is(tmp_path, limit, more):
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, 10)
        reader = reader_of(tmp_path, **limit)
        reader.prepareForTriggerAvailableNow()
        publish(store, more, skip=10)
        ahead = through_json(reader_of(tmp_path).latestOffset(reader.initialOffset()))
        assert reader.latestOffset(ahead) == ahead


def test_spark_before_4_2_says_no_start(directory):
    path, wanted = directory
    reader = reader_of(path, maxGroupsPerTrigger="700")
    first = reader.initialOffset()
    second, third = reader.latestOffset(), reader.latestOffset()
    assert len(gtids(reader, first, second)) == len(gtids(reader, second, third)) == 700
    restarted = reader_of(path, maxGroupsPerTrigger="700")
    end = restarted.latestOffset()  # it cannot know the checkpoint: all there is
    assert gtids(restarted, third, end) == wanted[1400:]


def test_streams_begin_at_times_and_at_the_end(directory):
    path, wanted = directory
    reader = reader_of(path, startingTime="1700000001")
    start = reader.initialOffset()
    assert gtids(reader, start, reader.latestOffset(start)) == wanted[1000:]
    reader = reader_of(path, startingGtid="latest")
    assert reader.latestOffset(reader.initialOffset()) == reader.initialOffset()
    with pytest.raises(OptionError, match=r"option startingGtid: .*0-9-9"):
        reader_of(path, startingGtid="0-9-9").initialOffset()


def test_a_purge_before_the_stream_is_named_or_passed(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, 10)
        reader = reader_of(tmp_path)
        start = reader.latestOffset(reader.initialOffset())
        wanted = publish(store, 3000, skip=10)
        store.purge_to("binlog-000002.ibb")
        with pytest.raises(DataLossError, match=r"behind '.*0-1-4.*' up to '.*' were purged .*"):
            reader.latestOffset(start)
        reader = reader_of(tmp_path, failOnDataLoss="false")
        found = gtids(reader, start, reader.latestOffset(start))
        assert found
        assert found == wanted[-len(found) :]
        fresh = reader_of(tmp_path)
        begin = fresh.initialOffset()
        assert gtids(fresh, begin, fresh.latestOffset(begin)) == found


def test_a_domain_that_is_still_to_come_does_not_stop_behind_a_purge(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, 10)
        reader = reader_of(tmp_path, startingGtid="0-1-3,7-1-5", failOnDataLoss="false")
        start = reader.initialOffset()
        wanted = publish(store, 3000, skip=10)
        store.purge_to("binlog-000002.ibb")
        found = gtids(reader, start, reader.latestOffset(start))
        assert found
        assert found == wanted[-len(found) :]
        reader.stop()


def test_a_gtid_that_the_files_lack_is_told(directory):
    """The state says that it is there: nothing is left out in silence."""
    path, _ = directory
    with closing(open_view(str(path)).pages) as pages:
        lacking = Gtid(0, 1, 501)
        for cut in (cut_behind, cut_of_what_is_left):
            with pytest.raises(SqlError, match="GTID 0-1-501 is not in the binlog"):
                cut(pages, BinlogState([lacking]), GtidPosition([lacking]))


def test_a_history_begun_anew_stops_the_stream(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, 100)
        reader = reader_of(tmp_path, failOnDataLoss="false")
        start = reader.latestOffset(reader.initialOffset())
        store.reset()
        publish(store, 400)  # the GTIDs of the offset are there, too
        with pytest.raises(DataLossError, match="the history was begun anew"):
            reader.latestOffset(start)
        with pytest.raises(DataLossError, match="the history was begun anew"):
            reader_of(tmp_path).partitions(start, start | {"gtid": "0-1-40,1-1-40,2-1-40"})


def test_another_directory_under_the_same_path_stops_the_stream(directory, tmp_path):
    path, _ = directory
    shutil.copytree(path, tmp_path / "d")
    reader = reader_of(tmp_path / "d")
    start = reader.latestOffset(reader.initialOffset())
    shutil.rmtree(tmp_path / "d")
    made_store(tmp_path / "d", 30)
    with pytest.raises(DataLossError, match=r"begun anew|does not have"):
        reader_of(tmp_path / "d").latestOffset(start)


def test_lag_is_told(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        reader = reader_of(tmp_path, maxGroupsPerTrigger="10")
        start = reader.initialOffset()
        publish(store, 40)
        reader.latestOffset(start)
        told = reader.reportLatestOffset()
        assert told["gtid"] == str(store.state().position())
        assert told["groupsBehind"] == 30
        assert told["bytesBehind"] > 1000
        assert told["secondsBehind"] > 1_000_000
        drain(reader, start)
        told = reader.reportLatestOffset()
        assert (told["gtid"], told["groupsBehind"]) == (str(store.state().position()), 0)


def test_a_stream_follows_one_directory(directory):
    path, _ = directory
    with pytest.raises(OptionError, match="option path: a stream follows one directory"):
        reader_of(path / "binlog-000000.ibb")
    with pytest.raises(OptionError, match="option endingGtid: a stream has no end"):
        reader_of(path, endingGtid="0-1-5")


def test_a_stream_ends_where_a_position_may_be_two_places(tmp_path):
    """No group comes twice, nor does a stream read one for ever."""
    numbers = ["0-1-1", "0-1-9", "1-1-1", "0-1-3", "1-1-2"]
    with Store.open(tmp_path, OPTIONS) as store:
        for gtid in numbers:
            publish_events(store, gtid, transaction("x"))
        reader = reader_of(tmp_path)
        batches, end = drain(reader, reader.initialOffset())
        assert batches == [numbers]
        publish_events(store, "0-1-10", transaction("x"))
        found, offset = [], reader.initialOffset()
        limited = reader_of(tmp_path, maxGroupsPerTrigger="1")
        with pytest.raises(DataLossError, match=r"0-1-3 .* 0-1-9 comes first.*gtid_strict_mode"):
            while (end := limited.latestOffset(offset)) != offset:
                found += gtids(limited, offset, end)
                offset = end
        assert found == numbers[:3]
        for option in ("startingGtid", "endingGtid"):
            with pytest.raises(OptionError, match=f"{option}.*0-1-9 comes first"):
                plan_read(SourceOptions.parse({"path": str(tmp_path), option: "0-1-3"}))
        reader.stop()
        limited.stop()
