"""What clients with broken packets are told, byte by byte, by a real server and by ours."""

import contextlib
import struct
from dataclasses import replace

import pytest

from ibb.protocol.capabilities import CLIENT_CAPABILITIES
from ibb.protocol.handshake import HandshakeResponse
from ibb.protocol.native_password import scramble_response
from ibb.protocol.packet import frame
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.store import Store

from ..server.conftest import SMALL
from ..server.raw_client import RawClient

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("logins")]

PASSWORD = "packet-pw"
PACKET_BYTES_MAX = 16 << 10
PROTOCOL_41 = 0x8A200  # and what comes with it, but no TLS
TLS = 0x800
PING, QUIT = b"\x0e", b"\x01"


@pytest.fixture(scope="module")
def primary(rig, mariadb_10):
    options = (f"--max-allowed-packet={PACKET_BYTES_MAX}", "--skip-name-resolve=0")
    primary = rig.primary(mariadb_10, *options, "--max-connect-errors=1000000")
    primary.run(
        "SET sql_log_bin = 0",
        "DROP USER IF EXISTS ''@localhost",
        f"CREATE USER u@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT ALL ON *.* TO u@'%'",
    )
    yield primary
    primary.stop()


@pytest.fixture
async def addresses(primary, tmp_path):
    """Return where the real server and ours are, with the same account."""
    book = AccountBook([make_account("u", "%", PASSWORD, ["ALL PRIVILEGES"])])
    config = Config(
        listen="127.0.0.1:0",
        server_id=9,
        skip_ssl=True,
        max_allowed_packet=PACKET_BYTES_MAX,
    )
    with Store.open(tmp_path / "store", replace(SMALL, server_id=9)) as store:
        server = Server(store, config=config, accounts=book)
        await server.start()
        yield ("127.0.0.1", primary.port), server.address
        await server.stop()


def head(capabilities=PROTOCOL_41):
    return struct.pack("<IIB23x", capabilities, 1 << 24, 8)


def response(client, user="u", **fields):
    proof = scramble_response(PASSWORD, client.greeting.scramble)
    said = HandshakeResponse(
        CLIENT_CAPABILITIES, 1 << 24, 45, user, proof, auth_plugin="mysql_native_password", **fields
    )
    return said.encode(client.greeting.capabilities)


HANDSHAKES = {
    "empty": b"",
    "cut in the head": head()[:20],
    "user without end": head() + b"no end",
    "TLS not offered": head(PROTOCOL_41 | TLS),
}
RESPONSES = {
    "attributes cut": {"attributes": {"a": "b"}},
    "out of order": {},
    "long name": {"user": "u" * 200},
    "long name in letters of two bytes": {"user": "\xe4" * 150},
    "no name": {"user": ""},
}


async def answers(client):
    """Return the packets that come until the server closes, or resets what it did not read."""
    told = []
    with contextlib.suppress(ConnectionResetError):
        while (packet := await client.packet()) is not None:
            told.append((client.seq, packet))
    return told


@pytest.mark.parametrize("broken", [*HANDSHAKES, *RESPONSES])
async def test_broken_handshakes_get_the_same_error_and_the_end(addresses, broken):
    told = []
    for address in addresses:
        async with await RawClient.connect(address) as client:
            await client.read_greeting()
            payload = HANDSHAKES.get(broken)
            if payload is None:
                payload = response(client, **RESPONSES[broken])
            if broken == "attributes cut":
                payload = payload[:-1]
            await client.send(payload, 7 if broken == "out of order" else 1)
            told.append(await answers(client))
    assert told[0] == told[1]
    assert len(told[1]) == 1


@pytest.mark.parametrize(
    "commands",
    [
        frame(b"\x07", 0),
        frame(b"\x15" + bytes(9), 0),
        frame(b"\x17\0", 0),
        frame(b"\x18\0", 0),
        frame(b"\x19\0", 0),
        frame(b"\xef\0", 0),
        frame(b"\xef" + bytes(9), 0),
        frame(b"\x03SELECT 1\0", 0),
        frame(b"\x03\0", 0),
        frame(b"\x16SELECT 1\0", 0),
        frame(PING, 5),
        frame(b"\x03" + b"x" * PACKET_BYTES_MAX, 0),
    ],
    ids=[
        "refresh without options",
        "registration cut short",
        "execution cut short",
        "long data cut short",
        "close cut short",
        "acknowledgement cut short",
        "acknowledgement outside a dump",
        "NUL behind a query",
        "NUL for a query",
        "NUL behind a query to prepare",
        "out of order",
        "too large",
    ],
)
async def test_broken_commands_get_the_same_answer_and_the_session_goes_on_or_not(
    addresses, commands
):
    told = []
    for address in addresses:
        async with await RawClient.connect(address) as client:
            await client.log_in("u", PASSWORD)
            client.writer.write(commands + frame(PING, 0) + frame(QUIT, 0))
            told.append(await answers(client))
    assert told[0] == told[1]
