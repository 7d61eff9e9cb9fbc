"""What the source must be like before a snapshot begins."""

import pyarrow as pa
import pymysql
import pytest

from ibb.pipeline.tables.config import ServerConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.mariadb_source import (
    XIDS_SHOWN,
    View,
    check_prepared,
    server_traits,
)
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.row_changes import TableName
from ibb.pipeline.tables.source_tables import SourceTable, source_tables


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
        if "information_schema.TABLES" in sql:
            self._rows = [("Shop", "T", "InnoDB", "BASE TABLE", self._letter_case, 1700000000)]
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
    (table,) = source_tables(server, lambda found: found == wanted)
    assert (table.name, table.key, table.named_at) == (wanted, ("Id",), 1700000000)
    assert server.asked == [None, *[("Shop", "T")] * 3]


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
