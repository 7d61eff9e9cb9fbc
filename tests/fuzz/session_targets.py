"""Whole sessions without sockets: clients of a server, and a primary that our relay talks to."""

import asyncio
import itertools
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import structlog

from ibb.protocol import native_password
from ibb.protocol.capabilities import CLIENT_CAPABILITIES, SERVER_CAPABILITIES
from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid
from ibb.protocol.handshake import HandshakeResponse
from ibb.protocol.packet import PacketReader, frame
from ibb.protocol.reply import is_err
from ibb.server.config import Config
from ibb.server.connections.connection import Connection
from ibb.server.connections.packet_link import PacketLink
from ibb.server.login import login
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.relay.upstream import Upstream, UpstreamAddress
from ibb.server.relay.upstream_login import log_in
from ibb.server.server import Server
from ibb.server.session import Session
from ibb.storage.options import StoreOptions
from ibb.storage.store import Store

from ..storage.events import transaction
from .in_memory import AtOnce, Heard, Said

PACKET_BYTES_MAX = 1 << 20
SCRAMBLE = b"A" * native_password.NONCE_BYTES
AUTH_SWITCH, MORE_DATA = 0xFE, 0x01
TLS_ALERT = b"\x15\x03"
STRANGER, LOGGED_IN, FRAMED = range(3)  # who a client is, by an input's first byte
NEXT_COMMAND = b"\xfe\xfe"  # between the commands of a FRAMED client
SESSIONS_PER_SERVER = 2000  # as many may change it before there is a new one
CONFIG = Config(listen="127.0.0.1:0", server_id=99, max_connect_errors=1 << 32)
OPTIONS = StoreOptions(max_binlog_size=1 << 20, redo_segment_size=4 << 20, server_id=7)


class Site:
    """A server over a small store, on a loop of its own; nobody uses its sockets."""

    def __init__(self):
        self._challenge = patch.object(login, "random_text", lambda size: b"A" * size)
        self._challenge.start()  # so that one answer fits always
        self._log = structlog.get_config()
        structlog.configure(processors=[_notice])
        self.loop = asyncio.new_event_loop()
        self._folder = tempfile.TemporaryDirectory(prefix="ibb-fuzz-")
        self._store = Store.open(Path(self._folder.name), OPTIONS)
        for seq in range(1, 11):
            with self._store.begin() as group:
                group.write(transaction(f"insert {seq}", 0))
                group.commit(Gtid(0, 1, seq), wait=False)
        self._store.sync()
        accounts = AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])
        self.server = Server(self._store, config=CONFIG, accounts=accounts)
        self.loop.run_until_complete(self.server.start())
        pools = self.server.pools
        pools.dumps = pools.logins = pools.statements = AtOnce()
        self.sessions = itertools.count(1)

    def close(self):
        """End the server and forget its data."""
        self.loop.run_until_complete(self.server.stop())
        self._store.close()
        self.loop.close()
        self._folder.cleanup()
        structlog.configure(**self._log)
        self._challenge.stop()


_sites = []
_bugs = []  # that sessions have caught and logged


def _notice(_logger, method, event):
    """Keep what a session logs of a bug of ours, and drop the rest."""
    if method in ("error", "exception", "critical"):
        _bugs.append(sys.exc_info()[1] or event)
    raise structlog.DropEvent


def _site():
    """Return the site in use, a new one now and then, and the number of the session there."""
    if not _sites:
        _sites.append(Site())
    site = _sites[0]
    number = next(site.sessions)
    if number <= SESSIONS_PER_SERVER:
        return site, number
    close_site()
    return _site()


def close_site():
    """End the server that is in use, if any."""
    while _sites:
        _sites.pop().close()


def logged_in():
    """Return the packet by which a client logs in."""
    proof = native_password.scramble_response("secret", SCRAMBLE)
    response = HandshakeResponse(CLIENT_CAPABILITIES, 1 << 24, 45, "repl", proof)
    return frame(response.encode(SERVER_CAPABILITIES), 1)


def fuzz_sessions(data):
    """
    One client from its connection to its end.

    The first byte says who it is, the second in how large pieces it speaks. Who did not log in
    gets no more than an error.
    """
    if len(data) < 2:
        return
    who, step, said = data[0] % 3, data[1] + 1, data[2:]
    if who == FRAMED:
        said = b"".join(frame(payload, 0) for payload in said.split(NEXT_COMMAND))
    if who != STRANGER:
        said = logged_in() + said
    site, number = _site()
    reader, heard = Said(said, step), Heard()
    session = Session(site.server, Connection(reader, heard, write_timeout=10), number)
    reader.dumping = lambda: session.dump_server_id is not None
    questions = site.server.questions
    site.loop.run_until_complete(session.run())
    _raise_bugs()
    if who == STRANGER:
        assert session.account is None
        assert site.server.questions == questions
        _check_only_a_login(bytes(heard.data))


def _raise_bugs():
    bugs = _bugs.copy()
    _bugs.clear()
    for bug in bugs:
        raise bug if isinstance(bug, Exception) else AssertionError(bug)


def _check_only_a_login(heard):
    """Assert that a stranger got a greeting, perhaps requests for proofs, and one error at most."""
    packets = PacketReader(PACKET_BYTES_MAX, None)
    greeting_bytes = int.from_bytes(heard[:3], "little") + 4
    packets.feed(heard[:greeting_bytes])
    assert packets.next_packet().payload[0] == 10
    behind = heard[greeting_bytes:]
    if behind.startswith(TLS_ALERT):
        return
    packets.feed(behind)
    while (packet := packets.next_packet()) is not None:
        assert packet.payload[0] in (AUTH_SWITCH, MORE_DATA) or is_err(packet.payload)
        if is_err(packet.payload):
            assert not packets.buffered


def fuzz_upstream(data):
    """What a primary says, into our login and our first statements."""
    if not data:
        return
    site, _ = _site()
    link = PacketLink(Said(data[1:], data[0] + 1), Heard())
    try:
        site.loop.run_until_complete(_follow(link))
    except (IbbError, ConnectionError):
        return


async def _follow(link):
    address = UpstreamAddress("localhost", 1, "repl", "secret")
    upstream = Upstream(link, await log_in(link, address))
    await upstream.query("SELECT 1")
    await upstream.value("SHOW VARIABLES LIKE 'SERVER_ID'", 1)
