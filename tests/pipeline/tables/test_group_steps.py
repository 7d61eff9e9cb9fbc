"""What a group does: statements by their settings, and nothing that was rolled back."""

from struct import pack

import pytest

from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.group_steps import steps_of
from ibb.pipeline.tables.query_event import QueryEvent
from ibb.pipeline.tables.row_changes import Statement
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader, EventType
from ibb.protocol.gtid import Gtid

GTID = Gtid(0, 1, 5)


def event(kind, body):
    return EventHeader(7, kind, 1, 19 + len(body), 0, 0).pack() + body


def query(text, *, database=b"shop", sql_mode=0, collation=45):
    settings = b"\x00" + bytes(4) + b"\x01" + pack("<Q", sql_mode) + b"\x06\x03std"
    settings += b"\x04" + pack("<HHH", collation, collation, collation)
    sizes = pack("<IIBHH", 1, 0, len(database), 0, len(settings))
    return event(EventType.QUERY, sizes + settings + database + b"\0" + text)


class Group:
    """A group as the reader gives it, in pieces of seven bytes."""

    gtid = GTID
    timestamp = 7

    def __init__(self, *events):
        self._data = b"".join(events)

    def pieces(self):
        for start in range(0, len(self._data), 7):
            yield self._data[start : start + 7]


def texts(*events):
    return [step.sql for step in steps_of(Group(*events), lambda _: True)]


def test_a_statement_comes_with_what_its_meaning_depends_on():
    (step,) = steps_of(
        Group(query('DROP TABLE "ü"'.encode("latin1"), sql_mode=4, collation=8)), lambda _: True
    )
    assert step == Statement(GTID, 7, "shop", 'DROP TABLE "ü"', ansi_quotes=True)


def test_what_was_rolled_back_did_not_happen():
    one, two, three = (query(b"TRUNCATE t%d" % number) for number in (1, 2, 3))
    begin, end = query(b"BEGIN"), query(b"COMMIT")
    save, back = query(b"SAVEPOINT `s`"), query(b"ROLLBACK TO SAVEPOINT s")
    assert texts(begin, one, save, two, back, three, end) == ["TRUNCATE t1", "TRUNCATE t3"]
    assert texts(begin, one, save, two, query(b"ROLLBACK")) == []
    assert texts(begin, one, end) == ["TRUNCATE t1"]


def test_a_prepared_transaction_of_these_tables_stops():
    prepared = event(EventType.XA_PREPARE, bytes(20))
    assert texts(query(b"XA START 'x'"), prepared) == []
    with pytest.raises(PipelineError, match="0-1-5 prepares an XA transaction"):
        texts(query(b"TRUNCATE t"), prepared)


def test_an_incident_stops():
    with pytest.raises(PipelineError, match="lost events"):
        texts(event(EventType.INCIDENT, bytes(3)))


def test_damaged_statements_are_refused():
    with pytest.raises(FormatError, match="it is cut"):
        QueryEvent.parse(query(b"x")[:25])
    compressed = bytearray(query(b"\x01\x05nothing deflated"))
    compressed[4] = EventType.QUERY_COMPRESSED
    with pytest.raises(FormatError, match="compressed Query event"):
        QueryEvent.parse(bytes(compressed))
