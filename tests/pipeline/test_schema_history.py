"""Schemas by the statements of a history; real ones: `tests/integration/test_schema_history.py`."""

from ibb.pipeline.schema_history import SchemaHistory
from ibb.protocol.gtid import Gtid, GtidPosition


def test_each_version_holds_from_its_statement_on():
    history = SchemaHistory()

    def at(number):
        return GtidPosition([Gtid(0, 1, number)])

    history.follow("CREATE DATABASE s CHARSET utf8mb4", "", at(1))
    history.follow("CREATE TABLE s.t (a INT, b TEXT)", "", at(2))
    history.follow("ALTER TABLE t ADD c NATIONAL CHAR(3)", "s", at(5))
    history.follow("CREATE OR REPLACE TABLE t (a INT UNSIGNED)", "s", at(7))
    history.follow("DROP TABLE t", "s", at(9))
    found = [history.schemas.find("s", "t", Gtid(0, 2, number)) for number in range(1, 11)]
    known = [None if schema is None else len(schema.columns) for schema in found]
    assert known == [None, 2, 2, 2, None, None, 1, 1, None, None]
    assert found[2].columns[1].charset == "utf8mb4"
