"""Versions of rows: any history, merged in any pieces, tells every table that there was."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.row_changes import Op
from ibb.pipeline.tables.row_key import KEY_COLUMN
from ibb.pipeline.tables.row_versions import CountedVersions, KeyedVersions
from ibb.pipeline.tables.validity import FROM_SEQ, IS_CURRENT, TO_SEQ, Moment
from ibb.protocol.gtid import Gtid

from .changes import SCHEMA, changes, delete, insert, update


def row(key, name="a", price=1.0):
    return {"id": key, "name": name, "price": price}


def moment(run):
    return Moment(run.gtid.seq, str(run.gtid), run.time)


def gtid(seq):
    return Gtid(0, 1, seq)


class Stored:
    """A history that is a list of dictionaries."""

    def __init__(self):
        self.versions = []

    def rows_of(self, keys):
        rows = [version for version in self.current() if version[KEY_COLUMN] in keys]
        return pa.Table.from_pylist(rows, pa.schema([(KEY_COLUMN, pa.string()), *SCHEMA]))

    def copies_of(self, digests):
        found = [version[KEY_COLUMN].partition("-")[0] for version in self.current()]
        return {digest: found.count(digest) for digest in digests if digest in found}

    def current(self):
        return [version for version in self.versions if version[IS_CURRENT]]

    def apply(self, builder):
        made = builder.merge(self)
        for version in self.current():
            end = made.ends.get(version[KEY_COLUMN], made.emptied)
            if end is not None:
                version |= {TO_SEQ: end.seq, IS_CURRENT: False}
        self.versions += made.versions.to_pylist()

    def at(self, seq):
        """Return the rows behind group *seq*."""
        there = [
            version
            for version in self.versions
            if version[FROM_SEQ] <= seq and (version[TO_SEQ] is None or version[TO_SEQ] > seq)
        ]
        return sorted(
            (tuple(version[name] for name in SCHEMA.names) for version in there), key=repr
        )

    def check(self):
        """Check that versions of a key follow one another."""
        by_key = {}
        for version in sorted(self.versions, key=lambda version: version[FROM_SEQ]):
            assert version[IS_CURRENT] == (version[TO_SEQ] is None)
            before = by_key.get(version[KEY_COLUMN], 0)
            assert before is not None
            assert before <= version[FROM_SEQ] < (version[TO_SEQ] or 1 << 60)
            by_key[version[KEY_COLUMN]] = version[TO_SEQ]


keys = st.integers(0, 3)
names = st.sampled_from(["a", "b", None])
wishes = st.lists(
    st.tuples(
        st.sampled_from([*Op, "truncate"]), keys, keys, names, st.booleans(), st.integers(0, 9)
    ),
    max_size=30,
)


@pytest.mark.parametrize("key", [("id",), ()])
@given(wishes=wishes)
def test_any_history_tells_every_table_that_there_was(key, wishes):
    """Full and partial images; several changes of a row in a group, in a batch, in many."""
    stored, seq, rows, then = Stored(), 1, [], []
    made = ("t", SCHEMA, list(key), moment) if key else ("t", SCHEMA, moment)
    kind = KeyedVersions if key else CountedVersions
    builder = kind(*made)
    for op, number, other, name, partial, pause in wishes:
        found = [old for old in rows if old["id"] == number]
        if op == "truncate":
            if pause == 0:
                seq += 1
                builder.truncate(changes(gtid(seq)).groups[0])
                rows = []
        elif op == Op.INSERT and not (key and found):
            rows.append(row(number, name))
            builder.add(changes(gtid(seq), insert(row(number, name))))
        elif op == Op.DELETE and found:
            rows.remove(found[0])
            shape = {"before": ["id"], "after": []} if partial and key else {}
            builder.add(changes(gtid(seq), delete(found[0]), **shape))
        elif op == Op.UPDATE and found:
            if key and number != other and any(old["id"] == other for old in rows):
                continue
            old, new = found[0], {**found[0], "id": other, "name": name}
            changed = [column for column in new if new[column] != old[column]]
            shape = {"before": ["id"], "after": changed} if partial and key else {}
            if changed:
                rows[rows.index(old)] = new
                builder.add(changes(gtid(seq), update(old, new), **shape))
        if pause > 3:
            then.append((seq, sorted((tuple(there.values()) for there in rows), key=repr)))
            seq += 1
        if pause > 7:
            stored.apply(builder)
            stored.check()
            builder = kind(*made)
    stored.apply(builder)
    stored.check()
    then.append((seq, sorted((tuple(there.values()) for there in rows), key=repr)))
    for at, wanted in then:
        assert stored.at(at) == wanted, at


def test_copies_that_are_stored_go_one_by_one_and_numbers_begin_anew_with_an_empty_table():
    stored = Stored()

    def apply(*steps):
        builder = CountedVersions("t", SCHEMA, moment)
        for seq, ops in steps:
            if ops:
                builder.add(changes(gtid(seq), *ops))
            else:
                builder.truncate(changes(gtid(seq)).groups[0])
        stored.apply(builder)
        stored.check()

    apply((1, [insert(row(1))] * 3))
    apply((2, [delete(row(1))]), (3, [delete(row(1))]))
    apply((4, [insert(row(1))]), (5, []), (6, [insert(row(1))]))
    apply((7, [delete(row(1))]))
    assert [len(stored.at(seq)) for seq in range(1, 8)] == [3, 2, 1, 2, 0, 1, 0]
    with pytest.raises(PipelineError, match="deletes a row that is not in the change table"):
        apply((8, [delete(row(1))]))
