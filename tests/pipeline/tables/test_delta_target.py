"""Delta tables: rows, shape and place come in one commit."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from ibb.pipeline.tables.delta_target import DeltaTarget
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.place import STORED_SEQ_MAX, Place
from ibb.pipeline.tables.row_changes import TableName
from ibb.pipeline.tables.row_merge import RowMerge
from ibb.pipeline.tables.table_folders import table_uri
from ibb.protocol.gtid import Gtid

from .changes import EMPTIES, SCHEMA, changes, delete, insert, position, update

GTID = Gtid(0, 1, 1)


def place(text, time=5):
    return Place(position(text), time)


def row(number, name="a"):
    return {"id": number, "name": name, "price": -0.0}


def rows_of(target):
    return sorted((row for batch in target.batches() for row in batch.to_pylist()), key=repr)


def apply(target, where, *segments):
    builder = target.builder()
    for segment in segments:
        builder.add(segment)
    target.merge(builder.merge(target), place(where))


@pytest.fixture
def target(tmp_path):
    made = DeltaTarget("shop.orders", str(tmp_path / "orders"), "test")
    assert not made.exists
    made.create(SCHEMA, ["id"], place("0-1-1"))
    return made


def reopened(target):
    return DeltaTarget(target.name, target.uri, "test")


def test_changes_are_merged_and_the_place_is_theirs(target):
    apply(target, "0-1-2,7-2-9", changes(GTID, *[insert(row(number)) for number in range(5)]))
    apply(
        target,
        "7-2-9,0-1-3",
        changes(GTID, update(row(1), row(9, "moved")), delete(row(0)), update(row(2), row(2, "b"))),
    )
    again = reopened(target)
    assert rows_of(again) == [row(2, "b"), row(3), row(4), row(9, "moved")]
    assert again.place == place("0-1-3,7-2-9")
    assert (again.schema, again.key) == (SCHEMA, ["id"])


def test_a_merge_without_effect_brings_its_place_too(target):
    apply(target, "0-1-2", changes(GTID, insert(row(1)), delete(row(1))))
    assert reopened(target).place == place("0-1-2")
    apply(target, "0-1-3")
    assert reopened(target).place == place("0-1-3")


def test_partial_images_find_the_rest_in_the_table(target):
    apply(target, "0-1-2", changes(GTID, insert(row(1)), insert(row(2))))
    shape = {"before": ["id"], "after": ["name"]}
    apply(target, "0-1-3", changes(GTID, update({"id": 2}, {"name": "z"}), **shape))
    assert rows_of(target) == [row(1), row(2, "z")]


def test_an_emptied_table_is_replaced(target):
    apply(target, "0-1-2", changes(GTID, insert(row(1))))
    builder = target.builder()
    builder.truncate(EMPTIES)
    builder.add(changes(GTID, insert(row(2))))
    target.merge(builder.merge(target), place("0-1-3"))
    assert rows_of(target) == [row(2)]
    assert (target.key, target.place) == (["id"], place("0-1-3"))


def test_copies_of_rows_without_a_key(tmp_path):
    target = DeltaTarget("shop.log", str(tmp_path / "log"), "test")
    target.create(SCHEMA, [], place(""))
    apply(target, "0-1-1", changes(GTID, *[insert(row(1))] * 3, insert(row(2))))
    apply(target, "0-1-2", changes(GTID, delete(row(1)), delete(row(2)), insert(row(3))))
    assert rows_of(reopened(target)) == [row(1), row(1), row(3)]
    target.rewrite(SCHEMA, [], lambda rows: rows, place("0-1-3"))
    apply(target, "0-1-4", changes(GTID, delete(row(1))))
    assert rows_of(target) == [row(1), row(3)]


def test_a_table_changes_its_shape_in_one_commit(target):
    apply(target, "0-1-2", changes(GTID, insert(row(1)), insert(row(2))))
    before = DeltaTable(target.uri).version()
    schema = pa.schema([("number", pa.int64()), ('na"me', pa.string())])

    def change(rows):
        return pa.table([rows.column("id"), rows.column("name")], schema=schema)

    target.rewrite(schema, ['na"me', "number"], change, place("0-1-3"))
    again = reopened(target)
    assert DeltaTable(target.uri).version() == before + 1
    assert rows_of(again) == [{"number": 1, 'na"me': "a"}, {"number": 2, 'na"me': "a"}]
    assert (again.key, again.place) == (['na"me', "number"], place("0-1-3"))
    gone = {"number": 1, 'na"me': "a"}
    apply(again, "0-1-4", changes(GTID, delete(gone), schema=schema))
    assert rows_of(again) == [{"number": 2, 'na"me': "a"}]


def test_a_column_is_added_at_the_end(target):
    apply(target, "0-1-2", changes(GTID, insert(row(1))))
    target.add_columns([pa.field("extra", pa.decimal128(20, 0))], place("0-1-3"))
    assert rows_of(reopened(target)) == [{**row(1), "extra": None}]
    assert reopened(target).key == ["id"]


def test_several_pipelines_keep_their_places_apart(target):
    assert DeltaTarget(target.name, target.uri, "other").place is None


def test_a_number_that_delta_cannot_store_stops(target):
    with pytest.raises(PipelineError, match=f"above {STORED_SEQ_MAX}"):
        target.merge(RowMerge(SCHEMA.empty_table(), []), place(f"0-1-{2**63}"))


def test_a_table_may_be_where_names_are_escaped(tmp_path):
    target = DeltaTarget("a", table_uri(str(tmp_path), TableName("d%b", "t a")), "test")
    target.create(SCHEMA, ["id"], place(""))
    apply(target, "0-1-2", changes(GTID, insert(row(1))))
    assert rows_of(reopened(target)) == [row(1)]


def test_files_of_this_machine_are_read_by_arrow_alone(target):
    """Through delta-rs its threads call Python, now and then while the program is ending."""
    filesystem = target._dataset(target._opened()).filesystem
    assert isinstance(filesystem, SubTreeFileSystem)
    assert isinstance(filesystem.base_fs, LocalFileSystem)


def test_rows_that_cannot_be_had_stop_with_their_own_error(target):
    def rows():
        yield SCHEMA.empty_table()
        raise PipelineError("the server has gone")

    with pytest.raises(PipelineError, match=r"^the server has gone$"):
        target.fill(SCHEMA, ["id"], rows(), place("0-1-9"))
