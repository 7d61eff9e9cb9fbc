"""Histories of tables: each group's table, whatever the batches and statements."""

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ibb.pipeline.tables import as_of
from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.history_reading import overlap, write_history_as_of
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.row_changes import Statement
from ibb.protocol.gtid import Gtid, GtidPosition

from .deaths import Deaths
from .modelled import named, table
from .test_deaths import TOPICS, C, begun, columns, cut_over, drop, rows, swap

T, BAG = named("shop.t"), named("shop.bag")


@pytest.fixture
def source():
    return begun()


@pytest.fixture
def deaths(monkeypatch, tmp_path, source):
    monkeypatch.setattr(as_of, "read_batches", source.read)
    made = Deaths(monkeypatch, tmp_path / "disks", source)
    made.config = replace(made.config, history=("shop.*",))
    return made


def rows_of(path):
    return sorted(pq.read_table(path).to_pylist(), key=repr)


def position_behind(source, count):
    """Return a position that names every domain of the history."""
    position = source.stream.place(count)
    for gtid in source.stream.state:
        if position.get(gtid.domain) is None:
            position.set(Gtid(gtid.domain, gtid.server, 0))
    return position


def is_said_behind(source, count, pattern):
    """Return whether a statement comes later that fits *pattern*."""
    steps = [step for _, _, steps in source.stream.groups[count:] for step in steps]
    return any(re.search(pattern, step.sql) for step in steps if isinstance(step, Statement))


def check_all(source, deaths, lake, begin, file, *, versions=False):
    """Check what histories say of every group; with *versions*, that those say the same."""
    config = replace(deaths.config, target=str(lake))
    opened = Lake(config)
    for name, now in source.models[-1].items():
        history = opened.open_history(name)
        assert overlap(history) == ""
        found = [row for batch in history.batches() for row in batch.to_pylist()]
        assert sorted(found, key=repr) == sorted(now.rows, key=repr)
        for count in range(begin, len(source.models)):
            then = source.name_then(name, count)
            there = source.models[count].get(then)
            position = position_behind(source, count)
            try:
                write_history_as_of(config, name, position, file)
            except PipelineError as error:
                assert "does not know" in str(error)  # noqa: PT017
                assert is_said_behind(source, count, rf"CREATE .*TABLE {then.table}\b")
                continue
            if there is None:
                assert is_said_behind(source, count, rf"RENAME TO {name.table}\b")
                continue
            assert rows_of(file) == sorted(there.rows, key=repr), (name, position)
            assert set(pq.read_schema(file).names) == set(there.columns)
            if not versions:
                continue
            try:
                write_as_of(config, name, source.stream.place(count), file)
            except PipelineError:
                continue
            assert rows_of(file) == sorted(there.rows, key=repr)


@pytest.mark.parametrize(("size", "kind"), [(1, "delta"), (4, "delta"), (4, "parquet")])
@pytest.mark.parametrize("topic", TOPICS)
def test_a_history_tells_the_table_behind_each_group(source, deaths, tmp_path, topic, size, kind):
    deaths.config = replace(deaths.config, format=kind)
    source.view_at = begin = 3
    deaths.run(tmp_path / "lake")
    topic(source)
    source.batch_groups = size
    deaths.run(tmp_path / "lake")
    deaths.check(tmp_path / "lake")
    check_all(source, deaths, tmp_path / "lake", begin, str(tmp_path / "t.parquet"), versions=True)


def versions_of(deaths, lake):
    """Return every version of every history, with all columns."""
    opened, found = Lake(replace(deaths.config, target=str(lake))), {}
    for name in deaths.source.models[-1]:
        table = pa.concat_tables(opened.open_history(name).all_versions())
        rows = table.select(sorted(table.column_names)).to_pylist()
        found[name] = sorted(rows, key=repr)
    return found


@pytest.mark.parametrize(
    ("topic", "cuts", "kind"),
    [
        *((topic, (1, 100), "delta") for topic in TOPICS),
        *((topic, (100, 2), kind) for topic in (rows, drop) for kind in ("delta", "parquet")),
        *((topic, (1, 100), "parquet") for topic in (columns, cut_over, swap)),
    ],
)
def test_no_write_is_a_wrong_moment_to_die(source, deaths, tmp_path, topic, cuts, kind):
    """Versions are the same as without deaths, and as those of which all groups were checked."""
    deaths.config = replace(deaths.config, format=kind)
    source.view_at, lake = 3, tmp_path / "lake"
    deaths.run(lake)
    topic(source)
    source.batch_groups = cuts[0]
    disks = deaths.run(lake)
    assert len(disks) > 4
    wanted = versions_of(deaths, lake)
    for disk in disks:
        source.batch_groups = cuts[1]
        deaths.run(disk, dies=False)
        deaths.check(disk)
        assert versions_of(deaths, disk) == wanted


def test_snapshots_are_begun_anew_with_histories(source, deaths, tmp_path):
    """Versions of before end where the table was read anew; what lies between is not known."""
    source.view_at, lake, before = 3, tmp_path / "lake", source.seen
    for disk in deaths.run(lake):
        deaths.run(disk, dies=False)
        deaths.check(disk)
        check_all(source, deaths, disk, 3, str(tmp_path / "t.parquet"))
    rows(source)
    source.sql(
        "ALTER TABLE t ADD n INT", t=table("id name n", "id", [{"id": 2, "name": "b", "n": 8}])
    )
    source.seen = before  # the stream comes later
    disks = deaths.run(lake, "shop.t")
    source.seen = source.view_at
    assert len(disks) > 4
    for disk in disks:
        deaths.run(disk, "shop.t", dies=False)
        deaths.check(disk)
        config = replace(deaths.config, target=str(disk))
        history = Lake(config).open_history(T)
        assert overlap(history) == ""
        found = [row for batch in history.batches() for row in batch.to_pylist()]
        assert found == [{"id": 2, "name": "b", "n": 8}]
        for count, known in ((4, True), (6, False), (len(source.models) - 1, True)):
            position, file = position_behind(source, count), str(tmp_path / "t.parquet")
            if known:
                write_history_as_of(config, T, position, file)
                assert rows_of(file) == sorted(source.models[count][T].rows, key=repr)
            else:
                with pytest.raises(PipelineError, match="read anew"):
                    write_history_as_of(config, T, position, file)


def test_a_history_may_be_wanted_later_or_not_any_more(source, deaths, tmp_path):
    """It begins where the pipeline is, and knows nothing of the time when it was not kept."""
    source.view_at, lake, file = 3, tmp_path / "lake", str(tmp_path / "t.parquet")
    for wanted in ((), ("shop.t",), (), ("shop.*",)):
        deaths.config = replace(deaths.config, history=wanted)
        for name in ("one", "two"):
            source.insert("shop.t", {"id": 100 + len(source.models), "name": name})
        source.view_at = 3
        deaths.run(lake)
    deaths.check(lake)
    config = replace(deaths.config, target=str(lake))
    for count, known in ((5, False), (6, True), (7, True), (8, True), (9, False), (10, True)):
        position = position_behind(source, count)
        if known:
            write_history_as_of(config, T, position, file)
            assert rows_of(file) == sorted(source.models[count][T].rows, key=repr)
        else:
            with pytest.raises(PipelineError, match="does not know"):
                write_history_as_of(config, T, position, file)


def test_what_a_history_cannot_tell_stops(source, deaths, tmp_path):
    source.view_at, lake = 3, tmp_path / "lake"
    source.insert("shop.t", C, domain=7)
    source.view_at = 3
    deaths.config = replace(deaths.config, history=("shop.t",))
    deaths.run(lake)
    config, file = replace(deaths.config, target=str(lake)), tmp_path / "t.parquet"
    for name, position, words in (
        (T, "0-1-4", "has no GTID of domain 7"),
        (T, "0-1-2,7-1-0", "does not know"),
        (T, "0-1-99,7-1-1", "the tables are at"),
        (BAG, "0-1-4,7-1-1", r"no history of it: tables\.history"),
    ):
        with pytest.raises(PipelineError, match=words):
            write_history_as_of(config, name, GtidPosition.parse(position), str(file))
    assert not file.exists()
    assert write_history_as_of(config, T, GtidPosition.parse("0-1-4,7-1-0"), str(file)) == 2
