"""Schemas by the statements of a real server's history are those of its information_schema."""

import pytest

from ibb.pipeline.schema_history import SchemaHistory
from ibb.pipeline.table_schemas import TableSchemas
from ibb.protocol.event import HEADER_SIZE, QUERY_SIZES, EventHeader, EventType, without_checksum
from ibb.protocol.fields import FieldReader
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.protocol.gtid_event import GtidEvent

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("row_values")]

STATEMENTS = r"""
CREATE DATABASE late CHARACTER SET latin1;
CREATE DATABASE plain;
CREATE TABLE late.a (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20), KEY (word),
    own TEXT CHARACTER SET utf8mb4, b VARBINARY(9), CHECK (word <> 'x'));
CREATE TABLE late.b (`a b` CHAR(3), e ENUM('it''s', 'b\\c', 'ä') NOT NULL, n INT(4) ZEROFILL, s
    SET('x') COLLATE utf8mb4_bin, j JSON, INDEX (n), PRIMARY KEY (e, n)) CHARSET utf8mb4;
USE late;
CREATE TABLE c LIKE b;
CREATE TABLE d SELECT id, word FROM a;
CREATE TABLE IF NOT EXISTS a (other INT);
ALTER TABLE a ADD COLUMN more TEXT FIRST, DROP COLUMN b, ADD last TINYINT UNSIGNED AFTER word;
ALTER TABLE a CHANGE word wort VARCHAR(40), RENAME COLUMN last TO ult, MODIFY own BLOB;
ALTER TABLE b DROP PRIMARY KEY, ADD f DOUBLE UNSIGNED /*!50000 NOT NULL */, ADD PRIMARY KEY (f);
ALTER TABLE b ADD q TEXT;
RENAME TABLE a TO x, c TO a, x TO c;
CREATE TABLE plain.p (t TEXT, y YEAR);
ALTER DATABASE plain CHARACTER SET cp1251;
CREATE TABLE plain.q (t TEXT, y YEAR);
ALTER TABLE plain.q ADD u TEXT;
CREATE TABLE plain.gone (a INT);
DROP TABLE plain.gone;
INSERT INTO plain.q (y) VALUES (2000);
ALTER TABLE plain.p RENAME TO plain.r, ADD z INT UNSIGNED;
CREATE OR REPLACE TABLE d (only_one MEDIUMINT UNSIGNED);
""".strip().split(";\n")


def history_of(server):
    """Return what the statements of the newest binlog file come to, and the position behind."""
    history, position = SchemaHistory(), GtidPosition()
    data = server.binlog_files()[-1].read_bytes()
    at = 4
    while at < len(data):
        header = EventHeader.unpack(data, at)
        if header.type == EventType.GTID:
            event = without_checksum(data[at : at + header.length])
            position.set(GtidEvent.parse(event).gtid)
        if header.type == EventType.QUERY:
            event = without_checksum(data[at : at + header.length])
            reader = FieldReader(event, HEADER_SIZE)
            name_bytes, status_bytes = QUERY_SIZES.unpack(reader.take(QUERY_SIZES.size))
            reader.skip(status_bytes)
            database = reader.take(name_bytes).decode()
            reader.skip(1)
            history.follow(reader.rest().decode(), database, position, server_charset="koi8r")
        at += header.length
    return history.schemas, position


def test_the_history_says_what_the_server_says(rig, mariadb_10):
    server = rig.primary(mariadb_10, "--binlog-format=ROW", "--character-set-server=koi8r")
    server.run("FLUSH BINARY LOGS", *STATEMENTS)
    found, position = history_of(server)
    wanted = TableSchemas.from_server(server.rows, assume_unchanged=True)
    gtid = position.get(0)
    later = Gtid(0, 1, gtid.seq)
    assert {place for place in found.names() if found.find(*place, later)} == set(wanted.names())
    for place in wanted.names():
        schema, other = found.find(*place, later), wanted.find(*place, later)
        assert schema.key == other.key, place
        for column, true in zip(schema.columns, other.columns, strict=True):
            for what in ("name", "charset", "unsigned", "labels", "type_name"):
                assert getattr(column, what) == said(true, what), (place, column, true)


def said(column, what):
    """Return what information_schema says, of JSON as of the text that it is."""
    value = getattr(column, what)
    return "json" if what == "type_name" and column.name == "j" else value
