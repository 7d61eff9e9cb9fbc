"""Tables as they were behind any group, from versions that batches left between."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from ibb.pipeline.tables import as_of
from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.protocol.gtid import GtidPosition

from .deaths import Deaths
from .modelled import Source, named, table
from .test_deaths import CREATE_BAG, CREATE_T, A, B, C, columns, rows, truncate

T = named("shop.t")


@pytest.fixture
def source():
    """A source with changes of all kinds, of which the snapshot has the first ones."""
    made = Source()
    made.sql(CREATE_T, t=table("id name", "id"))
    made.sql(CREATE_BAG, bag=table("n"))
    made.insert("shop.t", A, B)
    made.insert("shop.bag", {"n": 1}, {"n": 1})
    made.view_at = made.seen
    return made


@pytest.fixture
def deaths(monkeypatch, tmp_path, source):
    monkeypatch.setattr(as_of, "read_batches", source.read)
    return Deaths(monkeypatch, tmp_path / "disks", source)


def rows_of(path):
    return sorted(pq.read_table(path).to_pylist(), key=repr)


def gtids_of(source):
    return [gtid for gtid, _, _ in source.stream.groups]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_rows_are_those_behind_each_group(source, deaths, tmp_path, size):
    begin = source.view_at
    rows(source)
    truncate(source)
    source.sql("CREATE TABLE u LIKE t", u=table("id name", "id"))
    source.insert("shop.u", A)
    text = CREATE_T.replace(" t ", " v ")
    source.create_select(text, "v", table("id name", "id", [A, C]))
    source.delete("shop.v", C)
    source.sql("CREATE OR REPLACE TABLE u (n INT)", u=table("n"))
    source.insert("shop.u", {"n": 1})
    source.insert("shop.t", A)
    source.delete("shop.t", B)
    source.view_at, source.batch_groups = begin, size
    lake, file = tmp_path / "lake", str(tmp_path / "t.parquet")
    deaths.run(lake)
    config = replace(deaths.config, target=str(lake))
    for count, gtid in enumerate(gtids_of(source), 1):
        position = GtidPosition([gtid]) if size > 1 else source.stream.place(count)
        for name in map(named, ("shop.t", "shop.bag", "shop.u", "shop.v")):
            there = source.models[count].get(name)
            if count < begin or there is None:
                with pytest.raises(PipelineError, match=r"not of before|no such table|no change"):
                    write_as_of(config, name, position, file)
                continue
            done = write_as_of(config, name, position, file)
            assert done.rows == len(there.rows)
            assert rows_of(file) == sorted(there.rows, key=repr), (count, name)


def test_columns_are_those_of_then(source, deaths, tmp_path):
    begin = source.view_at
    columns(source)
    source.view_at = begin
    lake, file = tmp_path / "lake", str(tmp_path / "t.parquet")
    deaths.run(lake)
    config = replace(deaths.config, target=str(lake))
    for count in range(begin + 1, source.seen + 1):
        gtid = gtids_of(source)[count - 1]
        write_as_of(config, T, GtidPosition([gtid]), file)
        assert pq.read_schema(file).names == list(source.models[count][T].columns)
        assert rows_of(file) == sorted(source.models[count][T].rows, key=repr)


def test_what_cannot_be_told_stops(source, deaths, tmp_path):
    begin = source.view_at
    source.insert("shop.t", C)
    source.sql("RENAME TABLE t TO u", t=None, u=table("id name", "id", [A, B, C]))
    source.view_at = begin
    deaths.run(tmp_path / "lake")
    config = replace(deaths.config, target=str(tmp_path / "lake"))
    *_, before, last = (GtidPosition([gtid]) for gtid in gtids_of(source))
    file = str(tmp_path / "x.parquet")
    for name, position, words in (
        ("shop.u", before, r"shop.u was named shop.t behind"),
        ("shop.t", last, "there is no change table"),
        ("shop.u", GtidPosition.parse("0-1-99"), "the tables are at 0-1-6"),
        ("shop.u", GtidPosition.parse("7-1-1"), "the tables are at 0-1-6"),
    ):
        with pytest.raises(PipelineError, match=words):
            write_as_of(config, named(name), position, file)
    assert not (tmp_path / "x.parquet").exists()
    assert write_as_of(config, named("shop.u"), last, file).rows == 3
