"""Our client against our server, by every method and every way to believe a certificate."""

import asyncio

import pytest

from ibb.protocol.errors import ProtocolError, SqlError
from ibb.protocol.reply import ok
from ibb.server.config import Config, ConfigError
from ibb.server.connections.certificate import self_signed
from ibb.server.connections.tls_channel import TlsFailed
from ibb.server.login.accounts import make_account
from ibb.server.login.login import Login
from ibb.server.relay.upstream import Upstream, UpstreamAddress
from ibb.server.relay.upstream_login import UpstreamRefused
from ibb.server.relay.upstream_tls import UntrustedPrimary, UpstreamTls

from ..login.test_login import tls_files, write  # noqa: F401 - a fixture

METHODS = ("mysql_native_password", "ed25519", "parsec", "caching_sha2_password")


async def connect(server, user="repl", password="secret", host="127.0.0.1", **settings):
    """Log in, run a statement, and say whether TLS was on."""
    tls = UpstreamTls.from_config(Config(**settings))
    address = UpstreamAddress(host, server.port(), user, password, tls)
    upstream = await Upstream.connect(address)
    try:
        assert await upstream.value("SELECT 1") == "1"
        assert upstream.server_version == server.config.server_version  # without "5.5.5-"
        return upstream._link.tls is not None
    finally:
        await upstream.close()


@pytest.fixture
def every_account(accounts):
    for method in METHODS:
        accounts.add(make_account(method, "%", "right", methods=[method]))


@pytest.mark.parametrize("method", METHODS[:3])
async def test_a_password_proves_both_ways(serve, store, every_account, method):
    server = await serve(store)
    assert await connect(server, method, "right", upstream_ssl="verify")
    assert await connect(server, method, "right")
    assert not await connect(server, method, "right", upstream_ssl="off")
    with pytest.raises(SqlError) as caught:
        await connect(server, method, "wrong", upstream_ssl="verify")
    assert caught.value.code == 1045


async def test_sha2_wants_a_certificate_that_was_verified_first(
    serve,
    store,
    every_account,
    tls_files,  # noqa: F811
):
    certificate, key = tls_files
    server = await serve(store, ssl_cert=certificate, ssl_key=key)
    method = METHODS[3]
    for settings in ({"upstream_ssl": "off"}, {"upstream_ssl": "verify"}, {}):
        with pytest.raises(UpstreamRefused, match="upstream_ssl_ca"):
            await connect(server, method, "right", **settings)
    assert await connect(
        server, method, "right", host="localhost", upstream_ssl_fp=server.tls.fingerprint.hex()
    )
    # The server remembers the password now: nobody has to be told it.
    assert not await connect(server, method, "right", upstream_ssl="off")


async def test_a_certificate_is_right_by_its_fingerprint_or_ca_and_name(
    serve,
    store,
    tls_files,  # noqa: F811
):
    certificate, key = tls_files
    server = await serve(store, ssl_cert=certificate, ssl_key=key)
    fingerprint = server.tls.fingerprint.hex(":").upper()
    assert await connect(server, upstream_ssl_fp=fingerprint)
    with pytest.raises(UntrustedPrimary, match="fingerprint"):
        await connect(server, upstream_ssl_fp="00" * 32)
    assert await connect(server, host="localhost", upstream_ssl_ca=certificate)
    with pytest.raises(TlsFailed, match="certificate verify failed"):
        await connect(server, host="127.0.0.1", upstream_ssl_ca=certificate)
    write(tls_files, self_signed("localhost"))
    with pytest.raises(TlsFailed, match="certificate verify failed"):
        await connect(server, host="localhost", upstream_ssl_ca=certificate)


async def test_a_primary_that_proves_nothing_is_refused_where_that_matters(
    serve, store, monkeypatch, capfd
):
    monkeypatch.setattr(Login, "_certificate_proof", lambda *_: b"")
    server = await serve(store)
    with pytest.raises(UntrustedPrimary, match="upstream_ssl_fp"):
        await connect(server, upstream_ssl="verify")
    assert await connect(server, upstream_ssl="unverified")
    assert "upstream_not_verified" not in capfd.readouterr().out
    assert await connect(server)
    assert "upstream_not_verified" in capfd.readouterr().out


async def test_a_primary_without_tls_is_refused_where_tls_is_demanded(serve, store):
    server = await serve(store, skip_ssl=True)
    for settings in (
        {"upstream_ssl": "verify"},
        {"upstream_ssl": "unverified"},
        {"upstream_ssl_fp": "00" * 32},
    ):
        with pytest.raises(UpstreamRefused, match="no TLS"):
            await connect(server, **settings)
    assert not await connect(server)


async def test_our_certificate_is_shown(serve, store, accounts, tls_files):  # noqa: F811
    certificate, key = tls_files
    accounts.add(make_account("u", "%", "secret", require="X509"))
    server = await serve(store, ssl_ca=certificate)
    assert await connect(server, "u", upstream_ssl_cert=certificate, upstream_ssl_key=key)
    with pytest.raises(SqlError):
        await connect(server, "u")


async def test_bytes_between_greeting_and_tls_are_refused(serve, store):
    server = await serve(store)

    async def in_between(reader, writer):
        behind = await asyncio.open_connection(*server.address)
        greeting = await behind[0].read(1000)
        writer.write(greeting + b"\x07\x00\x00\x01" + ok())
        await reader.read()
        for end in (writer, behind[1]):
            end.transport.abort()

    proxy = await asyncio.start_server(in_between, "127.0.0.1", 0)
    async with proxy:
        port = proxy.sockets[0].getsockname()[1]
        address = UpstreamAddress(
            "127.0.0.1",
            port,
            "repl",
            "secret",
            UpstreamTls.from_config(Config(upstream_ssl="verify")),
        )
        with pytest.raises(ProtocolError, match="before TLS"):
            await Upstream.connect(address)


@pytest.mark.parametrize(
    "settings",
    [
        {"upstream_ssl_fp": "abc"},
        {"upstream_ssl_ca": "/nowhere"},
        {"upstream_ssl_cert": "/nowhere", "upstream_ssl_key": "/nowhere"},
    ],
)
def test_settings_that_cannot_be_used_are_named(settings):
    with pytest.raises(ConfigError, match="upstream_ssl"):
        UpstreamTls.from_config(Config(**settings))


def test_an_address_shows_no_password():
    assert "secret" not in repr(UpstreamAddress("h", 1, "u", "secret"))
