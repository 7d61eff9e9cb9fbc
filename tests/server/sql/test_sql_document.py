"""Every statement that docs/sql.md shows does something here."""

import re
from pathlib import Path

import pytest

from ibb.protocol.errors import SqlError
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.sql.ast import Unsupported
from ibb.server.sql.parser import parse_statement

from ..raw_client import RawClient

DOCUMENT = Path(__file__).parent.parents[2] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)
STATEMENTS = [
    statement.strip()
    for block in BLOCK.findall(DOCUMENT.read_text())
    for statement in block.split(";\n")
    if statement.strip()
]
DELETING = re.compile("PURGE|RESET|SET GLOBAL gtid_binlog_state")  # these come last
# What is true of a server in general, and cannot be of this one.
REFUSED = {"KILL CONNECTION 99": 1094}


@pytest.fixture
def accounts():
    return AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])


def test_there_is_something_to_try():
    assert len(STATEMENTS) >= 50


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_grammar_knows_it(sql):
    assert not isinstance(parse_statement(sql), Unsupported)


async def test_all_of_it_runs_in_one_session(serve, store):
    store.switch_file()
    server = await serve(store)
    server.upstream = RelayControl(store, server, None, UpstreamTls())
    failed = {}
    async with await RawClient.logged_in(server) as client:
        for sql in sorted(STATEMENTS, key=lambda sql: bool(DELETING.match(sql))):
            try:
                await client.query(sql)
            except SqlError as error:
                failed[sql] = error.code
    await server.upstream.stop()
    assert failed == REFUSED
