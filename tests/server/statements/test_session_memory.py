"""What sessions may keep: the limits, who reaches them, and that all of it is given back."""

import pytest

from ibb.protocol.command import Query
from ibb.protocol.errors import SqlError
from ibb.protocol.reply import is_eof, is_err, is_ok, parse_err
from ibb.protocol.statement_command import StmtPrepare
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.statements import session_memory
from ibb.server.statements.session_memory import (
    SESSION_BYTES_MAX,
    SESSION_BYTES_OWN,
    SHARED_BYTES_MAX,
    SessionMemory,
    SharedMemory,
)

from ..raw_client import RawClient, until_sessions

PIECE = 512 << 10
MANY = 400  # pieces; more than any session may keep


@pytest.fixture
def accounts():
    return AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])


def code_of(call, *arguments):
    with pytest.raises(SqlError) as refused:
        call(*arguments)
    return refused.value.code


def test_a_session_keeps_no_more_than_it_may():
    memory = SessionMemory(SharedMemory())
    memory.change(SESSION_BYTES_MAX)
    assert code_of(memory.change, 1) == 1290
    memory.change(-1)
    memory.change(1)


def test_all_together_keep_no_more_than_they_may_but_each_has_its_own():
    shared = SharedMemory()
    most = SHARED_BYTES_MAX // (SESSION_BYTES_MAX - SESSION_BYTES_OWN)
    greedy = [SessionMemory(shared) for _ in range(most)]
    for memory in greedy:
        memory.change(SESSION_BYTES_MAX)
    late = SessionMemory(shared)
    assert code_of(late.change, SESSION_BYTES_MAX) == 1041
    late.change(SESSION_BYTES_OWN)
    greedy[0].release()
    late.change(SESSION_BYTES_MAX - SESSION_BYTES_OWN)
    for memory in (late, *greedy):
        memory.release()
    assert shared.bytes_kept == 0


def test_what_a_thread_notes_behind_the_end_of_its_session_is_not_counted():
    shared = SharedMemory()
    memory = SessionMemory(shared)
    memory.add_statement(SESSION_BYTES_MAX, 1)
    memory.release()
    memory.change(SESSION_BYTES_MAX)
    memory.drop_statement(SESSION_BYTES_MAX)
    assert (shared.bytes_kept, shared.statements) == (0, 0)


def test_prepared_statements_of_all_sessions_are_counted():
    shared = SharedMemory()
    one, other = SessionMemory(shared), SessionMemory(shared)
    one.add_statement(1, 2)
    other.add_statement(1, 2)
    assert code_of(other.add_statement, 1, 2) == 1461
    one.drop_statement(1)
    other.add_statement(1, 2)
    assert shared.statements == 2


async def answer(client, payload):
    """Return the error's code, or 0, having read to the end of what answers a statement."""
    await client.send(payload)
    first = await client.packet()
    if is_err(first):
        return parse_err(first).code
    if payload[0] == 0x16:  # COM_STMT_PREPARE
        columns, parameters = (int.from_bytes(first[at : at + 2], "little") for at in (5, 7))
        for count in (columns, parameters):
            for _ in range(count + (count > 0)):
                await client.packet()
    elif not is_ok(first):
        for _ in range(2):
            while not is_eof(await client.packet()):
                pass
    return 0


FILLING = {
    "texts": lambda number: StmtPrepare(f"DO '{'a' * PIECE}{number}'").encode(),
    "expressions": lambda number: StmtPrepare(f"DO {number}" + ",1" * 1990).encode(),
    "names": lambda number: Query(f"PREPARE s{number} FROM \"DO '{'a' * PIECE}'\"").encode(),
    "variables": lambda number: Query(f"SET @v{number} = '{'a' * PIECE}'").encode(),
    "wide": lambda number: Query(f"SET @v{number} = '{'a' * 100_000}\U0001f600'").encode(),
    "variable names": lambda number: Query(f"SET @`{'a' * PIECE}{number}` = 1").encode(),
    "savepoints": lambda number: Query(f"SAVEPOINT {'a' * PIECE}{number}").encode(),
}


@pytest.mark.parametrize("what", FILLING)
async def test_nothing_that_a_session_keeps_is_without_bound(serve, store, what):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        assert await answer(client, Query("BEGIN").encode()) == 0
        codes = []
        while not codes or codes[-1] == 0:
            codes.append(await answer(client, FILLING[what](len(codes))))
            assert len(codes) < MANY
        assert codes[-1] == 1290
        assert server.memory.bytes_kept > SESSION_BYTES_MAX // 2
        assert await client.value("SELECT 1") == "1"
        assert await answer(client, b"\x1f") == 0  # COM_RESET_CONNECTION
        assert (server.memory.bytes_kept, server.memory.statements) == (0, 0)
        assert await answer(client, FILLING[what](0)) == 0
    await until_sessions(server, 0)
    assert (server.memory.bytes_kept, server.memory.statements) == (0, 0)


KEPT_AND_GIVEN_BACK = (
    f"SET @a = '{'a' * PIECE}'",
    "SET @a = NULL",
    "PREPARE s FROM 'SELECT ?'",
    "PREPARE S FROM 'SELECT 1'",
    "DEALLOCATE PREPARE s",
    "BEGIN",
    "SAVEPOINT one",
    "SAVEPOINT ONE",
    "SAVEPOINT two",
    "ROLLBACK TO one",
    "SAVEPOINT two",
    "RELEASE SAVEPOINT one",
    "SAVEPOINT one",
    "COMMIT",
    "SET sql_mode = 'STRICT_ALL_TABLES'",
    "SET sql_mode = DEFAULT",
)


async def test_what_is_replaced_or_closed_is_given_back(serve, store, monkeypatch):
    monkeypatch.setattr(session_memory, "SESSION_BYTES_OWN", 0)
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        kept = []
        for number in range(1, 4):
            for sql in KEPT_AND_GIVEN_BACK:
                assert await answer(client, Query(sql).encode()) == 0
            assert await answer(client, StmtPrepare("SELECT ?, ?").encode()) == 0
            assert server.memory.statements == 1
            await client.send(b"\x19" + number.to_bytes(4, "little"))  # COM_STMT_CLOSE
            assert await client.value("SELECT 1") == "1"
            assert server.memory.statements == 0
            kept.append(server.memory.bytes_kept)
        assert kept[0] == kept[1] == kept[2]


async def test_long_parameters_count_and_one_that_is_too_long_is_an_error(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        assert await answer(client, StmtPrepare("SELECT LENGTH(?)").encode()) == 0
        head = b"\x18" + (1).to_bytes(4, "little") + b"\0\0"
        for _ in range(3):
            await client.send(head + b"a" * PIECE)
        execute = b"\x17" + (1).to_bytes(4, "little") + b"\0\1\0\0\0" + b"\0\1\xfd\0"
        assert await answer(client, execute) == 1041
        assert server.memory.bytes_kept == 0
        await client.send(head + b"a" * PIECE)
        assert await answer(client, execute) == 0


async def test_max_prepared_stmt_count_is_of_all_sessions(serve, store):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as one,
        await RawClient.logged_in(server) as other,
    ):
        await one.query("SET GLOBAL max_prepared_stmt_count = 2")
        assert await answer(one, StmtPrepare("DO 1").encode()) == 0
        assert await answer(other, Query("PREPARE s FROM 'DO 1'").encode()) == 0
        assert await answer(one, StmtPrepare("DO 1").encode()) == 1461
        assert await answer(other, Query("PREPARE t FROM 'DO 1'").encode()) == 1461
        assert await answer(other, Query("PREPARE s FROM 'DO 2'").encode()) == 0
        await other.query("DEALLOCATE PREPARE s")
        assert await answer(one, StmtPrepare("DO 1").encode()) == 0


async def test_an_answer_that_is_too_long_is_an_error(serve, store):
    async with await RawClient.logged_in(await serve(store)) as client:
        await client.query(f"SET @a = '{'a' * (900 << 10)}'")
        assert await answer(client, Query("SELECT @a" + ",@a" * 100).encode()) == 1153
        assert await answer(client, Query("SELECT @a, @a").encode()) == 0
