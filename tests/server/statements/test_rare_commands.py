"""Commands that few clients send: answered as a real server does."""

import pytest

from ibb.protocol.reply import is_eof, parse_err
from ibb.protocol.result_set import Column

from ..raw_client import RawClient

DEFAULT_OF_TEXT, NO_DEFAULT = b"\0", b"\xfb"


@pytest.fixture
async def client(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        yield client


async def refusal(client, command):
    await client.send(command)
    return parse_err(await client.packet()).code


async def test_columns_of_a_table_are_listed_with_their_defaults(client):
    assert await refusal(client, b"\x04schemata\0") == 1046
    await client.query("USE information_schema")
    assert await refusal(client, b"\x04nosuch\0") == 1109
    await client.send(b"\x04schemata\0S%\0")
    found = []
    while not is_eof(payload := await client.packet()):
        found.append((Column.parse(payload[:-1]).name, payload[-1:]))
    assert found == [
        ("SCHEMA_NAME", DEFAULT_OF_TEXT),
        ("SQL_PATH", NO_DEFAULT),
        ("SCHEMA_COMMENT", DEFAULT_OF_TEXT),
    ]


async def test_an_option_that_nobody_knows_is_refused(client):
    assert await refusal(client, b"\x1b\x07\0") == 1047
    await client.send(b"\x1b\x01\0")
    assert is_eof(await client.packet())


async def test_there_is_no_cursor_to_fetch_from(client):
    fetch = b"\x1c\x01\0\0\0\x01\0\0\0"
    assert await refusal(client, fetch) == 1243
    await client.send(b"\x16SELECT 1")
    for _ in range(3):
        await client.packet()
    assert await refusal(client, fetch) == 1421
