"""TLS over bytes: records in any cut, and peers who change keys for ever."""

import os
import ssl
import threading

import pytest

from ibb.protocol.packet import frame
from ibb.server.config import Config
from ibb.server.connections.certificate import server_tls
from ibb.server.connections.tls_channel import (
    BYTES_PER_EMPTY_RECORD,
    EMPTY_RECORDS_MAX,
    TlsChannel,
    TlsFailed,
)

from ..raw_client import RawClient, until_sessions
from ..waiting import until
from .tls_1_3_writer import CIPHER, Tls13Writer

PING = frame(b"\x0e", 0)


@pytest.fixture
def server_context():
    return server_tls(Config(), "localhost").context


@pytest.fixture
def both(server_context, tmp_path):
    """Return both ends behind the handshake, and what encrypts for the client instead."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.keylog_filename = str(tmp_path / "keys")
    server = TlsChannel(server_context, server_side=True)
    client = TlsChannel(context, server_side=False)
    client.shake_hands(b"")
    while not server.shake_hands(client.outgoing()):
        client.shake_hands(server.outgoing())
    assert client.cipher() == (CIPHER, "TLSv1.3")
    return server, client, Tls13Writer((tmp_path / "keys").read_text())


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
def test_records_count_in_whatever_pieces_they_come(both, step):
    server, client, _ = both
    sent = [b"x", os.urandom(100_000), b"", b"end"]
    data = b"".join(client.send(piece) for piece in sent) + client.close()
    got = b"".join(server.receive(data[i : i + step]) for i in range(0, len(data), step))
    assert got == b"".join(sent)
    assert server.ended


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(9), b"\x16\x02\x00\x00\x01x"],
)
def test_what_is_no_record_is_refused_at_once(server_context, data):
    with pytest.raises(TlsFailed):
        TlsChannel(server_context, server_side=True).shake_hands(data)


def test_keys_change_a_few_times(both):
    server, client, writer = both
    for _ in range(EMPTY_RECORDS_MAX):
        assert server.receive(writer.key_update()) == b""
    assert server.receive(writer.send(b"still here")) == b"still here"
    assert client.receive(server.send(b"so am I")) == b"so am I"


@pytest.mark.parametrize("between", [b"", b"x"])
def test_who_changes_keys_for_ever_is_ended_and_answered_no_more(both, between):
    server, _, writer = both
    flood = b""
    for _ in range(2000):
        flood += writer.key_update() + (writer.send(between) if between else b"")
    with pytest.raises(TlsFailed, match="without content"):
        server.receive(flood)
    assert len(server.outgoing()) < 100 * EMPTY_RECORDS_MAX


@pytest.mark.parametrize("of_server", [False, True])
def test_traffic_either_way_allows_for_more(both, of_server):
    server, client, writer = both
    for _ in range(EMPTY_RECORDS_MAX):
        server.receive(writer.key_update())
    if of_server:
        client.receive(server.send(bytes(BYTES_PER_EMPTY_RECORD)))
    else:
        for _ in range(BYTES_PER_EMPTY_RECORD >> 14):
            server.receive(writer.send(bytes(1 << 14)))
    assert server.receive(writer.key_update()) == b""
    with pytest.raises(TlsFailed, match="without content"):
        server.receive(writer.key_update())


@pytest.mark.parametrize("logged_in", [False, True])
async def test_a_flood_of_them_ends_the_connection_and_no_other(serve, store, tmp_path, logged_in):
    server = await serve(store)
    async with (
        await RawClient.logged_in(server) as other,
        await RawClient.connect(server.address) as client,
    ):
        await client.read_greeting()
        await client.start_tls(key_log=tmp_path / "keys")
        if logged_in:
            assert (await client.log_in())[:1] == b"\0"
        writer = Tls13Writer((tmp_path / "keys").read_text(), records=int(logged_in))
        client.writer.write(b"".join(writer.key_update() for _ in range(5000)))
        assert await client.packet() is None
        await client.close()
        await until_sessions(server, 1)
        assert await other.value("SELECT 1") == "1"


async def test_a_session_goes_on_with_new_keys(serve, store, tmp_path):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls(key_log=tmp_path / "keys")
        await client.log_in()
        writer = Tls13Writer((tmp_path / "keys").read_text(), records=1)
        client.writer.write(writer.key_update() + writer.send(PING))
        assert (await client.packet())[:1] == b"\0"


def test_no_piece_of_what_is_due_is_empty(both):
    """Of which a transport may not get rid."""
    server, client, _ = both
    assert server.outgoing_pieces() == []
    server.seal(b"x" * 100_000)
    pieces = server.outgoing_pieces()
    assert len(pieces) == 2
    assert all(pieces)
    assert len(client.receive(b"".join(pieces))) == 100_000


async def test_who_waits_for_its_turn_is_next(both):
    server, _, _ = both
    lock, order = server._mutex, []

    def wait():
        with lock:
            order.append("who waited")

    with lock:
        thread = threading.Thread(target=wait)
        thread.start()
        await until(lock._gate.locked)
    with lock:
        order.append("who had it")
    thread.join()
    assert order == ["who waited", "who had it"]


def test_the_end_goes_behind_what_was_encrypted_before(both):
    server, client, _ = both
    server.seal(b"before")
    assert client.receive(server.close()) == b"before"
    assert client.ended


def test_keys_change_behind_what_was_encrypted_before(both):
    server, client, writer = both
    server.seal(b"before")
    server.receive(writer.key_update())
    assert client.receive(server.outgoing() + server.send(b", behind")) == b"before, behind"


def test_several_threads_may_encrypt_while_others_receive(both):
    """Each one's bytes come in its order, whoever takes what is due."""
    server, client, _ = both
    marks = [bytes([which]) for which in b"abcd"]
    received, due, done = [], [], threading.Event()

    def seal(mark):
        for number in range(200):
            server.seal(mark + number.to_bytes(2) + mark * (number * 37 % 3000))

    def receive():
        while not done.is_set():
            received.append(server.receive(client.send(b"still here")))
            due.append(server.outgoing())  # perhaps much that others have encrypted

    threads = [threading.Thread(target=seal, args=(mark,)) for mark in marks]
    receiver = threading.Thread(target=receive)
    for thread in (receiver, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    receiver.join()
    plain = client.receive(b"".join(due) + server.outgoing())
    assert set(received) == {b"still here"}
    found = dict.fromkeys(marks, 0)
    while plain:
        mark, number = plain[:1], int.from_bytes(plain[1:3])
        size = 3 + number * 37 % 3000
        assert number == found[mark]
        assert plain[3:size] == mark * (size - 3)
        found[mark] += 1
        plain = plain[size:]
    assert set(found.values()) == {200}
