"""What a change says of the row before it, and the merge that it stops where that is not so."""

import pytest

from ibb.pipeline.tables.config import PipelineConfig, ServerConfig
from ibb.pipeline.tables.delta_target import DeltaTarget
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.first_touches import Trust
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.parquet_target import ParquetTarget
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import TableName
from ibb.protocol.gtid import Gtid

from .changes import EMPTIES, SCHEMA, changes, delete, insert, position, update
from .memory_target import MemoryTarget

TARGETS = {"delta": DeltaTarget, "parquet": ParquetTarget}
MINIMAL = {"before": ["id"], "after": ["name"]}


def row(number, name="a"):
    return {"id": number, "name": name, "price": 1.0}


def place(seq):
    return Place(position(f"0-1-{seq}"), 1)


@pytest.fixture(params=["memory", *TARGETS])
def target(request, tmp_path):
    """A table with the rows 1 and 2 at 0-1-1."""
    if request.param == "memory":
        made = MemoryTarget("shop.t")
    else:
        made = TARGETS[request.param]("shop.t", str(tmp_path / "t"), "test")
    made.create(SCHEMA, ["id"], place(0))
    apply(made, 1, insert(row(1)), insert(row(2)))
    return made


def apply(target, seq, *rows, empties=False, **shape):
    """Merge rows, each of a group of its own from 0-1-*seq* on."""
    builder = target.builder()
    if empties:
        builder.truncate(EMPTIES)
    for number, change in enumerate(rows, seq):
        shape_of = {} if change[1] is None else shape
        builder.add(changes(Gtid(0, 1, number), change, **shape_of))
    target.merge(builder.merge(target), place(seq + len(rows) - 1))


def names(target):
    rows = [row for batch in target.batches() for row in batch.to_pylist()]
    return {row["id"]: row["name"] for row in rows}


MISSING = "changes a row that is not in the change table"
TAKEN = r"brings a row whose key \(id\) the change table has already"


@pytest.mark.parametrize(
    ("seq", "words", "rows"),
    [
        (3, MISSING, [update(row(5), row(5, "b")), update(row(1), row(1, "b"))]),
        (3, MISSING, [delete(row(5))]),
        (4, MISSING, [delete(row(1)), delete(row(1))]),
        (4, MISSING, [delete(row(1)), update(row(1), row(1, "b"))]),
        (4, MISSING, [update(row(1), row(7)), update(row(1), row(8))]),
        (4, MISSING, [update(row(1), row(3)), update(row(9), row(1))]),
        (3, TAKEN, [insert(row(1)), insert(row(5))]),
        (4, TAKEN, [insert(row(5)), insert(row(1))]),
        (4, TAKEN, [insert(row(5)), insert(row(5))]),
        (4, TAKEN, [update(row(1), row(1)), insert(row(1))]),
        (3, TAKEN, [update(row(1), row(2))]),
        (4, TAKEN, [insert(row(5)), update(row(5), row(2))]),
    ],
)
def test_a_row_that_is_not_as_a_change_says_stops_the_merge(target, seq, words, rows):
    with pytest.raises(PipelineError, match=f"shop.t at 0-1-{seq}: .*{words}") as error:
        apply(target, 3, *rows)
    assert "in the batch of 0-1-3" in str(error.value)
    assert (names(target), target.place) == ({1: "a", 2: "a"}, place(2))
    apply(target, 3, update(row(1), row(1, "b")), delete(row(2)), insert(row(3)))
    assert names(target) == {1: "b", 3: "a"}


def test_a_row_too_many_does_not_make_up_for_one_that_is_missing(target):
    with pytest.raises(PipelineError, match=f"{MISSING}|{TAKEN}"):
        apply(target, 3, insert(row(2)), delete(row(9)))
    with pytest.raises(PipelineError, match=f"shop.t: .*{TAKEN}"):  # by which is not known any more
        apply(target, 3, insert(row(2)), delete(row(2)))
    assert (names(target), target.place) == ({1: "a", 2: "a"}, place(2))


def test_partial_images_say_it_too(target):
    apply(target, 2, update({"id": 1}, {"name": "b"}), **MINIMAL)
    with pytest.raises(PipelineError, match=f"shop.t at 0-1-4: .*{MISSING}"):
        apply(target, 3, delete({"id": 2}), update({"id": 2}, {"name": "b"}), **MINIMAL)
    with pytest.raises(PipelineError, match=f"shop.t at 0-1-3: .*{MISSING}"):
        apply(target, 3, delete({"id": 9}), before=["id"], after=[])
    assert names(target) == {1: "b", 2: "a"}


def test_keys_that_go_and_come_within_a_batch(target):
    apply(
        target,
        2,
        insert(row(3)),
        delete(row(3)),
        delete(row(1)),
        insert(row(1, "new")),
        update(row(2), row(4)),
        update(row(4), row(2, "back")),
    )
    assert names(target) == {1: "new", 2: "back"}


def test_an_emptied_table_has_no_rows_to_change(target):
    with pytest.raises(PipelineError, match=f"shop.t at 0-1-2: .*{MISSING}"):
        apply(target, 2, update(row(1), row(1, "b")), empties=True)
    apply(target, 2, insert(row(1, "c")), update(row(1, "c"), row(1, "d")), empties=True)
    assert names(target) == {1: "d"}


@pytest.mark.parametrize("kind", TARGETS)
def test_a_table_of_which_nothing_is_known_takes_what_comes(kind, tmp_path):
    target = TARGETS[kind]("shop.t", str(tmp_path / "t"), "test")
    target.trust = Trust.NONE
    target.create(SCHEMA, ["id"], place(0))
    apply(target, 1, insert(row(1)), update(row(7), row(7, "b")), delete(row(8)))
    apply(target, 4, insert(row(1, "again")))
    assert names(target) == {1: "again", 7: "b"}


@pytest.mark.parametrize("kind", TARGETS)
def test_a_table_that_may_lack_rows_has_none_too_many(kind, tmp_path):
    target = TARGETS[kind]("shop.t", str(tmp_path / "t"), "test")
    target.trust = Trust.SOME
    target.create(SCHEMA, ["id"], place(0))
    apply(target, 1, insert(row(1)), update(row(7), row(7, "b")), delete(row(8)), delete(row(8)))
    for wrong in ([insert(row(1))], [insert(row(5)), insert(row(5))], [update(row(7), row(1))]):
        with pytest.raises(PipelineError, match=f"shop.t at 0-1-[56]: .*{TAKEN}"):
            apply(target, 5, *wrong)
    assert (names(target), target.place) == ({1: "a", 7: "b"}, place(4))


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(
    ("has_server", "undecoded", "trust"),
    [
        (True, "stop", Trust.ALL),
        (False, "stop", Trust.SOME),
        (True, "keep", Trust.NONE),
        (False, "keep", Trust.NONE),
    ],
)
def test_what_is_known_of_tables_is_up_to_the_settings(
    tmp_path, kind, has_server, undecoded, trust
):
    server = ServerConfig() if has_server else None
    config = PipelineConfig(
        "test", "", str(tmp_path), format=kind, undecoded=undecoded, server=server
    )
    assert Lake(config).open(TableName("shop", "t")).trust is trust
