"""
Records in their order, and odd ones: what the check finds, and what goes on.

Those of the corruption table are in `record_damages.py`; here is what needs a history of its own.
"""

import pytest

from ibb.protocol import compint
from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.storage.position import Position
from ibb.storage.record import (
    OobReference,
    RecordType,
    XaComplete,
    XaPrepare,
    Xid,
    encode_state,
    encode_xa_complete,
    encode_xa_prepare,
)
from ibb.storage.verify import Severity

from ..binlog_builder import BinlogBuilder, event, gtid_event
from ..state_of_size import entries_of_size
from .verify_rig import SIZE, Binlog, at, findings, numbered, report_at, reports, told, totals


@pytest.fixture
def binlog(tmp_path):
    return Binlog(tmp_path)


def wrap(binlog, record_type, data, gtid=None):
    """Put a record between good groups; return its place."""
    binlog.groups(3)
    place = binlog.builder.record(record_type, data, gtid)
    binlog.groups(7)
    binlog.write()
    return place


def test_a_group_with_number_0_is_none(binlog):
    contents = b"\0" + gtid_event(numbered(0)) + event(50)
    place = wrap(binlog, RecordType.COMMIT, contents)
    assert reports(binlog.path) == [
        report_at("not-a-group", place, "group with sequence number 0: 0-1-0")
    ]
    assert totals(binlog.path).groups == 10


EVENTS = [
    ("an event of 18 bytes", event(50)[:9] + b"\x12\0\0\0" + bytes(37), "event 2 of the group"),
    ("an event past the end", event(50)[:9] + b"\xff\0\0\0" + bytes(37), "goes 205 bytes past"),
    ("half an event header", event(50) + event(50)[:18], "ends with 18 bytes"),
    ("a second GTID event", event(50) + gtid_event(numbered(5)), "another GTID event"),
]


@pytest.mark.parametrize("pages", [0, 3])
@pytest.mark.parametrize(("events", "text"), [case[1:] for case in EVENTS],
                         ids=[case[0] for case in EVENTS])  # fmt: skip
def test_events_that_do_not_fit_together(binlog, events, text, pages):
    """In a record of one page or of several: the group is lost, its neighbours are not."""
    events = event(SIZE * pages) + events if pages else events
    data = b"\0" + gtid_event(Gtid(7, 1, 1)) + events
    place = wrap(binlog, RecordType.COMMIT, data, Gtid(7, 1, 1))
    assert told(binlog.path) == [at("event-length", place, "7-1-1")]
    if pages:
        text = text.replace("event 2", "event 3")
    assert text in findings(binlog.path)[0].text


def test_records_of_unknown_types(binlog):
    places = [wrap(binlog, 7, b"?" * 900), wrap(binlog, 62, b"?")]
    assert told(binlog.path) == [at("unknown-record", place) for place in places]
    assert totals(binlog.path).groups == 20


def test_many_findings_of_a_kind_that_is_no_damage_are_counted(binlog):
    for _ in range(25):
        binlog.builder.record(9, b"?")
    binlog.write()
    found = findings(binlog.path)
    assert [str(finding.kind) for finding in found] == ["unknown-record"] * 20 + ["more"]
    assert found[-1].text == "5 more findings of kind unknown-record"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (bytes([0x78]) + bytes(3), "counts 15 entries"),
        (bytes([0x08, 0]) + compint.encode(1 << 32) + b"\x08\x08", "holds 4294967296-1-1"),
        (bytes([0x08, 0, 0]) + compint.encode(1 << 32) + b"\x08", "holds 0-4294967296-1"),
        (bytes([0x08, 0, 0, 0x08, 0x07]), "Short chunk"),
        (bytes([0x08, 0, 0]) + b"\xff" * 9, "64 bits"),
    ],
)
def test_states_without_sense(binlog, data, text):
    """A reader that must go back to the state before it loses nothing."""
    binlog.groups(1)
    fill_page(binlog.builder)
    place = binlog.builder.position
    binlog.builder.chunk(0x42, data)
    binlog.groups(2)
    binlog.write()
    found = findings(binlog.path)
    assert told(binlog.path) == [at("state-record", place)]
    assert text in found[0].text


def fill_page(builder):
    """Close the page that is begun with padding."""
    builder.chunk(0x44, b"\xff" * (builder.room - 3))


def test_a_state_where_none_is_due(binlog):
    binlog.groups(1)
    place = binlog.builder.position
    binlog.builder.state([numbered(1)])
    binlog.groups(3).write()
    assert told(binlog.path) == [at("state-misplaced", place)]


def test_states_that_are_not_there(tmp_path):
    binlog = Binlog(tmp_path, states=False).groups(20).write()
    pages = [(0, 1), (0, 2), (0, 4), (1, 1), (1, 2)]
    assert told(tmp_path) == [at("state-missing", (file, page * SIZE)) for file, page in pages]
    assert totals(tmp_path).groups == len(binlog.places)


def test_groups_that_only_a_state_knows(binlog):
    binlog.groups(2)
    fill_page(binlog.builder)
    for gtid in (numbered(3), numbered(4), numbered(5), Gtid(3, 1, 70)):
        binlog.builder.full.update(gtid)
        binlog.builder.since.update(gtid)
    binlog.builder.commit(numbered(6), event(200))
    binlog.write()
    lost = "0-1-3..5, 3-1-70 at least"
    assert told(binlog.path) == [at("groups-missing", (0, 2 * SIZE), lost)]


def test_a_state_of_another_order(binlog):
    """Which entry of a domain is last is a part of the state."""
    binlog.builder.commit(Gtid(0, 1, 1), event(20))
    binlog.builder.commit(Gtid(0, 2, 2), event(20))
    binlog.builder.since = BinlogState([Gtid(0, 2, 2), Gtid(0, 1, 1)])
    fill_page(binlog.builder)
    binlog.builder.commit(Gtid(1, 1, 1), event(200))
    binlog.write()
    found = findings(binlog.path)
    assert told(binlog.path) == [at("state-differs", (0, 2 * SIZE))]
    assert "in what is a domain's newest" in found[0].text


def test_a_domain_that_was_deleted_and_one_that_could_not_be(tmp_path):
    """Only what no file has groups of can have been deleted."""
    binlog = Binlog(tmp_path, first=3)
    binlog.builder.full.load([Gtid(5, 1, 50), Gtid(6, 1, 60)])
    binlog.groups(2)
    binlog.builder.commit(Gtid(6, 1, 61), event(20))
    binlog.builder.full = BinlogState([numbered(2), Gtid(6, 1, 61)])
    binlog.builder.fill_file()
    binlog.groups(1)
    binlog.builder.full = BinlogState([numbered(3)])
    binlog.builder.fill_file()
    binlog.groups(1)
    binlog.write()
    assert told(tmp_path) == [
        at("domain-deleted", (4, SIZE)),
        at("state-differs", (5, SIZE)),
    ]


def test_the_first_gtid_that_file_0_does_not_tell_is_no_finding(binlog):
    """Alone and with number 1 it is left out of the first state. ibb-format 5.2."""
    binlog.builder.full.update(Gtid(9, 1, 1))
    binlog.builder.prepare_page()
    binlog.builder.files[0][SIZE : 2 * SIZE] = bytes(SIZE)
    binlog.builder.place = SIZE
    binlog.builder.chunk(0x42, b"\0\0")
    binlog.groups(20).write()
    assert told(binlog.path) == []


def test_the_order_of_gtids(binlog):
    """The same twice is wrong; lower numbers are legal where the domain is not strict."""
    commits = [Gtid(0, 1, 5), Gtid(0, 1, 5), Gtid(0, 1, 3), Gtid(0, 2, 3), Gtid(1, 1, 1)]
    places = [binlog.builder.commit(gtid, event(20)) for gtid in commits]
    binlog.write()
    assert told(binlog.path) == [
        at("gtid-duplicate", places[1]),
        at("gtid-order", places[2]),
        at("gtid-order", places[3]),
    ]


def test_an_xa_commit_without_its_pieces(binlog):
    binlog.large_group()
    reference = OobReference(5, *binlog.nodes[::4])
    xid = Xid(1, b"g", b"b")
    binlog.builder.record(RecordType.XA_PREPARE, encode_xa_prepare(XaPrepare(1, xid, reference)))
    binlog.builder.record(RecordType.XA_COMPLETE, encode_xa_complete(XaComplete(xid, False)))
    place = binlog.builder.commit(numbered(2), event(20))
    binlog.write()
    assert told(binlog.path) == [at("xa-record", place)]


def test_a_state_that_overlooks_a_prepared_transaction(binlog):
    reference = OobReference(1, Position(0, 600), Position(0, 600))
    prepare = encode_xa_prepare(XaPrepare(1, Xid(1, b"g", b"b"), reference))
    binlog.builder.record(RecordType.XA_PREPARE, prepare)
    binlog.groups(3).write()
    assert told(binlog.path) == [at("xa-reference", (0, 2 * SIZE))]


def test_data_that_ends_early_in_an_older_file(tmp_path):
    first = Binlog(tmp_path, interval=0).groups(3).write(empty_next=False)
    place = first.builder.position
    second = BinlogBuilder(interval=0, first=1)
    second.full = first.builder.full.copy()
    second.commit(numbered(4), event(200))
    second.write(tmp_path)
    assert told(tmp_path) == [at("data-ends-early", place)]
    assert [finding.severity for finding in findings(tmp_path)] == [Severity.WARNING]


def test_data_that_ends_early_and_without_its_last_groups(tmp_path):
    """What the next file's state tells of and no record has is lost: that is no mere warning."""
    first = Binlog(tmp_path, interval=0).groups(3).write(empty_next=False)
    second = BinlogBuilder(interval=0, first=1)
    second.full = BinlogState([numbered(5)])
    second.commit(numbered(6), event(200))
    second.write(tmp_path)
    assert told(tmp_path) == [at("data-ends-early", first.builder.position, "0-1-4..5")]
    assert [finding.severity for finding in findings(tmp_path)] == [Severity.DAMAGE]


def test_data_that_ends_early_inside_a_record(tmp_path):
    first = Binlog(tmp_path, interval=0).groups(1)
    first.builder.prepare_page()
    first.builder.chunk(0x01, b"\0" + gtid_event(numbered(2)) + b"x" * (first.builder.room - 42))
    first.write(empty_next=False)
    second = BinlogBuilder(interval=0, first=1)
    second.full = BinlogState([numbered(2)])
    second.commit(numbered(3), event(200))
    second.write(tmp_path)
    assert told(tmp_path) == [
        at("truncated-record", (0, 2 * SIZE), "0-1-2"),
        at("data-ends-early", (0, 2 * SIZE)),
    ]


def test_an_unfinished_record_at_the_end_is_not_there_yet(binlog):
    binlog.groups(1)
    place = binlog.builder.position
    binlog.builder.chunk(0x01, b"\0" + gtid_event(numbered(2)) + b"x" * (binlog.builder.room - 42))
    binlog.write()
    assert told(binlog.path) == [at("torn-end", place)]
    assert [finding.severity for finding in findings(binlog.path)] == [Severity.NOTE]


def test_a_format_description_is_no_finding(binlog):
    event = FormatDescription.default("10.11.99-MariaDB", 1, 1_700_000_000).to_store()
    wrap(binlog, RecordType.COMMIT, b"\0" + event)
    assert told(binlog.path) == []


@pytest.mark.parametrize("left", [1, 2, 3])
def test_bytes_too_few_for_a_chunk_are_padded_by_what_follows(binlog, left):
    """At the end of data they are still zero; before a used page that is odd, but costs nothing."""
    binlog.groups(1)
    builder = binlog.builder
    builder.chunk(0x43, bytes(5) + b"x" * (builder.room - 8 - left))
    assert builder.room == left
    binlog.write()
    assert told(binlog.path) == []
    place = builder.position
    binlog.groups(8).write()
    assert told(binlog.path) == []
    binlog.sealed(place, bytes(left))
    assert told(binlog.path) == [at("padding", place)]
    assert totals(binlog.path).groups == 9
    binlog.raw(Position(0, 2 * SIZE), bytes(SIZE))
    assert told(binlog.path)[:2] == [
        at("padding", place),
        ("zero-page", "binlog-000000.ibb", 2, None, "0-1-2..4"),
    ]


def test_stray_continuations_are_told_one_by_one(binlog):
    places = []
    for _ in range(2):
        binlog.groups(1)
        for _ in range(2):
            places.append(binlog.builder.position)
            binlog.builder.chunk(0xC1, b"?")
    binlog.groups(8).write()
    assert told(binlog.path) == [at("continuation", place) for place in places]


def test_a_wrong_full_state_does_not_make_those_after_it_wrong(tmp_path):
    """They are compared with what page 1 should have told."""
    binlog = Binlog(tmp_path).groups(12)
    binlog.builder.fill_file()
    builder = binlog.builder
    builder.since = BinlogState()
    builder.state([Gtid(9, 1, 1)])
    binlog.groups(12).write()
    assert told(tmp_path) == [at("state-differs", (1, SIZE))]


def test_no_second_state_is_due_behind_one_that_fills_its_page(binlog):
    """The record goes on at once, also where the next state would be due. ibb-format 9.2."""
    builder = binlog.builder
    builder.interval = 1
    for gtid in entries_of_size(SIZE - 4 - 3):
        builder.full.update(gtid)
        builder.since.update(gtid)
    builder.full = BinlogState(builder.full.entries())
    builder.place = SIZE
    builder.state(builder.full.entries())
    assert builder.place == 2 * SIZE
    builder.since = BinlogState()
    builder.record(RecordType.OOB, bytes(5) + b"x" * 700)
    binlog.write()
    assert "state-missing" not in [kind for kind, *_ in told(binlog.path)]


def test_what_is_prepared_is_not_known_behind_damage(binlog):
    """The record that completed it may have been there."""
    reference = OobReference(1, Position(0, 600), Position(0, 600))
    prepare = encode_xa_prepare(XaPrepare(1, Xid(1, b"g", b"b"), reference))
    binlog.builder.record(RecordType.XA_PREPARE, prepare)
    binlog.groups(1)
    place = binlog.builder.position
    binlog.builder.chunk(0xC1, b"?")
    binlog.groups(8).write()
    assert told(binlog.path) == [at("continuation", place)]


@pytest.mark.parametrize(("said", "kinds"), [(0, []), (1, ["xa-reference"])])
def test_how_far_back_a_state_says_that_a_restart_must_look(binlog, said, kinds):
    reference = OobReference(1, Position(0, 600), Position(0, 600))
    prepare = encode_xa_prepare(XaPrepare(1, Xid(1, b"g", b"b"), reference))
    binlog.builder.record(RecordType.XA_PREPARE, prepare)
    binlog.groups(1)
    fill_page(binlog.builder)
    binlog.builder.chunk(0x42, encode_state([numbered(1)], said))
    binlog.write()
    assert [kind for kind, *_ in told(binlog.path)] == kinds
