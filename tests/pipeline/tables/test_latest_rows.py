"""Tables with a key: the last state of each key, whatever the images leave out."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.latest_rows import LatestRows
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import Op
from ibb.protocol.gtid import Gtid, GtidPosition

from .changes import EMPTIES, SCHEMA, changes, delete, insert, update
from .memory_target import MemoryTarget

GTID = Gtid(0, 1, 1)
PLACE = Place(GtidPosition([GTID]), 1)


def row(key, name="a", price=1.0):
    return {"id": key, "name": name, "price": price}


def table_with(*rows, schema=SCHEMA, key=("id",)):
    target = MemoryTarget("shop.orders")
    target.create(schema, key, None)
    apply(target, changes(GTID, *map(insert, rows), schema=schema))
    return target


def apply(target, *segments):
    builder = target.builder()
    for segment in segments:
        builder.add(segment)
    target.merge(builder.merge(target), PLACE)


def test_the_last_state_of_a_key_wins():
    target = table_with(row(1), row(2), row(3))
    apply(
        target,
        changes(
            GTID,
            update(row(1), row(1, "b")),
            delete(row(2)),
            insert(row(4)),
            update(row(1, "b"), row(1, "c")),
            insert(row(2, "again")),
            delete(row(4)),
        ),
    )
    assert target.rows() == [(1, "c", 1.0), (2, "again", 1.0), (3, "a", 1.0)]


def test_a_key_that_changes_takes_its_row_along():
    target = table_with(row(1, "one"), row(2, "two"))
    apply(
        target,
        changes(
            GTID,
            update(row(1, "one"), row(9, "one")),
            update(row(2, "two"), row(1, "two")),
            update(row(9, "one"), row(2, "one")),
        ),
    )
    assert target.rows() == [(1, "two", 1.0), (2, "one", 1.0)]


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.string(), "a", "A"),  # equal under a _ci collation: the binlog has what was stored
        (pa.string(), "a", "a  "),  # equal under PAD SPACE
        (pa.float64(), 0.0, -0.0),
        (pa.binary(), b"\0", b"\0\0"),
    ],
)
def test_a_key_changes_into_one_that_the_server_thinks_equal(kind, one, other):
    schema = pa.schema([("id", kind), ("name", pa.string())])
    target = table_with({"id": one, "name": "x"}, schema=schema)
    old, new = {"id": one, "name": "x"}, {"id": other, "name": "y"}
    apply(target, changes(GTID, update(old, new), schema=schema))
    assert [repr(found) for found in target.rows()] == [repr((other, "y"))]
    apply(target, changes(GTID, delete(new), schema=schema))
    assert target.rows() == []


def test_nan_and_decimals_are_keys_too():
    schema = pa.schema([("id", pa.float64()), ("d", pa.decimal128(20, 0))])
    nan = {"id": float("nan"), "d": Decimal(2**64 - 1)}
    target = table_with(nan, schema=schema, key=("id", "d"))
    apply(target, changes(GTID, delete(nan), schema=schema))
    assert target.rows() == []


def test_absent_columns_keep_their_value():
    target = table_with(row(1, "one", 1.5), row(2, "two", 2.5))
    minimal = {"before": ["id"], "after": ["name"]}
    apply(
        target,
        changes(GTID, update({"id": 1}, {"name": "ONE"}), **minimal),
        changes(GTID, update({"id": 1}, {"id": 7}), before=["id"], after=["id"]),
        changes(GTID, update({"id": 7}, {"price": None}), before=["id"], after=["price"]),
        changes(GTID, insert(row(8, "eight")), before=["id"]),
        changes(GTID, update({"id": 8}, {"price": 8.5}), before=["id"], after=["price"]),
        changes(GTID, delete({"id": 2}), before=["id"], after=[]),
    )
    assert target.rows() == [(7, "ONE", None), (8, "eight", 8.5)]


def test_a_part_of_a_row_that_is_nowhere_stops():
    target = table_with(row(1))
    with pytest.raises(PipelineError, match=r"changes a row that is not in the change table"):
        apply(
            target,
            changes(GTID, update({"id": 5}, {"name": "x"}), before=["id"], after=["name"]),
        )
    assert target.rows() == [(1, "a", 1.0)]


def test_truncate_leaves_only_what_came_later():
    target = table_with(row(1), row(2))
    builder = target.builder()
    builder.add(changes(GTID, insert(row(3))))
    builder.truncate(EMPTIES)
    builder.add(changes(GTID, insert(row(4)), delete(row(4)), insert(row(2, "new"))))
    target.merge(builder.merge(target), PLACE)
    assert target.rows() == [(2, "new", 1.0)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (pa.schema([*SCHEMA, ("extra", pa.int32())]), "a column extra that the change table"),
        (pa.schema([("id", pa.int32()), *list(SCHEMA)[1:]]), "id is int32 in the stream and int64"),
    ],
)
def test_rows_of_another_shape_stop_before_they_are_written(schema, words):
    builder = LatestRows("shop.orders", SCHEMA, ["id"])
    with pytest.raises(PipelineError, match=words):
        builder.add(changes(GTID, insert(row(1)), schema=schema))


def test_images_without_the_key_stop():
    builder = LatestRows("shop.orders", SCHEMA, ["id"])
    with pytest.raises(PipelineError, match="lack the key column id"):
        builder.add(changes(GTID, delete(row(1)), before=["name"], after=[]))


keys = st.integers(0, 4)
names = st.sampled_from(["a", "b", None])
# What a program may ask; what cannot be done (a key that is there, or is not) is left out.
wishes = st.lists(
    st.tuples(st.sampled_from(Op), keys, keys, names, st.booleans(), st.integers(0, 9)), max_size=30
)


@given(wishes)
def test_any_history_of_any_images_ends_as_in_a_dictionary(history):
    """Full and partial images by turns, merged after every few changes."""
    model = {}
    target = table_with()
    segments = []
    for op, key, other, name, partial, pause in history:
        row_before = model.get(key)
        if op == Op.INSERT and row_before is None:
            model[key] = row(key, name)
            segments.append(changes(GTID, insert(model[key])))
        elif op == Op.DELETE and row_before is not None:
            del model[key]
            shape = {"before": ["id"], "after": []} if partial else {}
            segments.append(changes(GTID, delete(row_before), **shape))
        elif op == Op.UPDATE and row_before is not None and (key == other or other not in model):
            new = {**row_before, "id": other, "name": name}
            del model[key]
            model[other] = new
            changed = [column for column in new if new[column] != row_before[column]]
            shape = {"before": ["id"], "after": changed} if partial else {}
            if changed or not partial:
                segments.append(changes(GTID, update(row_before, new), **shape))
        if not pause:
            apply(target, *segments)
            segments = []
    apply(target, *segments)
    assert target.rows() == sorted((tuple(found.values()) for found in model.values()), key=repr)
