"""Views ask for the privilege that SQL asks for: a login alone opens neither rows nor names."""

import json

import httpx
import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.server.dump.refused_dumps import RefusedDump
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.web.dashboard_views import ROUTES

from ..conftest import publish
from ..raw_client import RawClient, dumping
from ..waiting import until

LOGIN = "BINLOG MONITOR"
WANTED = {  # of each view: what it wants beside the login, and MariaDB's words for it
    "readers": ("REPLICATION MASTER ADMIN", "REPLICATION MASTER ADMIN"),
    "upstream": ("SLAVE MONITOR", "SUPER, SLAVE MONITOR"),
    "group?gtid=0-1-7": ("REPLICATION SLAVE", "REPLICATION SLAVE"),
}
OPEN = (
    *("refused", "samples", "files", "leases", "settings", "find?gtid=0-1-7"),
    "groups?file=binlog-000000.ibb",
)
OTHERS = tuple(privilege for privilege, _ in WANTED.values())


@pytest.fixture
def accounts():
    """Return an account for each privilege, by its name, and one for each that lacks just it."""
    book = AccountBook([make_account("repl", "%", "secret", ["REPLICATION SLAVE"])])
    book.add(make_account("monitor", "%", "secret", [LOGIN]))
    for privilege in OTHERS:
        book.add(make_account(privilege, "%", "secret", [LOGIN, privilege]))
        book.add(make_account(f"not {privilege}", "%", "secret", [LOGIN, *{*OTHERS} - {privilege}]))
    return book


def denied(words):
    return {
        "error": f"1227 (42000) Access denied; you need (at least one of) the {words} "
        "privilege(s) for this operation"
    }


def test_each_view_is_tried():
    names = {path.partition("?")[0] for path in (*WANTED, *OPEN)}
    assert {f"/api/{name}" for name in (*names, "live")} | {"/"} == {each.path for each in ROUTES}


@pytest.mark.parametrize("path", WANTED)
async def test_a_view_wants_its_privilege_and_no_other_will_do(pages, store, path):
    shown = await pages(store)
    privilege, words = WANTED[path]
    for user, status in (("monitor", 403), (f"not {privilege}", 403), (privilege, 200)):
        async with shown.logged_in(user, "secret") as browser:
            answer = await browser.get(f"/api/{path}")
            assert answer.status_code == status, user
            if status == 403:
                assert answer.json() == denied(words)
            refused = (await browser.get("/api/refused")).json()
            error = refused.get(path.partition("?")[0])
            assert error == (denied(words)["error"] if status == 403 else None)


@pytest.mark.parametrize("path", OPEN)
async def test_what_the_login_is_enough_for(pages, store, path):
    shown = await pages(store)
    async with shown.logged_in("monitor", "secret") as browser:
        assert (await browser.get(f"/api/{path}")).status_code == 200


@pytest.mark.parametrize(
    ("sql", "path"),
    [("SHOW BINLOG READERS", "readers"), ("SHOW REPLICA STATUS", "upstream")],
)
async def test_sql_says_the_same(pages, store, sql, path):
    shown = await pages(store)
    client = await RawClient.logged_in(shown.server, "monitor", "secret")
    async with client:
        with pytest.raises(SqlError) as caught:
            await client.query(sql)
    async with shown.logged_in("monitor", "secret") as browser:
        answer = await browser.get(f"/api/{path}")
        assert answer.json() == {"error": str(caught.value)}


@pytest.fixture
async def busy(pages, serve, store, target):
    """Return pages of a relay with a reader, one that was refused, and an upstream that is gone."""
    primary = await serve(store)
    shown = await pages(target, server_id=98, upstream="mariadb://hidden-user@127.0.0.1:1")
    tls = UpstreamTls.from_config(shown.server.config)
    address = UpstreamAddress("127.0.0.1", primary.port(), "repl", "secret", tls)
    shown.server.upstream = relay = RelayControl(target, shown.server, address, tls)
    relay.start()
    await until(lambda: relay.figures.groups == 10)
    dump = await dumping(shown.server, "0-1-1", server_id=4711, non_block=False)
    await dump.groups(9)
    await relay.stop()
    refused = RefusedDump(4712, "10.0.0.7:99", "no such GTID", shown.server.now())
    shown.server.refused_dumps.note(refused)
    yield shown, f"127.0.0.1:{primary.port()}"
    await dump.client.close()


async def overview_of(shown, user):
    """Return the next overview that an account is sent, as text."""
    before = shown.listener.dashboard.samples
    seen = len(before)
    await until(lambda: len(before) > seen)  # one of now
    async with shown.logged_in(user, "secret") as browser, browser.stream("GET", "/api/live") as it:
        async for line in it.aiter_lines():
            if line.startswith("data: "):
                return line.removeprefix("data: ")
    raise AssertionError("the stream has ended")


async def test_events_carry_nothing_that_views_refuse(busy):
    shown, upstream = busy
    names = {"REPLICATION MASTER ADMIN": ("4711", "4712"), "SLAVE MONITOR": (upstream, "Master_H")}
    for privilege, words in names.items():
        text = await overview_of(shown, f"not {privilege}")
        assert not any(word in text for word in words), text
        text = await overview_of(shown, privilege)
        assert any(word in text for word in words), text
    found = json.loads(await overview_of(shown, "monitor"))
    assert found["upstream"] is None
    assert (found["readers"]["total"], found["readers"]["rows"]) == (1, [])
    assert [(alert["about"], alert["text"]) for alert in found["alerts"]] == [
        ("upstream", f"not shown: {denied('SUPER, SLAVE MONITOR')['error']}"),
        ("reader", f"not shown: {denied('REPLICATION MASTER ADMIN')['error']}"),
    ]


async def test_nor_do_other_views(busy):
    shown, _ = busy
    for user, is_shown in (("not SLAVE MONITOR", False), ("SLAVE MONITOR", True)):
        async with shown.logged_in(user, "secret") as browser:
            settings = (await browser.get("/api/settings")).text
            assert ("hidden-user" in settings) == is_shown
            texts = (await browser.get("/readyz")).json()["texts"]
            assert ("privilege(s)" not in str(texts)) == is_shown
    for user, is_shown in (
        ("not REPLICATION MASTER ADMIN", False),
        ("REPLICATION MASTER ADMIN", True),
    ):
        async with shown.logged_in(user, "secret") as browser:
            files = (await browser.get("/api/files")).text
            assert ("4711" in files) == is_shown


async def test_rows_and_statements_are_in_no_view_of_a_monitor(pages, store):
    publish(store, Gtid(0, 1, 11))
    shown = await pages(store)
    async with shown.logged_in("monitor", "secret") as browser:
        for path in (*WANTED, *OPEN):
            answer = await browser.get(f"/api/{path}")
            assert "insert 0-1-" not in answer.text, path
    async with shown.logged_in("REPLICATION SLAVE", "secret") as browser:
        assert "insert 0-1-7" in (await browser.get("/api/group?gtid=0-1-7")).text


async def test_what_prometheus_logs_in_with_opens_no_rows(pages, store):
    shown = await pages(store)
    auth = ("monitor", "secret")
    async with httpx.AsyncClient(base_url=shown.url, trust_env=False, auth=auth) as scraper:
        assert (await scraper.get("/metrics", headers={"host": "db.example"})).status_code == 200
        assert (await scraper.get("/api/group?gtid=0-1-7")).status_code == 401
