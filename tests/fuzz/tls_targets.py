"""What a client does with its end of TLS once it has one: sends, changes keys, breaks records."""

import atexit
import ssl
import tempfile
from enum import IntEnum
from functools import cache
from pathlib import Path

from ibb.server.config import Config
from ibb.server.connections.certificate import server_tls
from ibb.server.connections.tls_channel import EMPTY_RECORDS_MAX, TlsChannel, TlsFailed

from ..server.connections.tls_1_3_writer import Tls13Writer

ANSWER_BYTES_MAX = 100  # to a change of keys, or an alert
ACTS_MAX = 64
STEP_BYTES_MIN = 7


class Act(IntEnum):
    """What a client may do; the last four are for clients that mean no good."""

    SEND = 0
    SEND_LONG = 1
    CHANGE_KEYS = 2
    ASK = 3
    EMPTY = 4
    ALERT = 5
    BREAK = 6
    NO_RECORD = 7


@cache
def _contexts():
    """Return the server's context, the client's, and the file that gets the client's keys."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    key_log = Path(folder.name, "keys")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    client.keylog_filename = str(key_log)
    return server_tls(Config(), "localhost").context, client, key_log


def fuzz_tls(data):
    """
    One client behind its handshake.

    The first byte says in how large pieces its records arrive; then each byte is something that it
    does, with a size in the high bits. The server must get what was sent or end the connection,
    and must not be made to answer without limit.
    """
    if not data:
        return
    server, client, writer = _both()
    step, sent, got, answered, honest = STEP_BYTES_MIN + data[0] * 8, b"", b"", 0, True
    try:
        for place, said in enumerate(data[1 : 1 + ACTS_MAX], 2):
            act, size = Act(said % 8), said // 8
            honest = honest and act < Act.ALERT
            if act is Act.ASK:
                assert client.receive(server.send(bytes(size))) == bytes(size)
                continue
            plain = _plain(act, size, data[place:])
            sent += plain
            record = _record(writer, act, size, plain, data[place:])
            for start in range(0, len(record), step):
                got += server.receive(record[start : start + step])
                due = server.outgoing()
                answered += len(due)
                if honest:
                    client.receive(due)
    except TlsFailed:
        answered += len(server.outgoing())
    else:
        assert got == sent or not honest
    assert sent.startswith(got)
    assert answered <= (EMPTY_RECORDS_MAX + 1) * ANSWER_BYTES_MAX


def _plain(act, size, rest):
    """Return what the server shall get by an act."""
    match act:
        case Act.SEND:
            return rest[: size + 1]
        case Act.SEND_LONG:
            return b"x" * (size + 1) * 100
    return b""


def _record(writer, act, size, plain, rest):
    """Return what goes over the wire."""
    match act:
        case Act.SEND | Act.SEND_LONG | Act.EMPTY:
            return writer.send(plain)
        case Act.CHANGE_KEYS:
            return b"".join(writer.key_update() for _ in range(size + 1))
        case Act.ALERT:
            return writer.alert(rest[:2])
        case Act.BREAK:
            record = bytearray(writer.send(b"broken"))
            record[size % len(record)] ^= 1
            return bytes(record)
    return rest[: size + 1]


def _both():
    """Return both ends behind the handshake, and what encrypts for the client from there on."""
    server_context, client_context, key_log = _contexts()
    key_log.write_bytes(b"")
    server = TlsChannel(server_context, server_side=True)
    client = TlsChannel(client_context, server_side=False)
    client.shake_hands(b"")
    while not server.shake_hands(client.outgoing()):
        client.shake_hands(server.outgoing())
    return server, client, Tls13Writer(key_log.read_text())
