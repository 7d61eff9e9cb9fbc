"""Plain Parquet files: a reader of the manifest sees whole batches, and few files."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ibb.pipeline.tables import as_of, parquet_files
from ibb.pipeline.tables.as_of import write_as_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.parquet_files import SMALL_FILES_MAX
from ibb.pipeline.tables.parquet_manifest import KEPT_VERSIONS, NEWEST
from ibb.pipeline.tables.parquet_target import ParquetTarget
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_key import KEY_COLUMN
from ibb.pipeline.tables.state_folder import StateFolder
from ibb.protocol.gtid import Gtid, GtidPosition

from .changes import EMPTIES, SCHEMA, changes, delete, insert, position, update
from .deaths import Deaths
from .test_deaths import begun, columns, drop, make, rename, rows, try_disks

GTID = Gtid(0, 1, 1)


def place(seq):
    return Place(position(f"0-1-{seq}"), seq)


def row(number, name="a"):
    return {"id": number, "name": name, "price": -0.0}


def apply(target, seq, *ops, **shape):
    builder = target.builder()
    builder.add(changes(GTID, *ops, **shape))
    target.merge(builder.merge(target), place(seq))


def seen(folder):
    """Return what a reader sees that knows Parquet and the manifest, and nothing of ibb."""
    manifest = json.loads((folder / NEWEST).read_text())
    tables = [pq.read_table(folder / file["name"]) for file in manifest["files"]]
    rows = [row for table in tables for row in table.drop_columns([KEY_COLUMN]).to_pylist()]
    assert [table.num_rows for table in tables] == [file["rows"] for file in manifest["files"]]
    return sorted(rows, key=repr)


@pytest.fixture
def target(tmp_path):
    made = ParquetTarget("shop.t", str(tmp_path / "t"), "test")
    assert not made.exists
    made.create(SCHEMA, ["id"], place(1))
    return made


def reopened(target):
    return ParquetTarget(target.name, target.uri, "test")


def test_changes_are_merged_and_the_place_is_theirs(target, tmp_path):
    apply(target, 2, *[insert(row(number)) for number in range(5)])
    apply(target, 3, update(row(1), row(9, "moved")), delete(row(0)), update(row(2), row(2, "b")))
    again = reopened(target)
    assert seen(tmp_path / "t") == [row(2, "b"), row(3), row(4), row(9, "moved")]
    assert (again.place, again.schema, again.key, again.rows) == (place(3), SCHEMA, ["id"], 4)
    assert ParquetTarget("shop.t", target.uri, "other").place is None
    minimal = {"before": ["id"], "after": ["name"]}
    apply(again, 4, update({"id": 3}, {"name": "z"}), **minimal)
    assert seen(tmp_path / "t")[1] == row(3, "z")


def test_files_without_a_changed_row_stay(target):
    apply(target, 2, insert(row(1)), insert(row(2)))
    apply(target, 3, insert(row(3)))
    before = target.files
    apply(target, 4, update(row(3), row(3, "b")))
    assert target.files[0] == before[0]
    assert before[1] not in target.files
    apply(target, 5, delete(row(1)), delete(row(2)))
    assert [file.rows for file in target.files] == [1]


def test_small_files_are_put_together_and_old_ones_removed(target, tmp_path):
    for seq in range(2, 2 + 3 * SMALL_FILES_MAX):
        apply(target, seq, insert(row(seq)))
        assert len(target.files) <= SMALL_FILES_MAX
    assert target.rows == len(seen(tmp_path / "t")) == 3 * SMALL_FILES_MAX
    kept = list(reopened(target).versions())
    assert len(kept) == KEPT_VERSIONS
    there = {path.name for path in (tmp_path / "t").iterdir()}
    named = {NEWEST} | {f"_manifest-{version.number}.json" for version in kept}
    for name in list(named):
        named |= {file["name"] for file in json.loads((tmp_path / "t" / name).read_text())["files"]}
    assert there == named
    for version in kept:
        found = [row for batch in target.batches(version.number) for row in batch.to_pylist()]
        assert len(found) == version.position.get(0).seq - 1


def test_files_and_pieces_are_of_a_bounded_size(target, monkeypatch):
    monkeypatch.setattr(parquet_files, "FILE_ROWS", 10)
    monkeypatch.setattr(parquet_files, "SMALL_ROWS", 2)
    monkeypatch.setattr(parquet_files, "PIECE_ROWS", 5)
    rows = pa.Table.from_pylist([row(number) for number in range(32)], SCHEMA)
    target.fill(SCHEMA, ["id"], [rows], place(2))
    assert [file.rows for file in target.files] == [10, 10, 10, 2]
    assert {batch.num_rows for batch in target.batches()} == {5, 2}


def test_an_emptied_table_and_rows_without_a_key(tmp_path):
    target = ParquetTarget("shop.bag", str(tmp_path / "bag"), "test")
    target.create(SCHEMA, [], place(1))
    apply(target, 2, *[insert(row(1))] * 3, insert(row(2)))
    apply(reopened(target), 3, delete(row(1)), delete(row(2)), insert(row(3)))
    assert seen(tmp_path / "bag") == [row(1), row(1), row(3)]
    target = reopened(target)
    builder = target.builder()
    builder.truncate(EMPTIES)
    builder.add(changes(GTID, insert(row(1))))
    target.merge(builder.merge(target), place(4))
    target.advance(place(5))
    assert seen(tmp_path / "bag") == [row(1)]
    assert reopened(target).place == place(5)


def test_a_table_in_an_object_store():
    target = ParquetTarget("shop.t", "memory://lake/shop/t", "test")
    target.create(SCHEMA, ["id"], place(1))
    for seq in range(2, 2 + 2 * KEPT_VERSIONS):
        apply(target, seq, insert(row(seq)))
    apply(target, 50, delete(row(2)))
    again = reopened(target)
    rows = [row for batch in again.batches() for row in batch.to_pylist()]
    assert len(rows) == again.rows == 2 * KEPT_VERSIONS - 1
    assert again.place == place(50)
    names = StateFolder("memory://lake/shop/t").names()
    assert len([name for name in names if name.startswith("_manifest-")]) == KEPT_VERSIONS


def test_a_manifest_that_is_damaged_is_named(target, tmp_path):
    path = tmp_path / "t" / NEWEST
    path.write_text(path.read_text().replace('"rows"', '"lines"').replace('"places"', '"where"'))
    with pytest.raises(PipelineError, match=r"_manifest.json of a Parquet table is damaged"):
        reopened(target)


@pytest.fixture
def source():
    return begun()


@pytest.fixture
def deaths(monkeypatch, tmp_path, source):
    monkeypatch.setattr(as_of, "read_batches", source.read)
    made = Deaths(monkeypatch, tmp_path / "disks", source)
    made.config = replace(made.config, format="parquet")
    return made


@pytest.mark.parametrize("topic", [rows, columns, make, rename, drop])
def test_no_write_is_a_wrong_moment_to_die(source, deaths, tmp_path, topic):
    source.view_at, lake = 3, tmp_path / "lake"
    deaths.run(lake)
    topic(source)
    source.batch_groups = 2
    disks = deaths.run(lake)
    deaths.check(lake)
    assert len(disks) > 4
    try_disks(deaths, disks, (100, 1), 0)


def test_a_reader_sees_no_batch_in_part(source, deaths, tmp_path):
    """Before each write the manifest's files are a state that some group left behind."""
    source.view_at, lake = 3, tmp_path / "lake"
    disks = deaths.run(lake)
    rows(source)
    disks += deaths.run(lake)
    states = [model[("shop", "t")].rows for model in source.models if ("shop", "t") in model]
    states = [sorted(rows, key=repr) for rows in states]
    found = [seen(disk / "shop/t") for disk in disks if (disk / "shop/t" / NEWEST).exists()]
    assert len(found) > 4
    assert all(rows in states for rows in found)


def test_as_of_begins_with_a_version_that_is_kept(source, deaths, tmp_path):
    source.view_at, lake, file = 3, tmp_path / "lake", str(tmp_path / "t.parquet")
    deaths.run(lake)
    rows(source)
    source.batch_groups = 2
    deaths.run(lake)
    config = replace(deaths.config, target=str(lake))
    for count in range(3, len(source.models)):
        for name, table in source.models[count].items():
            write_as_of(config, name, source.stream.place(count), file)
            found = sorted(pq.read_table(file).to_pylist(), key=repr)
            assert found == sorted(table.rows, key=repr)
    folder = StateFolder(str(lake / "shop/t"))
    folder.remove(name for name in folder.names() if name.startswith("_manifest-1."))
    with pytest.raises(PipelineError, match="the oldest version that is left"):
        write_as_of(config, next(iter(source.models[3])), GtidPosition.parse("0-1-1"), file)
