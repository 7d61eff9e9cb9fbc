"""The jobs by a real Spark, through the command line."""

import json
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from ibb.cli.main import ibb
from ibb.pipeline.jobs import entry, verify_plan
from ibb.protocol.event import EventType
from ibb.storage import Store
from ibb.storage.os_disk import OsDisk
from ibb.storage.verify import verify_directory

from ...protocol.rows import row_encoder as enc
from ...storage.events import query, xid
from ..conftest import SPARK
from ..published import OPTIONS, publish_events
from ..test_changes import MAP, SPECS, event, write

pytestmark = [*SPARK, pytest.mark.slow]
COUNT = 60


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Return a history of inserts by two servers; every tenth group changes rows 1 and 2, too."""
    path = tmp_path_factory.mktemp("binlogs")
    update = enc.rows_event(enc.UPDATE, SPECS, [[(1, b"a"), (2, None)]])
    partial = enc.rows_event(
        enc.UPDATE, SPECS, [[(2, None), (None, b"x")]], [[True, False], [False, True]]
    )
    delete = enc.rows_event(enc.DELETE, SPECS, [[(2, b"x")]])
    with Store.open(path, OPTIONS) as store:
        for number in range(1, COUNT + 1):
            more = [MAP, update, MAP, partial, MAP, delete] if number % 10 == 0 else []
            annotated = event(EventType.ANNOTATE_ROWS, b"INSERT\nINTO t VALUES (%d)" % number)
            publish_events(
                store,
                f"0-{1 + number % 2}-{number}",
                *(annotated, write(100 + number), *more, query("." * 9000), xid(1)),
                timestamp=1_700_000_000 + 3600 * number,
            )
    return path


@pytest.fixture
def run(spark, monkeypatch):
    """Run a command in the session that tests share."""

    @contextmanager
    def shared(_name, _master, _conf):
        yield spark

    monkeypatch.setattr(entry, "job_session", shared)

    def run(*words):
        done = CliRunner().invoke(ibb, [str(word) for word in words], catch_exceptions=False)
        run.errors = done.stderr
        return done.exit_code, done.stdout

    return run


def test_a_row_is_followed_through_its_changes(run, directory):
    _, told = run("audit", directory, "--key", "id=2", "--stop-position", "0-1-20", "--json")
    rows = [json.loads(line) for line in told.splitlines()]
    assert [(row["gtid"], row["op"]) for row in rows] == [
        (gtid, op) for gtid in ("0-1-10", "0-1-20") for op in ("update", "update", "delete")
    ]
    assert rows[0]["after"] == {"id": "2", "note": None}
    assert rows[1]["after"] == {"note": "x"}  # its key is in the image before alone
    assert rows[0]["commit_time"] == "2023-11-15T08:13:20Z"
    assert rows[0]["thread"] is None
    _, named_otherwise = run(
        "audit", directory, "--key", "ID=2", "--stop-position", "0-1-20", "--json"
    )
    assert named_otherwise == told
    assert "no changed row" not in run.errors
    _, told = run("audit", directory, "--key", "Note=x", "--op", "update", "--limit", 1)
    assert told.endswith('id="2"  note: ? -> "x"\n')


def test_nothing_that_was_found_is_told_beside_the_rows(run, directory):
    for words in (["--table", "d.misspelt"], ["--key", "misspelt=2"]):
        assert run("audit", directory, *words, "--json") == (0, "")
        assert run.errors.endswith("no changed row meets all of these conditions\n")


def test_changes_are_told_in_lines(run, directory):
    bounds = ("--start-position", "0-2-9", "--start-datetime", "2023-11-15T08:00Z")
    words = ("audit", directory, *bounds, "--table", "d.t", "--limit", 2)
    code, told = run(*words)
    assert code == 0
    first, second = told.splitlines()
    assert first == (
        '2023-11-15 08:13:20  0-1-10            server 1 thread -     insert  d.t  id="110"'
        '  id: "110", note: "n110"  [INSERT INTO t VALUES (10)]'
    )
    assert second.endswith('update  d.t  id="1"  id: "1" -> "2", note: "a" -> NULL')
    _, told = run(*words[:-2], "--server", 2, "--statement", r"VALUES \(1[13]\)")
    assert [line.split()[2] for line in told.splitlines()] == ["0-2-11", "0-2-13"]


def test_rows_come_in_the_order_of_the_history(run, tmp_path):
    """Times and numbers fall, as of a statement that waited for a lock, and of mixed tables."""
    gtids = [f"{number % 2}-1-{number if number % 3 else 1000 + number}" for number in range(1, 31)]
    other = MAP.replace(b"\x01t\0", b"\x01u\0") + write(7)[len(MAP) :]
    with Store.open(tmp_path, OPTIONS) as store:
        for number, gtid in enumerate(gtids):
            when = 1_700_000_000 - 5 * (number % 4)
            events = (write(2, 1), other, write(3), query("." * 9000), xid(1))
            publish_events(store, gtid, *events, timestamp=when)
    words = ("audit", tmp_path, "--option", "minPartitions=5", "--json")
    rows = [json.loads(line) for line in run(*words)[1].splitlines()]
    assert [(row["gtid"], row["table"], row["after"]["id"]) for row in rows] == [
        (gtid, table, number)
        for gtid in gtids
        for table, number in (("t", "2"), ("t", "1"), ("u", "7"), ("t", "3"))
    ]
    assert [json.loads(line) for line in run(*words, "--limit", 5)[1].splitlines()] == rows[:5]


def test_statistics_are_counted(run, directory):
    _, told = run("statistics", directory, "--by", "table,op", "--largest", 2, "--json")
    rows = [json.loads(line) for line in told.splitlines()]
    counts = {(row["table"], row["op"]): row for row in rows[:-2]}
    assert {key: (row["rows"], row["groups"]) for key, row in counts.items()} == {
        (None, None): (0, 0),
        ("t", "delete"): (6, 6),
        ("t", "insert"): (60, 60),
        ("t", "update"): (12, 6),
    }
    assert [row["rows"] for row in rows[-2:]] == [4, 4]
    assert rows[-1]["tables"] == ["d.t"]
    whole = json.loads(run("statistics", directory, "--by", "", "--largest", 0, "--json")[1])
    assert whole == {name: sum(row[name] for row in rows[:-2]) for name in ("rows", "bytes")} | {
        "groups": COUNT
    }
    late = ("--start-datetime", "2100-01-01", "--largest", 0, "--json")
    none = json.loads(run("statistics", directory, "--by", "", *late)[1])
    assert none == {"rows": 0, "bytes": 0, "groups": 0}
    _, told = run("statistics", directory, "--option", "minPartitions=4", "--by", "server")
    lines = [line.split() for line in told.splitlines()]
    assert lines[0] == ["server", "rows", "bytes", "groups"]
    assert [(line[0], line[1], line[3]) for line in lines[1:3]] == [
        ("1", "48", "30"),
        ("2", "30", "30"),
    ]


def test_a_check_by_spark_finds_what_a_check_finds(run, directory, monkeypatch, tmp_path):
    monkeypatch.setattr(verify_plan, "PART_BYTES_MIN", 1)
    file = directory / "binlog-000001.ibb"
    image = bytearray(file.read_bytes())
    image[5 * 4096 + 77] ^= 1
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for other in directory.iterdir():
        (damaged / other.name).write_bytes(other.read_bytes())
    (damaged / file.name).write_bytes(image)
    code, told = run("verify", damaged, "--master", "local[2]", "--json")
    found = [json.loads(line)["text"] for line in told.splitlines()]
    assert found == [finding.text for finding in verify_directory(OsDisk(), str(damaged))]
    assert code == 1
