"""The same history from a real primary and from `ibb`: equal events, byte for byte, equal ends."""

import pytest

from . import compare, workload
from .side_by_side import Asked, observe, replica_settings
from .waiting import wait_until

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("side by side")]

SECONDS = 30.0
TOO_LONG_FOR_10_11 = (
    "1236 HY000 Failed to replace GTID event with backwards-compatible event: corrupt event."
)


def skipped_and_two_phase(connection):
    """Groups marked for skipping, and an ALTER in two groups."""
    workload.execute(
        connection,
        "CREATE TABLE skipped (id INT PRIMARY KEY)",
        "SET skip_replication = 1",
        "INSERT INTO skipped VALUES (1)",
        "INSERT INTO skipped VALUES (2)",
        "SET skip_replication = 0",
        "INSERT INTO skipped VALUES (3)",
        "SET binlog_alter_two_phase = 1",
        "ALTER TABLE skipped ADD COLUMN more INT",
        "SET binlog_alter_two_phase = 0",
    )


@pytest.fixture(scope="module", params=["10.11", "11.8"])
def both(request, rig, mariadb_10, mariadb_11):
    """Return a primary, and an `ibb` that relays all of its history."""
    primary = rig.primary(mariadb_10 if request.param == "10.11" else mariadb_11)
    aspects = [aspect for aspect in workload.ASPECTS if aspect is not workload.large_blob]
    for aspect in (*aspects, skipped_and_two_phase):
        database = None if aspect is workload.definitions else "shop"
        with primary.connection(database=database, local_infile=True) as connection:
            aspect(connection)
    ibb = rig.ibb("--max-binlog-size=1M").relay_from(primary.port).start()
    wanted = compare.gtids(primary.binlog_position())
    asked = Asked(replica_settings(primary.binlog_position()))
    wait_until(lambda: observe(ibb.port, asked).end == "EOF", SECONDS, wanted)
    return primary, ibb


def assert_equal(primary, theirs, ours):
    """Fail unless the dumps are equal, to where 10.11 gives up: the GTID event of an XA group."""
    if theirs.end == TOO_LONG_FOR_10_11:
        assert primary.value("VERSION()").startswith("10.11")
        assert ours.end == "EOF"
        del ours.events[len(theirs.events) :]
    else:
        assert ours.end == theirs.end
    assert ours.events == theirs.events


@pytest.mark.parametrize("annotate", [True, False], ids=["annotated", "bare"])
@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
@pytest.mark.parametrize("level", [None, 0, 1, 2, 3, 4, "'4'"])
def test_every_capability_gets_what_a_primary_sends(both, level, checksum, annotate):
    primary, ibb = both
    settings = [f"SET @master_binlog_checksum='{checksum}'", "SET @slave_connect_state=''"]
    if level is not None:
        settings.append(f"SET @mariadb_slave_capability={level}")
    asked = Asked(tuple(settings), annotate=annotate)
    theirs, ours = observe(primary.port, asked), observe(ibb.port, asked)
    assert len(theirs.events) > 300
    assert_equal(primary, theirs, ours)


STARTS = {  # 101 stands for the server id of the primary
    "everything": replica_settings(""),
    "in one domain": replica_settings("0-101-20"),
    "in all domains": replica_settings("0-101-40,7-101-1000,1-101-5,4294967295-101-30"),
    "spaces": replica_settings("0-101-40, 7-101-3"),
    "of the other server": replica_settings("7-77-1001"),
    "in a hole": replica_settings("7-101-500"),
    "in a hole, strict": replica_settings("7-101-500", "SET @slave_gtid_strict_mode=1"),
    "beyond the end": replica_settings("0-101-999999"),
    "beyond the end, ignoring duplicates": replica_settings(
        "0-101-999999", "SET @slave_gtid_ignore_duplicates=1"
    ),
    "diverged": replica_settings("0-555-3"),
    "diverged, ignoring duplicates": replica_settings(
        "0-555-3", "SET @slave_gtid_ignore_duplicates=1"
    ),
    "of an unknown domain": replica_settings("0-101-20,99-5-1"),
    "garbage": replica_settings("hello"),
    "a domain twice": replica_settings("0-101-20,0-101-30"),
    "numbers too large": replica_settings("0-101-99999999999999999999"),
    "no position": replica_settings(None),
    "NULL": replica_settings(None, "SET @slave_connect_state=NULL"),
    "until": replica_settings("0-101-10", "SET @slave_until_gtid='0-101-20'"),
    "until, in two domains": replica_settings("", "SET @slave_until_gtid='0-101-60,7-101-20'"),
    "until, reached": replica_settings("0-101-20", "SET @slave_until_gtid='0-101-20'"),
    "until, passed": replica_settings("0-101-30", "SET @slave_until_gtid='0-101-20'"),
    "until nothing": replica_settings("0-101-30", "SET @slave_until_gtid=''"),
    "until garbage": replica_settings("0-101-30", "SET @slave_until_gtid='hello'"),
    "until, in a hole": replica_settings("", "SET @slave_until_gtid='7-101-500'"),
    "until, another server": replica_settings("7-101-1000", "SET @slave_until_gtid='7-77-1001'"),
    "without marked groups": replica_settings("", "SET skip_replication=1"),
    "with what no primary knows": replica_settings(
        "0-101-20", "SET @slave_uuid='a-b', @replica_uuid='a-b'"
    ),
    "capability as text": replica_settings("0-101-20", capability="'three'"),
    "capability below": replica_settings("0-101-20", capability=-1),
    "capability above": replica_settings("0-101-20", capability=5),
    "capability NULL": replica_settings("0-101-20", capability="NULL"),
}


@pytest.mark.parametrize("settings", STARTS.values(), ids=STARTS)
def test_every_start_and_end_is_that_of_a_primary(both, settings):
    primary, ibb = both
    asked = Asked(tuple(setting.replace("101", str(primary.server_id)) for setting in settings))
    assert_equal(primary, observe(primary.port, asked), observe(ibb.port, asked))
