"""
Records that mean nothing or say something wrong: cases of the corruption table, ibb-format 14.

Some are done to group 20, which is lost then; others are put where no group was.
"""

from ibb.protocol import compint
from ibb.storage.position import Position
from ibb.storage.record import OobReference, XaPrepare, Xid, encode_xa_prepare

from ..binlog_builder import event, gtid_event
from .binlog_to_damage import GROUP_BYTES, SPARE_BYTES
from .verify_rig import SIZE, numbered, report_at

CONTENTS = 3  # bytes of a chunk's head
GTID_AT = CONTENTS + 1  # of a group's GTID event, behind "no lists of pieces"
EVENT_AT = GTID_AT + 38  # and of the event behind that
TYPE_AT, LENGTH_AT = 4, 9  # in an event
ABOVE_64_BITS = "compressed integer is above 64 bits"
STATE4 = Position(1, 4 * SIZE)  # the state on page 4 of file 1

# Commit records


def in_group_20(binlog, at_byte, data):
    binlog.sealed(Position(1, binlog.places[20].offset + at_byte), data)


def group_20_is(binlog, contents):
    """Let the commit record of group 20 be shorter."""
    binlog.instead(binlog.places[20], GROUP_BYTES, (0x41, contents))


def no_commit(binlog, text):
    return [report_at("commit-record", binlog.places[20], text, "0-1-20")]


def commit_with_a_number_past_its_end(binlog):
    group_20_is(binlog, b"\xff\xff\xff")
    return no_commit(binlog, "Short chunk: compressed integer of 9 bytes has only 3")


def commit_with_half_a_prefix(binlog):
    group_20_is(binlog, b"\x28\x00\x59")
    return no_commit(binlog, "Short chunk: compressed integer of 2 bytes has only 1")


def commit_with_a_number_above_64_bits(binlog):
    in_group_20(binlog, CONTENTS, b"\xff" * 9)
    return no_commit(binlog, ABOVE_64_BITS)


def commit_that_counts_pieces_and_points_to_none(binlog):
    in_group_20(binlog, CONTENTS, b"\x08\0\0\0\0\0")
    return no_commit(binlog, "commit record counts 1 oob records and points to none")


def commit_shorter_than_an_event(binlog):
    group_20_is(binlog, b"\0" + gtid_event(numbered(20))[:18])
    text = "Short chunk: commit record is shorter than its first event's header"
    return no_commit(binlog, text)


def commit_shorter_than_its_first_event(binlog):
    group_20_is(binlog, b"\0" + gtid_event(numbered(20))[:37])
    return no_commit(binlog, "Short chunk: first event has 38 bytes, the commit record 37")


def first_event_of_18_bytes(binlog):
    in_group_20(binlog, GTID_AT + LENGTH_AT, b"\x12")
    return no_commit(binlog, "first event of a commit record says that it has 18 bytes")


def first_event_past_its_record(binlog):
    in_group_20(binlog, GTID_AT + LENGTH_AT, b"\xff")
    return no_commit(binlog, "Short chunk: first event has 255 bytes, the commit record 238")


def event_of_18_bytes(binlog):
    in_group_20(binlog, EVENT_AT + LENGTH_AT, b"\x12")
    return wrong_events(binlog, "event 2 of the group says it has 18 bytes")


def event_past_the_group(binlog):
    in_group_20(binlog, EVENT_AT + LENGTH_AT, b"\xc9")
    return wrong_events(binlog, "the last event goes 1 bytes past the end of the group")


def half_an_event_header_behind_the_group(binlog):
    in_group_20(binlog, EVENT_AT + LENGTH_AT, b"\xb6")
    return wrong_events(binlog, "the group ends with 18 bytes of an event header")


def second_gtid_event(binlog):
    in_group_20(binlog, EVENT_AT + TYPE_AT, b"\xa2")
    return wrong_events(binlog, "event 2 of the group is another GTID event")


def wrong_events(binlog, text):
    return [report_at("event-length", binlog.places[20], text, "0-1-20")]


def group_without_a_gtid(binlog):
    """Readers pass over it; nobody can tell what it was, for numbers may have gaps."""
    in_group_20(binlog, GTID_AT + TYPE_AT, b"\x02")
    text = "commit record begins with neither a GTID event nor a format description"
    return [report_at("not-a-group", binlog.places[20], text)]


# Beside groups


def beside(binlog, kind, chunk, text):
    """Put a record where no group was; return its report."""
    binlog.instead(binlog.spare_place, SPARE_BYTES, chunk)
    return [report_at(kind, binlog.spare_place, text)]


def commit_record_of_no_group(binlog):
    text = "commit record begins with neither a GTID event nor a format description"
    return beside(binlog, "not-a-group", (0x41, b"\0" + event(50)), text)


def format_description_without_sense(binlog):
    text = "Format_desc event of 50 bytes wants at least 77"
    contents = b"\0" + event(50, event_type=15)
    return beside(binlog, "format-description", (0x41, contents), text)


def record_of_type_7(binlog):
    text = "record of unknown type 7: readers skip it"
    return beside(binlog, "unknown-record", (0x47, b"?" * 50), text)


def record_of_type_62(binlog):
    text = "record of unknown type 62: readers skip it"
    return beside(binlog, "unknown-record", (0x7E, b"?"), text)


def piece_with_half_a_head(binlog):
    text = "Short chunk: compressed integer has no byte"
    return beside(binlog, "oob-record", (0x43, bytes(3)), text)


def piece_without_data(binlog):
    return beside(binlog, "oob-record", (0x43, bytes(5)), "Short chunk: no piece behind the header")


def piece_with_a_number_above_64_bits(binlog):
    contents = b"\xff" * 9 + bytes(20)
    return beside(binlog, "oob-record", (0x43, contents), ABOVE_64_BITS)


def prepared(gtrid_size, bqual_size):
    """Return an XA prepare record that says that its XID has these lengths."""
    reference = OobReference(2, Position(0, 600), Position(0, 700))
    good = encode_xa_prepare(XaPrepare(1, Xid(1, b"g", b"b"), reference))
    return good[:5] + bytes([gtrid_size, bqual_size]) + good[7:]


def prepare_with_a_gtrid_of_65_bytes(binlog):
    text = "Corrupt prepare record found, invalid XID lengths"
    return beside(binlog, "xa-record", (0x45, prepared(65, 1)), text)


def prepare_with_a_bqual_of_65_bytes(binlog):
    text = "Corrupt prepare record found, invalid XID lengths"
    return beside(binlog, "xa-record", (0x45, prepared(1, 65)), text)


def prepare_that_is_too_short(binlog):
    text = "Short chunk: XA prepare record of 8 bytes, 9 wanted"
    return beside(binlog, "xa-record", (0x45, prepared(1, 1)[:8]), text)


def prepare_without_its_pieces(binlog):
    text = "Short chunk: compressed integer has no byte"
    return beside(binlog, "xa-record", (0x45, prepared(1, 1)[:9]), text)


def complete_with_a_gtrid_of_65_bytes(binlog):
    text = "Corrupt complete record found, invalid XID lengths"
    return beside(binlog, "xa-record", (0x46, b"\0\x01\0\0\0\x41\x01gb"), text)


def complete_that_is_too_short(binlog):
    text = "Short chunk: XA complete record of 9 bytes, 11 wanted"
    return beside(binlog, "xa-record", (0x46, b"\0\x01\0\0\0\x02\x02gg"), text)


# States


def no_state(binlog, contents, text):
    return beside(binlog, "state-record", (0x42, contents), text)


def state_with_domain_2_to_the_32(binlog):
    contents = b"\x08\0" + compint.encode(1 << 32) + b"\x08\x08"
    return no_state(binlog, contents, "GTID state record holds 4294967296-1-1")


def state_with_server_2_to_the_32(binlog):
    contents = b"\x08\0\0" + compint.encode(1 << 32) + b"\x08"
    return no_state(binlog, contents, "GTID state record holds 0-4294967296-1")


def state_with_a_number_above_64_bits(binlog):
    return no_state(binlog, b"\x08\0\0" + b"\xff" * 9, ABOVE_64_BITS)


def state_with_a_number_past_its_end(binlog):
    binlog.sealed(Position(1, STATE4.offset + 3 + 4), b"\x07")
    text = "Short chunk: compressed integer of 9 bytes has only 1"
    return [report_at("state-record", STATE4, text)]


def state_with_fewer_entries_than_it_counts(binlog):
    binlog.sealed(Position(1, STATE4.offset + 3), b"\x40")
    text = "GTID state record of 5 bytes counts 8 entries"
    return [report_at("state-record", STATE4, text)]


def differs(in_what):
    text = f"differential GTID state differs from the groups before it in {in_what}"
    return [report_at("state-differs", STATE4, text)]


def state_with_a_lower_number(binlog):
    at_entry = STATE4.offset + 3 + 4
    assert compint.decode(binlog.file(1).read_bytes(), at_entry)[0] == 21
    binlog.sealed(Position(1, at_entry), compint.encode(20))
    return differs("0-1-21")


def state_with_another_server(binlog):
    binlog.sealed(Position(1, STATE4.offset + 3 + 3), compint.encode(2))
    return differs("0-1-21, 0-2-21")


DAMAGES = [
    commit_with_a_number_past_its_end,
    commit_with_half_a_prefix,
    commit_with_a_number_above_64_bits,
    commit_that_counts_pieces_and_points_to_none,
    commit_shorter_than_an_event,
    commit_shorter_than_its_first_event,
    first_event_of_18_bytes,
    first_event_past_its_record,
    event_of_18_bytes,
    event_past_the_group,
    half_an_event_header_behind_the_group,
    second_gtid_event,
    group_without_a_gtid,
    commit_record_of_no_group,
    format_description_without_sense,
    record_of_type_7,
    record_of_type_62,
    piece_with_half_a_head,
    piece_without_data,
    piece_with_a_number_above_64_bits,
    prepare_with_a_gtrid_of_65_bytes,
    prepare_with_a_bqual_of_65_bytes,
    prepare_that_is_too_short,
    prepare_without_its_pieces,
    complete_with_a_gtrid_of_65_bytes,
    complete_that_is_too_short,
    state_with_domain_2_to_the_32,
    state_with_server_2_to_the_32,
    state_with_a_number_above_64_bits,
    state_with_a_number_past_its_end,
    state_with_fewer_entries_than_it_counts,
    state_with_a_lower_number,
    state_with_another_server,
]
