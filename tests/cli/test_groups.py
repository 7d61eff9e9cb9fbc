"""`ibb groups`: lines and objects, ranges, and directories of both majors."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.storage.store import Store

from ..sample_directories import expected_of, unpack
from ..server.conftest import SMALL, publish
from ..storage.events import query, xid


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ibb", "groups", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def objects(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["plain-16k-1", "draft-4k-v0-1", "oob-16k-1"])
def test_a_sample_is_listed_as_it_must_be(name, tmp_path):
    unpack(name, tmp_path)
    wanted = expected_of(name)["groups"]
    found = objects(tmp_path)
    assert [{key: one[key] for key in wanted[0]} for one in found] == wanted
    assert all(one["events"] >= 2 for one in found)


@pytest.fixture
def directory(tmp_path):
    with Store.open(tmp_path / "store", SMALL) as store:
        for seq in range(1, 6):
            publish(store, Gtid(0, 1, seq))
            publish(store, Gtid(1, 1, seq))
    return tmp_path / "store"


def test_groups_that_only_the_redo_log_has_are_listed_and_nothing_is_touched(tmp_path):
    with Store.open(tmp_path / "store", replace(SMALL, background=False)) as store:
        for seq in range(1, 40):
            publish(store, Gtid(0, 1, seq), size=3000, wait=True)
            if seq == 20:
                store.switch_file()
        before = {path: path.read_bytes() for path in (tmp_path / "store").iterdir()}
        found = objects(tmp_path / "store")
        assert [one["gtid"] for one in found] == [f"0-1-{seq}" for seq in range(1, 40)]
        assert {path: path.read_bytes() for path in (tmp_path / "store").iterdir()} == before
    assert objects(tmp_path / "store") == found


def gtids(*arguments):
    return [one["gtid"] for one in objects(*arguments)]


def test_ranges(directory):
    everything = [f"{domain}-1-{seq}" for seq in range(1, 6) for domain in (0, 1)]
    assert gtids(directory) == everything
    assert gtids(directory, "--limit", 3) == everything[:3]
    assert gtids(directory, "--limit", 0) == []
    assert gtids(directory, "--from", "0-1-4,1-1-3") == ["1-1-4", "0-1-5", "1-1-5"]
    assert gtids(directory, "--from", "0-1-4,1-1-5") == ["0-1-5"]
    assert gtids(directory, "--until", "0-1-2,1-1-1") == ["0-1-1", "1-1-1", "0-1-2"]
    assert gtids(directory, "--from", "0-1-1,1-1-4", "--until", "0-1-3") == ["0-1-2", "0-1-3"]


def test_a_directory_in_use_is_listed(tmp_path):
    with Store.open(tmp_path / "store", SMALL) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        store.close()
    with Store.open(tmp_path / "store", SMALL):
        assert gtids(tmp_path / "store") == ["0-1-1"]


def test_tables_of_row_changes_are_named_once(tmp_path):
    def table_map(database, table):
        names = b"".join(bytes([len(name)]) + name + b"\0" for name in (database, table))
        return build_event(EventType.TABLE_MAP, bytes(8) + names, timestamp=1, server_id=1)

    with (
        Store.open(tmp_path / "store", SMALL) as store,
        store.begin() as group,
    ):
        maps = [(b"shop", b"orders"), (b"shop", b"items"), (b"shop", b"orders")]
        events = b"".join(table_map(*names) for names in maps)
        group.write(query("BEGIN") + events + xid(1))
        group.commit(Gtid(0, 1, 1))
    (one,) = objects(tmp_path / "store")
    assert one["tables"] == ["shop.orders", "shop.items"]
    assert one["events"] == 6
    assert one["time"] == "2023-11-14T22:13:20Z"
    line = run(tmp_path / "store").stdout
    assert line.split()[:4] == [
        "0-1-1",
        "2023-11-14",
        "22:13:20",
        "binlog-000000.ibb:{}".format(one["offset"]),
    ]
    assert line.endswith("shop.orders shop.items\n")
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nonsense"], "--from: 'nonsense' is no list of GTIDs"),
        (["--from", "0-1-99"], "which is not in the master's binlog"),
    ],
)
def test_what_cannot_be_listed_is_one_line_and_status_2(directory, arguments, message):
    done = run(directory, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_damage_is_told_behind_the_groups_before_it(tmp_path):
    unpack("plain-16k-1", tmp_path)
    file = tmp_path / "binlog-000003.ibb"
    data = bytearray(file.read_bytes())
    data[2 * 16384 + 9] ^= 4
    file.write_bytes(data)
    done = run(tmp_path, "--json")
    assert done.returncode == 2
    assert "binlog-000003.ibb" in done.stderr
    assert "page 2" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["file"] <= 3
