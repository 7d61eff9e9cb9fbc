"""
Who was refused gets one error and the end, however it was refused and whatever it says besides.

Every way of being refused is tried with the commands sent in one go with the last packet of the
login, so that they lie ready when the error goes out, and with the commands sent behind the error.
"""

import struct

import pytest

from ibb.protocol.capabilities import CLIENT_CAPABILITIES, Capability
from ibb.protocol.command import BinlogDump, DumpFlag, Ping, Query, RegisterSlave
from ibb.protocol.handshake import AuthMoreData, AuthSwitchRequest, HandshakeResponse
from ibb.protocol.native_password import PLUGIN_NAME, scramble_response
from ibb.protocol.packet import frame
from ibb.protocol.reply import is_err, parse_err
from ibb.server.login.accounts import make_account

from ..raw_client import RawClient, until_sessions

STORED = b"insert"  # in every transaction of the store
RIGHT, WRONG = "secret", "wrong"
METHODS = {  # and the packets of a client that does not know the password
    "ed25519": [b"w" * 64],
    "parsec": [b"", b"w" * 96],
    "caching_sha2_password": [b"w" * 32, b"wrong\0"],
    "unix_socket": [],
}
NATIVE = "mysql_native_password"
ERROR_OF_REFUSAL = {
    "wrong password": 1045,
    "no password": 1045,
    "unknown user": 1045,
    "unknown method": 1045,
    "TLS missing": 1045,
    "certificate missing": 1045,
    "other host": 1045,
    "account full": 1226,
    "address blocked": 1129,
    "malformed": 1043,
    "out of order": 1156,
    "too large": 1153,
} | dict.fromkeys(METHODS, 1045)


def commands(client):
    """Return what a client with all rights would send, a proper login among it, framed."""
    proof = scramble_response(RIGHT, client.greeting.scramble)
    login = response("repl", proof).encode(client.greeting.capabilities)
    change = change_user(b"repl", proof)
    dump = BinlogDump(4, DumpFlag.NON_BLOCK, 77, "")
    asked = (Query("SHOW BINARY LOGS"), Ping(), RegisterSlave(77, "", "", "", 0, 0, 0), dump)
    payloads = [login, change, *(command.encode() for command in asked), b"\x16SELECT 1"]
    return b"".join(frame(payload, seq) for payload in payloads for seq in (0, client.seq + 1))


def change_user(user, proof):
    name = PLUGIN_NAME.encode()
    return b"\x11" + user + b"\0" + bytes([len(proof)]) + proof + b"\0\x2d\0" + name + b"\0"


def response(user, proof, plugin=PLUGIN_NAME):
    return HandshakeResponse(CLIENT_CAPABILITIES, 1 << 24, 45, user, proof, auth_plugin=plugin)


def last_packets(client, refusal):
    """Return the packets by which a client is refused, each but the last with an answer."""
    user = {
        "unknown user": "guess",
        "TLS missing": "tls",
        "certificate missing": "x509",
        "other host": "far",
        "account full": "few",
    }.get(refusal, "repl")
    password = WRONG if refusal in ("wrong password", "unknown user") else RIGHT
    proof = scramble_response(password, client.greeting.scramble)
    if refusal == "no password":
        proof = b""
    if refusal == "unknown method":
        return [login_packet(client, response(user, b"x", "dialog")), frame(bytes(20), 3)]
    first = login_packet(client, response(user, proof))
    if refusal in METHODS:
        answers = METHODS[refusal]
        first = login_packet(client, response(refusal, b"", "other"))
        return [first, *(frame(answer, seq) for seq, answer in zip((3, 5), answers, strict=False))]
    match refusal:
        case "malformed":
            return [frame(struct.pack("<IIB23x", 0x8A200, 1 << 24, 8) + b"no end", 1)]
        case "out of order":
            return [first[:3] + b"\x07" + first[4:]]
        case "too large":
            return [b"\xff\xff\x7f\x01" + first]
    return [first]


def login_packet(client, said):
    return frame(said.encode(client.greeting.capabilities), client.seq + 1)


@pytest.fixture
async def server(serve, store, accounts, tmp_path):
    for method in METHODS:
        accounts.add(make_account(method, "%", RIGHT, ["ALL PRIVILEGES"], methods=[method]))
    accounts.add(make_account("tls", "%", RIGHT, ["ALL PRIVILEGES"], require="SSL"))
    accounts.add(make_account("x509", "%", RIGHT, ["ALL PRIVILEGES"], require="X509"))
    accounts.add(make_account("far", "10.%", RIGHT, ["ALL PRIVILEGES"]))
    accounts.add(make_account("few", "%", RIGHT, ["REPLICATION SLAVE"], max_connections=1))
    for number in range(10_000):  # until users who do not exist are asked as "repl" is
        accounts.decoy_secret = number.to_bytes(16)
        if all(accounts.decoy(user)[0][0] == NATIVE for user in ("guess", "far")):
            break
    return await serve(store, max_connect_errors=1000)


@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("refusal", ERROR_OF_REFUSAL)
async def test_one_error_and_nothing_else(server, refusal, pipelined):
    first = await RawClient.logged_in(server, "few") if refusal == "account full" else None
    questions = server.questions
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        greeting_bytes = client.received
        if refusal == "address blocked":
            for _ in range(server.config.max_connect_errors):
                server.guard.failed("127.0.0.1", "guess")
        *early, last = last_packets(client, refusal)
        for packet in early:
            client.writer.write(packet)
            asked = await client.packet()
            assert AuthSwitchRequest.parse(asked) or AuthMoreData.parse(asked)
        client.writer.write(last + (commands(client) if pipelined else b""))
        answer = await client.packet()
        assert is_err(answer)
        assert parse_err(answer).code == ERROR_OF_REFUSAL[refusal]
        if not pipelined:
            client.writer.write(commands(client))
        assert await client.packet() is None
        assert client.received - greeting_bytes < 1000
        assert STORED not in answer
    await until_sessions(server, 0 if first is None else 1)
    assert server.questions == questions
    if first is not None:
        await first.close()


@pytest.mark.parametrize("pipelined", [True, False])
async def test_who_was_somebody_is_nobody_behind_a_failed_change_of_user(server, pipelined):
    async with await RawClient.logged_in(server) as client:
        questions, before = server.questions, client.received
        change = change_user(b"admin", bytes(20))
        client.writer.write(frame(change, 0) + (commands(client) if pipelined else b""))
        assert parse_err(await client.packet()).code == 1045
        if not pipelined:
            client.writer.write(commands(client))
        assert await client.packet() is None
        assert client.received - before < 1000
    await until_sessions(server, 0)
    assert server.questions == questions + 1


async def test_a_man_in_the_middle_who_hides_tls_gains_no_login(serve, store, accounts):
    """The client believes that there is no TLS, and says so; the server knows better."""
    accounts.add(make_account("tls", "%", RIGHT, require="SSL"))
    for required, user in ((True, "repl"), (False, "tls")):
        server = await serve(store, require_tls=required)
        async with await RawClient.connect(server.address) as client:
            await client.read_greeting()
            assert client.greeting.capabilities & Capability.SSL
            stripped = client.greeting.capabilities & ~Capability.SSL
            proof = scramble_response(RIGHT, client.greeting.scramble)
            said = response(user, proof).encode(stripped)
            client.writer.write(frame(said, 1) + commands(client))
            assert parse_err(await client.packet()).code == 1045
            assert await client.packet() is None
        assert server.questions == 0
