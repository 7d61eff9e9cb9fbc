"""What clients send and get in character sets other than UTF-8 means what it meant to them."""

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.reply import parse_err
from ibb.protocol.result_set import ReplyReader

from ..raw_client import RawClient

LATIN1, UTF8MB3, UTF8MB4, BINARY = 8, 33, 45, 63


async def asked(client, statement):
    """Send bytes as a statement; return the OK or the result set; raises SqlError."""
    await client.send(b"\x03" + statement)
    replies = ReplyReader()
    while (reply := replies.add(await client.packet())) is None:
        pass
    return reply


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        yield client


async def test_latin1_comes_back_as_latin1(client):
    await client.query("SET NAMES latin1")
    result = await asked(
        client, b"SELECT '\xe4', CHAR_LENGTH('\xe4'), HEX('\xe4'), '\x80' AS '\xe4'"
    )
    assert list(result.rows) == [(b"\xe4", b"1", b"E4", b"\x80")]
    assert [column.collation for column in result.columns] == [LATIN1, BINARY, LATIN1, LATIN1]


async def test_names_of_columns_are_in_the_results_character_set(client):
    await client.query("SET NAMES utf8mb4")
    await client.query("SET character_set_results = latin1")
    await client.send("\x03SELECT 1 AS 'ä'".encode())
    await client.packet()
    assert b"\x01\xe4" in await client.packet()


async def test_a_text_is_converted_for_whom_it_is_sent_to(client):
    await client.query("SET NAMES utf8mb4")
    await asked(client, "SET @a = 'ä€😀'".encode())
    sent = {}
    for charset in ("utf8mb4", "utf8mb3", "latin1", "ascii", "binary"):
        await client.query(f"SET NAMES {charset}")
        sent[charset] = (await asked(client, b"SELECT @a")).rows[0][0]
    assert sent == {
        "utf8mb4": "ä€😀".encode(),
        "utf8mb3": "ä€?".encode(),
        "latin1": b"\xe4\x80?",
        "ascii": b"???",
        "binary": "ä€😀".encode(),
    }


@pytest.mark.parametrize("charset", ["utf8mb4", "utf8mb3", "latin1", "ascii", "binary"])
async def test_any_byte_comes_back_as_it_was_sent(client, charset):
    every = bytes(byte for byte in range(256) if byte not in b"'\\\0")
    await client.query(f"SET NAMES {charset}")
    assert list((await asked(client, b"SELECT '%b'" % every)).rows) == [(every,)]


async def test_after_names_binary_a_text_is_bytes(client):
    await client.query("SET NAMES binary")
    result = await asked(client, b"SELECT '\xe4\xff', CHAR_LENGTH('\xc3\xa4')")
    assert list(result.rows) == [(b"\xe4\xff", b"2")]
    assert result.columns[0].collation == BINARY


async def test_a_message_is_in_the_results_character_set(client):
    await client.query("SET NAMES latin1")
    with pytest.raises(SqlError):
        await asked(client, b"SELECT '\xe4' '")
    await client.send(b"\x03SHOW \xe4")
    assert b"\xe4" in await client.packet()
    await client.query("SET NAMES utf8mb4")
    await client.send(b"\x03SHOW \xe4")
    assert r"near '\xE4'" in parse_err(await client.packet()).message


async def test_an_introducer_says_what_bytes_mean(client):
    await client.query("SET NAMES utf8mb4")
    result = await asked(client, b"SELECT _latin1 x'E4', _utf8mb4'\xc3\xa4', _binary x'E4'")
    assert list(result.rows) == [("ä".encode(), "ä".encode(), b"\xe4")]
    for sql, code in (("SELECT _utf8mb4 x'E4'", 1300), ("SELECT _gbk'a'", 1235)):
        with pytest.raises(SqlError) as refused:
            await client.query(sql)
        assert refused.value.code == code


async def test_set_character_set_leaves_literals_in_that_of_databases(client):
    await client.query("SET CHARACTER SET latin1")
    result = await asked(client, b"SELECT HEX('\xe4'), '\xe4', @@character_set_connection")
    assert list(result.rows) == [(b"C3A4", b"\xe4", b"utf8mb4")]


async def test_what_is_not_offered_is_refused_and_changes_nothing(client):
    await client.query("SET NAMES utf8mb4")
    for sql, code in (("gbk", 1115), ("ucs2", 1231), ("utf8mb4 COLLATE latin1_bin", 1253)):
        with pytest.raises(SqlError) as refused:
            await client.query(f"SET NAMES {sql}")
        assert refused.value.code == code
    assert await client.value("SELECT 'ä'") == "ä"
    with pytest.raises(SqlError) as refused:
        await client.query("SET character_set_client = NULL")
    assert refused.value.code == 1231


async def test_a_binary_result_is_in_the_results_character_set(client):
    await client.query("SET NAMES latin1")
    await client.send(b"\x16SELECT '\xe4'")
    for _ in range(3):
        await client.packet()  # the statement, its column, EOF
    await client.send(b"\x17\x01\0\0\0\0\x01\0\0\0")
    for _ in range(3):
        await client.packet()
    assert (await client.packet()).endswith(b"\x01\xe4")


async def test_without_conversion_texts_of_the_server_are_in_its_own_character_set(client):
    await client.query("SET NAMES utf8mb4")
    await client.query("SET character_set_results = NULL")
    for sql, collation in (
        ("SELECT 'a'", UTF8MB4),
        ("SELECT USER()", UTF8MB3),
        ("SELECT @@version", UTF8MB3),
        ("SHOW VARIABLES LIKE 'version'", UTF8MB3),
        ("SELECT schema_name FROM information_schema.schemata", UTF8MB3),
    ):
        assert (await client.query(sql)).columns[0].collation == collation
