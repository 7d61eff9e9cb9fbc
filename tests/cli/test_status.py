"""`ibb status` of a server that runs: tables, JSON, and passwords that `ps` does not show."""

import json
import os

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.login.accounts import AccountBook, make_account
from ibb.storage.store import Store

from ..server.conftest import SMALL, publish
from .process import run

GRANTS = ["REPLICATION CLIENT", "SLAVE MONITOR", "REPLICATION MASTER ADMIN"]


@pytest.fixture
def url(serve, tmp_path):
    accounts = str(tmp_path / "accounts.toml")
    AccountBook(
        [make_account("watcher", "%", "looking", GRANTS), make_account("poor", "%", "looking")]
    ).save(accounts)
    with Store.open(tmp_path / "store", SMALL) as store:
        for seq in range(1, 4):
            publish(store, Gtid(0, 1, seq))
    upstream = ("--upstream", "mariadb://repl@127.0.0.1:1", "--upstream-ssl", "off")
    where = ("--accounts", accounts, "--listen", "127.0.0.1:0", "--server-id", 7)
    serving = serve(tmp_path / "store", *where, *upstream)
    yield "mariadb://{}@127.0.0.1:" + str(serving.address[1])
    serving.end()


def test_a_server_is_shown_as_tables_and_as_json(url, tmp_path):
    secret = tmp_path / "password"
    secret.write_text("looking\n")
    done = run("status", url.format("watcher"), "--password-file", secret)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    assert "Gtid_binlog_pos  0-1-3" in shown
    assert "Slave_IO_Running       Connecting" in shown
    assert "readers:\n  none" in shown
    assert "binlog-000000.ibb" in shown
    done = run(
        "status", url.format("watcher"), "--json", env=os.environ | {"IBB_PASSWORD": "looking"}
    )
    report = json.loads(done.stdout)
    (server,) = report["server"]
    assert (server["Server_id"], server["Gtid_binlog_pos"]) == (7, "0-1-3")
    assert report["files"][0]["Log_name"] == "binlog-000000.ibb"
    assert isinstance(report["files"][0]["File_size"], int)
    assert (report["readers"], report["leases"]) == ([], [])
    (storage,) = report["storage"]
    assert 0 <= storage["Redo_used"] < storage["Redo_limit"]
    assert (storage["Unsynced"], storage["Page_fifo"]) == (0, 0)
    assert f"Redo_limit       {storage['Redo_limit']}" in shown


def test_what_an_account_may_not_see_is_told_in_its_place(url):
    environment = os.environ | {"IBB_PASSWORD": "looking"}
    done = run("status", url.format("poor"), "--json", env=environment)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["server"][0]["Server_id"] == 7
    assert report["upstream"].startswith("ERROR 1227 (42000)")


def test_a_login_that_fails_is_a_line_and_status_2(url):
    environment = os.environ | {"IBB_PASSWORD": "wrong"}
    for address, text in (
        (url.format("watcher"), "Access denied"),
        ("mariadb://watcher:looking@127.0.0.1", "password"),
        ("mariadb://watcher@127.0.0.1:1", "onnect"),
    ):
        done = run("status", address, env=environment)
        assert (done.returncode, done.stdout) == (2, "")
        assert text in done.stderr
        assert done.stderr.count("\n") == 1
        assert "looking" not in done.stderr
