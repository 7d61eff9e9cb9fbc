"""Contents of records: worked examples, both versions, every cut and every impossible number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.gtid import Gtid
from ibb.storage.position import NOWHERE, Position
from ibb.storage.record import (
    COMMIT_PREFIX_BYTES_MAX,
    OOB_HEADER_BYTES_MAX,
    OobHeader,
    OobReference,
    XaComplete,
    XaPrepare,
    Xid,
    encode_commit_prefix,
    encode_oob_header,
    encode_state,
    encode_xa_complete,
    encode_xa_prepare,
    parse_commit_prefix,
    parse_oob_header,
    parse_state,
    parse_xa_complete,
    parse_xa_prepare,
)

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
positions = st.builds(Position, u64, u64)
places = positions.filter(lambda position: position != NOWHERE)
references = st.builds(OobReference, st.integers(1, 2**64 - 1), places, places)
gtids = st.builds(Gtid, u32, u32, u64)
majors = st.sampled_from([0, 1])
xids = st.builds(Xid, u32, st.binary(max_size=64), st.binary(max_size=64))


def test_two_lists_as_in_the_worked_example():
    data = bytes.fromhex("a0 00 72 08 01 00 22 45 01 78 00 62 46 01 00 12 76 01")
    lists = (
        OobReference(20, Position(0, 8462), Position(0, 10404)),
        OobReference(15, Position(0, 10444), Position(0, 11970)),
    )
    assert parse_commit_prefix(data + b"event") == (lists, len(data))
    assert encode_commit_prefix(lists) == data


def test_one_list_has_a_second_count_in_the_final_format_only():
    lists = [OobReference(5, Position(0, 619), Position(0, 1130))]
    assert encode_commit_prefix(lists) == bytes.fromhex("28 00 59 13 00 51 23 00")
    assert encode_commit_prefix(lists, 0) == bytes.fromhex("28 00 59 13 00 51 23")


def test_no_list_is_one_byte_in_both():
    assert encode_commit_prefix([], 0) == encode_commit_prefix([], 1) == b"\0"
    # What follows is the event's timestamp, not a count.
    assert parse_commit_prefix(b"\0\xf1\x53", 1) == ((), 1)


@given(st.lists(references, max_size=2), majors, st.binary())
def test_commit_prefixes_come_back(lists, major, payload):
    lists = lists[: major + 1]
    data = encode_commit_prefix(lists, major)
    assert len(data) <= COMMIT_PREFIX_BYTES_MAX
    assert parse_commit_prefix(data + payload, major) == (tuple(lists), len(data))
    for cut in range(len(data)):
        with pytest.raises(Truncated):
            parse_commit_prefix(data[:cut], major)


@pytest.mark.parametrize("pointers", ["00 00 12 01 00", "12 01 00 00 00"])
def test_a_list_without_pointers_is_damage(pointers):
    with pytest.raises(FormatError, match="points to none"):
        parse_commit_prefix(b"\x08" + bytes.fromhex(pointers.replace("12 01", "00 22 45 01")), 0)


def test_states_as_in_the_worked_examples():
    entries = [Gtid(0, 1, 575)]
    assert encode_state(entries, None, 0) == bytes.fromhex("08 00 08 f9 11")
    assert encode_state(entries) == bytes.fromhex("08 00 00 08 f9 11")
    assert parse_state(bytes.fromhex("08 00 08 f9 11"), 0) == (entries, None)
    assert parse_state(bytes.fromhex("08 00 00 08 f9 11")) == (entries, None)


@given(st.lists(gtids, max_size=30), st.none() | st.integers(0, 2**64 - 2), majors, st.binary())
def test_states_come_back_and_bytes_behind_them_are_ignored(entries, xa_file, major, more):
    data = encode_state(entries, xa_file, major)
    state = parse_state(data + more, major)
    assert state.entries == entries
    assert state.xa_file == (xa_file if major else None)


@given(st.lists(gtids, min_size=1, max_size=5), majors)
def test_a_state_with_fewer_entries_than_its_count_is_damage(entries, major):
    data = encode_state(entries, None, major)
    for cut in range(len(data)):
        with pytest.raises(FormatError):
            parse_state(data[:cut], major)


def test_an_absurd_count_is_refused_before_anything_is_built():
    with pytest.raises(FormatError, match="counts 18446744073709551615 entries"):
        parse_state(bytes.fromhex("ff ff ff ff ff ff ff ff 07 00 00 08 f9 11"))


@pytest.mark.parametrize("entry", [Gtid(2**32, 1, 1), Gtid(1, 2**32, 1)])
def test_ids_above_32_bits_in_a_state_are_damage(entry):
    with pytest.raises(FormatError, match="GTID state record holds"):
        parse_state(encode_state([entry]))


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("00 00 00 00 00", OobHeader(0, NOWHERE, NOWHERE)),
        ("08 00 00 00 59 13", OobHeader(1, NOWHERE, Position(0, 619))),
        ("10 00 59 13 00 39 14", OobHeader(2, Position(0, 619), Position(0, 647))),
    ],
)
def test_oob_headers_of_the_worked_example(text, header):
    data = bytes.fromhex(text)
    assert parse_oob_header(data + b"AAAA") == (header, len(data))
    assert encode_oob_header(header) == data
    assert header.is_leaf == (header.left == NOWHERE)


@given(st.builds(OobHeader, u64, positions, positions))
def test_oob_headers_come_back_and_every_cut_is_truncated(header):
    data = encode_oob_header(header)
    assert len(data) <= OOB_HEADER_BYTES_MAX
    assert parse_oob_header(data) == (header, len(data))
    for cut in range(len(data)):
        with pytest.raises(Truncated):
            parse_oob_header(data[:cut])


def test_xa_records_as_in_the_worked_example():
    prepare = bytes.fromhex("01 01 00 00 00 03 02 74 78 36 62 71 a0 08 5a b0 16 08 52 7d 1b")
    complete = bytes.fromhex("00 01 00 00 00 03 02 74 78 36 62 71")
    xid = Xid(1, b"tx6", b"bq")
    record = XaPrepare(1, xid, OobReference(20, Position(1, 0x2D60B), Position(1, 0x36FAA)))
    assert parse_xa_prepare(prepare) == record
    assert encode_xa_prepare(record) == prepare
    assert parse_xa_complete(complete) == XaComplete(xid, rolled_back=False)
    assert encode_xa_complete(XaComplete(xid, rolled_back=False)) == complete


@given(xids, st.integers(0, 255), st.booleans(), st.builds(OobReference, u64, positions, positions))
def test_xa_records_come_back_and_every_cut_is_damage(xid, engines, rolled_back, oob):
    prepare, complete = XaPrepare(engines, xid, oob), XaComplete(xid, rolled_back)
    for record, encode, parse in (
        (prepare, encode_xa_prepare, parse_xa_prepare),
        (complete, encode_xa_complete, parse_xa_complete),
    ):
        data = encode(record)
        assert parse(data) == record
        for cut in range(len(data)):
            with pytest.raises(FormatError):
                parse(data[:cut])


@pytest.mark.parametrize("lengths", [(65, 1), (1, 65), (255, 255)])
def test_xid_lengths_above_64_are_damage(lengths):
    data = b"\1" + bytes(4) + bytes(lengths) + bytes(600)
    for parse, kind in ((parse_xa_prepare, "prepare"), (parse_xa_complete, "complete")):
        with pytest.raises(FormatError, match=f"Corrupt {kind} record found, invalid XID lengths"):
            parse(data)
