"""What the source must be like before a snapshot begins."""

import pyarrow as pa
import pymysql
import pytest

from ibb.pipeline.tables import mariadb_source, snapshot, view_lock
from ibb.pipeline.tables.config import ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.mariadb_source import (
    XIDS_SHOWN,
    View,
    check_prepared,
    server_traits,
    view_for_snapshot,
)
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import TableName
from ibb.pipeline.tables.snapshot import take_snapshot
from ibb.pipeline.tables.source_tables import SourceTable, TableRenamed

from ...integration.conftest import mariadb_10, new_rig
from ...integration.workload import execute
from .topology import ROW_OPTIONS

__all__ = ["mariadb_10"]


class Server:
    """A connection and its cursor: answers XA RECOVER with *rows*, or an error."""

    def __init__(self, rows=(), error=None):
        self._rows, self._error = list(rows), error

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def execute(self, sql):
        assert sql == "XA RECOVER FORMAT='SQL'"
        if self._error:
            raise self._error

    def fetchmany(self, count):
        return self._rows[:count]


def test_no_snapshot_begins_while_transactions_are_prepared():
    check_prepared(Server())
    with pytest.raises(PipelineError, match=r"would lose: 'x','y',7\. Commit or roll them back"):
        check_prepared(Server([(7, 1, 1, "'x','y',7")]))
    with pytest.raises(PipelineError, match=r"'x'; 'x' \.\.\."):
        check_prepared(Server([(1, 1, 0, "'x'")] * (XIDS_SHOWN + 1)))


def test_an_account_that_may_not_look_goes_on():
    check_prepared(Server(error=pymysql.OperationalError(1227, "Access denied")))
    with pytest.raises(PipelineError, match="refused 'XA RECOVER': gone away"):
        check_prepared(Server(error=pymysql.OperationalError(2006, "gone away")))


class Catalogue(Server):
    """Answers what information_schema says of one table, at a server that spells it `Shop.T`."""

    def __init__(self, letter_case):
        super().__init__()
        self._letter_case = letter_case
        self.asked = []

    def execute(self, sql, values):
        self.asked.append(values)
        if "CREATE_TIME" in sql:
            self._rows = [(1700000000,)]
        elif "information_schema.TABLES" in sql:
            self._rows = [("Shop", "T", "InnoDB", "BASE TABLE", self._letter_case)]
        elif "REFERENTIAL_CONSTRAINTS" in sql:
            self._rows = []
        else:
            is_key = "KEY_COLUMN_USAGE" in sql
            self._rows = [("Id",)] if is_key else [("Id", "int(11)", None, "", "10.11.14-MariaDB")]

    def fetchall(self):
        return self._rows


@pytest.mark.parametrize(("letter_case", "name"), [(0, "Shop.T"), (1, "shop.t"), (2, "shop.t")])
def test_tables_have_the_names_that_the_source_compares(letter_case, name):
    server = Catalogue(letter_case)
    wanted = TableName(*name.split("."))
    (table,) = View([server], Place.nowhere()).tables(lambda found: found == wanted)
    assert (table.name, table.key, table.named_at) == (wanted, ("Id",), 1700000000)
    assert server.asked == [None, *[("Shop", "T")] * 4]


def test_a_password_that_cannot_be_read_names_its_option(tmp_path):
    config = ServerConfig(password_file=str(tmp_path / "none"))
    with pytest.raises(PipelineError, match=r"^server\.password_file: No such file"):
        server_traits(config)


def test_a_table_that_changed_behind_the_view_stops_with_its_name():
    class Ended(Server):
        def cursor(self, _kind):
            return self

        def execute(self, _sql):
            raise pymysql.OperationalError(1412, "Table definition has changed")

    table = SourceTable(TableName("shop", "t"), pa.schema([("id", pa.int32())]), ("id",))
    with pytest.raises(PipelineError, match=r"shop\.t: the server refused: Table definition has"):
        list(View([Ended()], Place.nowhere()).read(table, 0))


@pytest.fixture(scope="module")
def primary(mariadb_10):
    with new_rig() as rig:
        server = rig.primary(mariadb_10, *ROW_OPTIONS)
        server.run("CREATE DATABASE shop")
        yield server


class Meddled:
    """Does something at the server when a snapshot has let its lock go."""

    def __init__(self, monkeypatch, primary, *statements):
        self.left = list(statements)
        self._primary = primary
        self._rows_of = view_lock.rows_of
        monkeypatch.setattr(view_lock, "rows_of", self)

    def __call__(self, connection, sql, *values):
        found = self._rows_of(connection, sql, *values)
        if sql == "BACKUP STAGE END" and self.left:
            self._primary.run("USE shop", self.left.pop(0))
        return found


def is_of_shop(name):
    return name.database == "shop"


@pytest.mark.live
@pytest.mark.xdist_group("mariadb_source")
@pytest.mark.parametrize(
    "change",
    [
        ("ALTER TABLE t ADD c INT DEFAULT 7",),
        ("ALTER TABLE t MODIFY b VARCHAR(30)", "ALTER TABLE t DROP COLUMN b"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, b)",),
        ("DROP TABLE t",),
        ("CREATE TABLE u LIKE t",),
    ],
)
def test_tables_are_as_they_were_defined_in_the_view(primary, monkeypatch, change):
    primary.run(
        "USE shop",
        "DROP TABLE IF EXISTS t, u",
        "CREATE TABLE t (a INT, b VARCHAR(20) NOT NULL, PRIMARY KEY (a))",
        "INSERT INTO t VALUES (1, 'x')",
    )
    meddled = Meddled(monkeypatch, primary, *change)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_for_snapshot(config, is_of_shop) as (view, tables):
        assert meddled.left == []
        assert str(view.place.position) == primary.binlog_position()  # behind all that was done
        now = view.tables(is_of_shop)
        assert [(one.schema, one.key) for one in tables] == [(one.schema, one.key) for one in now]
        pieces = [piece for table in tables for piece in view.read(table, 0)]
    rows = [row for piece in pieces for row in piece.to_pylist()]
    filled = [table.schema.names for table in tables if table.name.table == "t"]
    assert [list(row) for row in rows] == filled


@pytest.mark.live
@pytest.mark.xdist_group("mariadb_source")
def test_a_table_that_is_never_the_same_is_named(primary, monkeypatch):
    primary.run("USE shop", "DROP TABLE IF EXISTS t, u", "CREATE TABLE t (a INT PRIMARY KEY)")
    monkeypatch.setattr(mariadb_source, "VIEWS_MAX", 3)
    changes = [f"ALTER TABLE t ADD c{number} INT" for number in range(5)]
    meddled = Meddled(monkeypatch, primary, *changes)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with (
        pytest.raises(PipelineError, match=r"^shop\.t: its definition changes while the snapshot"),
        view_for_snapshot(config, is_of_shop),
    ):
        pass
    assert len(meddled.left) == 2


@pytest.fixture
def two_alike(primary):
    """Two tables of one kind, with a row that says which it is, and what exchanges their names."""
    primary.run(
        "USE shop",
        "DROP TABLE IF EXISTS t, u",
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "CREATE TABLE u LIKE t",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO u VALUES (2)",
    )
    return "RENAME TABLE shop.t TO shop.x, shop.u TO shop.t, shop.x TO shop.u"


@pytest.mark.live
@pytest.mark.xdist_group("mariadb_source")
def test_a_name_that_means_another_table_than_in_the_view_is_seen(primary, two_alike):
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_for_snapshot(config, is_of_shop) as (view, (first, other)):
        view.keep_name(first)
        with primary.connection() as other_client:
            with pytest.raises(pymysql.OperationalError, match="Lock wait timeout"):
                execute(other_client, "SET lock_wait_timeout = 0", two_alike)
            view.connections[0].rollback()  # nothing keeps the names any more
            execute(other_client, two_alike)
        for table in (first, other):
            with pytest.raises(TableRenamed, match=rf"^shop\.{table.name.table}: it was renamed"):
                view.keep_name(table)


@pytest.mark.live
@pytest.mark.xdist_group("mariadb_source")
def test_names_are_those_of_the_view_although_tables_were_just_made(
    primary, two_alike, monkeypatch
):
    meddled = Meddled(monkeypatch, primary, two_alike)
    config = ServerConfig(socket=str(primary.socket), workers=1)
    with view_for_snapshot(config, is_of_shop) as (view, tables):
        assert meddled.left == []
        assert str(view.place.position) == primary.binlog_position()
        rows = [
            row["a"] for one in tables for piece in view.read(one, 0) for row in piece.to_pylist()
        ]
    assert rows == [2, 1]


class Kept:
    """A change table that remembers its rows."""

    def __init__(self):
        self.values, self.rows = [], 0

    def fill(self, _schema, _key, pieces, _place):
        self.values = [row["a"] for piece in pieces for row in piece.to_pylist()]


@pytest.mark.live
@pytest.mark.xdist_group("mariadb_source")
@pytest.mark.parametrize("attempts", [2, 4])
def test_a_snapshot_begins_once_more_where_tables_get_each_others_names(
    primary, two_alike, monkeypatch, attempts
):
    keep_name, left, kept = View.keep_name, [two_alike] * 3, {}

    def keep_behind(view, table):
        if left and table.name.table == "t":
            primary.run(left.pop())
        keep_name(view, table)

    monkeypatch.setattr(View, "keep_name", keep_behind)
    monkeypatch.setattr(snapshot, "VIEWS_MAX", attempts)
    config = ServerConfig(socket=str(primary.socket), workers=1)

    def take():
        return take_snapshot(
            config, is_of_shop, lambda name: kept.setdefault(name.table, Kept()), {}, print
        )

    if attempts == 2:
        with pytest.raises(PipelineError, match=r"^shop\.t: it was renamed.* again and again"):
            take()
        return
    place, tables = take()
    assert str(place.position) == primary.binlog_position()
    assert [name.table for name in tables] == ["t", "u"]
    assert [kept[name].values for name in "tu"] == [[2], [1]]  # exchanged three times
