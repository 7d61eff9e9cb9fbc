"""What a group does: statements by their settings, and nothing that was rolled back."""

from struct import pack

import pytest

from ibb.pipeline.ddl.session_modes import SessionModes
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.group_steps import steps_of
from ibb.pipeline.tables.prepared_xa import Prepared, PreparedXa
from ibb.pipeline.tables.query_event import QueryEvent
from ibb.pipeline.tables.row_changes import Statement
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventFlag, EventHeader, EventType
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, XaId
from ibb.storage.position import Position

GTID = Gtid(0, 1, 5)


def event(kind, body, marks=0):
    return EventHeader(7, kind, 1, 19 + len(body), 0, marks).pack() + body


def query(text, *, database=b"shop", flags=0, sql_mode=0, collation=45, error=0, marks=0):
    settings = b"\x00" + pack("<I", flags) + b"\x01" + pack("<Q", sql_mode) + b"\x06\x03std"
    settings += b"\x04" + pack("<HHH", collation, collation, collation)
    sizes = pack("<IIBHH", 1, 0, len(database), error, len(settings))
    return event(EventType.QUERY, sizes + settings + database + b"\0" + text, marks)


class Group:
    """A group as the reader gives it, in pieces of seven bytes."""

    gtid = GTID
    timestamp = 7
    position = Position(1, 64)

    def __init__(self, *events):
        self._data = b"".join(events)

    def pieces(self):
        for start in range(0, len(self._data), 7):
            yield self._data[start : start + 7]


class NoFiles:
    """Files that were purged."""

    def first_file(self):
        return 9


def known(*xids):
    """Return prepared transactions that change none of the tables."""
    found = Prepared(GTID, Position(1, 64), changes=False)
    return PreparedXa(dict.fromkeys(xids, found), NoFiles())


def texts(*events, prepared=None):
    steps = steps_of(Group(*events), lambda _: True, prepared or known())
    return [step.sql for step in steps]


def test_a_statement_comes_with_what_its_meaning_depends_on():
    (step,) = steps_of(
        Group(query('DROP TABLE "ü"'.encode("latin1"), sql_mode=4, collation=8)),
        lambda _: True,
        known(),
    )
    modes = SessionModes(ansi_quotes=True, explicit_timestamps=False)
    assert step == Statement(GTID, 7, "shop", 'DROP TABLE "ü"', modes)


@pytest.mark.parametrize("sql_mode", [1 << 21, 1 << 22])
def test_a_statement_comes_with_what_its_session_does_about_values(sql_mode):
    (step,) = steps_of(
        Group(query(b"X", flags=1 << 24, sql_mode=sql_mode)), lambda _: True, known()
    )
    assert step.modes == SessionModes(strict=True, explicit_timestamps=True)


def test_a_statement_comes_with_its_error_and_whether_a_temporary_table_may_be_meant():
    failed, marked = query(b"X", error=1005), query(b"Y", marks=EventFlag.THREAD_SPECIFIC)
    steps = steps_of(Group(failed, marked), lambda _: True, known())
    assert [(step.error, step.uses_temporary) for step in steps] == [(1005, False), (0, True)]


@pytest.mark.parametrize(
    ("sql_mode", "modes"),
    [
        (1, {"types": (("real", "float"),)}),
        (512, {"types": (("date", "datetime"), ("number", "double"), ("blob", "longblob"))}),
        (4096, {"types": (("timestamp", "datetime"),)}),
        (1 << 31, {"pads_chars": True}),
        (1 << 32, {"empty_is_null": True}),
    ],
)
def test_a_statement_comes_with_what_its_words_mean(sql_mode, modes):
    (step,) = steps_of(
        Group(query(b"X", flags=1 << 24, sql_mode=sql_mode)), lambda _: True, known()
    )
    assert step.modes == SessionModes(**modes)


def test_a_statement_of_bytes_has_the_names_of_utf8():
    text = "ALTER TABLE `ü` ADD c INT"
    (step,) = steps_of(
        Group(query(text.encode(), flags=1 << 24, collation=63)), lambda _: True, known()
    )
    assert (step.sql, step.modes) == (text, SessionModes(bytewise=True))


def test_backslashes_that_escape_nothing_are_doubled():
    text = rb"ALTER TABLE `a\b` ADD c CHAR(9) DEFAULT 'x\n'"
    (found,) = texts(query(text, sql_mode=1 << 20))
    assert found == r"ALTER TABLE `a\b` ADD c CHAR(9) DEFAULT 'x\\n'"
    assert texts(query(text)) == [text.decode()]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"X 'a`\n`' COMMENT '`\'", r"X 'a`\\n`' COMMENT '`\\'"),
        (r"X `\'` '''`\' \ `'`", r"X `\'` '''`\\' \\ `'`"),
        ("X -- it's `\n'\\`'\\", "X -- it's `\n'\\\\`'\\\\"),
        (r"X /* it's ` */ '\' /*M! '`\`' */", r"X /* it's ` */ '\\' /*M! '`\\`' */"),
        (r'X "`\`"', r'X "`\\`"'),
    ],
)
def test_backslashes_are_found_wherever_quotes_of_names_stand(text, wanted):
    assert texts(query(text.encode(), sql_mode=1 << 20)) == [wanted]


def test_load_data_that_is_logged_as_a_statement_tells_where_it_ran():
    text = b"LOAD DATA INFILE 'x' INTO TABLE `t`"
    sizes = pack("<IIBHH", 1, 0, len(b"shop"), 0, 0) + bytes(13)
    load = event(EventType.EXECUTE_LOAD_QUERY, sizes + b"shop\0" + text)
    block = event(EventType.BEGIN_LOAD_QUERY, bytes(4) + b"1\n")
    (step,) = steps_of(Group(block, load), lambda _: True, known())
    assert step == Statement(
        GTID, 7, "shop", text.decode(), SessionModes(explicit_timestamps=False)
    )


def test_what_was_rolled_back_did_not_happen():
    one, two, three = (query(b"DELETE FROM t%d" % number) for number in (1, 2, 3))
    begin, end = query(b"BEGIN"), query(b"COMMIT")
    save, back = query(b"SAVEPOINT `s`"), query(b"ROLLBACK TO SAVEPOINT s")
    assert texts(begin, one, save, two, back, three, end) == ["DELETE FROM t1", "DELETE FROM t3"]
    assert texts(begin, one, save, two, query(b"ROLLBACK")) == []
    assert texts(begin, one, end) == ["DELETE FROM t1"]


def test_ddl_happened_whatever_was_rolled_back_around_it():
    drop = b"DROP TABLE IF EXISTS `t`/* Generated to handle failed CREATE OR REPLACE */"
    rows = query(b"SET STATEMENT max_statement_time=9 FOR DELETE FROM t")
    begin, rollback = query(b"BEGIN"), query(b"ROLLBACK")
    assert texts(begin, rows, query(drop), rows, rollback) == [drop.decode()]
    odd = b"SET STATEMENT sql_mode='' FOR DELETE FROM t"
    assert texts(begin, query(odd), rollback) == [odd.decode()]
    save, back = query(b"SAVEPOINT s"), query(b"ROLLBACK TO s")
    assert texts(begin, save, query(drop), rows, back, rows, query(b"COMMIT")) == [
        drop.decode(),
        "SET STATEMENT max_statement_time=9 FOR DELETE FROM t",
    ]


XID = "X'78',X'',1"
PREPARES, ENDS = GtidFlag.PREPARED_XA, GtidFlag.COMPLETED_XA | GtidFlag.STANDALONE


def xa(flags, text, *events):
    begin = GtidEvent(GTID, 7, flags, xa_id=XaId(1, b"x", b"")).encode()
    return begin, query(text + b" X'78',X'',1"), *events


def test_a_commit_of_what_was_prepared_before_the_stream_began_stops():
    prepared = known()
    with pytest.raises(PipelineError) as caught:
        texts(*xa(ENDS, b"XA COMMIT"), prepared=prepared)
    assert str(caught.value).startswith(f"0-1-5 commits the XA transaction {XID}, which was")
    assert "Take the snapshot again" in str(caught.value)
    assert texts(*xa(ENDS, b"XA ROLLBACK"), prepared=prepared) == []


def test_a_commit_of_what_was_prepared_in_the_stream_goes_by():
    prepared = known()
    end = event(EventType.XA_PREPARE, bytes(20))
    for verb in (b"XA COMMIT", b"XA ROLLBACK"):
        assert texts(*xa(PREPARES, b"XA START", end), prepared=prepared) == []
        assert prepared.known == {XID: Prepared(GTID, Position(1, 64), changes=False)}
        assert texts(*xa(ENDS, verb), prepared=known(XID)) == []
        assert texts(*xa(ENDS, verb), prepared=prepared) == []
        assert not prepared.known


def test_a_commit_with_its_rows_needs_no_preparation():
    whole = xa(GtidFlag.COMPLETED_XA, b"XA COMMIT")
    assert texts(whole[0], query(b"TRUNCATE t"), whole[1]) == ["TRUNCATE t"]


def test_prepared_transactions_have_a_limit(monkeypatch):
    monkeypatch.setattr("ibb.pipeline.tables.prepared_xa.PREPARED_MAX", 1)
    with pytest.raises(PipelineError, match="0-1-5: more than 1 XA"):
        known("a").prepare(XaId(1, b"b", b""), Group(), changes=False)


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
