"""The stream that all tabs of a browser share: one that breaks, or is silent, and its workers."""

import os
import signal

import httpx
import pytest
from playwright.sync_api import expect

from ..integration.waiting import wait_until
from .board import MILLISECONDS, Window, board
from .mute_proxy import muted

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dashboard")]
SECONDS_MAX = MILLISECONDS / 1000
TABS = 8
CONNECTIONS = 6  # that a browser has to a server
OTHER_WORKER = """
const Worker = window.SharedWorker;
window.SharedWorker = function (url, options) {{ return new Worker("/static/{}", options); }};
"""
LATE_WORKER = """
const Worker = window.SharedWorker;
window.SharedWorker = function (url, options) {
  const worker = new Worker(url, options);
  const port = { postMessage: (data) => worker.port.postMessage(data) };
  worker.port.onmessage = (event) => { if (window.speaks) port.onmessage?.(event); };
  return { port };
};
window.own = [];
const Source = window.EventSource;
window.EventSource = class extends Source {
  constructor(url) {
    super(url);
    window.own.push(this);
  }
};
"""
OWN_STREAMS = "own.map((each) => each.readyState)"
OPEN, CLOSED = 1, 2  # as EventSource.readyState says


@pytest.fixture(scope="module")
def shown():
    with board() as found:
        yield found


def test_many_tabs_of_a_browser_share_a_stream(browser, shown):
    """A browser has six connections to a server for all of its tabs, and a stream keeps one."""
    first = Window(browser, shown.url).log_in()
    tabs = [first.page]
    for _ in range(TABS - 1):
        page = first.context.new_page()
        page.goto(f"{shown.url}/#/settings")
        tabs.append(page)
        expect(page.locator("#live")).to_have_text("live", timeout=MILLISECONDS)
        expect(page.get_by_role("table", name="SHOW GLOBAL STATUS")).to_be_visible()
    tabs.pop(0).close()
    for page in tabs:
        page.evaluate("location.hash = '#/overview'")
    shown.publisher.change("INSERT INTO orders VALUES (9000, 'for all tabs')")
    for page in tabs:
        expect(page.locator(".picture")).to_contain_text(shown.newest(), timeout=MILLISECONDS)
    with httpx.Client(base_url=shown.url, trust_env=False) as stranger:
        stranger.cookies.update({one["name"]: one["value"] for one in first.context.cookies()})
        stranger.post("/logout")
    for page in tabs:
        expect(page).to_have_url(f"{shown.url}/login", timeout=MILLISECONDS)
    first.close()


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param("delete window.SharedWorker", id="none"),
        pytest.param(OTHER_WORKER.format("missing.js"), id="broken"),
        pytest.param(OTHER_WORKER.format("dashboard/format.js"), id="silent"),
    ],
)
def test_a_browser_without_shared_workers_has_a_stream_of_its_own(browser, shown, workers):
    opened = Window(browser, shown.url)
    opened.context.add_init_script(workers)
    opened.log_in()
    shown.publisher.change("INSERT INTO orders VALUES (9001, 'without a worker')")
    picture = opened.page.locator(".picture")
    expect(picture).to_contain_text(shown.newest(), timeout=MILLISECONDS)
    opened.close()


def test_a_tab_goes_back_to_the_stream_of_all_when_its_worker_speaks(browser, shown):
    opened = Window(browser, shown.url)
    opened.context.add_init_script(LATE_WORKER)
    page = opened.log_in().page
    assert page.evaluate(OWN_STREAMS)[-1] == OPEN
    page.evaluate("window.speaks = true")
    wait_until(lambda: set(page.evaluate(OWN_STREAMS)) == {CLOSED}, SECONDS_MAX)
    opened.live()
    page.evaluate("window.speaks = false")
    wait_until(lambda: page.evaluate(OWN_STREAMS)[-1] == OPEN, SECONDS_MAX)
    opened.close()
    assert opened.errors == []


def test_a_window_tells_of_a_server_that_stands_still(browser, shown):
    """Its connection is open all the time."""
    opened = Window(browser, shown.url).log_in()
    os.kill(shown.ibb.pid, signal.SIGSTOP)
    try:
        expect(opened.page.locator("#live")).to_contain_text("not connected", timeout=MILLISECONDS)
    finally:
        os.kill(shown.ibb.pid, signal.SIGCONT)
    opened.live()
    opened.close()


def test_tabs_come_back_when_connections_were_lost_without_a_word(browser, shown):
    """What they ask meanwhile must not keep the six connections that a browser has."""
    with muted(int(shown.url.rpartition(":")[2])) as proxy:
        first = Window(browser, f"http://127.0.0.1:{proxy.port}").log_in()
        tabs = [first.page]
        for _ in range(TABS - 1):
            tabs.append(first.context.new_page())
            tabs[-1].goto(f"{first.url}/")
            expect(tabs[-1].locator("#live")).to_have_text("live", timeout=MILLISECONDS)
        proxy.mute()
        for page in tabs:
            words = expect(page.locator("#live"))
            words.to_contain_text("not connected", timeout=MILLISECONDS)
        wait_until(lambda: proxy.unheard > CONNECTIONS, SECONDS_MAX)
        proxy.speak()
        for page in tabs:
            expect(page.locator("#live")).to_have_text("live", timeout=MILLISECONDS)
        first.close()


def test_a_page_that_the_browser_kept_is_live_again(browser, shown):
    """Browsers keep a page that was left, for whoever goes back to it."""
    opened = Window(browser, shown.url).log_in()
    page = opened.page
    with page.expect_event("load"):
        page.evaluate(
            "dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }));"
            "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));"
        )
    opened.live()
    opened.close()
    assert opened.errors == []


def test_a_window_comes_back_when_the_server_does(browser, shown):
    opened = Window(browser, shown.url).log_in("search/0-90-3")
    page = opened.page
    expect(page.locator(".answer")).to_contain_text("in binlog-000000.ibb")
    assert shown.ibb.stop() == 0
    expect(page.locator("#live")).to_contain_text("not connected", timeout=MILLISECONDS)
    shown.ibb.start()
    expect(page).to_have_url(f"{shown.url}/login", timeout=MILLISECONDS)  # logins are in memory
    opened.fill_in()
    opened.live()
    expect(page.locator(".answer")).to_contain_text("in binlog-000000.ibb")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(f"{shown.url}/login")
    opened.close()
