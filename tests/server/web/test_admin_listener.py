"""The admin's port under clients that only take places, and its TLS."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
import structlog

from ibb.server.config import Config, ConfigError
from ibb.server.log import set_up_log
from ibb.server.web import admin_connection
from ibb.server.web.login_views import Refusal

from ..waiting import until

PLACES = 4
OF_ONE_ADDRESS = 3  # the rest is kept for others


def any_certificate():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def idle_connections(shown, count, **options):
    return [
        await asyncio.open_connection("127.0.0.1", shown.listener.address[1], **options)
        for _ in range(count)
    ]


def from_address(address):
    return httpx.AsyncHTTPTransport(local_address=address)


async def rest_of(reader):
    try:
        return await reader.read()
    except ConnectionResetError:  # the other side had not read all of ours
        return b""


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("tls", ["", "before the handshake", "behind the handshake"])
async def test_clients_that_say_nothing_keep_nobody_out(pages, store, tmp_path, tls):
    """Else they would also take the descriptors that the store and the dumps need."""
    more = {"ssl_state": str(tmp_path / "tls")} if tls else {}
    shown = await pages(store, connections_max=PLACES, **more)
    before = descriptors()
    options = {"ssl": any_certificate()} if tls.startswith("behind") else {}
    links = await idle_connections(shown, 5 * PLACES, **options)
    await until(lambda: shown.listener.accepted == 5 * PLACES)
    assert len(shown.listener) <= PLACES
    ours = 5 * PLACES
    await until(lambda: descriptors() <= before + ours + PLACES)  # also those in the TLS handshake
    if tls:
        shown.url = shown.url.replace("http:", "https:")
    async with shown.browser(verify=False) as browser:
        assert (await browser.get("/healthz")).text == "ok\n"
    ends = [await rest_of(reader) for reader, _ in links[: 4 * PLACES]]
    assert set(ends) == {b""}
    for _, writer in links:
        writer.close()


async def test_clients_that_are_being_answered_are_not_pushed_out(pages, store, monkeypatch):
    shown = await pages(store, connections_max=PLACES)
    asked, go_on = [], asyncio.Event()

    async def slow(logins, address, user, password):
        asked.append(user)
        await go_on.wait()
        return Refusal("Too late", 7.0)

    monkeypatch.setattr("ibb.server.web.login_views.Logins.check", slow)
    browsers = [shown.browser() for _ in range(OF_ONE_ADDRESS)]
    form = {"user": "x", "password": "y"}
    posts = [asyncio.create_task(each.post("/login", data=form)) for each in browsers]
    await until(lambda: len(asked) == OF_ONE_ADDRESS)
    reader, writer = (await idle_connections(shown, 1))[0]
    assert await rest_of(reader) == b""  # no place, and nobody to drop
    assert shown.listener.turned_away == 1
    async with shown.browser(transport=from_address("127.0.0.2")) as another:
        assert (await another.get("/healthz")).text == "ok\n"
    go_on.set()
    assert {answer.status_code for answer in await asyncio.gather(*posts)} == {429}
    writer.close()
    for browser in browsers:
        await browser.aclose()


BODY_MISSING = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\nu"
PIECES_MISSING = b"POST /login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nus"
REFUSED_EARLY = BODY_MISSING.replace(b"POST /login", b"GET /healthz")
HEADERS_MISSING = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("said", [BODY_MISSING, PIECES_MISSING, REFUSED_EARLY, HEADERS_MISSING])
async def test_requests_that_are_not_there_in_full_keep_nobody_out(pages, store, said, capsys):
    shown = await pages(store, connections_max=PLACES)
    links = await idle_connections(shown, 2 * PLACES)
    for _, writer in links:
        writer.write(said)
    await until(lambda: shown.listener.accepted == 2 * PLACES)
    async with shown.browser() as browser:
        for path in ("/healthz", "/metrics"):
            assert (await browser.get(path)).status_code == 200
    assert shown.listener.turned_away == 0
    for _, writer in links:
        writer.close()
    await until(lambda: len(shown.listener) == 0)
    assert "admin_view_failed" not in "".join(capsys.readouterr())  # strangers do not fill the log


async def test_a_form_has_little_time_to_come(pages, store, monkeypatch):
    monkeypatch.setattr("ibb.server.web.login_views.FORM_SECONDS_MAX", 0.0)
    shown = await pages(store)
    ((reader, writer),) = await idle_connections(shown, 1)
    writer.write(BODY_MISSING)
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_clients_that_do_not_read_keep_nobody_out(pages, store, monkeypatch):
    shown = await pages(store, connections_max=PLACES)
    monkeypatch.setattr("ibb.server.web.health_views.PlainTextResponse", large_answer)
    links = await idle_connections(shown, OF_ONE_ADDRESS)
    for _, writer in links:
        writer.transport.pause_reading()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
    await until(lambda: all(each and each.flow.write_paused for each in clients(shown)))
    async with shown.browser() as browser:
        assert (await browser.get("/readyz")).status_code == 200
    for _, writer in links:
        writer.close()


async def test_a_crowd_pushes_out_itself_and_nobody_else(pages, store):
    shown = await pages(store, connections_max=PLACES)
    async with shown.browser(transport=from_address("127.0.0.2")) as quiet:
        assert (await quiet.get("/healthz")).status_code == 200
        links = await idle_connections(shown, 5 * PLACES)
        await until(lambda: shown.listener.accepted == 1 + 5 * PLACES)
        assert len(shown.listener) == PLACES
        assert (await quiet.get("/healthz")).status_code == 200
        assert shown.listener.accepted == 1 + 5 * PLACES  # by the connection of before
    for _, writer in links:
        writer.close()


@pytest.mark.parametrize("said", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n"])
async def test_a_request_that_does_not_come_ends_the_connection(pages, store, said):
    shown = await pages(store)
    ((reader, writer),) = await idle_connections(shown, 1)
    writer.write(said)
    await until(lambda: len(shown.listener) == 1)
    now = asyncio.get_running_loop().time()
    shown.listener.end_overdue(now + admin_connection.REQUEST_SECONDS_MAX - 1)
    assert len(shown.listener) == 1
    await until(lambda: gone(shown, now + admin_connection.REQUEST_SECONDS_MAX + 1))
    assert await rest_of(reader) == b""
    writer.close()


def gone(shown, now):
    shown.listener.end_overdue(now)
    return len(shown.listener) == 0


async def test_a_body_that_trickles_in_ends_the_connection(pages, store):
    """Behind an answer that came early, too: the next request is what is waited for."""
    shown = await pages(store)
    ((reader, writer),) = await idle_connections(shown, 1)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n")
    assert b" 200 " in await reader.readline()
    writer.write(b"x")
    now = asyncio.get_running_loop().time()
    shown.listener.end_overdue(now + admin_connection.REQUEST_SECONDS_MAX - 1)
    assert len(shown.listener) == 1
    await until(lambda: gone(shown, now + admin_connection.REQUEST_SECONDS_MAX + 1))
    writer.close()


async def test_a_client_that_does_not_read_is_dropped(pages, store, monkeypatch, tmp_path):
    shown = await pages(store)
    monkeypatch.setattr("ibb.server.web.health_views.PlainTextResponse", large_answer)
    ((_, writer),) = await idle_connections(shown, 1)
    writer.transport.pause_reading()
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
    await until(lambda: any(each and each.flow.write_paused for each in clients(shown)))
    now = asyncio.get_running_loop().time()
    shown.listener.end_overdue(now + admin_connection.WRITE_SECONDS_MAX - 1)
    assert len(shown.listener) == 1
    await until(lambda: gone(shown, now + admin_connection.WRITE_SECONDS_MAX + 1))
    writer.close()


def clients(shown):
    return [place.client for place in shown.listener._places.values()]


def large_answer(content):
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("x" * (1 << 20))


@pytest.mark.parametrize("said", [b"\x16\x03\x01", b"nonsense\r\n\r\n", b"X" * 70_000])
async def test_what_is_no_request_is_refused_in_silence(pages, store, said, capsys):
    shown = await pages(store)
    ((reader, writer),) = await idle_connections(shown, 1)
    writer.write(said)
    writer.write_eof()
    assert (await rest_of(reader))[:12] in (b"", b"HTTP/1.1 400")
    await until(lambda: len(shown.listener) == 0)
    assert capsys.readouterr().err == ""
    writer.close()


async def test_with_a_certificate_that_lasts_the_pages_have_tls(pages, store, tmp_path):
    shown = await pages(store, ssl_state=str(tmp_path / "tls"))
    shown.url = shown.url.replace("http:", "https:").replace("127.0.0.1", "localhost")
    trusted = ssl.create_default_context(cafile=tmp_path / "tls" / "ibb-server-cert.pem")
    trusted.check_hostname = False
    async with shown.logged_in("strict", "private", verify=trusted) as browser:
        assert "texts" in (await browser.get("/readyz")).json()
    before = shown.server.tls.fingerprint
    for path in (tmp_path / "tls").iterdir():
        path.unlink()
    shown.server.reload()
    assert shown.server.tls.fingerprint != before
    with pytest.raises(httpx.ConnectError):
        async with shown.browser(verify=trusted) as browser:
            await browser.get("/healthz")
    ((reader, writer),) = await idle_connections(shown, 1)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await rest_of(reader)
    await until(lambda: len(shown.listener) == 0)
    writer.close()


def test_passwords_do_not_leave_the_machine_as_plain_text(tmp_path):
    with pytest.raises(ConfigError, match="admin_listen: passwords would go over"):
        Config(admin_listen="0.0.0.0:8307")
    Config(admin_listen="0.0.0.0:8307", skip_ssl=True)
    Config(admin_listen="0.0.0.0:8307", ssl_state=str(tmp_path))
    Config(admin_listen="[::1]")


async def test_a_bug_in_a_view_is_logged_and_ends_nothing(
    pages, store, monkeypatch, capsys, request
):
    set_up_log(level="error", shape="json")
    request.addfinalizer(structlog.reset_defaults)
    shown = await pages(store)

    def broken(server):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("ibb.server.web.health_views.reasons_not_ready", broken)
    async with shown.browser() as browser:
        answer = await browser.get("/readyz")
        assert answer.status_code == 500
        assert "bug" not in answer.text
        assert (await browser.get("/healthz")).status_code == 200
    assert '"event": "admin_view_failed"' in capsys.readouterr().err
