"""A history: what its columns and keys become, and what it does not know."""

import datetime as dt
import random

import pyarrow as pa
import pytest

from ibb.pipeline.ddl.statement import effect_of
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.history_reading import overlap
from ibb.pipeline.tables.history_shape import GAPS_MAX, columns_at, gaps_of, with_gap
from ibb.pipeline.tables.history_target import HistoryTarget
from ibb.pipeline.tables.parquet_history import ParquetHistory
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import GroupRun, MicroBatch
from ibb.pipeline.tables.row_key import KEY_COLUMN
from ibb.pipeline.tables.shape import Reshape, column_field
from ibb.pipeline.tables.validity import FROM_SEQ, IS_CURRENT, TO_SEQ, GroupOrder, Moment
from ibb.protocol.gtid import Gtid

from .changes import TIME, changes, delete, insert, position, update

SCHEMA = pa.schema([column_field("id", "int"), column_field("name", "varchar(9)")])
A, B = {"id": 1, "name": "a"}, {"id": 2, "name": "b"}


def moment(run):
    return Moment(run.gtid.seq, str(run.gtid), run.time)


class History:
    """A history to which one group after another comes."""

    def __init__(self, folder, kind, key=("id",)):
        self.target = kind("shop.t", str(folder / "t"), "test", None, moment)
        self.kind = kind
        self.seq = 1
        rows = pa.Table.from_pylist([A, B], SCHEMA)
        self.target.fill(SCHEMA, list(key), [rows], self.place)

    @property
    def place(self):
        return Place(position(f"0-1-{self.seq}"), TIME + self.seq)

    def change(self, *ops):
        self.seq += 1
        builder = self.target.builder()
        kind = pa.schema([(field.name, field.type) for field in self.target.schema])
        builder.add(changes(Gtid(0, 1, self.seq), *ops, schema=kind, time=TIME + self.seq))
        self.target.merge(builder.merge(self.target), self.place)

    def alter(self, clauses):
        self.seq += 1
        target = self.target
        has_rows = any(batch.num_rows for batch in target.batches())
        effects = effect_of(f"ALTER TABLE t {clauses}", "shop").effects
        reshape = Reshape(target.schema, target.key, effects, has_rows=has_rows)
        target.reshape(reshape, GroupRun(Gtid(0, 1, self.seq), TIME + self.seq, 0), self.place)

    def truncate(self):
        self.seq += 1
        builder = self.target.builder()
        builder.truncate(GroupRun(Gtid(0, 1, self.seq), TIME + self.seq, 0))
        self.target.merge(builder.merge(self.target), self.place)

    def at(self, seq):
        """Return the rows behind group *seq*, with the columns of then."""
        names = columns_at(self.target.full_schema, seq)
        rows = (
            batch.rename_columns([*names.values()]) for batch in self.target.rows_at(seq, [*names])
        )
        return sorted((row for batch in rows for row in batch.to_pylist()), key=repr)

    def versions(self):
        target = self.kind("shop.t", self.target.uri, "test", None, moment)
        assert target.place == self.place
        rows = [row for batch in target.all_versions() for row in batch.to_pylist()]
        assert target.versions == len(rows)
        return sorted(rows, key=lambda row: (row["id"], row[FROM_SEQ]))


KINDS = [HistoryTarget, ParquetHistory]


@pytest.fixture(params=KINDS)
def history(tmp_path, request):
    return History(tmp_path, request.param)


def test_versions_have_borders_by_time_gtid_and_number(history):
    history.change(update(A, {"id": 1, "name": "c"}))
    history.change(delete({"id": 1, "name": "c"}))
    history.change(insert(A))
    wanted = [(1, 2, "a"), (2, 3, "c"), (4, None, "a"), (1, None, "b")]
    found = history.versions()
    assert [(row[FROM_SEQ], row[TO_SEQ], row["name"]) for row in found] == wanted
    assert [row[IS_CURRENT] for row in found] == [False, False, True, True]
    assert [(row["_ibb_valid_from_gtid"], row["_ibb_valid_to_gtid"]) for row in found] == [
        ("0-1-1", "0-1-2"),
        ("0-1-2", "0-1-3"),
        ("0-1-4", None),
        ("0-1-1", None),
    ]
    assert found[1]["_ibb_valid_to"].timestamp() == TIME + 3
    assert overlap(history.target) == ""


def test_what_was_between_changes_of_one_group_is_no_version(history):
    between = {"id": 1, "name": "x"}
    history.change(
        update(A, between), update(between, {"id": 7, "name": "y"}), insert(A), delete(A)
    )
    found = [(row["id"], row[FROM_SEQ], row[TO_SEQ]) for row in history.versions()]
    assert found == [(1, 1, 2), (2, 1, None), (7, 2, None)]


def test_a_column_that_goes_keeps_its_values_and_its_name_may_come_back(history):
    history.alter("ADD n INT DEFAULT 5")
    history.change(update({**A, "n": 5}, {**A, "n": 6}))
    history.alter("DROP name")
    history.alter("ADD name DATE, RENAME COLUMN n TO number")
    history.alter("DROP name")
    assert history.at(1) == [A, B]
    assert history.at(2) == [{**A, "n": 5}, {**B, "n": 5}]
    assert history.at(3) == [{**A, "n": 6}, {**B, "n": 5}]
    assert history.at(4) == [{"id": 1, "n": 6}, {"id": 2, "n": 5}]
    assert [set(row) for row in history.at(5)] == [{"id", "number", "name"}] * 2
    assert history.at(6) == [{"id": 1, "number": 6}, {"id": 2, "number": 5}]
    assert {"_ibb_dropped_name", "_ibb_dropped_name_2"} < set(history.target.full_schema.names)
    assert history.target.schema.names == ["id", "number"]
    assert len(history.versions()) == 3


ALTERS = (
    "CHANGE b c INT, CHANGE c b INT",
    "RENAME COLUMN b TO c, RENAME COLUMN c TO d, RENAME COLUMN d TO b",
    "RENAME COLUMN b TO e",
    "RENAME COLUMN e TO b",
    "MODIFY d INT FIRST",
    "MODIFY d INT AFTER b",
    "ADD z INT FIRST",
    "ADD y INT AFTER id",
    "ADD x INT",
    "DROP z",
    "DROP y",
    "DROP x",
    "RENAME COLUMN name TO title",
    "RENAME COLUMN title TO name",
)


def is_possible(clauses, names):
    """Tell whether the columns that clauses ask for are there, and those that they make are not."""
    words = clauses.replace(",", "").split()
    if "ADD" in words:
        return words[1] not in names
    if words[0] == "RENAME" and len(words) == 5:
        return words[2] in names and words[4] not in names
    asked = {"b", "c"} if words[0] == "CHANGE" else {"b", "c", "d"}
    if words[0] in ("MODIFY", "DROP"):
        asked = {words[1], *(words[4:] if "AFTER" in words else ())}
    return asked <= set(names)


@pytest.mark.parametrize("seed", range(12))
def test_columns_have_the_names_and_the_order_of_then(history, seed):
    rng = random.Random(seed)
    history.alter("ADD b INT DEFAULT 1, ADD c INT DEFAULT 2, ADD d INT DEFAULT 3")
    wanted = {}
    for _ in range(25):
        names = history.target.schema.names
        possible = [clauses for clauses in ALTERS if is_possible(clauses, names)]
        if rng.random() < 0.6:
            history.alter(rng.choice(possible))
        else:
            row = rng.choice([row for row in history.at(history.seq) if row["id"] < 3])
            name = rng.choice([name for name in names if name in "bcdexyz"])
            history.change(update(row, {**row, name: history.seq}))
        wanted[history.seq] = (history.target.schema.names, history.at(history.seq))
    for seq, (names, rows) in wanted.items():
        assert [*columns_at(history.target.full_schema, seq).values()] == names
        assert history.at(seq) == rows


def test_columns_of_a_history_that_noted_no_places_have_the_names_of_now():
    fields = [pa.field("id", pa.int64()), pa.field("b", pa.int64(), metadata={"ibb.added": "5"})]
    assert columns_at(pa.schema(fields), 4) == {"id": "id"}
    assert columns_at(pa.schema(fields), 5) == {"id": "id", "b": "b"}


def test_another_key_ends_versions_and_keeps_those_apart_that_had_the_old_one(history):
    history.change(insert({"id": 3, "name": "a"}))
    history.change(delete({"id": 3, "name": "a"}))
    history.alter("DROP PRIMARY KEY, ADD PRIMARY KEY (name)")
    history.change(update(A, {"id": 9, "name": "a"}))
    history.alter("MODIFY name VARCHAR(20)")
    assert history.target.key == ["name"]
    assert overlap(history.target) == ""
    assert history.at(2) == [A, B, {"id": 3, "name": "a"}]
    assert history.at(3) == history.at(4) == [A, B]
    assert history.at(6) == [B, {"id": 9, "name": "a"}]


def test_versions_of_an_old_key_never_get_keys_of_the_new_one(history):
    """By the new key they would overlap: two rows had the same."""
    history.alter("ADD n INT DEFAULT 5")
    history.change(update({**A, "n": 5}, {**A, "n": 6}))
    history.alter("DROP PRIMARY KEY, ADD PRIMARY KEY (n)")
    history.alter("MODIFY n BIGINT")
    history.change(delete({**B, "n": 5}))
    assert overlap(history.target) == ""
    assert [row["n"] for row in history.at(2)] == [5, 5]
    assert history.at(6) == [{**A, "n": 6}]


def test_a_key_of_a_wider_type_goes_on(history):
    """A DATE and the DATETIME that it becomes are written apart, and are one key."""
    history.alter("ADD d DATE NOT NULL DEFAULT '2024-02-29'")
    history.change(delete({**B, "d": dt.date(2024, 2, 29)}))
    history.alter("DROP PRIMARY KEY, ADD PRIMARY KEY (d)")
    history.alter("MODIFY d DATETIME NOT NULL")
    gone = {**A, "d": dt.datetime(2024, 2, 29)}  # noqa: DTZ001 - of no zone there
    history.change(delete(gone))
    assert history.at(5) == [gone]
    assert history.at(6) == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_key_begin_anew_with_each_other_shape(tmp_path, kind):
    history = History(tmp_path, kind, key=())
    history.change(insert(A), insert(A))
    history.change(delete(A))
    history.alter("ADD n INT")
    history.change(delete({**A, "n": None}))
    history.alter("DROP n")
    assert [len(history.at(seq)) for seq in range(1, 7)] == [2, 4, 3, 3, 2, 2]
    assert history.at(6) == [A, B]
    assert overlap(history.target) == ""


def test_a_column_of_an_empty_table_may_become_anything(history):
    """Versions that have ended keep values that the new type does not hold."""
    history.truncate()
    history.alter("MODIFY id TINYINT, MODIFY name INT")
    history.change(insert({"id": 1, "name": 7}))
    assert history.at(1) == [A, B]
    assert history.at(2) == []
    assert history.at(4) == [{"id": 1, "name": 7}]
    assert overlap(history.target) == ""


def test_a_table_that_is_read_anew_leaves_a_gap(history):
    history.change(delete(B))
    history.seq = 9
    rows = pa.Table.from_pylist([{"id": 1, "name": "z"}], SCHEMA)
    history.target.fill(SCHEMA, ["id"], [rows], history.place)
    assert history.target.gaps == [[-1, 1], [2, 9]]
    assert history.at(2) == [A]
    assert history.at(9) == [{"id": 1, "name": "z"}]
    assert overlap(history.target) == ""


def test_gaps_are_bounded(history):
    schema = history.target.full_schema
    for number in range(1, GAPS_MAX + 10):
        schema = with_gap(schema, 10 * number, 10 * number + 5)
    gaps = gaps_of(schema)
    assert len(gaps) == GAPS_MAX
    assert (gaps[0], gaps[-1]) == ([-1, 105], [10 * GAPS_MAX + 90, 10 * GAPS_MAX + 95])


def test_files_of_versions_that_have_ended_are_left_alone(tmp_path):
    history = History(tmp_path, ParquetHistory)

    def ended():
        return {path: path.stat() for path in (tmp_path / "t").glob("part-ended-*")}

    history.change(update(A, {"id": 1, "name": "c"}))
    before = ended()
    assert len(before) == 1
    history.change(delete(B))
    history.truncate()
    assert {path: found for path, found in ended().items() if path in before} == before
    assert len(ended()) == 3
    assert [(row["id"], row[FROM_SEQ], row[TO_SEQ]) for row in history.versions()] == [
        *((1, 1, 2), (1, 2, 4), (2, 1, 3))
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({FROM_SEQ: 0, TO_SEQ: 2, IS_CURRENT: False}, "goes on when the next begins"),
        ({FROM_SEQ: 0, TO_SEQ: None, IS_CURRENT: True}, "goes on when the next begins"),
        ({FROM_SEQ: 0, TO_SEQ: 0, IS_CURRENT: False}, "ends before it begins"),
        ({FROM_SEQ: 0, TO_SEQ: 1, IS_CURRENT: True}, "is current and has ended"),
        ({FROM_SEQ: 0, TO_SEQ: 1, IS_CURRENT: False}, ""),
    ],
)
def test_versions_that_do_not_fit_together_are_found(history, values, words):
    table = pa.concat_tables(history.target.all_versions())
    wrong = pa.Table.from_pylist([{**table.to_pylist()[0], **values}], table.schema)

    class Changed:
        exists, versions = True, 3

        def borders(self, first, last):
            assert (first, last) == ("0000", "ffff")
            both = pa.concat_tables([table, wrong])
            return both.select([KEY_COLUMN, FROM_SEQ, TO_SEQ, IS_CURRENT])

    found = overlap(Changed())
    assert words in found
    assert bool(found) == bool(words)


def test_numbers_that_fall_say_nothing_of_the_order():
    gtids = [Gtid(0, 1, 5), Gtid(7, 1, 1), Gtid(0, 2, 5)]
    batch = MicroBatch(position("0-1-4"), position("0-2-5"), 0, (), tuple((g, 0) for g in gtids))
    with pytest.raises(PipelineError, match=r"0-2-5 comes behind 0-1-5.*gtid_strict_mode"):
        GroupOrder(batch)
    order = GroupOrder(MicroBatch(batch.start, position("0-1-5"), 0, (), batch.groups[:2]))
    assert [order.moment(GroupRun(gtid, 9, 1)).seq for gtid in gtids[:2]] == [5, 6]
