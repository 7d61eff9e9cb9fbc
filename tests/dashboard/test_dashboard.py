"""The dashboard in Debian's Chromium: every view, with real traffic, for who has logged in."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from ibb.demo.dump_client import DumpClient
from ibb.protocol.gtid_event import GtidFlag
from ibb.server.connections.descriptors import raise_limit

from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from ..protocol.rows.row_encoder import WRITE, integer, rows_event, table_map, varchar
from ..storage.events import xid
from .board import (
    MILLISECONDS,
    PHONE,
    SMALL_BUFFER,
    Reader,
    Window,
    board,
    keep_reading,
    writing,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dashboard")]
PAGE_BYTES_MAX = 300_000
API = ("live", "samples", "readers", "files", "leases", "groups", "find", "group", "upstream")
VIEWS = ("overview", "readers", "history", "search", "upstream", "settings")


@pytest.fixture(scope="module")
def shown():
    raise_limit()
    with board() as found:
        keep_reading(found, 11)
        keep_reading(found, 12)
        wait_until(lambda: len(readers(found)) == 2, 60, lambda: readers(found))
        yield found


@pytest.fixture
def window(browser, shown):
    opened = Window(browser, shown.url).log_in()
    yield opened
    opened.close()
    assert opened.errors == []


def readers(shown):
    """Return all readers as the API has them, for who has logged in."""
    with httpx.Client(base_url=shown.url, timeout=60, trust_env=False) as api:
        api.post("/login", data={"user": USER, "password": PASSWORD})
        return api.get("/api/readers").json()["rows"]


def test_no_data_without_a_login(browser, shown):
    with httpx.Client(base_url=shown.url, trust_env=False) as stranger:
        for name in (*API, "settings"):
            answer = stranger.get(f"/api/{name}")
            assert (answer.status_code, answer.json()) == (401, {"error": "log in first"})
        assert stranger.get("/").status_code == 401
        stranger.cookies.set("ibb_session", "made up")
        assert stranger.get("/api/readers").status_code == 401
    for colours in ("light", "dark"):
        opened = Window(browser, shown.url, color_scheme=colours)
        opened.page.goto(f"{shown.url}/")
        expect(opened.page).to_have_url(f"{shown.url}/login")
        expect(opened.page.locator("html")).to_have_attribute("data-theme", colours)
        assert "binlog-" not in opened.page.content()
        opened.check()
        opened.close()
        assert opened.errors == []


def test_the_overview_shows_who_is_behind_and_why(window, shown):
    page = window.page
    stuck = Reader(shown.ibb.port, 66, buffer=SMALL_BUFFER)
    shown.readers.append(stuck)
    for number in range(60):
        shown.publisher.change(f"INSERT INTO orders VALUES ({100 + number}, '{'x' * 250_000}')")
    picture = page.locator(".picture")
    expect(picture).to_contain_text(f"127.0.0.1:{shown.publisher.port}", timeout=MILLISECONDS)
    expect(picture).to_contain_text(shown.newest(), timeout=MILLISECONDS)
    expect(picture.locator(".bad")).to_contain_text("server 66", timeout=MILLISECONDS)
    behind = window.table("Readers that are furthest behind")
    expect(behind).to_contain_text("does not read what it is sent")
    expect(page.locator(".alerts")).to_contain_text("server 66")
    expect(page.locator("dl")).to_contain_text(re.compile(r"Redo_limit64 MiB"))
    lines = page.locator("polyline.line0")
    expect(lines).to_have_count(4)
    assert len(lines.first.get_attribute("points").split()) > 1
    assert re.search("written .*/s", page.get_by_role("img").first.get_attribute("aria-label"))
    expect(page).to_have_title(re.compile(r"^\([1-9]\d*\) Overview - ibb$"))
    window.check()
    with writing(shown):
        expect(picture.locator(".arrow.flows")).to_have_count(3, timeout=MILLISECONDS)
        lately = re.compile(r"Sync_time / Syncs, lately[\d.]+ ms")
        expect(page.locator("dl")).to_contain_text(lately)
        window.shoot("overview", lines.first)
    stuck.close()
    expect(picture).not_to_contain_text("server 66", timeout=MILLISECONDS)


def test_numbers_have_the_names_of_sql(window, shown):
    page = window.page
    expect(page.locator("dt").first).to_be_visible()
    names = set(page.locator("dt").all_text_contents())
    with DumpClient(shown.ibb.port, USER, PASSWORD) as client:
        storage = {column.name for column in client.query("SHOW BINLOG STORAGE").columns}
        assert names >= storage
        names -= storage | {column.name for column in client.query("SHOW BINLOG STATUS").columns}
        for sql in ("SHOW GLOBAL STATUS", "SHOW GLOBAL VARIABLES"):
            names -= {row[0].decode() for row in client.query(sql).rows}
    assert names == {"Files", "Readers", "Sync_time / Syncs, lately"}  # SQL has rows for these


def test_readers_are_sorted_and_searched_by_keyboard(window, shown):
    page = window.go("readers").page
    rows = window.table("Readers").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Server_id").focus()
    for words, numbers in (("descending", ["12", "11"]), ("ascending", ["11", "12"])):
        page.keyboard.press("Enter")
        heading = page.get_by_role("columnheader", name="Server_id")
        expect(heading).to_have_attribute("aria-sort", words)
        expect(rows.locator("td:nth-child(4)")).to_have_text(numbers)
    expect(page.get_by_role("button", name="Server_id")).to_be_focused()
    window.check()
    page.get_by_label("Only with").fill("no such reader")
    expect(rows).to_have_text(["No reader has that."])


def test_the_history_leads_to_files_groups_and_events(window, shown):
    page = window.go("history").page
    expect(window.table("Who needs files")).to_contain_text("server id 11")
    window.check()
    window.shoot("history")
    page.get_by_role("link", name="binlog-000000.ibb").click()
    page.get_by_role("link", name="0-90-2", exact=True).click()
    events = window.table("Events")
    expect(events.locator("tbody tr")).to_have_count(3)
    expect(events).to_contain_text("INSERT INTO orders VALUES (0, 'tea')")
    expect(page.locator("dl")).to_contain_text("0-90-2")
    window.check()
    page.go_back()
    expect(window.table("Groups in binlog-000000.ibb")).to_be_visible()


def test_the_history_is_followed_and_what_stays_keeps_the_keyboard(window, shown):
    page = window.go("history").page
    needs = window.table("Who needs files")
    expect(needs).to_contain_text("server id 11")
    link = page.get_by_role("link", name="binlog-000001.ibb")
    link.focus()
    with page.expect_response(re.compile("/api/leases")):
        pass  # it asks again by itself
    expect(link).to_be_focused()
    third = Reader(shown.ibb.port, 13, start=shown.newest())
    expect(needs).to_contain_text("server id 13", timeout=MILLISECONDS)
    third.close()
    expect(needs).not_to_contain_text("server id 13", timeout=MILLISECONDS)


def test_a_group_has_its_rows(window, shown):
    specs = [integer(4), varchar(20)]
    table = table_map([("id", specs[0]), ("what", specs[1])])
    changes = rows_event(WRITE, specs, [[(5, b"tea")], [(6, b"salt")]])
    number = shown.publisher.newest + 1
    gtid = shown.publisher.commit(GtidFlag.TRANSACTIONAL, table + changes + xid(number))
    page = window.go("overview").page
    expect(page.locator(".picture")).to_contain_text(str(gtid), timeout=MILLISECONDS)
    window.go(f"search/{gtid}")
    page.get_by_role("link", name=str(gtid)).click()
    rows = window.table("Events").locator(".rows li")
    expect(rows).to_have_text(["insert id=5, what='tea'", "insert id=6, what='salt'"])
    window.check()
    window.shoot("group")


def test_a_gtid_is_searched(window):
    page = window.go("search").page
    page.get_by_label("GTID").fill("0-90-7")
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text("in binlog-000000.ibb at ")
    window.check()
    page.get_by_label("GTID").fill("0-90-999999")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".answer")).to_contain_text("not in the binlog")
    window.go("search/0-90-7")
    page.get_by_role("link", name="0-90-7").click()
    expect(window.table("Events")).to_contain_text("VALUES (5, 'tea')")


def test_the_upstream_has_the_names_of_sql(window, shown):
    page = window.go("upstream").page
    expect(page.locator("dl").first).to_contain_text("Slave_IO_RunningYes")
    expect(page.locator("dl").first).to_contain_text(f"Master_Port{shown.publisher.port}")
    page.get_by_text("All of SHOW REPLICA STATUS").click()
    expect(page.locator("details")).to_contain_text("Parallel_Mode")
    window.check()


def test_settings_are_shown_without_passwords(window, shown):
    page = window.go("settings").page
    own = window.table("Settings of ibb serve")
    expect(own).to_contain_text("upstream_password_file")
    expect(window.table("SHOW GLOBAL VARIABLES")).to_contain_text("server_id")
    names = own.locator("tbody td:first-child").all_text_contents()
    assert "upstream_password" not in names
    assert "replpw" not in page.content()
    page.get_by_label("Only with").fill("max_connections")
    expect(own).not_to_contain_text("ssl_cert")
    expect(own).to_contain_text("1200")
    window.check()


@pytest.mark.parametrize("view", ["overview", "readers"])
def test_dark_colours_have_contrast_and_a_phone_has_room(browser, shown, view):
    opened = Window(browser, shown.url, viewport=PHONE, color_scheme="dark").log_in(view)
    page = opened.page
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("h1")).to_have_text(view.capitalize())
    opened.check()
    if view == "overview":
        opened.shoot("overview-phone")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    page.get_by_role("button", name="Dark").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    opened.close()
    assert opened.errors == []


def test_views_are_reached_by_the_keyboard_alone(window):
    page = window.page
    page.reload()
    window.live()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    for name in VIEWS:
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text(name.capitalize())
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Settings")
    expect(page.locator("main")).to_be_focused()


def test_the_page_is_light(browser, shown):
    opened = Window(browser, shown.url)
    sizes = {}

    def weigh(response):
        if not response.url.endswith("/api/live"):
            sizes[response.url] = len(response.body()) if response.ok else 0

    opened.page.on("response", weigh)
    opened.log_in()
    opened.page.wait_for_load_state("load")
    assert sum(url.endswith(".js") for url in sizes) > 8
    weight = sum(sizes.values())
    print(f"page weight: {weight} bytes in {len(sizes)} files")
    assert weight < PAGE_BYTES_MAX
    opened.page.remove_listener("response", weigh)
    opened.close()


def test_a_thousand_readers_are_listed(browser, shown):
    shown.close()
    shown.read(1000, start=shown.newest())
    opened = Window(browser, shown.url).log_in("readers")
    page = opened.page
    expect(page.locator(".note")).to_have_text("1000 readers", timeout=MILLISECONDS)
    rows = opened.table("Readers").locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_label("Rows").select_option("200")
    expect(rows).to_have_count(200)
    page.get_by_role("button", name="On", exact=True).click()
    expect(page.locator(".pager")).to_contain_text("201 to 400 of 1000")
    page.get_by_label("Only with").fill("1999")
    expect(rows.filter(has_text="1999").first).to_be_visible()
    seconds = page.evaluate(
        "async () => { const t = performance.now();"
        " await (await fetch('/api/readers?limit=200')).json();"
        " return (performance.now() - t) / 1000; }"
    )
    print(f"200 of 1000 readers in {seconds:.3f} s")
    assert seconds < 10
    opened.close()
    assert opened.errors == []
