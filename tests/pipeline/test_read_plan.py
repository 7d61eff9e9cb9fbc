"""What a batch read covers: directories in use and at rest, bounds, files, damage, purges."""

import functools
import operator
import shutil
from datetime import UTC, datetime

import fsspec
import pytest

from ibb.pipeline import directories
from ibb.pipeline.errors import OptionError
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.read_plan import groups_of, plan_read
from ibb.protocol.errors import FormatError
from ibb.storage import Store, StoreOptions

from ..storage import reset_meanwhile
from ..storage.events import transaction
from .published import OPTIONS, made_store, publish, publish_events

COUNT = 3000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("binlogs")
    made_store(path, COUNT)
    return path


def plan(path, **options):
    return plan_read(SourceOptions.parse({"path": str(path), **options}))


def gtids(tasks):
    return [str(group.gtid) for task in tasks for group in groups_of(task)]


def read(path, **options):
    return gtids(plan(path, **options))


def test_groups_of_a_store_in_use_are_read_up_to_what_is_synced(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        wanted = publish(store, 500)
        assert read(tmp_path, minPartitions="3") == wanted
        wanted += publish(store, 300, skip=500)
        assert read(tmp_path, minPartitions="3") == wanted


def test_a_plan_stays_as_it_was_made_while_the_store_goes_on(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        wanted = publish(store, 100)
        tasks = plan(tmp_path)
        publish(store, 2000, skip=100)
        assert gtids(tasks) == wanted


def test_parts_come_by_size(directory):
    assert len(plan(directory)) == 1
    tasks = plan(directory, maxPartitionBytes="32k")
    assert len(tasks) > 6
    assert len(gtids(tasks)) == COUNT


def test_bounds_are_positions(directory):
    found = read(directory, startingGtid="0-1-10,1-1-12", endingGtid="0-1-20,1-1-12,2-1-2")
    assert sorted(found) == sorted(
        [*(f"0-1-{number}" for number in range(11, 21)), "2-1-1", "2-1-2"]
    )
    assert read(directory, startingGtid="latest") == []


def test_bounds_are_times(directory):
    found = read(directory, startingTime="1700000001", endingTime="1700000002")
    assert len(found) == 1000
    assert found[0] == "1-1-334"
    assert read(directory, startingTime="1700000003") == []


def test_domains_are_chosen(directory):
    found = read(directory, domains="2,77")
    assert len(found) == COUNT // 3
    assert {gtid[0] for gtid in found} == {"2"}


def test_files_are_chosen_and_directories_listed(directory, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    whole = read(directory)
    numbers = range(len(list(directory.glob("*.ibb"))))
    by_file = [read(directory / f"binlog-{number:06}.ibb") for number in numbers]
    assert functools.reduce(operator.iadd, by_file, []) == whole
    assert read(f"{directory}/binlog-*.ibb", minPartitions="4") == whole
    assert read(f"{directory},{copy}") == whole * 2
    assert read(f"file://{tmp_path}/c*") == whole


def test_urls_are_read_through_fsspec(directory):
    fs = fsspec.filesystem("memory")
    fs.put(str(directory), "/bucket/binlogs", recursive=True)
    assert read("memory://bucket/binlogs", minPartitions="3") == read(directory)
    assert read("memory://bucket/b*") == read(directory)
    fs.pipe("/bucket/binlogs/notes.txt", b"no binlog file")
    assert read("memory://bucket/binlogs/*") == read(f"{directory}/*") == read(directory)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/nowhere", "there is no directory /nowhere"),
        ("/nowhere/*", "matches nothing"),
        ("nosuch://bucket/x", "nosuch"),
    ],
)
def test_a_path_that_is_not_there_is_named(path, says):
    with pytest.raises(Exception, match=says):
        plan(path)


def test_an_empty_directory_is_an_error_and_an_empty_history_is_not(tmp_path):
    with pytest.raises(OptionError, match=r"option path: there are no binlog files in"):
        plan(tmp_path)
    made_store(tmp_path / "s", 0)
    assert plan(tmp_path / "s") == []


def test_positions_that_do_not_fit_name_their_option(directory, tmp_path):
    with pytest.raises(OptionError, match=r"option startingGtid: .*0-9-5.* does not fit"):
        plan(directory, startingGtid="0-9-5")
    with pytest.raises(OptionError, match=r"option endingGtid: 0-1-99999 is not in the history"):
        plan(directory, endingGtid="0-1-99999")
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, COUNT)
        store.purger.purge_to("binlog-000002.ibb")
    with pytest.raises(OptionError, match=r"option startingGtid: .*purged; earliest is left"):
        plan(tmp_path, startingGtid="0-1-1,1-1-1,2-1-1")
    assert 0 < len(read(tmp_path)) < COUNT


def test_damage_stops_the_read(directory, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    tasks = plan(copy, minPartitions="4")
    with (copy / "binlog-000001.ibb").open("r+b") as file:
        file.seek(5 * 4096 + 100)
        file.write(b"damage")
    with pytest.raises(FormatError, match=r"binlog-000001.ibb"):
        gtids(tasks)


def test_files_that_go_after_the_plan_stop_the_read(directory, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    tasks = plan(copy, minPartitions="4")
    for file in sorted(copy.glob("*.ibb"))[2:]:
        file.unlink()
    with pytest.raises(FormatError, match=r"purged or begun anew|is gone, or of another history"):
        gtids(tasks)


def test_another_history_is_noticed(tmp_path):
    with Store.open(tmp_path, OPTIONS) as store:
        publish(store, 500)
        tasks = plan(tmp_path)
        store.reset()
        publish(store, 600)
        with pytest.raises(FormatError, match=r"another history"):
            gtids(tasks)


@pytest.mark.parametrize(("before", "after"), reset_meanwhile.SIZES)
def test_a_view_is_of_one_history_when_the_store_is_begun_anew_meanwhile(
    before, after, monkeypatch
):
    for disk in reset_meanwhile.disks(before, after):
        monkeypatch.setattr(directories, "disk_of", lambda path, disk=disk: (disk, path))
        view = directories.open_view("/s")
        begun_anew = not disk.is_watched
        seen = reset_meanwhile.groups_of(view.pages)
        assert reset_meanwhile.one_history(seen)
        domain, count = (
            (reset_meanwhile.NEW, after) if begun_anew else (reset_meanwhile.OLD, before)
        )
        assert str(view.state) == f"{domain}-1-{count}"
        if begun_anew or disk.is_watched:  # else that happened while it was read
            assert seen[-1] == (domain, count)
        assert view.in_files is not None


def test_a_filter_on_times_finds_groups_in_whatever_file_they_are(tmp_path):
    """One of two domains lags behind the other, and is what a file begins with."""
    from pyspark.sql.datasource import GreaterThanOrEqual, LessThan  # not before PySpark 4.1

    from ibb.pipeline.pushed_filters import narrowed_by

    times = {}
    with Store.open(tmp_path, OPTIONS) as store:
        for number in range(1, 9):
            for domain, time in ((0, 1000 * (9 - number)), (1, 1000 * number)):
                gtid = f"{domain}-1-{number}"
                times[gtid] = time
                publish_events(store, gtid, transaction("x"), timestamp=time)
            store.switch_file()
    options = SourceOptions.parse({"path": str(tmp_path)})
    assert len({task.part.start.file_no for task in plan(tmp_path, minPartitions="99")}) >= 8
    for moment in (1000, 4000, 8000, 8001):
        value = datetime.fromtimestamp(moment, UTC)
        for one, wants in ((GreaterThanOrEqual, moment.__le__), (LessThan, moment.__gt__)):
            found = gtids(plan_read(narrowed_by(options, [one(("commit_time",), value)])))
            wanted = {gtid for gtid, time in times.items() if wants(time)}
            assert wanted <= set(found)
            assert len(found) <= len(wanted) + 2  # up to a second more: Spark looks again
    both = narrowed_by(
        SourceOptions.parse({"path": str(tmp_path), "startingTime": "1970-01-01T00:00:03Z"}),
        [GreaterThanOrEqual(("commit_time",), datetime.fromtimestamp(7000, UTC))],
    )
    assert both.times == (7000.0, None)


def test_no_range_is_empty(tmp_path):
    options = StoreOptions(page_size=512, max_binlog_size=512 * 16, state_interval=512)
    with Store.open(tmp_path, options) as store:
        publish(store, 60)
    tasks = plan(tmp_path, minPartitions="1000")
    assert len(tasks) > 10
    assert all(task.part.start < task.part.end for task in tasks)
