"""`ibb serve` with purge settings, as a relay too, and what it says of files it found."""

import json

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook, make_account
from ibb.server.server import Server
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.store import Store

from ..server.conftest import SMALL, publish
from ..server.raw_client import RawClient

FILE = 64 << 10  # bytes
LAYOUT = (f"--max-binlog-size={FILE}", "--page-size=512", "--state-interval=1024")
GROUPS = 40


@pytest.fixture
def accounts(tmp_path):
    book = AccountBook([make_account("repl", "%", "secret", ["ALL PRIVILEGES"])])
    book.save(str(tmp_path / "accounts.toml"))
    (tmp_path / "password").write_text("secret\n")
    return book


@pytest.fixture
def started(serve, tmp_path):
    """Return what starts a server with small files; the first argument is its folder."""

    def start(folder, *arguments):
        return serve(
            tmp_path / folder, *LAYOUT, "--listen=127.0.0.1:0", "--log-format=json",
            "--accounts", tmp_path / "accounts.toml", *arguments,
        )  # fmt: skip

    return start


def events(err, name):
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


async def test_a_relay_keeps_to_its_size_and_to_what_sql_changes(started, tmp_path, accounts):
    with Store.open(tmp_path / "primary", SMALL) as store:
        publish_groups(store, 1, GROUPS)
        primary = Server(store, config=Config(listen="127.0.0.1:0"), accounts=accounts)
        await primary.start()
        relay = started(
            "relay",
            "--upstream", f"mariadb://repl@127.0.0.1:{primary.port()}",
            "--upstream-password-file", tmp_path / "password",
            "--max-binlog-total-size", str(6 * FILE),
            "--expire-logs-days", "1.5",
        )  # fmt: skip
        async with await RawClient.logged_in(relay) as client:
            await arrived(client, f"0-1-{GROUPS}")
            first, *_, last = await client.rows("SHOW BINARY LOGS")
            assert first[0] == "binlog-000000.ibb", "no replica has got past it"
            assert await client.rows("SELECT @@expire_logs_days, @@max_binlog_total_size") == [
                ("1.500000", str(6 * FILE))
            ]
            await client.query("SET GLOBAL slave_connections_needed_for_purge = 0")
            await client.query("SET GLOBAL max_binlog_total_size = 0")
            (kept, _), *_ = await client.rows("SHOW BINARY LOGS")
            assert "binlog-000000.ibb" < kept < last[0]
            publish_groups(store, GROUPS + 1, 2 * GROUPS)
            await arrived(client, f"0-1-{2 * GROUPS}")
            assert (await client.rows("SHOW BINARY LOGS"))[0][0] == kept
            await client.query("SET GLOBAL max_binlog_total_size = DEFAULT")
            assert (await client.rows("SHOW BINARY LOGS"))[0][0] > kept
        status, _, err = relay.end()
        await primary.stop()
    assert status == 0
    (held,) = events(err, "purge_held_back")
    assert (held["file"], len(held["reasons"])) == ("binlog-000000.ibb", 1)
    purged, *_ = events(err, "binlog_purged_automatically")
    assert purged["files"][0] == "binlog-000000.ibb"
    assert purged["bytes_freed"] == FILE * purged["removed"] > 0


def publish_groups(store, first, last):
    for seq in range(first, last + 1):
        publish(store, Gtid(0, 1, seq), FILE // 4, wait=seq == last)


async def arrived(client, position):
    await client.query(f"SELECT MASTER_GTID_WAIT('{position}', 20)")
    assert await client.value("SELECT @@gtid_binlog_pos") == position


def test_copies_and_headers_that_an_opening_met_are_logged_once(started, tmp_path, accounts):
    assert started("store").end()[0] == 0
    folder = tmp_path / "store"
    stray = folder / "binlog-000007.ibb"
    stray.write_bytes(b"x" * FILE)
    newest = max((folder / name for name in SEGMENT_NAMES), key=sequence)
    (other,) = {folder / name for name in SEGMENT_NAMES} - {newest}
    other.write_bytes(b"torn" + other.read_bytes()[4:])
    _, _, err = started("store").end()
    assert [line["path"] for line in events(err, "copy_set_aside")] == [f"{stray}.aside-0"]
    assert [line["path"] for line in events(err, "damaged_header_passed_over")] == [str(other)]
    assert stray.with_name(f"{stray.name}.aside-0").read_bytes() == b"x" * FILE
    _, _, err = started("store").end()
    assert events(err, "copy_set_aside") == events(err, "damaged_header_passed_over") == []


def sequence(path):
    """Return the number of a redo segment's use, 0 if it was never used."""
    return int.from_bytes(path.read_bytes()[16:24], "little")
