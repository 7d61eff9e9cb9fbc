import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, EventHeader, EventType, build_event, with_checksum
from ibb.protocol.event_group import TRACKER_PREFIX_BYTES_MAX, GroupStep, GroupTracker
from ibb.protocol.event_splitter import FIRST_PART_BYTES_MIN
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, XaId
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.rotate import Rotate

OUTSIDE, BEGIN, INSIDE, END, CUT_OFF = GroupStep
TRANSACTION = GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL
STANDALONE = GtidFlag.STANDALONE | GtidFlag.DDL


def event(code, body=b""):
    return build_event(code, body, timestamp=1700000000, server_id=1)


def gtid(flags2, seq=5):
    xa_id = XaId(1, b"x", b"") if flags2 & 0xC0 else None
    return GtidEvent(Gtid(0, 1, seq), 1700000000, flags2, xa_id=xa_id).encode()


def query(text, *, code=EventType.QUERY, db=b"test", status=bytes(26)):
    post_header = bytes(8) + bytes([len(db)]) + bytes(2) + len(status).to_bytes(2, "little")
    return event(code, post_header + status + db + b"\0" + text)


def rows(code=EventType.WRITE_ROWS_V1, flags=1):
    return event(code, bytes(6) + flags.to_bytes(2, "little") + b"rows")


INTVAR = event(EventType.INTVAR, b"\2" + bytes(8))
RAND = event(EventType.RAND, bytes(16))
USER_VAR = event(EventType.USER_VAR, b"\1\0\0\0a\1")
TABLE_MAP = event(EventType.TABLE_MAP, bytes(20))
ANNOTATE = event(EventType.ANNOTATE_ROWS, b"insert")
XID = event(EventType.XID, bytes(8))
XA_PREPARE = event(EventType.XA_PREPARE, bytes(15))
INCIDENT = event(EventType.INCIDENT, bytes(3))
LOAD = [event(EventType.BEGIN_LOAD_QUERY, bytes(8)), event(EventType.APPEND_BLOCK, bytes(8))]
EXECUTE_LOAD = query(b"load data", code=EventType.EXECUTE_LOAD_QUERY)
COMPRESSED = query(b"\x81\x05abc", code=EventType.QUERY_COMPRESSED)
RESTART = FormatDescription.default("10.11.1-MariaDB", 1, 1700000000)


def steps(events, tracker=None, *, checksum=False):
    tracker = tracker or GroupTracker()
    found = []
    for each in events:
        wire = with_checksum(each) if checksum else each
        header = EventHeader.unpack(wire)
        body = memoryview(wire)[HEADER_SIZE:]
        found.append(tracker.add(header, body, checksum_size=4 if checksum else 0))
    return found


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(
    "group",
    [
        [gtid(TRANSACTION), ANNOTATE, TABLE_MAP, rows(flags=0), rows(), XID],
        [gtid(TRANSACTION), INTVAR, RAND, USER_VAR, query(b"insert"), XID],
        [gtid(GtidFlag.ALLOW_PARALLEL), query(b"insert"), query(b"COMMIT")],
        [gtid(0), query(b"insert"), query(b"RollBack")],
        [gtid(0), query(b"commit", db=b"", status=b"")],
        [gtid(0), query(b"insert"), query(b"COMMIT", db=b"d" * 255, status=b"\1" * 600)],
        [
            gtid(TRANSACTION | GtidFlag.PREPARED_XA),
            query(b"XA START"),
            query(b"XA END"),
            XA_PREPARE,
        ],
        [gtid(TRANSACTION), *LOAD, EXECUTE_LOAD, XID],
        [gtid(TRANSACTION), COMPRESSED, rows(EventType.WRITE_ROWS_COMPRESSED_V1), XID],
        [gtid(TRANSACTION), INCIDENT, XID],
        [gtid(STANDALONE), query(b"create table t (a int)")],
        [gtid(STANDALONE), INTVAR, RAND, USER_VAR, query(b"insert")],
        [gtid(STANDALONE | GtidFlag.COMPLETED_XA), query(b"XA COMMIT X'78',X'',1")],
        [gtid(STANDALONE), COMPRESSED],
        [gtid(STANDALONE), INCIDENT],
        [gtid(STANDALONE), *LOAD, EXECUTE_LOAD],
        [gtid(STANDALONE), ANNOTATE, TABLE_MAP, rows(flags=0), rows(flags=9)],
        [gtid(STANDALONE), TABLE_MAP, rows(EventType.DELETE_ROWS_COMPRESSED)],
    ],
)
def test_a_group_ends_with_its_last_event_and_not_before(group, checksum):
    wanted = [BEGIN] + [INSIDE] * (len(group) - 2) + [END]
    assert steps(group * 2, checksum=checksum) == wanted * 2


@pytest.mark.parametrize(
    "text", [b"COMMIT ", b"COMMITS", b"commit;", b"XA COMMIT", b"BEGIN", b"ROLLBACK TO x", b""]
)
def test_other_statements_do_not_end_a_transaction(text):
    assert steps([gtid(0), query(text)]) == [BEGIN, INSIDE]


def test_compressed_commit_does_not_end_a_transaction():
    compressed = query(b"COMMIT", code=EventType.QUERY_COMPRESSED)
    assert steps([gtid(0), compressed]) == [BEGIN, INSIDE]


def test_the_open_group_is_known():
    tracker = GroupTracker()
    steps([gtid(TRANSACTION, seq=7), INTVAR], tracker)
    assert tracker.gtid == Gtid(0, 1, 7)
    steps([XID], tracker)
    assert tracker.gtid is None


BETWEEN = [
    RESTART.to_store(),
    Rotate.fake("bin.000001", 1).encode(),
    GtidList.fake([], 1).encode(),
    Heartbeat("bin.000001", 4, 1).encode(),
    event(EventType.BINLOG_CHECKPOINT, bytes(4)),
    event(EventType.STOP),
    event(EventType.START_ENCRYPTION, bytes(17)),
    INCIDENT,
]


def test_events_of_the_stream_pass_between_groups():
    assert steps(BETWEEN) == [OUTSIDE] * len(BETWEEN)


def test_made_up_events_pass_inside_a_group():
    """A primary puts a fake GTID list between a GTID event and its QUERY."""
    made_up = [
        GtidList.fake([Gtid(0, 1, 4)], 1).encode(),
        Heartbeat("bin.000001", 4, 1).encode(),
        FormatDescription.default("10.11.1-MariaDB", 1, 0).to_store(),
    ]
    group = [gtid(STANDALONE), *made_up, query(b"create")]
    assert steps(group) == [BEGIN, OUTSIDE, OUTSIDE, OUTSIDE, END]


def test_restart_of_the_writer_inside_a_group_cuts_it_off():
    """A primary that crashed leaves the beginning of a group at the end of its binlog file."""
    found = steps([gtid(TRANSACTION), INTVAR, RESTART.to_store(), gtid(TRANSACTION), XID])
    assert found == [BEGIN, INSIDE, CUT_OFF, BEGIN, END]


def test_gtid_inside_a_group_is_damage():
    with pytest.raises(FormatError, match="group 0-1-6 begins before group 0-1-5 has ended"):
        steps([gtid(TRANSACTION), INTVAR, gtid(TRANSACTION, seq=6)])


@pytest.mark.parametrize("orphan", [XID, INTVAR, query(b"COMMIT"), TABLE_MAP, rows()])
def test_group_event_without_a_group_is_damage(orphan):
    with pytest.raises(FormatError, match="none has begun"):
        steps([orphan])
    with pytest.raises(FormatError, match="none has begun"):
        steps([gtid(TRANSACTION), XID, orphan])


def test_sequence_number_0_is_damage():
    with pytest.raises(FormatError, match="sequence number 0"):
        steps([event(EventType.GTID, bytes(19))])


@pytest.mark.parametrize(
    ("first", "broken"),
    [
        (None, event(EventType.GTID, b"\1" + bytes(11))),
        (gtid(0), event(EventType.QUERY, bytes(12))),
        (gtid(0), event(EventType.QUERY, bytes(11) + b"\xff\xff" + bytes(30))),
        (gtid(0), event(EventType.QUERY, bytes(8) + b"\xff" + bytes(4) + bytes(30))),
        (gtid(STANDALONE), event(EventType.WRITE_ROWS_V1, bytes(7))),
        (gtid(0), event(EventType.FORMAT_DESCRIPTION, bytes(55))),
    ],
)
def test_bodies_too_short_for_their_lengths_are_damage(first, broken):
    with pytest.raises(FormatError):
        steps([first, broken] if first else [broken])


def test_beginning_of_a_large_event_is_enough():
    prefix = FIRST_PART_BYTES_MIN - HEADER_SIZE
    for large, wanted in [(query(b"x" * 100_000), INSIDE), (rows() + bytes(100_000), INSIDE)]:
        tracker = GroupTracker()
        steps([gtid(TRANSACTION)], tracker)
        header = EventHeader.unpack(large)._replace(length=len(large))
        assert tracker.add(header, large[HEADER_SIZE:][:prefix]) is wanted


def test_commit_behind_more_status_variables_than_there_can_be_is_damage():
    large = query(b"COMMIT", status=b"\1" * 65535)
    assert len(large) - HEADER_SIZE > TRACKER_PREFIX_BYTES_MAX
    tracker = GroupTracker()
    steps([gtid(0)], tracker)
    with pytest.raises(FormatError, match="Query event of 6 characters"):
        tracker.add(
            EventHeader.unpack(large), large[HEADER_SIZE:][: FIRST_PART_BYTES_MIN - HEADER_SIZE]
        )
