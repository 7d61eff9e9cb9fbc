"""Logins over real sockets by every method, with TLS and without, and ways around them."""

import asyncio
import struct
from pathlib import Path

import pytest

from ibb.protocol import caching_sha2_password as sha2
from ibb.protocol import ed25519_password as ed25519
from ibb.protocol import parsec_password as parsec
from ibb.protocol.authentication import Channel, proves_certificate
from ibb.protocol.handshake import AuthMoreData, AuthSwitchRequest, Greeting
from ibb.protocol.native_password import scramble_response, stage2
from ibb.protocol.reply import is_err, is_ok, parse_err, parse_ok
from ibb.server.config import ConfigError
from ibb.server.connections.certificate import self_signed
from ibb.server.connections.tls_channel import TlsFailed
from ibb.server.login.accounts import make_account

from ..raw_client import RawClient, until_sessions

CLIENTS = {
    "ed25519": ed25519.client_exchange,
    "parsec": parsec.client_exchange,
    "caching_sha2_password": sha2.client_exchange,
}


@pytest.fixture
def tls_files(tmp_path):
    """Return paths of a certificate and its key."""
    paths = [str(tmp_path / name) for name in ("cert.pem", "key.pem")]
    write(paths, self_signed("localhost"))
    return paths


def write(paths, contents):
    for path, data in zip(paths, contents, strict=True):
        Path(path).write_bytes(data)


async def prove(client, method, password, *, private=True):
    """Log in as `u` by *method* and return the answer."""
    switch = AuthSwitchRequest.parse(await client.log_in("u", "unused", plugin="other"))
    exchange = CLIENTS[method](password, switch.data, Channel(private=private, trusted=True))
    said = next(exchange)
    while True:
        await client.send(said, client.seq + 1)
        answer = await client.packet()
        more = AuthMoreData.parse(answer)
        if more is None:
            return answer
        if more.data == b"\x03":
            return await client.packet()
        said = exchange.send(more.data)


@pytest.mark.parametrize("method", CLIENTS)
async def test_every_method_lets_the_right_password_in_alone(serve, store, accounts, method):
    accounts.add(make_account("u", "%", "right", methods=[method]))
    server = await serve(store)
    for password, wanted in (("right", is_ok), ("wrong", is_err), ("right", is_ok)):
        async with await RawClient.connect(server.address) as client:
            await client.read_greeting()
            await client.start_tls()
            assert wanted(await prove(client, method, password)), password


@pytest.mark.parametrize("method", ["ed25519", "parsec"])
async def test_the_second_of_two_methods_is_tried_when_the_first_fails(
    serve, store, accounts, method
):
    accounts.add(make_account("u", "%", "right", methods=["mysql_native_password", method]))
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        switch = AuthSwitchRequest.parse(await client.log_in("u", "wrong"))
        assert switch.plugin in (ed25519.PLUGIN_NAME, parsec.PLUGIN_NAME)
        exchange = CLIENTS[method]("right", switch.data, Channel())
        await client.send(next(exchange), client.seq + 1)
        answer = await client.packet()
        if (more := AuthMoreData.parse(answer)) is not None:
            await client.send(exchange.send(more.data), client.seq + 1)
            answer = await client.packet()
        assert is_ok(answer)


async def test_sha2_without_tls_takes_the_password_encrypted_only(serve, store, accounts):
    from cryptography.hazmat.primitives.asymmetric import padding
    from cryptography.hazmat.primitives.hashes import SHA1
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    accounts.add(make_account("u", "%", "right", methods=["caching_sha2_password"]))
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:  # in clear: refused
        await client.log_in("u", "unused", plugin="other")
        await client.send(bytes(32), 3)
        assert await client.packet() == b"\x01\x04"
        await client.send(b"right\0", 5)
        assert is_err(await client.packet())
    async with await RawClient.connect(server.address) as client:
        switch = AuthSwitchRequest.parse(await client.log_in("u", "unused", plugin="other"))
        await client.send(bytes(32), 3)
        assert await client.packet() == b"\x01\x04"
        await client.send(b"\x02", 5)
        key = load_pem_public_key((await client.packet())[1:])
        masked = bytes(a ^ b for a, b in zip(b"right\0", switch.data, strict=False))
        await client.send(key.encrypt(masked, padding.OAEP(padding.MGF1(SHA1()), SHA1(), None)), 7)
        assert is_ok(await client.packet())


async def test_a_self_signed_certificate_is_proven_by_the_password(serve, store):
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        done = parse_ok(await client.log_in())
        proof = (done.info, stage2("secret"), client.greeting.scramble)
        assert proves_certificate(*proof, client.fingerprint())
        assert not proves_certificate(*proof, bytes(32))
        assert await client.value("SELECT 1") == "1"
    async with await RawClient.connect(server.address) as client:
        assert parse_ok(await client.log_in()).info == b""


async def test_without_tls_nobody_can_log_in_where_it_is_required(serve, store, tmp_path):
    server = await serve(store, require_tls=True, socket=str(tmp_path / "s"))
    async with await RawClient.connect(server.address) as client:
        error = parse_err(await client.log_in())
        assert (error.code, error.sqlstate) == (1045, "28000")
        await client.send(b"\x03SELECT 1")
        assert await client.packet() is None
    assert server.questions == 0
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        assert is_ok(await client.log_in())
    async with await RawClient.connect(str(tmp_path / "s")) as client:
        assert is_ok(await client.log_in())


async def test_an_account_may_require_tls_or_a_certificate(serve, store, accounts, tls_files):
    certificate, key = tls_files
    for require in ("SSL", "X509"):
        accounts.add(make_account(require, "%", "secret", require=require))
    server = await serve(store, ssl_ca=certificate)
    for user, tls, shown, wanted in (
        ("SSL", False, False, is_err),
        ("SSL", True, False, is_ok),
        ("X509", False, False, is_err),
        ("X509", True, False, is_err),
        ("X509", True, True, is_ok),
        ("repl", True, True, is_ok),
    ):
        async with await RawClient.connect(server.address) as client:
            await client.read_greeting()
            if tls:
                await client.start_tls((certificate, key) if shown else None)
            assert wanted(await client.log_in(user)), (user, tls, shown)


async def test_a_certificate_of_somebody_else_ends_the_handshake(serve, store, tls_files):
    server = await serve(store, ssl_ca=tls_files[0])
    stranger = self_signed("stranger")
    folder = tls_files[0].rpartition("/")[0]
    paths = [f"{folder}/stranger-cert.pem", f"{folder}/stranger-key.pem"]
    write(paths, stranger)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        with pytest.raises(TlsFailed, match="unknown ca"):
            await client.start_tls(paths)
            await client.log_in()
    await until_sessions(server, 0)


async def test_what_is_typed_before_the_upgrade_does_not_count_after_it(serve, store):
    server = await serve(store)
    request = struct.pack("<IIB19xI", 0x8A200 | 0x800, 1 << 24, 8, 0)
    typed = b"\x09\x00\x00\x00\x03SELECT 1"
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        client.writer.write(b"\x20\x00\x00\x01" + request + typed)
        with pytest.raises((TlsFailed, AssertionError), match=r"wrong version|has closed"):
            await client.start_tls(request=False)
            await client.log_in()
    await until_sessions(server, 0)
    assert server.questions == 0


async def test_the_request_and_the_hello_in_one_piece_and_byte_by_byte(serve, store):
    server = await serve(store)
    for step in (10_000, 1):
        async with await RawClient.connect(server.address) as client:
            await client.read_greeting()
            await client.start_tls(step=step)
            assert is_ok(await client.log_in())
            assert await client.value("SELECT 1") == "1"


async def test_a_response_before_the_upgrade_is_forgotten(serve, store):
    """Who takes part in both connections' beginnings gains nothing: one login, one request."""
    server = await serve(store)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        request = struct.pack("<IIB19xI", 0x8A200 | 0x800, 1 << 24, 8, 0)
        await client.send(request, 2)
        assert is_err(await client.packet())
        assert await client.packet() is None


async def test_garbage_in_place_of_the_handshake_gets_an_alert_and_the_end(serve, store):
    server = await serve(store)
    request = struct.pack("<IIB19xI", 0x8A200 | 0x800, 1 << 24, 8, 0)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        client.writer.write(b"\x20\x00\x00\x01" + request + b"\xff" * 2000)
        rest = await client.reader.read()
        assert len(rest) < 100
        assert b"denied" not in rest


async def test_half_a_handshake_ends_after_the_time_for_it(serve, store):
    server = await serve(store, connect_timeout=0.2)
    request = struct.pack("<IIB19xI", 0x8A200 | 0x800, 1 << 24, 8, 0)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        client.writer.write(b"\x20\x00\x00\x01" + request + b"\x16\x03\x01\x02\x00\x01\x00")
        async with asyncio.timeout(10):
            assert await client.reader.read() == b""
    await until_sessions(server, 0)


async def test_a_server_without_tls_offers_none(serve, store):
    from ibb.protocol.capabilities import Capability

    server = await serve(store, skip_ssl=True)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        assert not client.greeting.capabilities & Capability.SSL
        await client.send(struct.pack("<IIB19xI", 0x8A200 | 0x800, 1 << 24, 8, 0), 1)
        assert is_err(await client.packet())
        assert await client.packet() is None


async def test_the_operators_certificate_is_shown_and_renewed(serve, store, tls_files, accounts):
    certificate, key = tls_files
    server = await serve(store, ssl_cert=certificate, ssl_key=key)
    seen = []
    for _ in range(2):
        async with await RawClient.connect(server.address) as client:
            await client.read_greeting()
            await client.start_tls()
            info = parse_ok(await client.log_in()).info
            assert proves_certificate(
                info, stage2("secret"), client.greeting.scramble, client.fingerprint()
            )
            seen.append(client.fingerprint())
        write(tls_files, self_signed("localhost"))
        server.reload()
    assert seen[0] != seen[1]
    write(tls_files, (b"nonsense", b""))
    before = server.tls
    with pytest.raises(ConfigError, match="ssl_cert"):
        server.reload()
    assert server.tls is before


async def test_the_proof_is_that_of_the_certificate_which_the_client_was_shown(
    serve, store, tls_files
):
    certificate, key = tls_files
    server = await serve(store, ssl_cert=certificate, ssl_key=key)
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        await client.start_tls()
        proof = scramble_response("secret", client.greeting.scramble)
        for again in (False, True):
            write(tls_files, self_signed("localhost"))
            server.reload()
            if again:
                await client.send(change_user(b"repl", proof))
            done = parse_ok(await (client.packet() if again else client.log_in()))
            assert proves_certificate(
                done.info, stage2("secret"), client.greeting.scramble, client.fingerprint()
            )
        assert client.fingerprint() != server.tls.fingerprint


@pytest.mark.parametrize("certificate", ["ssl_cert", "ssl_state", "made up"])
async def test_who_vouches_for_clients_is_read_again(
    serve, store, accounts, tls_files, tmp_path, certificate
):
    accounts.add(make_account("u", "%", "right", require="X509"))
    settings = {"ssl_cert": tls_files[0], "ssl_key": tls_files[1]}
    if certificate != "ssl_cert":
        settings = {"ssl_state": str(tmp_path / "state") if certificate == "ssl_state" else ""}
    pairs = {name: self_signed(name) for name in ("old", "new")}
    clients = [[str(tmp_path / f"{name}.{kind}") for kind in ("cert", "key")] for name in pairs]
    for paths, pair in zip(clients, pairs.values(), strict=True):
        write(paths, pair)
    authority = tmp_path / "ca.pem"
    authority.write_bytes(pairs["old"][0])
    server = await serve(store, ssl_ca=str(authority), **settings)
    shown = server.tls.fingerprint
    assert [await shows_certificate(server, pair) for pair in clients] == [True, False]
    authority.write_bytes(pairs["new"][0])
    server.reload()
    assert server.tls.fingerprint == shown
    assert [await shows_certificate(server, pair) for pair in clients] == [False, True]
    authority.write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match="ssl_ca"):
        server.reload()
    assert await shows_certificate(server, clients[1])


async def shows_certificate(server, pair):
    """Tell whether `u` gets in by a certificate."""
    async with await RawClient.connect(server.address) as client:
        await client.read_greeting()
        try:
            await client.start_tls(pair)
            return is_ok(await client.log_in("u", "right"))
        except TlsFailed as error:
            return "unknown ca" not in str(error)


async def test_a_kept_certificate_is_the_same_at_the_next_start(serve, store, tmp_path):
    folder = tmp_path / "state"
    first = (await serve(store, ssl_state=str(folder))).tls.fingerprint
    assert (await serve(store, ssl_state=str(folder))).tls.fingerprint == first
    assert (await serve(store)).tls.fingerprint != first
    assert (folder / "ibb-server-key.pem").stat().st_mode & 0o777 == 0o600


def change_user(user, answer, plugin=b"mysql_native_password"):
    return (
        b"\x11" + user + b"\0" + bytes([len(answer)]) + answer + b"\0" + b"\x2d\0" + plugin + b"\0"
    )


async def test_a_session_may_become_another_users(serve, store, accounts):
    accounts.add(make_account("u", "%", "right", methods=["ed25519"]))
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query("SET @a = 1")
        proof = scramble_response("looking", client.greeting.scramble)
        await client.send(change_user(b"watcher", proof))
        assert is_ok(await client.packet())
        assert await client.value("SELECT USER()") == "watcher@localhost"
        assert await client.value("SELECT @a") is None
        await client.send(change_user(b"u", b"", b""))
        switch = AuthSwitchRequest.parse(await client.packet())
        await client.send(ed25519.sign("right", switch.data), client.seq + 1)
        assert is_ok(await client.packet())
        assert await client.value("SELECT USER()") == "u@localhost"


@pytest.mark.parametrize("short", [b"\x11", b"\x11watcher", b"\x11watcher\0\x14abc"])
async def test_a_failed_change_of_user_ends_the_session(serve, store, short):
    server = await serve(store)
    for payload, code in ((change_user(b"watcher", bytes(20)), 1045), (short, 1043)):
        async with await RawClient.logged_in(server) as client:
            questions = server.questions
            await client.send(payload)
            await client.send(b"\x03SELECT 1")
            assert parse_err(await client.packet()).code == code
            assert await client.packet() is None
            assert server.questions == questions + 1


async def test_a_unix_socket_lets_its_own_user_in_without_a_password(
    serve, store, accounts, tmp_path
):
    import os
    import pwd

    me = pwd.getpwuid(os.getuid()).pw_name
    accounts.add(make_account(me, "localhost", "", methods=["unix_socket"]))
    accounts.add(make_account(f"{me}2", "localhost", "", methods=["unix_socket"]))
    server = await serve(store, socket=str(tmp_path / "s"))
    for address, user, wanted in (
        (str(tmp_path / "s"), me, is_ok),
        (str(tmp_path / "s"), f"{me}2", is_err),
        (server.address, me, is_err),
    ):
        async with await RawClient.connect(address) as client:
            assert wanted(await client.log_in(user, "")), (address, user)


async def test_the_greeting_is_never_the_same(serve, store):
    server = await serve(store)
    scrambles = set()
    for _ in range(20):
        async with await RawClient.connect(server.address) as client:
            scrambles.add(Greeting.parse(await client.packet()).scramble)
    assert len(scrambles) == 20
