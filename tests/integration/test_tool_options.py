"""mariadb-binlog of both versions with its options: from `ibb` just what a 10.11 primary gives."""

import re
from datetime import datetime

import pytest

from . import workload
from .binlog_text import mariadb_binlog, normalised, raw_events
from .side_by_side import Asked, observe, replica_settings
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("tool options")]

SECONDS = 30.0
NAME = "ibb-bin.000001"  # the one that `ibb` gives its stream
NUMBER = 101  # server id of the primary, the first of its rig
START = f"0-{NUMBER}-40,1-{NUMBER}-5,7-{NUMBER}-9,4294967295-{NUMBER}-20"
STOP = f"0-{NUMBER}-60,1-{NUMBER}-15,7-{NUMBER}-20,4294967295-{NUMBER}-25"
MOMENTS = (2_000_000_000, 2_000_000_100, 2_000_000_200)  # later than all else
FILE_NAMES = re.compile(rb"(ibb-)?bin\.\d{6}")

DECODED = ("--base64-output=DECODE-ROWS", "-v")

OPTIONS = {
    "rows and their types": ("-vv",),
    "rows decoded": DECODED,
    "nothing in base64": ("--base64-output=NEVER",),
    "from GTIDs": (f"--start-position={START}",),
    "to GTIDs": (f"--stop-position={STOP}",),
    "between GTIDs": (f"--start-position={START}", f"--stop-position={STOP}"),
    "one domain to its GTID": (f"--stop-position=7-{NUMBER}-15",),
    "strict": ("--gtid-strict-mode", f"--start-position={START}"),
    "not strict": ("--skip-gtid-strict-mode", f"--start-position={START}"),
    "one database": ("--database=shop", "-v"),
    "one table": (*DECODED, "--database=shop", "--table=orders"),
    "another database": (*DECODED, "--rewrite-db=shop->store"),
    "two domains": ("--do-domain-ids=1,7",),
    "without a domain": ("--ignore-domain-ids=7",),
    "one server": ("--do-server-ids=77",),
    "without a server": ("--ignore-server-ids=77",),
    "domains between GTIDs": ("--do-domain-ids=0,7", f"--stop-position={STOP}"),
    "short": ("--short-form",),
    "no annotations": ("--skip-annotate-row-events", "-v"),
    "checksums verified": ("--verify-binlog-checksum",),
    "rows counted": ("--print-row-count", "-v"),
    "columns described": ("--print-table-metadata", "-v"),
    "names set": ("--set-charset=utf8mb4", "--disable-log-bin"),
    "not from the end": (f"--start-position=0-{NUMBER}-99999",),
    "not of this history": ("--start-position=0-55-1",),
    "no GTIDs": ("--start-position=0-1",),
    "one domain twice": ("--start-position=0-1-1,0-1-2",),
    "end before start": (f"--start-position={STOP}", f"--stop-position={START}"),
}


@pytest.fixture(scope="module")
def both(rig, mariadb_10):
    """Return a primary, and an `ibb` that relays all of its history."""
    primary = rig.primary(mariadb_10)
    assert primary.server_id == NUMBER
    # The tool itself fails where domains are left out and a primary's checksums change.
    left_out = (workload.large_blob, workload.without_checksums)
    for aspect in (one for one in workload.ASPECTS if one not in left_out):
        database = None if aspect is workload.definitions else "shop"
        with primary.connection(database=database, local_infile=True) as connection:
            aspect(connection)
    with primary.connection(database="shop") as connection:
        workload.execute(connection, "CREATE TABLE moments (id INT)")
        for number, moment in enumerate(MOMENTS):
            workload.execute(
                connection, f"SET timestamp = {moment}", f"INSERT INTO moments VALUES ({number})"
            )
    ibb = rig.ibb("--max-binlog-size=1M").relay_from(primary.port).start()
    asked = Asked(replica_settings(primary.binlog_position()))
    wait_until(lambda: observe(ibb.port, asked).end == "EOF", SECONDS)
    return primary, ibb


@pytest.fixture(params=["mariadb_10", "mariadb_11"])
def tool(request):
    return request.getfixturevalue(request.param)


def read(tool, server, *options):
    """Return status, lines and errors of the tool, less what belongs to one server's files."""
    is_primary = hasattr(server, "binlog_files")
    names = ("--to-last-log", server.binlog_files()[0].name) if is_primary else (NAME,)
    done = mariadb_binlog(tool, server.port, *options, *names)
    return done.returncode, normalised(done.stdout), FILE_NAMES.sub(b"FILE", done.stderr)


def assert_same(found, wanted):
    assert (found[0], found[2]) == (wanted[0], wanted[2])
    for number, (line, other) in enumerate(zip(found[1], wanted[1], strict=False)):
        assert line[:200] == other[:200], wanted[1][max(0, number - 5) : number]
        assert line == other, f"line {number} is not equal behind its first 200 bytes"
    assert len(found[1]) == len(wanted[1])


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_tool_reads_the_same(both, tool, options):
    primary, ibb = both
    assert_same(read(tool, ibb, *options), read(tool, primary, *options))


def test_it_reads_the_same_over_tls(both, tool):
    primary, ibb = both
    assert_same(read(tool, ibb, "--ssl", "-v"), read(tool, primary, "-v"))


def local(seconds):
    """Return a time near the second moment as the tool takes it."""
    return datetime.fromtimestamp(MOMENTS[1] + seconds).isoformat(" ")  # noqa: DTZ006 - its zone


def test_a_span_of_time_reads_the_same(both, tool):
    primary, ibb = both
    span = (f"--start-datetime={local(-10)}", f"--stop-datetime={local(10)}", *DECODED)
    wanted = read(tool, primary, *span)
    assert_same(read(tool, ibb, *span), wanted)
    shown = [line for line in wanted[1] if b"INTO moments" in line]
    assert shown == [b"INSERT INTO moments VALUES (1)"]


def test_raw_files_hold_the_same_events(both, tool, tmp_path):
    found = []
    for server in both:
        folder = tmp_path / str(server.port)
        folder.mkdir()
        options = ("--raw", f"--result-file={folder}/", f"--stop-position={STOP}")
        status, _, errors = read(tool, server, *options)
        assert status == 0
        found.append((raw_events(sorted(folder.iterdir())), sorted(errors.splitlines())))
    assert found[0] == found[1]
    assert len(found[0][0]) > 500


def test_to_the_last_log_is_to_the_end(both, tool):
    primary, ibb = both
    assert_same(read(tool, ibb, "--to-last-log"), read(tool, primary))
