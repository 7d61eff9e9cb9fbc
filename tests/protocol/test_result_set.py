"""Result sets are a real server's bytes, read back whole, and bounded when they are not ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol import reply
from ibb.protocol.capabilities import Capability
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.fields import lenenc
from ibb.protocol.reply import Ok
from ibb.protocol.result_set import (
    COLUMNS_MAX,
    REPLY_BYTES_MAX,
    Column,
    ColumnType,
    ReplyReader,
    ResultSet,
    encode_row,
    parse_row,
)

PLAIN = Capability(0)
LAYOUTS = st.lists(
    st.sampled_from(
        [Capability.DEPRECATE_EOF, Capability.EXTENDED_METADATA, Capability.CACHE_METADATA]
    )
).map(lambda bits: sum(set(bits), start=PLAIN))
names = st.text(st.characters(codec="utf-8"), max_size=12)
columns = st.builds(
    Column,
    names,
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 255),
    names,
    names,
    names,
    names,
)


def read(payloads, capabilities=PLAIN):
    reader = ReplyReader(capabilities)
    *first, last = payloads
    for payload in first:
        assert reader.add(payload) is None
    return reader.add(last)


def test_show_variables_is_what_10_11_answers():
    """Capture A, steps 11 to 16."""

    def column(name, org_name, length):
        table = "SESSION_VARIABLES"
        return Column(
            name,
            ColumnType.VAR_STRING,
            length,
            0x1001,
            8,
            schema="information_schema",
            table=table,
            org_table=table,
            org_name=org_name,
        )

    answer = ResultSet(
        [column("Variable_name", "VARIABLE_NAME", 64), column("Value", "VARIABLE_VALUE", 4096)],
        [("server_id", 101)],
        status=0x22,
    )
    table = "12696e666f726d6174696f6e5f736368656d61" + "1153455353494f4e5f5641524941424c4553" * 2
    assert [payload.hex() for payload in answer.packets()] == [
        "02",
        "03646566" + table + "0d5661726961626c655f6e616d650d5641524941424c455f4e414d45"
        "0c080040000000fd0110000000",
        "03646566" + table + "0556616c75650e5641524941424c455f56414c55450c080000100000fd0110000000",
        "fe00002200",
        "097365727665725f696403313031",
        "fe00002200",
    ]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (
            Column.text("VERSION()", 30, collation=45),
            "0364656600000009 56455253494f4e2829 00 0c2d0078000000fd0100270000",
        ),
        (
            Column.longlong("@@GLOBAL.gtid_domain_id", 21, nullable=True),
            (
                "0364656600000017 4040474c4f42414c2e677469645f646f6d61696e5f6964 00"
                "0c3f001500000008a000000000"
            ),
        ),
        (
            Column.text("checksum", 5, collation=224, nullable=True),
            "0364656600000008 636865636b73756d 00 0ce00014000000fd0000270000",
        ),
    ],
)
def test_expressions_are_described_as_10_11_does(column, text):
    assert column.encode() == bytes.fromhex(text)


def test_numbers_and_text_carry_the_flags_of_the_reference():
    assert (Column.longlong("Position", 20).flags, Column.longlong("Position", 20).type) == (
        0xA1,
        8,
    )
    assert (Column.long("Port", 7).flags, Column.long("Port", 7).type) == (0xA1, 3)
    assert (Column.text("File", 512).flags, Column.text("File", 512).length) == (0x01, 512)
    assert Column.text("File", 512, collation=33).length == 1536


def test_extended_metadata_sits_before_the_fixed_part():
    column = Column("j", ColumnType.LONG_BLOB, 9, extended=b"\x01\x04json")
    assert b"\x06\x01\x04json\x0c" in column.encode(Capability.EXTENDED_METADATA)
    again = Column.parse(column.encode(Capability.EXTENDED_METADATA), Capability.EXTENDED_METADATA)
    assert again == column
    assert Column.parse(column.encode()).extended == b""


@given(columns, LAYOUTS)
def test_column_round_trips(column, capabilities):
    assert Column.parse(column.encode(capabilities), capabilities) == column


@given(
    st.lists(columns, min_size=1, max_size=4),
    st.data(),
    LAYOUTS,
    st.sampled_from([2, 0x22]),
)
def test_result_set_round_trips_under_every_layout(cells, data, capabilities, status):
    values = st.one_of(st.none(), st.binary(max_size=300))
    row = st.tuples(*(values for _ in cells))
    rows = data.draw(st.lists(row, max_size=4))
    answer = ResultSet(cells, rows, status)
    again = read(list(answer.packets(capabilities)), capabilities)
    assert again == answer


def test_values_are_sent_as_text():
    row = encode_row(["é", b"\xff", 2**63, -1, 1.5, None, ""])
    assert parse_row(row, 7) == (
        "é".encode(),
        b"\xff",
        b"9223372036854775808",
        b"-1",
        b"1.5",
        None,
        b"",
    )


def test_a_row_of_another_width_is_damage():
    for width in (1, 3):
        with pytest.raises(FormatError):
            parse_row(encode_row(["a", "b"]), width)
    with pytest.raises(AssertionError):
        list(ResultSet([Column.long("a", 1)], [(1, 2)]).packets())


def test_a_row_that_begins_with_a_long_length_is_no_eof():
    """fe and 8 bytes of length are possible in 9 bytes of payload and more."""
    long_form = b"\xfe" + (3).to_bytes(8, "little") + b"abc"
    answer = ResultSet([Column.text("a", 3)], [])
    *head, end = answer.packets()
    assert read([*head, long_form, end]).rows == [(b"abc",)]


def test_an_err_may_come_first_or_after_the_columns_or_rows():
    error = SqlError(1220, "HY000", "Could not find target log")
    answer = ResultSet([Column.text("a", 3)], [("x",)])
    for before in ([], answer.head(), [*answer.head(), encode_row(["x"])]):
        reader = ReplyReader()
        for payload in before:
            assert reader.add(payload) is None
        with pytest.raises(SqlError, match="Could not find target log"):
            reader.add(reply.err_of(error))


def test_an_ok_is_a_reply_of_its_own():
    assert read([reply.ok(affected_rows=3)]) == Ok(affected_rows=3)


def test_a_server_that_asks_for_a_file_gets_none():
    with pytest.raises(ProtocolError, match="file of ours"):
        read([b"\xfb/etc/passwd"])


@pytest.mark.parametrize(
    ("payloads", "match"),
    [
        ([lenenc(COLUMNS_MAX + 1)], "4097 columns"),
        ([b"\x01\x02"], "after the last field"),
        ([b""], "column count"),
        ([b"\x01", b"\x03abc"], "catalog"),
        ([b"\x01", Column.long("a", 1).encode() + b"\0"], "after the last field"),
        ([b"\x01", Column.long("a", 1).encode()[:-1]], "wanted"),
        ([b"\x01", Column.long("a", 1).encode().replace(b"\x0c?", b"\x0d?")], "part of 13 bytes"),
        ([b"\x01", Column.long("a", 1).encode(), b"\x01a"], "no EOF"),
    ],
)
def test_what_does_not_fit_its_place_is_damage(payloads, match):
    with pytest.raises(FormatError, match=match):
        read(payloads)


def test_cached_definitions_are_refused_where_there_is_no_cache():
    with pytest.raises(FormatError, match="without column definitions"):
        read([b"\x01\x00"], Capability.CACHE_METADATA)


def test_an_endless_reply_is_refused():
    reader = ReplyReader()
    for payload in ResultSet([Column.text("a", 3)], []).head():
        reader.add(payload)
    row = encode_row([bytes(REPLY_BYTES_MAX // 4)])
    for _ in range(3):
        reader.add(row)
    with pytest.raises(ProtocolError, match="more than 16777216 bytes"):
        reader.add(row)


@given(st.lists(st.binary(max_size=30), max_size=6), LAYOUTS)
def test_arbitrary_payloads_give_a_reply_or_a_named_error(payloads, capabilities):
    reader = ReplyReader(capabilities)
    try:
        for payload in payloads:
            reader.add(payload)
    except (FormatError, ProtocolError, SqlError) as error:
        assert str(error)  # noqa: PT017
