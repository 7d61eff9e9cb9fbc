"""How sessions end against their clients' will, and what the log says of it."""

import socket
import struct

import pytest

from ibb.protocol.command import Ping, Query, RegisterSlave
from ibb.protocol.native_password import scramble_response
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_ok, parse_err
from ibb.server.session import Session

from .raw_client import RawClient, until_sessions
from .waiting import until

HALF = frame(Ping().encode() * 10, 0)[:7]


@pytest.mark.parametrize(
    ("limit", "sent", "reason"),
    [
        ("wait_timeout", b"", "the client sent nothing for 0.1 s: wait_timeout"),
        ("net_read_timeout", HALF, "the client sent nothing for 0.1 s: net_read_timeout"),
        (None, frame(Ping().encode(), 7), "Got packets out of order"),
    ],
)
async def test_the_log_tells_why_a_session_ended(serve, store, capfd, limit, sent, reason):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        (session,) = server.sessions
        if limit is not None:
            session._variables.timeouts[limit] = 0.1  # of the next command
        client.writer.write(frame(Ping().encode(), 0) + sent)
        while await client.packet() is not None:
            pass
    await until_sessions(server, 0)
    said = capfd.readouterr().out
    assert "client_refused" not in said
    (line,) = [line for line in said.splitlines() if "session_ended" in line]
    assert reason in line


async def test_a_client_that_does_not_read_its_answers_is_told_apart(serve, store, capfd):
    server = await serve(store, net_write_timeout=0.2)
    async with await RawClient.logged_in(server) as client:
        client.writer.transport.pause_reading()
        client.writer.write(frame(Query(f"SELECT '{'x' * 900_000}'").encode(), 0) * 15)
        said = []
        await until(lambda: said.append(capfd.readouterr().out) or "session_ended" in "".join(said))
    assert "the client did not read for 0.2 s" in "".join(said)


async def test_broken_tls_behind_a_login_is_logged(serve, store, capfd):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        assert is_ok(await client.log_in())
        client.writer.write(b"\x17\x03\x03\x00\x20" + bytes(32))
        await client.close()
    await until_sessions(server, 0)
    said = capfd.readouterr().out
    assert "TLS failed" in said
    assert "session_ended" in said


async def test_who_resets_the_connection_in_the_login_is_refused_like_others(serve, store, capfd):
    server = await serve(store)
    client = await RawClient.connect(server.address)
    await client.read_greeting()
    link = client.writer.get_extra_info("socket")
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await client.close()
    await until_sessions(server, 0)
    said = capfd.readouterr().out
    assert "connection_lost" not in said
    assert "client_refused" in said
    assert server.aborted_connects == 1


@pytest.mark.parametrize("forgetting", ["reset", "change of user"])
async def test_what_a_replica_said_of_itself_does_not_outlive_its_session(serve, store, forgetting):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.send(RegisterSlave(5, "here", port=3306).encode())
        assert is_ok(await client.packet())
        proof = scramble_response("secret", client.greeting.scramble)
        change = b"\x11repl\0\x14" + proof + b"\0"
        await client.send(b"\x1f" if forgetting == "reset" else change)
        assert is_ok(await client.packet())
        await client.prepare("0-1-10")
        dump = await client.dump(server_id=5)
        await dump.preamble(rotate_checksum=True)
        assert server.has_dumps()
        assert server.replicas() == []


async def test_a_bug_ends_its_own_session_alone(serve, store, capfd, monkeypatch):
    async def broken(*_):
        raise ZeroDivisionError("a bug")

    server = await serve(store)
    async with await RawClient.logged_in(server) as other:
        async with await RawClient.logged_in(server) as client:
            with monkeypatch.context() as patch:
                patch.setattr(Session, "_answer", broken)
                await client.send(Ping().encode())
                assert str(parse_err(await client.packet())).endswith("internal error, see the log")
                assert await client.packet() is None
        assert await other.value("SELECT 1") == "1"
    said = capfd.readouterr().out
    assert "session_failed" in said
    assert "a bug" in said
    assert "in broken" in said  # where it came from
