"""Tables that stay open: as their folders are now, whoever wrote to them or put them there."""

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from ibb.pipeline.tables import open_tables
from ibb.pipeline.tables.open_tables import OpenTables


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "t"
    append(path, 1, 2)
    return path


@pytest.fixture
def openings(monkeypatch):
    """Where tables were opened, one for each time."""
    found = []

    class Opened(DeltaTable):
        def __init__(self, uri, **options):
            found.append(uri)
            super().__init__(uri, **options)

    monkeypatch.setattr(open_tables, "DeltaTable", Opened)
    return found


def append(path, *values):
    for value in values:
        write_deltalake(str(path), pa.table({"value": [value]}), mode="append")


def values(opened, path):
    table = opened.table(str(path), {})
    return None if table is None else sorted(table.to_pyarrow_table()["value"].to_pylist())


def test_a_table_is_opened_once_and_has_what_others_wrote(folder, openings):
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    append(folder, 3)
    assert values(opened, folder) == [1, 2, 3]
    write_deltalake(opened.table(str(folder), {}), pa.table({"value": [4]}), mode="append")
    assert values(opened, folder) == [1, 2, 3, 4]
    assert openings == [str(folder)]


def test_a_folder_without_a_table_is_looked_at_again(tmp_path):
    opened = OpenTables()
    assert values(opened, tmp_path / "t") is None
    append(tmp_path / "t", 7)
    assert values(opened, tmp_path / "t") == [7]


@pytest.mark.parametrize("behind", [0, 3])
def test_a_table_put_back_from_a_backup_is_that_of_the_backup(folder, tmp_path, behind):
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    shutil.copytree(folder, tmp_path / "backup")
    write_deltalake(opened.table(str(folder), {}), pa.table({"value": [3]}), mode="append")
    append(folder, 4)
    assert values(opened, folder) == [1, 2, 3, 4]
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    append(folder, *range(10, 10 + behind))  # as many versions as it had, and one more
    assert values(opened, folder) == [1, 2, *range(10, 10 + behind)]


def test_a_backup_put_back_in_place_is_told_from_what_was_there(folder, tmp_path):
    """As a copy that keeps the times does, over the old files or in files of their numbers."""
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    shutil.copytree(folder, tmp_path / "backup")
    append(folder, 3, 4)
    assert values(opened, folder) == [1, 2, 3, 4]
    for path in folder.rglob("*"):
        kept = tmp_path / "backup" / path.relative_to(folder)
        if kept.is_file():
            shutil.copy2(kept, path)
        elif path.is_file():
            path.unlink()
    append(folder, 10, 11)
    assert values(opened, folder) == [1, 2, 10, 11]


def test_what_was_replaced_behind_the_version_that_was_opened_is_noticed(folder):
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    append(folder, 3)
    assert values(opened, folder) == [1, 2, 3]
    (folder / "_delta_log" / f"{2:020}.json").unlink()
    append(folder, 10, 11)
    assert values(opened, folder) == [1, 2, 10, 11]


def test_a_backup_put_back_while_the_table_is_brought_up_to_date_is_noticed(
    folder, tmp_path, monkeypatch
):
    class Slow(DeltaTable):
        def update_incremental(self):
            super().update_incremental()
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / "backup", folder)
            append(folder, 10)

    monkeypatch.setattr(open_tables, "DeltaTable", Slow)
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    shutil.copytree(folder, tmp_path / "backup")
    append(folder, 3)
    assert values(opened, folder) == [1, 2, 10]


def test_entries_that_went_from_the_end_of_the_log_are_not_counted_on(folder):
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    append(folder, 3, 4)
    assert values(opened, folder) == [1, 2, 3, 4]
    (folder / "_delta_log" / f"{3:020}.json").unlink()  # what was opened is there still
    assert values(opened, folder) == [1, 2, 3]


def test_a_log_may_forget_the_version_that_was_opened(folder):
    opened = OpenTables()
    assert values(opened, folder) == [1, 2]
    append(folder, 3)
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(2):
        (folder / "_delta_log" / f"{version:020}.json").unlink()
    assert values(opened, folder) == [1, 2, 3]
    append(folder, 4)
    assert values(opened, folder) == [1, 2, 3, 4]


def test_tables_that_change_places_are_told_apart(folder, tmp_path):
    other, opened = tmp_path / "u", OpenTables()
    append(other, 8, 9)
    assert (values(opened, folder), values(opened, other)) == ([1, 2], [8, 9])
    for old, new in ((folder, tmp_path / "x"), (other, folder), (tmp_path / "x", other)):
        old.rename(new)
    assert (values(opened, folder), values(opened, other)) == ([8, 9], [1, 2])
    shutil.rmtree(folder)
    assert (values(opened, folder), values(opened, other)) == (None, [1, 2])


def test_who_was_asked_for_longest_ago_is_closed(tmp_path, monkeypatch, openings):
    monkeypatch.setattr(open_tables, "OPEN_TABLES_MAX", 2)
    paths, opened = [tmp_path / name for name in "abc"], OpenTables()
    for path in paths:
        append(path, 1)
    for number in (0, 1, 0, 2, 0, 1):
        assert values(opened, paths[number]) == [1]
    assert openings == [str(paths[number]) for number in (0, 1, 2, 1)]


def test_what_is_in_a_far_place_is_opened_each_time(folder, openings):
    opened, uri = OpenTables(), folder.as_uri()
    assert opened.table(uri, {}).version() == 1
    append(folder, 3)
    assert opened.table(uri, {}).version() == 2
    assert openings == [uri] * 2
