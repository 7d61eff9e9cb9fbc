"""OK, ERR and EOF are byte for byte what real servers send."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mysql_mimic.packets import make_ok
from mysql_mimic.types import Capabilities, ServerStatus

from ibb.protocol import reply
from ibb.protocol.errors import FormatError, SqlError, Truncated
from ibb.protocol.reply import MESSAGE_BYTES_MAX, Ok

u16 = st.integers(0, 2**16 - 1)
u64 = st.integers(0, 2**64 - 1)


def test_the_plain_ok_and_eof_of_every_capture():
    assert reply.ok() == bytes.fromhex("00 00 00 02 00 00 00")
    assert reply.eof() == bytes.fromhex("fe 00 00 02 00")
    assert reply.eof(status=0x22) == bytes.fromhex("fe 00 00 22 00")
    assert reply.ok(ends_rows=True) == bytes.fromhex("fe 00 00 02 00 00 00")


def test_info_of_an_ok_goes_behind_its_length():
    assert reply.ok(info=b"\x01AB") == bytes.fromhex("00 00 00 02 00 00 00 03 01 41 42")


@given(u64, u64, u16, u16, st.binary(max_size=300), st.booleans())
def test_ok_round_trips(rows, insert_id, status, warnings, info, ends_rows):
    payload = reply.ok(
        affected_rows=rows,
        last_insert_id=insert_id,
        status=status,
        warnings=warnings,
        info=info,
        ends_rows=ends_rows,
    )
    assert reply.parse_ok(payload) == Ok(rows, insert_id, status, warnings, info)
    assert reply.is_ok(payload) != ends_rows


@given(u16, u16)
def test_eof_round_trips(status, warnings):
    payload = reply.eof(status=status, warnings=warnings)
    assert reply.is_eof(payload)
    assert reply.parse_eof(payload) == Ok(status=status, warnings=warnings)


def test_a_row_that_begins_with_fe_is_no_eof():
    assert not reply.is_eof(b"\xfe" + bytes(8))
    assert not reply.is_eof(b"")


def test_err_has_the_layout_of_the_reference():
    error = SqlError(1193, "HY000", "Unknown system variable 'x'")
    payload = reply.err_of(error)
    assert payload == b"\xff\xa9\x04#HY000Unknown system variable 'x'"
    assert vars(reply.parse_err(payload)) == vars(error)
    assert reply.is_err(payload)


def test_err_before_the_greeting_has_no_sqlstate():
    payload = reply.err(1040, "", "Too many connections")
    assert payload == b"\xff\x10\x04Too many connections"
    error = reply.parse_err(payload)
    assert (error.code, error.sqlstate, error.message) == (1040, "HY000", "Too many connections")


@given(st.text(max_size=700))
@example("x" * 512)
@example("é" * 256)
def test_a_long_message_is_cut_between_characters(message):
    message = message.encode(errors="replace").decode()
    cut = reply.parse_err(reply.err(1105, "HY000", message)).message
    assert message.startswith(cut)
    assert len(cut.encode()) <= MESSAGE_BYTES_MAX
    assert cut == message or len(cut.encode()) > MESSAGE_BYTES_MAX - 4


@pytest.mark.parametrize(
    "payload", [b"\xff", b"\xff\x10", b"\x00\x00\x00\x02\x00\x00", b"\xfe\x00"]
)
def test_a_cut_reply_is_truncated(payload):
    parse = {0xFF: reply.parse_err, 0: reply.parse_ok, 0xFE: reply.parse_eof}[payload[0]]
    with pytest.raises(Truncated):
        parse(payload)


def test_an_err_without_a_number_is_damage():
    with pytest.raises(FormatError, match="error number 0"):
        reply.parse_err(b"\xff\x00\x00#HY000gone")


def test_an_err_with_an_odd_sqlstate_is_still_an_error():
    assert len(reply.parse_err(b"\xff\x10\x04#\xe9\xe9\xe9\xe9\xe9x").sqlstate) == 5
    assert reply.parse_err(b"\xff\x10\x04#HY").message == "#HY"


@given(u64, u64, u16, u16)
def test_mysql_mimic_packs_as_we_pin_it(rows, insert_id, status, warnings):
    """Another release of the library that packs otherwise must show here."""
    packed = make_ok(
        Capabilities.CLIENT_PROTOCOL_41,
        ServerStatus(status),
        affected_rows=rows,
        last_insert_id=insert_id,
        warnings=warnings,
    )
    assert reply.parse_ok(packed) == Ok(rows, insert_id, status, warnings)
