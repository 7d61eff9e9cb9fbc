"""The dashboard between a real primary and a real replica: what was written there is seen here."""

import json
import re

import pytest
from playwright.sync_api import expect

from ibb.demo.scratch_server import free_port
from ibb.demo.serve_process import run_ibb

from ..integration.compare import assert_equal
from ..integration.conftest import new_rig
from ..integration.installations import mariadb_10_11
from ..integration.mariadb_server import PASSWORD, USER
from ..integration.waiting import wait_until
from .board import GRANTS, MILLISECONDS, Window, add_account, chromium

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.xdist_group("dashboard")]
SECONDS_MAX = 60.0  # for a replica to begin
VIEWS = ("overview", "readers", "history", "search", "upstream", "settings")


@pytest.fixture(scope="module")
def estate():
    """A primary, its relay with pages, and a replica that acknowledges; then the page's address."""
    with new_rig() as rig:
        primary = rig.primary(mariadb_10_11(), "--binlog-format=ROW")
        port = free_port()
        relay = rig.ibb(f"--admin-listen=127.0.0.1:{port}", "--rpl-semi-sync-master-enabled")
        add_account(relay, USER, GRANTS)
        relay.relay_from(primary.port).start()
        replica = rig.replica(mariadb_10_11(), "--rpl-semi-sync-slave-enabled=1")
        replica.replicate_from(relay.port)
        yield primary, relay, replica, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def window(estate):
    with chromium() as browser:
        opened = Window(browser, estate[-1]).log_in()
        yield opened
        opened.close()
        assert opened.errors == []


def test_a_table_created_on_the_primary_is_seen(estate, window):
    primary, _, replica, _ = estate
    primary.run("CREATE DATABASE shop")
    created = primary.binlog_position()
    primary.run(
        "CREATE TABLE shop.tea (id INT PRIMARY KEY, sort VARCHAR(20))",
        "INSERT INTO shop.tea VALUES (1, 'green'), (2, 'black')",
    )
    written = primary.binlog_position()
    number = int(created.rpartition("-")[2]) + 1
    assert_equal(primary, replica)
    expect(window.page.locator(".picture")).to_contain_text(written, timeout=MILLISECONDS)
    for gtid, words in (
        (f"{created.rpartition('-')[0]}-{number}", ["CREATE TABLE shop.tea (id INT PRIMARY KEY"]),
        (written, ["INSERT INTO shop.tea", "'green'", "'black'"]),
    ):
        page = window.go(f"search/{gtid}").page
        page.get_by_role("link", name=gtid, exact=True).click()
        for each in words:
            expect(window.table("Events")).to_contain_text(each)


def test_the_replica_is_shown_with_its_last_acknowledgement(estate, window, tmp_path):
    primary, relay, replica, _ = estate
    name = "Rpl_semi_sync_slave_status"
    wait_until(lambda: replica.rows(f"SHOW STATUS LIKE '{name}'") == [(name, "ON")], SECONDS_MAX)
    primary.run("CREATE TABLE shop.cups (id INT PRIMARY KEY)")
    assert_equal(primary, replica)
    row = window.go("readers").table("Readers").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator("td:nth-child(4)")).to_have_text(str(replica.server_id))
    expect(row.locator("td").last).to_have_text(re.compile(r"^\d+$"), timeout=MILLISECONDS)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    url = f"mariadb://{USER}@127.0.0.1:{relay.port}"
    done = run_ibb("status", url, "--json", f"--password-file={password}")
    (reader,) = json.loads(done.stdout)["readers"]
    assert reader["Server_id"] == replica.server_id
    assert 0 <= reader["Ack_age"] < SECONDS_MAX


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_shown_of_it(window, view):
    page = window.go(view).page
    expect(page.locator("h1")).to_have_text(view.capitalize())
    window.live()
    window.check()
