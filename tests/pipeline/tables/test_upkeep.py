"""Files of Delta tables put together and removed: rows, places and what can be asked for stay."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from ibb.pipeline.tables import as_of, delta_commits
from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.config import CompactionConfig
from ibb.pipeline.tables.delta_retention import LOG_KEY, REMOVED_KEY
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.upkeep import VACUUM_SECONDS, Upkeep
from ibb.protocol.gtid import GtidPosition

from .deaths import Deaths
from .modelled import named
from .test_deaths import begun

T = named("shop.t")
SETTINGS = CompactionConfig(small_files=4)


@pytest.fixture
def source():
    made = begun()
    made.batch_groups = 1
    return made


@pytest.fixture
def deaths(monkeypatch, tmp_path, source):
    monkeypatch.setattr(as_of, "read_batches", source.read)
    made = Deaths(monkeypatch, tmp_path / "disks", source)
    made.config = replace(made.config, history=("shop.t",), compaction=SETTINGS)
    return made


def insert(source, first, last):
    for number in range(first, last):
        source.insert("shop.t", {"id": number, "name": "new"})


def files(lake, *path):
    return len(DeltaTable(str(lake.joinpath(*path))).file_uris())


def test_small_files_are_put_together_behind_a_batch(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    begin = source.seen
    deaths.run(lake)
    insert(source, 10, 22)
    deaths.run(lake)
    deaths.check(lake)
    assert files(lake, "shop", "t") <= 5
    assert (
        files(lake, "_ibb", "history", "shop", "t") <= 6
    )  # ended versions have files of their own
    config, file = replace(deaths.config, target=str(lake)), str(tmp_path / "t.parquet")
    for count in range(begin + 1, source.seen + 1):
        gtid = source.stream.groups[count - 1][0]
        assert write_as_of(config, T, GtidPosition([gtid]), file).rows == len(
            source.models[count][T].rows
        )
    deaths.config = replace(deaths.config, compaction=None)
    insert(source, 30, 42)
    deaths.run(lake)
    assert files(lake, "shop", "t") > 12


def test_a_death_before_that_is_none_of_its_rows(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    deaths.run(lake)
    insert(source, 10, 16)
    for disk in deaths.run(lake):
        deaths.run(disk, dies=False)
        deaths.check(disk)
        shutil.rmtree(disk)


def test_files_of_old_versions_are_removed_once_a_day(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    deaths.run(lake)
    insert(source, 10, 16)
    deaths.run(lake)
    for path in ("shop/t", "_ibb/history/shop/t"):  # what nobody may say, but for his own tables
        table = DeltaTable(str(lake / path))
        table.alter.set_table_properties(
            {REMOVED_KEY: "interval 0 days", LOG_KEY: "interval 30 days"}
        )
        table.create_checkpoint()  # behind it the log itself names no file that has gone
    config, told, now = replace(deaths.config, target=str(lake)), [], [1000.0]
    opened = Lake(config)
    settings = replace(SETTINGS, keep_hours=0)
    upkeep = Upkeep(settings, opened, config.keeps_history, lambda: now[0], told.append)
    there = list((lake / "shop/t").glob("*.parquet"))
    upkeep.vacuum([T])
    now[0] += VACUUM_SECONDS - 1
    upkeep.vacuum([T])
    assert told == []
    now[0] += 1
    upkeep.vacuum([T])
    assert [line.partition(":")[0] for line in told] == [
        "removed old files of shop.t",
        "removed old files of history of shop.t",
    ]
    upkeep.vacuum([T])
    assert len(told) == 2
    assert len(list((lake / "shop/t").glob("*.parquet"))) < len(there)
    deaths.check(lake)
    old = GtidPosition([source.stream.groups[-4][0]])
    with pytest.raises(PipelineError, match=r"shop\.t: files of its version of .* \(VACUUM\)"):
        write_as_of(config, T, old, str(tmp_path / "t.parquet"))


def changed_at(lake, hours_ago):
    """Let the log say that all files of a table went, and were written, so many hours ago."""
    then = time.time() - hours_ago * 3600
    for entry in (lake / "shop/t/_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = int(then * 1000)
        entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for file in (lake / "shop/t").glob("*.parquet"):
        os.utime(file, (then, then))


@pytest.mark.parametrize(("hours_ago", "go"), [(170, True), (160, False)])
def test_files_go_by_when_they_left_the_table(source, deaths, tmp_path, hours_ago, go):
    lake = tmp_path / "lake"
    deaths.run(lake)
    insert(source, 10, 16)
    deaths.run(lake)
    changed_at(lake, hours_ago)
    for file in (lake / "shop/t").glob("*.parquet"):
        os.utime(file, (0, 0))  # long before, all of them
    DeltaTable(str(lake / "shop/t")).create_checkpoint()
    left = {Path(uri).name for uri in DeltaTable(str(lake / "shop/t")).file_uris()}
    there = {file.name for file in (lake / "shop/t").glob("*.parquet")}
    table = Lake(replace(deaths.config, target=str(lake))).open_delta(T)
    assert not table.keep_known(168)
    assert table.vacuum(168) == (len(there - left) if go else 0)
    assert {file.name for file in (lake / "shop/t").glob("*.parquet")} == (left if go else there)


def test_a_log_that_has_forgotten_what_is_to_be_kept_is_waited_for(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    deaths.run(lake)
    insert(source, 10, 16)
    deaths.run(lake)
    changed_at(lake, 200)
    DeltaTable(str(lake / "shop/t")).create_checkpoint()  # forgets them: Delta keeps them for 168
    there = set((lake / "shop/t").glob("*.parquet"))
    config, now = replace(deaths.config, target=str(lake)), [1000.0]
    opened = Lake(config)

    def days_pass(days, keep_hours):
        now[0] += days * 24 * 3600
        settings = replace(SETTINGS, keep_hours=keep_hours)
        told = []
        Upkeep(settings, opened, lambda _: False, lambda: now[0], told.append).vacuum([T])
        return told

    assert days_pass(0, 199) == []
    assert days_pass(1, 199) == []  # who was to keep them for 300 hours could not tell any more
    assert set((lake / "shop/t").glob("*.parquet")) == there
    assert days_pass(7, 199) == []
    assert len(days_pass(0.3, 199)) == 1
    deaths.run(lake)
    deaths.check(lake)


def test_a_log_of_nothing_but_upkeep_still_has_the_version_of_now(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    deaths.run(lake)
    insert(source, 10, 16)
    deaths.run(lake)
    config = replace(deaths.config, target=str(lake))
    table = Lake(config).open_delta(T)
    had = [version.position for version in table.versions()]
    assert table.keep_known(200)
    DeltaTable(str(lake / "shop/t")).create_checkpoint()
    for entry in sorted((lake / "shop/t/_delta_log").glob("*.json"))[:-1]:
        entry.unlink()  # as when they were older than the log is to know
    (left,) = Lake(config).open_delta(T).versions()
    assert (left.position, left.number, left.made) == (had[0], len(had), False)
    path = str(tmp_path / "t.parquet")
    assert write_as_of(config, T, left.position, path).rows == len(source.models[-1][T].rows)
    with pytest.raises(PipelineError, match="the oldest version that is left is of"):
        write_as_of(config, T, had[-1], path)


def test_the_log_is_looked_through_for_what_is_too_old_at_one_commit_of_many(
    source, deaths, tmp_path, monkeypatch
):
    lake, table = tmp_path / "lake", tmp_path / "lake/shop/t"
    monkeypatch.setattr(delta_commits, "CLEAN_LOG_COMMITS", 8)
    deaths.config = replace(deaths.config, compaction=None)
    deaths.run(lake)
    DeltaTable(str(table)).alter.set_table_properties({LOG_KEY: "interval 0 hours"})
    old = time.time() - 7200
    counts = []
    for number in range(10, 22):
        DeltaTable(str(table)).create_checkpoint()
        for entry in (table / "_delta_log").iterdir():
            os.utime(entry, (old, old))
        insert(source, number, number + 1)
        deaths.run(lake)
        counts.append((DeltaTable(str(table)).version(), len(list(table.glob("*/*.json")))))
    assert counts[-1][0] >= 8
    assert [at for at, left in counts if left <= 2] == [at for at, _ in counts if at % 8 == 0]
    deaths.check(lake)


def test_nothing_is_removed_where_nobody_says_so(source, deaths, tmp_path):
    lake = tmp_path / "lake"
    deaths.run(lake)
    opened = Lake(replace(deaths.config, target=str(lake)))
    Upkeep(SETTINGS, opened, lambda _: True, lambda: 1e9, print).vacuum([T])
    assert opened.state.read("vacuums.json") is None
