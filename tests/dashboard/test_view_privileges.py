"""The dashboard for who has BINLOG MONITOR alone: what he may see, and why not the rest."""

import re

import pytest
from playwright.sync_api import expect

from .board import MILLISECONDS, MONITOR, Window, board, keep_reading

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dashboard")]
WANTED = {
    "readers": "REPLICATION MASTER ADMIN",
    "upstream": "SUPER, SLAVE MONITOR",
    "group/binlog-000000.ibb/0": "REPLICATION SLAVE",
}


@pytest.fixture(scope="module")
def shown():
    with board() as found:
        keep_reading(found, 4711)
        yield found


@pytest.fixture
def window(browser, shown):
    """Return a window of the account; a view that it asks for and is refused is an error in it."""
    opened = Window(browser, shown.url).log_in(user=MONITOR)
    yield opened
    opened.close()
    assert opened.errors == []


def words(privilege):
    return f"you need (at least one of) the {privilege} privilege(s) for this operation"


def test_the_overview_shows_the_rest(window, shown):
    page = window.page
    picture = page.locator(".picture")
    expect(picture).to_contain_text(shown.newest(), timeout=MILLISECONDS)
    expect(picture).to_contain_text("1 reader", timeout=MILLISECONDS)
    for privilege in (WANTED["readers"], WANTED["upstream"]):
        expect(picture).to_contain_text(words(privilege))
    expect(page.get_by_role("region", name="Behind")).to_contain_text(words(WANTED["readers"]))
    expect(page.locator("dl")).to_contain_text(re.compile("Redo_used"))
    expect(page.get_by_role("img")).to_have_count(4)
    for name in (str(shown.publisher.port), "server 4711"):
        expect(page.locator("main")).not_to_contain_text(name)
    window.check()


@pytest.mark.parametrize("view", WANTED)
def test_a_view_says_which_privilege_it_wants(window, view):
    page = window.go(view).page
    heading = view.partition("/")[0].capitalize()
    expect(page.locator("h1")).to_have_text(heading)
    expect(page.locator("main")).to_have_text(re.compile(f"^{heading}Not shown: 1227 "))
    expect(page.locator("main")).to_contain_text(words(WANTED[view]))
    window.check()


def test_the_history_shows_files_and_not_who_needs_them(window):
    page = window.go("history").page
    files = window.table("Files, the newest first")
    expect(files).to_contain_text("binlog-000000.ibb")
    expect(files.locator("tbody td:last-child").first).to_have_text("not shown")
    holds = page.get_by_role("region", name="What holds a purge")
    expect(holds).to_contain_text(words(WANTED["readers"]))
    expect(window.table("Leases")).to_contain_text("No leases.")
    expect(page.locator("main")).not_to_contain_text("server id")
    window.check()


def test_a_search_leads_to_a_group_that_is_not_shown(window):
    page = window.go("search/0-90-3").page
    page.get_by_role("link", name="0-90-3").click()
    expect(page.locator("main")).to_contain_text(words("REPLICATION SLAVE"))
    expect(page.locator("main")).not_to_contain_text("INSERT")


def test_settings_are_shown_without_those_of_the_upstream(window):
    page = window.go("settings").page
    settings = page.get_by_role("region", name="Settings", exact=True).first
    expect(settings).to_contain_text("Of the upstream: Not shown: 1227")
    expect(settings).to_contain_text("max_connections")
    expect(settings.locator("tbody")).not_to_contain_text("upstream_")
    expect(window.table("SHOW GLOBAL VARIABLES")).to_contain_text("server_id")
    window.check()
