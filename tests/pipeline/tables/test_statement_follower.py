"""DDL in the stream: Delta tables follow it, also when a crash comes between."""

import pyarrow as pa
import pytest

from ibb.pipeline.ddl.session_modes import SessionModes
from ibb.pipeline.tables.config import PipelineConfig
from ibb.pipeline.tables.delta_target import DeltaTarget
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.lake import Lake
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import Changed, Statement, TableName, Undecoded
from ibb.pipeline.tables.server_traits import ServerTraits
from ibb.pipeline.tables.shape import column_field
from ibb.pipeline.tables.table_shape import keep_shapes

from .changes import Stream, changes, delete, insert, position

T, U, OUT = TableName("shop", "t"), TableName("shop", "u"), TableName("out", "t")
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))"
BEFORE = pa.schema([("id", pa.int32()), ("name", pa.string())])
WIDE = pa.schema([("id", pa.int64()), ("title", pa.string()), ("n", pa.int32())])


class Lakeside:
    """A pipeline on a disk, and a history that it follows."""

    def __init__(self, folder, **config):
        self.config = PipelineConfig(
            "test", "", str(folder / "lake"), include=("shop.*",), **config
        )
        self.lake = Lake(self.config)
        self.stream = Stream()
        self.ledger = Ledger(Place.nowhere())

    def sql(self, text, database="shop", **said):
        return self.stream.add(
            0, lambda gtid, time: [Statement(gtid, time, database, text, **said)]
        )

    def rows(self, *rows, name=T, schema=BEFORE, key=("id",)):
        def steps(gtid, time):
            made = changes(gtid, *rows, schema=schema, time=time)
            full = type(made)(made.ops, made.groups, made.before, made.after, schema, key)
            return [Changed(name, full)]

        return self.stream.add(0, steps)

    def undecoded(self, *reasons):
        def steps(gtid, time):
            return [Undecoded(gtid, time, T, reason, b"\x01") for reason in reasons]

        return self.stream.add(0, steps)

    def apply(self, first=0, *, forget=False):
        """Apply what is behind group *first*; with *forget* the ledger stays where it is."""
        applier = self.lake.applier(self.ledger.copy())
        applier.apply(self.stream.batch(first, len(self.stream.groups)))
        if not forget:
            self.ledger = applier.ledger

    def table(self, name=T):
        target = self.lake.open(name)
        assert target.exists
        found = [row for batch in target.batches() for row in batch.to_pylist()]
        return sorted(found, key=repr)


@pytest.fixture
def side(tmp_path):
    return Lakeside(tmp_path)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_table_lives_through_its_statements(side, crashes):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}), insert({"id": 2, "name": "b"}))
    side.sql("ALTER TABLE t ADD n INT DEFAULT 5, MODIFY id BIGINT, RENAME COLUMN name TO title")
    side.rows(
        insert({"id": 3, "title": "c", "n": 6}),
        delete({"id": 1, "title": "a", "n": 5}),
        schema=WIDE,
    )
    side.sql("ALTER TABLE shop.t RENAME TO u")
    side.rows(insert({"id": 4, "title": "d", "n": None}), name=U, schema=WIDE)
    if crashes:
        side.apply(forget=True)
    side.apply()
    assert side.table(U) == [
        {"id": 2, "title": "b", "n": 5},
        {"id": 3, "title": "c", "n": 6},
        {"id": 4, "title": "d", "n": None},
    ]
    assert not side.lake.open(T).exists
    count = len(side.stream.groups)
    side.sql("TRUNCATE TABLE u")
    side.rows(insert({"id": 9, "title": "z", "n": None}), name=U, schema=WIDE)
    side.apply(count)
    assert side.table(U) == [{"id": 9, "title": "z", "n": None}]


@pytest.mark.parametrize("crashes", [False, True])
def test_a_dropped_table_is_put_aside_and_another_takes_its_name(side, crashes, tmp_path):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.sql("DROP TABLE t")
    if crashes:
        side.apply(forget=True)
    side.apply()
    assert not side.lake.open(T).exists
    assert (tmp_path / "lake/_ibb/dropped/shop/t@0-1-3").is_dir()
    side.sql("CREATE TABLE t (name VARCHAR(9))")
    side.rows(insert({"name": "x"}), schema=pa.schema([("name", pa.string())]), key=())
    side.apply(3)
    assert side.table() == [{"name": "x"}]


@pytest.mark.parametrize("replaces", ["DATABASE shop", "SCHEMA shop", "SEQUENCE shop.t"])
def test_what_is_replaced_by_something_else_has_gone(side, replaces):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.sql(f"CREATE OR REPLACE {replaces}", database="")
    side.apply()
    assert not side.lake.open(T).exists
    side.sql(CREATE.replace("TABLE", "TABLE IF NOT EXISTS"))
    side.rows(insert({"id": 2, "name": "b"}))
    side.apply(3)
    assert side.table() == [{"id": 2, "name": "b"}]


def test_a_crash_between_a_table_and_the_rows_it_is_made_of(side, monkeypatch):
    """CREATE TABLE SELECT is one group: the table alone must not count as all of it."""

    def steps(gtid, time):
        made = changes(gtid, insert({"id": 1, "name": "a"}), schema=BEFORE, time=time)
        return [Statement(gtid, time, "shop", CREATE), Changed(T, made)]

    side.stream.add(0, steps)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, "merge", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            side.apply()
    assert side.table() == []
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}]


def test_an_index_is_nothing(side):
    side.sql(CREATE)
    side.apply()
    version = side.lake.open(T).place
    side.sql("CREATE INDEX i ON t (name)")
    side.sql("ALTER TABLE t ENGINE=InnoDB")
    side.apply(1)
    assert side.lake.open(T).schema == pa.schema(
        [column_field("id", "int"), column_field("name", "varchar(9)")]
    )
    assert side.lake.open(T).place == version


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ALTER TABLE t MODIFY name CHAR(2)", "name changes from"),
        (
            "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES u (id) ON DELETE CASCADE",
            "a foreign key changes rows",
        ),
        (
            "CREATE TABLE v (id INT, FOREIGN KEY (id) REFERENCES t (id) ON UPDATE SET NULL)",
            "a foreign key changes rows",
        ),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "CONVERT"),
        ("INSERT INTO t VALUES (1)", "binlog_format=ROW"),
        ("RENAME TABLE t TO x, u TO t", "shop.u is no change table"),
        ("RENAME TABLE t TO x, `out`.t TO t", "which is no change table"),
        ("RENAME TABLE t TO x, x TO y, y TO z, u TO z", "two tables get the name shop.z"),
        ("RENAME TABLE `out`.t TO shop.v", "which is no change table"),
        ("CREATE TABLE v LIKE `out`.t", "which is no change table"),
    ],
)
def test_what_cannot_be_followed_stops_and_names_the_group(side, sql, words):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.apply()
    side.sql(sql)
    side.rows(insert({"id": 2, "name": "b"}))
    with pytest.raises(PipelineError, match=rf"^0-1-3: .*{words}.*new snapshot"):
        side.apply(2)
    assert side.table() == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("INSERT INTO shop.t VALUES (2, 'b')", "out"),
        ("UPDATE `shop` . `t` SET name = 'b'", ""),
        ("LOAD DATA INFILE 'x' INTO TABLE `shop`.`t`", "out"),
        ("LOAD DATA INFILE 'x' INTO TABLE `t`", "shop"),
    ],
)
def test_rows_that_are_logged_as_a_statement_stop_from_any_database(side, sql, database):
    side.sql(CREATE)
    side.sql(sql, database=database)
    with pytest.raises(PipelineError, match="rows are logged as a statement"):
        side.apply()


def test_what_is_done_to_other_tables_is_not_looked_at(side):
    side.sql(CREATE)
    side.sql("ALTER TABLE `out`.t CONVERT TO CHARACTER SET utf8mb4")
    side.sql("INSERT INTO t VALUES (1)", database="out")
    side.sql("DROP DATABASE `out`")
    side.apply()
    assert side.table() == []


@pytest.mark.parametrize(
    ("schema", "key", "words"),
    [
        (
            pa.schema([*BEFORE, ("title", pa.string())]),
            ("id",),
            "a column title that the change table has not",
        ),
        (pa.schema([("id", pa.int32())]), ("id",), "lacks column name"),
        (BEFORE, ("id", "name"), r"the key is \(id, name\) in the stream"),
    ],
)
def test_rows_of_a_shape_that_no_statement_made_stop(side, schema, key, words):
    side.sql(CREATE)
    side.rows(insert(dict.fromkeys(schema.names, None)), schema=schema, key=key)
    with pytest.raises(PipelineError, match=words):
        side.apply()


def test_what_cannot_be_decoded_stops(side):
    side.sql(CREATE)
    side.undecoded("a date that is none")
    with pytest.raises(
        PipelineError, match=r"shop.t at 0-1-2: a date that is none\. .*dead letters"
    ):
        side.apply()


def test_or_is_kept_once_with_its_bytes(tmp_path):
    side = Lakeside(tmp_path, undecoded="keep")
    side.sql(CREATE)
    side.undecoded("one", "two")
    side.undecoded("three")
    side.apply(forget=True)
    side.apply()
    from deltalake import DeltaTable

    letters = DeltaTable(str(tmp_path / "lake/_ibb/dead_letters")).to_pyarrow_table().to_pylist()
    found = sorted((letter["gtid"], letter["reason"], letter["data"]) for letter in letters)
    assert found == [("0-1-2", "one", b"\1"), ("0-1-2", "two", b"\1"), ("0-1-3", "three", b"\1")]


def test_a_table_that_is_renamed_to_its_own_name_stays(side):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.sql("ALTER TABLE t RENAME TO shop.t, COMMENT = 'x'")
    side.rows(insert({"id": 2, "name": "b"}))
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_a_key_of_the_configuration_that_a_table_has_not_is_named(tmp_path):
    side = Lakeside(tmp_path, keys={T: ("nothing",)})
    side.sql(CREATE)
    with pytest.raises(PipelineError, match=r"tables\.keys\.shop\.t: there is no column nothing"):
        side.apply()


def test_a_table_without_a_key_takes_rows_that_come_with_a_unique_one(side):
    side.sql("CREATE TABLE t (id INT NOT NULL UNIQUE, name VARCHAR(9))")
    side.rows(insert({"id": 1, "name": "a"}), insert({"id": 2, "name": "b"}))
    side.rows(delete({"id": 1, "name": "a"}))
    side.apply()
    assert side.table() == [{"id": 2, "name": "b"}]


def test_statements_find_tables_by_the_case_that_the_source_compares(side):
    side.ledger.traits = ServerTraits(lower_case=True)
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.sql("TRUNCATE TABLE Shop.T", database="other")
    side.rows(insert({"id": 2, "name": "b"}))
    side.sql("RENAME TABLE T TO U", database="SHOP")
    side.apply()
    assert side.table(U) == [{"id": 2, "name": "b"}]
    side.sql("DROP TABLE U", database="Shop")
    side.apply(len(side.stream.groups) - 1)
    assert not side.lake.open(U).exists


def test_rows_logged_as_statements_stop_in_any_case_of_the_database(side):
    side.ledger.traits = ServerTraits(lower_case=True)
    side.sql(CREATE)
    side.sql("INSERT INTO T VALUES (1, 'a')", database="SHOP")
    with pytest.raises(PipelineError, match="rows are logged as a statement"):
        side.apply()


def test_names_of_another_case_are_other_tables_where_the_source_says_so(side):
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.sql("TRUNCATE TABLE Shop.T")
    side.apply()
    assert side.table() == [{"id": 1, "name": "a"}]


def test_a_table_has_the_types_that_the_mode_says(side):
    modes = SessionModes(types=(("date", "datetime"), ("number", "double")))
    sql = "CREATE TABLE t (id INT PRIMARY KEY, d DATE, n NUMBER, m NUMBER(4))"
    side.stream.add(0, lambda gtid, time: [Statement(gtid, time, "shop", sql, modes)])
    side.apply()
    kinds = [str(field.type) for field in side.lake.open(T).schema]
    assert kinds == ["int32", "timestamp[us]", "double", "decimal128(4, 0)"]


def test_a_table_that_was_read_anew_and_then_renamed_goes_on_under_its_new_name(side):
    """It is ahead of the ledger, not of the statement, which comes in the same batch."""
    side.sql(CREATE)
    side.rows(insert({"id": 1, "name": "a"}))
    side.apply()
    side.rows(insert({"id": 2, "name": "b"}))
    place = Place(position("0-1-3"), 3)
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=BEFORE)
    side.lake.open(T).fill(BEFORE, ["id"], iter([rows]), place)
    keep_shapes(side.ledger, [T], side.lake.open)
    side.ledger.left_at(T, place, ahead=True)
    side.rows(insert({"id": 3, "name": "c"}))
    side.sql("RENAME TABLE shop.t TO shop.z")
    new = TableName("shop", "z")
    side.rows(insert({"id": 4, "name": "d"}), name=new)
    side.apply(2)
    assert [(row["id"], row["name"]) for row in side.table(new)] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, "d"),
    ]
    assert not side.lake.open(T).exists
