"""Commands read as the clients send them, with their oddities, and write back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.command import (
    BinlogDump,
    BinlogDumpGtid,
    DumpFlag,
    FieldList,
    InitDb,
    Ping,
    ProcessKill,
    Query,
    Quit,
    Refresh,
    RegisterSlave,
    ResetConnection,
    SemiSyncAck,
    SetOption,
    Statistics,
    Unknown,
    parse_command,
)
from ibb.protocol.errors import FormatError, Truncated
from ibb.protocol.statement_command import (
    StmtClose,
    StmtExecute,
    StmtPrepare,
    StmtReset,
    StmtSendLongData,
)

texts = st.text(st.characters(codec="utf-8"), max_size=40)
file_names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=40)
reports = st.text("abc.é", max_size=60)
u16 = st.integers(0, 2**16 - 1)
u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
flags = st.integers(0, 2**16 - 1).map(DumpFlag)

COMMANDS = st.one_of(
    st.sampled_from([Quit(), Ping(), Statistics(), ResetConnection()]),
    st.builds(Query, texts),
    st.builds(InitDb, texts),
    st.builds(SetOption, u16),
    st.builds(RegisterSlave, u32, reports, reports, reports, u16, u32, u32),
    st.builds(BinlogDump, u32, flags, u32, file_names),
    st.builds(SemiSyncAck, u64, file_names),
)


@given(COMMANDS)
def test_commands_round_trip(asked):
    assert parse_command(asked.encode()) == asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("0e", Ping()),
        ("01", Quit()),
        ("09", Statistics()),
        ("1f", ResetConnection()),
        ("07 82", Refresh(0x82)),
        ("02 6d79737171", InitDb("mysqq")),
        ("1b 0100", SetOption(1)),
        ("15 66000000 00 00 00 4e81 00000000 00000000", RegisterSlave(102, port=33102)),
        ("12 04000000 0200 66000000", BinlogDump(4, DumpFlag.SEND_ANNOTATE_ROWS, 102, "")),
        ("12 00000000 0300 92100000 000000", BinlogDump(0, DumpFlag(3), 4242, "")),
        ("12 04000000 0000 09030000 61 00", BinlogDump(4, DumpFlag(0), 777, "a")),
        ("ef 2703000000000000 62", SemiSyncAck(807, "b")),
    ],
)
def test_commands_as_clients_send_them(text, asked):
    assert parse_command(bytes.fromhex(text)) == asked


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind):
    assert parse_command(kind(b"\x03SELECT 1")) == Query("SELECT 1")


def test_a_query_keeps_its_bytes_whatever_they_are():
    query = parse_command(b"\x03caf\xe9")
    assert query.encode() == b"\x03caf\xe9"


def test_statements_are_read_in_the_clients_character_set():
    assert parse_command(b"\x03caf\xe9", "latin1") == Query("café")
    assert parse_command(b"\x03SELECT 1\0") == Query("SELECT 1")
    assert parse_command(b"\x03SELECT 1\0\0") == Query("SELECT 1\0")
    assert parse_command(b"\x16SELECT 1\0") == StmtPrepare("SELECT 1")
    assert parse_command(b"\x16caf\xe9", "latin1") == StmtPrepare("café")


def test_commands_on_prepared_statements_are_read():
    assert parse_command(b"\x16SELECT ?") == StmtPrepare("SELECT ?")
    assert parse_command(b"\x17\x05\0\0\0\x01\x01\0\0\0rest") == StmtExecute(5, 1, b"rest")
    assert parse_command(b"\x18\x05\0\0\0\x02\0data") == StmtSendLongData(5, 2, b"data")
    assert parse_command(b"\x19\x05\0\0\0") == StmtClose(5)
    assert parse_command(b"\x1a\x05\0\0\0") == StmtReset(5)


def test_small_commands_are_read():
    assert parse_command(b"") == Unknown(0)
    assert parse_command(b"\x04t\0%") == FieldList("t", "%")
    assert parse_command(b"\x0c\x07\0\0\0") == ProcessKill(7)


@pytest.mark.parametrize(
    "text",
    [
        "15 66000000 00 00 00 4e81 00000000 000000",
        "15 66000000 ff 61",
        "12 04000000 0200 660000",
        "1b 01",
        "ef 27030000000000",
        "1e 0000 01000000 ffffffff 61",
        "1e 0400 01000000 00000000 0400000000000000",
        "1e 0400 01000000 00000000 0400000000000000 ff000000 00",
    ],
)
def test_a_cut_command_is_truncated(text):
    with pytest.raises(Truncated):
        parse_command(bytes.fromhex(text))


def dump_gtid(data, flag_bits=4, name=b""):
    return parse_command(
        b"\x1e"
        + flag_bits.to_bytes(2, "little")
        + (777).to_bytes(4, "little")
        + len(name).to_bytes(4, "little")
        + name
        + (1 << 40).to_bytes(8, "little")
        + data
    )


def block(data):
    return len(data).to_bytes(4, "little") + data


def test_dump_gtid_reads_its_fields():
    asked = dump_gtid(block(bytes(8)), name=b"bin.000001\0")
    assert asked == BinlogDumpGtid(1 << 40, DumpFlag.THROUGH_GTID, 777, "bin.000001", bytes(8))


def test_dump_gtid_without_gtids_is_a_plain_dump():
    for asked in (dump_gtid(b"", flag_bits=0), dump_gtid(block(b"")), dump_gtid(block(bytes(8)))):
        assert asked.mariadb_gtids is None
        assert not asked.has_mysql_gtids


def test_dump_gtid_reads_a_set_that_no_flag_announced():
    assert dump_gtid(block(b"0-1-2"), flag_bits=0).mariadb_gtids == "0-1-2"


def test_dump_gtid_takes_mariadb_gtids_in_text():
    asked = dump_gtid(block(b"0-1-2, 7-8-9"))
    assert asked.mariadb_gtids == "0-1-2, 7-8-9"
    assert not asked.has_mysql_gtids


def test_dump_gtid_with_mysql_gtids_is_told_apart():
    sid = bytes(range(16)) + (1).to_bytes(8, "little") + bytes(16)
    asked = dump_gtid(block((1).to_bytes(8, "little") + sid))
    assert asked.mariadb_gtids is None
    assert asked.has_mysql_gtids


def test_dump_gtid_with_49_sids_is_no_text():
    """Its first byte is the digit 1."""
    asked = dump_gtid(block((0x31).to_bytes(8, "little") + bytes(49 * 24)))
    assert asked.mariadb_gtids is None
    assert asked.has_mysql_gtids


@pytest.mark.parametrize("data", [b"0-1", b"x-1-2"])
def test_dump_gtid_with_a_short_block_is_damage(data):
    with pytest.raises(Truncated, match="MySQL GTID set"):
        _ = dump_gtid(block(data)).has_mysql_gtids


@given(st.binary(max_size=80))
def test_arbitrary_bytes_give_a_command_or_a_named_error(raw):
    try:
        asked = parse_command(raw)
    except FormatError as error:
        assert str(error)  # noqa: PT017
    else:
        assert isinstance(asked, Unknown) or raw
