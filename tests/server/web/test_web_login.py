"""Logging in to the pages: who may, what the cookie is like, when a session ends."""

from dataclasses import replace

import pytest

from ibb.protocol.handshake import Greeting
from ibb.protocol.reply import is_ok, parse_err
from ibb.server.login import login_guard
from ibb.server.login.accounts import make_account
from ibb.server.web import web_sessions
from ibb.server.web.gate import COOKIE, OPEN_PATHS
from ibb.server.web.web_sessions import WebSessions

from ..raw_client import RawClient


@pytest.mark.parametrize("user", ["watcher", "modern"])
async def test_an_account_that_may_look_is_let_in_whatever_its_method(pages, store, user):
    shown = await pages(store)
    async with shown.browser() as browser:
        answer = await browser.post("/login", data={"user": user, "password": "looking"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        words = {word.strip().lower() for word in answer.headers["set-cookie"].split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/"} <= words
        assert "secure" not in words
        assert "texts" in (await browser.get("/readyz")).json()


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("watcher", "wrong"),
        ("watcher", ""),
        ("nobody", "looking"),
        ("strict", "private"),  # not over plain text
        ("watcher", "x" * 2000),
    ],
)
async def test_others_are_not(pages, store, user, password):
    shown = await pages(store)
    async with shown.browser() as browser:
        answer = await browser.post("/login", data={"user": user, "password": password})
        assert answer.status_code == 403
        assert COOKIE not in answer.cookies
        assert "Wrong user or password" in answer.text
        assert "texts" not in (await browser.get("/readyz")).json()


async def test_who_may_not_look_is_told_which_privilege_that_wants(pages, store):
    shown = await pages(store)
    async with shown.browser() as browser:
        answer = await browser.post("/login", data={"user": "repl", "password": "secret"})
        assert answer.status_code == 403
        assert COOKIE not in answer.cookies
        assert "the BINLOG MONITOR privilege(s)" in answer.text
        answer = await browser.post("/login", data={"user": "repl", "password": "wrong"})
        assert "privilege(s)" not in answer.text


@pytest.fixture
def long_blocks(monkeypatch):
    """Let a block outlast the test, however slow the machine."""
    monkeypatch.setattr(login_guard, "BLOCK_SECONDS_MIN", 250.0)


async def code_by_protocol(server, user, password):
    """Return the error that a login as replicas have it gets, 0 if it may come in."""
    async with await RawClient.connect(server.address) as client:
        answer = await client.packet()
        if answer[:1] != b"\xff":
            client.greeting = Greeting.parse(answer)
            answer = await client.log_in(user, password)
        return 0 if is_ok(answer) else parse_err(answer).code


@pytest.mark.usefixtures("long_blocks")
async def test_an_address_that_fails_too_often_waits(pages, store):
    shown = await pages(store, max_connect_errors=3)
    right, wrong = ({"user": "watcher", "password": word} for word in ("looking", "wrong"))
    async with shown.browser() as browser:
        for _ in range(3):
            await browser.post("/login", data=wrong)
        answer = await browser.post("/login", data=right)
        assert (answer.status_code, COOKIE in answer.cookies) == (429, False)
        assert 1 <= int(answer.headers["retry-after"]) <= 250
        assert shown.server.aborted_connects == 3


@pytest.mark.usefixtures("long_blocks")
async def test_old_passwords_of_who_scrapes_keep_no_replica_out(pages, store):
    shown = await pages(store, max_connect_errors=3)
    elsewhere = {"host": "db.example"}
    async with shown.browser(headers=elsewhere) as scraper:
        answers = [await scraper.get("/metrics", auth=("watcher", "old")) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [401] * 3 + [429] * 2
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 250
        assert "www-authenticate" not in answers[-1].headers
        login = {"auth": ("watcher", "looking")}
        assert (await scraper.get("/metrics", **login)).status_code == 429
        assert await code_by_protocol(shown.server, "repl", "secret") == 0
        assert await code_by_protocol(shown.server, "watcher", "looking") == 0
        assert (await scraper.get("/metrics", **login)).status_code == 429  # forgives nothing
        async with await RawClient.connect(shown.server.address) as admin:
            await admin.log_in("chief", "mighty")
            await admin.query("FLUSH HOSTS")
        assert (await scraper.get("/metrics", **login)).status_code == 200


@pytest.mark.usefixtures("long_blocks")
async def test_who_guesses_by_protocol_and_by_web_has_each_count_once(pages, store):
    """A right password by one of them gives no new guesses by the other."""
    shown = await pages(store, max_connect_errors=3)
    statuses, codes = [], []
    async with shown.browser() as browser:
        for number in range(5):
            for user, password in (("repl", f"guess {number}"), ("watcher", "looking")):
                codes.append(await code_by_protocol(shown.server, user, password))
                form = {"user": user, "password": password}
                statuses.append((await browser.post("/login", data=form)).status_code)
    assert codes == [1045, 0] * 2 + [1045] + [1129] * 5
    assert statuses == [403, 303] * 2 + [403] + [429] * 5


async def test_a_session_ends_with_logout_with_its_time_and_with_its_account(pages, store):
    shown = await pages(store)
    async with shown.logged_in() as browser:
        stolen = browser.cookies[COOKIE]
        assert (await browser.post("/logout")).status_code == 303
        browser.cookies.set(COOKIE, stolen)
        assert "texts" not in (await browser.get("/readyz")).json()
    async with shown.logged_in() as browser:
        changed = make_account("watcher", "%", "another", ["REPLICATION CLIENT"])
        shown.server.accounts.add(changed)
        assert "texts" not in (await browser.get("/readyz")).json()
    async with shown.logged_in(password="another") as browser:
        more = replace(changed, grants=changed.grants | {"SLAVE MONITOR"})
        shown.server.accounts.add(more)
        assert "texts" not in (await browser.get("/readyz")).json()


def test_sessions_are_few_and_end_by_the_clock(accounts, monkeypatch):
    now = [0.0]
    account = accounts.find("watcher", ["10.0.0.1"])
    sessions = WebSessions(lambda: accounts, lambda: now[0])
    monkeypatch.setattr(web_sessions, "SESSIONS_MAX", 3)
    tokens = [sessions.begin(account, ("10.0.0.1",)) for _ in range(4)]
    assert [sessions.find(token) is not None for token in tokens] == [False, True, True, True]
    assert sessions.find("") is None
    now[0] = web_sessions.IDLE_SECONDS_MAX + 1
    assert sessions.find(tokens[1]) is None
    token = sessions.begin(account, ("10.0.0.1",))
    while now[0] < web_sessions.SESSION_SECONDS_MAX:  # in use, and yet
        now[0] += web_sessions.IDLE_SECONDS_MAX / 2
        assert sessions.find(token) is not None
    now[0] += web_sessions.IDLE_SECONDS_MAX + 1
    assert sessions.find(token) is None


def test_who_watches_a_stream_uses_the_session_though_not_for_ever(accounts, monkeypatch):
    now = [0.0]
    account = accounts.find("watcher", ["10.0.0.1"])
    sessions = WebSessions(lambda: accounts, lambda: now[0])
    token = sessions.begin(account, ("10.0.0.1",))
    watched = sessions.find(token)
    while now[0] <= web_sessions.SESSION_SECONDS_MAX:
        assert sessions.holds(watched)
        now[0] += web_sessions.IDLE_SECONDS_MAX / 2
    assert not sessions.holds(watched)
    assert sessions.find(token) is None
    monkeypatch.setattr(web_sessions, "SESSIONS_MAX", 2)
    token = sessions.begin(account, ("10.0.0.1",))
    watched = sessions.find(token)
    for _ in range(2):  # the one that is not watched goes
        sessions.begin(account, ("10.0.0.1",))
        assert sessions.holds(watched)
    sessions.end(token)
    assert not sessions.holds(watched)


async def test_nothing_is_shown_without_a_login(pages, store):
    shown = await pages(store)
    async with shown.browser() as browser:
        for path in ("/", "/api/anything", "/static/../x", "/loginx"):
            assert (await browser.get(path)).status_code == 401, path
            answer = await browser.get(path, headers={"accept": "text/html"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        for path in OPEN_PATHS:
            assert (await browser.get(path)).status_code == 200, path


async def test_every_answer_tells_the_browser_to_be_careful(pages, store):
    shown = await pages(store)
    async with shown.browser() as browser:
        for path in ("/login", "/static/login.css", "/static/missing", "/", "/healthz"):
            headers = (await browser.get(path)).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] in ("no-store", "no-cache")
            assert "server" not in headers


async def test_pages_only_read_and_only_their_own_forms_are_taken(pages, store):
    shown = await pages(store)
    form = {"user": "watcher", "password": "looking"}
    async with shown.browser() as browser:
        assert (await browser.delete("/login")).status_code == 405
        assert (await browser.post("/readyz")).status_code == 405
        for name, value in (("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")):
            answer = await browser.post("/login", data=form, headers={name: value})
            assert answer.status_code == 403
        answer = await browser.post("/login", data=form, headers={"origin": shown.url})
        assert answer.status_code == 303
        answer = await browser.post("/login", content=b"user=" + b"x" * 5000)
        assert answer.status_code == 413

        async def pieces():
            for _ in range(5):
                yield b"x" * 1024

        assert (await browser.post("/login", content=pieces())).status_code == 413
