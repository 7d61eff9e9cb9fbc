"""Readers of row changes decode from a relay what they decode from its primary, and it is right."""

import json
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from ..integration.waiting import wait_until
from .conftest import (
    FOLLOW_SECONDS_MAX,
    PROGRAM_SECONDS_MAX,
    SECRET,
    follow,
    position,
    rows_of,
    run_program,
)
from .row_workload import KEPT

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("clients")]

START = "0-101-8"  # in the midst of the workload
COLUMNS = 11  # of the table at its end
CHANGES_MIN = 90
ROWS_MIN = 200
NUMBERS = count(20_000)
GO_READER = Path(sys.executable).parent / "go-mysql-reader"
DEFAULT_OF_ADDED = "5"  # a row that was written before ALTER TABLE has no value for it


def first_file(server):
    return rows_of(server.port, "SHOW BINARY LOGS")[0][0]


def python_lines(server, **settings):
    """Return what python-mysql-replication reads."""
    where = {"port": server.port, "user": "admin", "password": SECRET, "is_mariadb": True}
    out = run_program("tests.clients.read_rows", json.dumps(where | settings))
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def go_reader(server, until, *arguments):
    """Start go-mysql; it ends behind the GTID position *until*."""
    assert GO_READER.exists(), "no reader by go-mysql: run scripts/setup"
    return subprocess.Popen(
        [GO_READER, f"-port={server.port}", "-user=admin", f"-until={until}", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"READER_PASSWORD": SECRET},
    )


def go_lines(server, *arguments):
    """Return what go-mysql reads up to where the server is."""
    with go_reader(server, ",".join(position(server.port)), *arguments) as reader:
        out, _ = reader.communicate(timeout=PROGRAM_SECONDS_MAX)
    assert reader.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


READERS = {
    "python, from the beginning": python_lines,
    "python, a file": lambda server: python_lines(server, log_file=first_file(server), log_pos=4),
    "python, behind a GTID": lambda server: python_lines(server, auto_position=START),
    "python, annotated, with heartbeats": lambda server: python_lines(
        server, auto_position=START, annotate_rows_event=True, slave_heartbeat=1
    ),
    "python, as for MySQL": lambda server: python_lines(
        server, is_mariadb=False, log_file=first_file(server), log_pos=4
    ),
    "go, from the beginning": go_lines,
    "go, a file": lambda server: go_lines(server, f"-file={first_file(server)}"),
    "go, behind a GTID": lambda server: go_lines(server, f"-start={START}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_decodes_what_it_decodes_from_the_primary(site, reader):
    wanted, found = READERS[reader](site.primary), READERS[reader](site.ibb)
    assert len(changes(wanted)) > CHANGES_MIN
    for line, other in zip(found, wanted, strict=False):
        assert str(line)[:500] == str(other)[:500]
        assert line == other
    assert len(found) == len(wanted)


@pytest.mark.parametrize("reader", ["python, from the beginning", "go, from the beginning"])
def test_the_decoded_rows_make_the_table(site, reader):
    kept = {}
    for line in changes(READERS[reader](site.ibb)):
        if line["table"] == KEPT:
            apply(kept, line)
    stored = rows_of(site.primary.port, f"SELECT * FROM {KEPT}")
    assert sorted(kept.values()) == sorted(
        [None if value is None else str(value) for value in row] for row in stored
    )
    assert len(kept) > ROWS_MIN


def apply(kept, line):
    """Do to *kept* what a line says; an update comes as two, before and after."""
    row = line["row"] + [DEFAULT_OF_ADDED] * (COLUMNS - len(line["row"]))
    if line["change"] == "insert":
        assert row[0] not in kept
        kept[row[0]] = row
        return
    if row[0] in kept and kept[row[0]] == row:
        del kept[row[0]]
        return
    assert line["change"] == "update"
    kept[row[0]] = row


@pytest.mark.parametrize("arguments", [(), ("-semi-sync",)], ids=["plain", "semi-sync"])
def test_go_mysql_follows_what_is_committed_now(site, arguments):
    start = ",".join(position(site.ibb.port))
    number = next(NUMBERS)
    gtid = follow_up(start)
    with go_reader(site.ibb, gtid, f"-start={start}", *arguments) as reader:
        try:
            hosts = "SHOW SLAVE HOSTS"
            wait_until(lambda: len(rows_of(site.ibb.port, hosts)) == 1, FOLLOW_SECONDS_MAX)
            site.primary.run(f"INSERT INTO {KEPT} (id) VALUES ({number})")
            out, _ = reader.communicate(timeout=PROGRAM_SECONDS_MAX)
        finally:
            reader.kill()
    assert reader.returncode == 0
    (change,) = changes([json.loads(line) for line in out.splitlines()])
    assert change["row"][0] == str(number)
    follow(site.primary, site.ibb)


def follow_up(text):
    """Return the position of the next transaction in domain 0."""
    newest = {gtid.split("-")[0]: gtid for gtid in text.split(",")}
    domain, server, sequence = newest["0"].split("-")
    newest["0"] = f"{domain}-{server}-{int(sequence) + 1}"
    return ",".join(newest.values())


def changes(lines):
    return [line for line in lines if "table" in line]
