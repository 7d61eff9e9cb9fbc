"""mariadb-binlog of both versions reads from `ibb` what it reads from the primary."""

import subprocess
import time

import pytest

from . import compare
from .binlog_text import mariadb_binlog, normalised, raw_events, remote_command
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("relayed")]

NAME = "ibb-bin.000001"  # the one that `ibb` gives its stream
STREAM_SECONDS = 60.0


@pytest.fixture(params=["mariadb_10", "mariadb_11"])
def tool(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def caught_up(relayed):
    """The topology with all that the primary has in the relay."""
    compare.wait_for_position(relayed.replicas[0], relayed.primary.binlog_position())
    return relayed


def first_file(server):
    return server.binlog_files()[0].name


def text_of(tool, port, *arguments):
    done = mariadb_binlog(tool, port, *arguments)
    assert done.returncode == 0, done.stderr
    return normalised(done.stdout)


def assert_same_lines(found, wanted):
    """Compare without showing thousands of lines."""
    for number, (line, other) in enumerate(zip(found, wanted, strict=False)):
        assert line[:200] == other[:200], (
            f"line {number}, after {wanted[max(0, number - 5) : number]}"
        )
        assert line == other, f"line {number} is not equal behind its first 200 bytes"
    assert len(found) == len(wanted)


def test_the_whole_history_reads_the_same(caught_up, tool):
    wanted = text_of(tool, caught_up.primary.port, "--to-last-log", first_file(caught_up.primary))
    assert len(wanted) > 2000
    assert_same_lines(text_of(tool, caught_up.ibb.port, NAME), wanted)


def test_reading_from_a_gtid_position_reads_the_same(caught_up, tool):
    start = "--start-position=0-101-60,1-101-5,7-101-9,4294967295-101-20"
    first = first_file(caught_up.primary)
    wanted = text_of(tool, caught_up.primary.port, start, "--to-last-log", first)
    assert len(wanted) > 100
    assert_same_lines(text_of(tool, caught_up.ibb.port, start, NAME), wanted)


def test_raw_files_hold_the_same_events(caught_up, tool, tmp_path):
    for server, first in (
        (caught_up.primary, first_file(caught_up.primary)),
        (caught_up.ibb, NAME),
    ):
        folder = tmp_path / str(server.port)
        folder.mkdir()
        raw = ("--raw", f"--result-file={folder}/", "--to-last-log", first)
        done = mariadb_binlog(tool, server.port, *raw)
        assert done.returncode == 0, done.stderr
    wanted, found = (
        raw_events(sorted((tmp_path / str(server.port)).iterdir()))
        for server in (caught_up.primary, caught_up.ibb)
    )
    assert len(wanted) > 1000
    assert_same_lines(found, wanted)


def test_a_stream_that_never_stops_goes_on_with_new_groups(caught_up, tool, tmp_path):
    path = tmp_path / "text"
    command = remote_command(tool, caught_up.ibb.port, tmp_path, "--stop-never", NAME)
    with path.open("wb") as file, subprocess.Popen(command, stdout=file) as stream:
        try:
            marker = f"streamed at {time.monotonic()}"
            wait_until(lambda: b"DELIMITER" in path.read_bytes(), STREAM_SECONDS)
            caught_up.primary.run(
                "SET SESSION binlog_format = STATEMENT",
                f"INSERT INTO shop.log (word) VALUES ('{marker}')",
                "INSERT INTO shop.log (word) VALUES ('pushes the former out of the tool')",
            )
            wait_until(lambda: marker.encode() in path.read_bytes(), STREAM_SECONDS, path)
            assert stream.poll() is None
        finally:
            stream.kill()
    first = first_file(caught_up.primary)
    wanted = text_of(tool, caught_up.primary.port, "--to-last-log", first)
    found = normalised(path.read_bytes())
    complete = len(found) - 20  # the tool may be cut off within its last events
    assert_same_lines(found[:complete], wanted[:complete])
    assert complete > 2000
