"""What the dashboard's page is answered: data for who is logged in, and words for what is wrong."""

import json

import httpx
import pytest

from ibb.server.dashboard.broadcaster import WATCHERS_MAX
from ibb.server.dashboard.samples import Sample
from ibb.server.web.dashboard_views import ROUTES

from ..waiting import until

PATHS = [route.path for route in ROUTES]


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_told_to_who_is_not_logged_in(pages, store, path):
    shown = await pages(store)
    async with shown.browser() as browser:
        answer = await browser.get(path)
        assert answer.status_code == 401
        assert "binlog" not in answer.text


async def test_each_view_answers_with_what_there_is(pages, store):
    shown = await pages(store)
    async with shown.logged_in("chief", "mighty") as browser:

        async def get(name, **query):
            answer = await browser.get(f"/api/{name}", params=query)
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert (await browser.get("/")).headers["content-type"].startswith("text/html")
        assert (await get("samples"))["columns"] == list(Sample._fields)
        assert await get("readers") == {"total": 0, "found": 0, "rows": []}
        assert (await get("files"))["total"] == len(store.files())
        assert await get("leases") == {"rows": []}
        assert await get("refused") == {}
        assert await get("upstream") == {"rows": []}
        found = await get("find", gtid="0-1-7")
        assert found["File"] == "binlog-000000.ibb"
        groups = (await get("groups", file=found["File"]))["rows"]
        assert [row["Gtid"] for row in groups] == [f"0-1-{seq}" for seq in range(1, 11)]
        by_gtid = await get("group", gtid="0-1-7")
        assert by_gtid == await get("group", file=found["File"], offset=found["Position"])
        assert by_gtid["events"] == len(by_gtid["rows"])
        settings = await get("settings")
        names = {setting["name"] for setting in settings["settings"]}
        assert "max_connections" in names
        assert not any(name.endswith("password") for name in names)
        assert {"Variable_name": "server_id", "Value": "99"} in settings["variables"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("readers?order=Shoe_size", 400, "order is one of"),
        ("readers?limit=-1", 400, "limit is a number"),
        ("readers?offset=99999999999999999999999999", 400, "offset is a number"),
        (f"samples?seconds={(1 << 62) + 1}", 400, "seconds is a number"),
        ("readers?offset=\u0663", 400, "offset is a number"),
        ("readers?text=" + "x" * 300, 400, "200 characters at most"),
        ("find?gtid=nonsense", 422, "1941"),
        ("find", 422, "1941"),
        ("group?gtid=0-1-99", 404, "not in the binlog"),
        ("group?file=../../etc/passwd", 404, "there is no file"),
        ("group?file=binlog-000000.ibb&offset=1", 404, "no group begins"),
        ("groups?file=binlog-000042.ibb", 404, "there is no file"),
    ],
)
async def test_what_cannot_be_answered_is_told_in_a_line(pages, store, path, status, words):
    shown = await pages(store)
    async with shown.logged_in("chief", "mighty") as browser:
        answer = await browser.get(f"/api/{path}")
        assert answer.status_code == status
        assert words in answer.json()["error"]
        assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("digits", [20, 400, 5000])  # of more than 4300 no int is made
async def test_a_number_may_be_as_long_as_it_likes(pages, store, digits):
    shown = await pages(store)
    async with shown.logged_in() as browser:
        for path in ("samples?seconds=", "groups?file=binlog-000000.ibb&offset="):
            answer = await browser.get(f"/api/{path}{'0' * 20}{'9' * digits}")
            assert answer.status_code == 400
            assert "is a number, not '000" in answer.json()["error"]
            assert len(answer.text) < 300


async def events(stream):
    """Yield the data of server-sent events."""
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_overviews_come_until_the_server_ends(pages, store):
    shown = await pages(store)
    async with (
        shown.logged_in() as browser,
        browser.stream("GET", "/api/live") as stream,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        found = events(stream)
        assert (await anext(found))["binlog"]["gtid_binlog_pos"] == "0-1-10"
        await shown.listener.stop()
        assert [one async for one in found] == []


async def test_overviews_end_with_the_login(pages, store):
    shown = await pages(store)
    async with (
        shown.logged_in() as browser,
        browser.stream("GET", "/api/live") as stream,
    ):
        found = events(stream)
        await anext(found)
        answer = await browser.post("/logout")
        assert answer.status_code == 303
        rest = [one async for one in found]
        assert len(rest) <= 1
    assert len(shown.listener.dashboard.broadcaster) == 0


async def test_so_many_windows_and_no_more(pages, store, monkeypatch):
    assert WATCHERS_MAX < 128  # connections to the port: some are left for other requests
    monkeypatch.setattr("ibb.server.dashboard.broadcaster.WATCHERS_MAX", 1)
    shown = await pages(store)
    async with shown.logged_in() as browser, browser.stream("GET", "/api/live") as stream:
        await anext(events(stream))
        answer = await browser.get("/api/live")
        assert answer.status_code == 503
        assert "close one" in answer.json()["error"]
    broadcaster = shown.listener.dashboard.broadcaster
    await until(lambda: len(broadcaster) == 0)


async def test_a_browser_may_log_in_from_our_own_page(pages, store):
    """A browser that is told to send no referrer sends forms with the origin `null`."""
    shown = await pages(store)
    async with shown.browser() as browser:
        page = await browser.get("/login")
        assert page.headers["referrer-policy"] == "same-origin"
        answer = await browser.post(
            "/login",
            data={"user": "watcher", "password": "looking"},
            headers={"origin": shown.url, "sec-fetch-site": "same-origin"},
        )
        assert answer.status_code == 303
        assert httpx.URL(answer.headers["location"]).path == "/"
