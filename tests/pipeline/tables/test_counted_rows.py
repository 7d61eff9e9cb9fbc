"""Tables without a key: as many equal rows as the source has."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.pipeline.tables.counted_rows import CountedRows
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.place import Place
from ibb.protocol.gtid import Gtid, GtidPosition

from .changes import EMPTIES, SCHEMA, changes, delete, insert, update
from .memory_target import MemoryTarget

GTID = Gtid(0, 1, 1)
PLACE = Place(GtidPosition([GTID]), 1)


def row(number):
    return {"id": number, "name": None, "price": 0.5}


def test_equal_rows_come_and_go_one_by_one():
    target = MemoryTarget("shop.log")
    target.create(SCHEMA, [], None)
    for segment in (
        changes(GTID, *[insert(row(1))] * 3, insert(row(2))),
        changes(GTID, delete(row(1)), update(row(2), row(1)), update(row(1), row(3))),
        changes(GTID, delete(row(3)), insert(row(1))),
    ):
        builder = target.builder()
        builder.add(segment)
        target.merge(builder.merge(target), PLACE)
    assert target.rows() == [(1, None, 0.5)] * 3


def test_partial_images_after_are_laid_over_those_before():
    target = MemoryTarget("shop.log")
    target.create(SCHEMA, [], None)
    builder = target.builder()
    builder.add(changes(GTID, insert(row(1))))
    builder.add(changes(GTID, update(row(1), {"name": "x"}), after=["name"]))
    target.merge(builder.merge(target), PLACE)
    assert target.rows() == [(1, "x", 0.5)]


def test_a_delete_of_what_is_not_there_stops():
    target = MemoryTarget("shop.log")
    target.create(SCHEMA, [], None)
    builder = target.builder()
    builder.add(changes(GTID, delete(row(1))))
    with pytest.raises(PipelineError, match="deletes a row that is not in the change table"):
        builder.merge(target)


def test_images_that_are_not_whole_stop():
    with pytest.raises(PipelineError, match="has no key, and the stream's rows lack column name"):
        CountedRows("shop.log", SCHEMA).add(
            changes(GTID, delete(row(1)), before=["id", "price"], after=[])
        )


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 5)), max_size=40))
def test_any_history_ends_as_in_a_counter(history):
    model = Counter()
    target = MemoryTarget("shop.log")
    target.create(SCHEMA, [], None)
    builder = target.builder()
    for op, number, choice in history:
        if op == 0:
            model[number] += 1
            builder.add(changes(GTID, insert(row(number))))
        elif model[number]:
            model[number] -= 1
            if op == 1:
                builder.add(changes(GTID, delete(row(number))))
            else:
                model[choice] += 1
                builder.add(changes(GTID, update(row(number), row(choice))))
        if choice == 0 and op == 0:
            builder.truncate(EMPTIES)
            model.clear()
        if choice == 5:
            target.merge(builder.merge(target), PLACE)
            builder = target.builder()
    target.merge(builder.merge(target), PLACE)
    assert target.rows() == sorted(((number, None, 0.5) for number in model.elements()), key=repr)
