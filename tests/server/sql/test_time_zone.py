"""The session's time zone and time: what NOW() says, and which files PURGE takes."""

from datetime import UTC, datetime, timedelta

import pytest

from ibb.server.sql.time_zone import seconds_of, session_zone_of, time_zone_of

from ..raw_client import RawClient

DAY = 86_400


@pytest.mark.parametrize(
    ("name", "minutes"),
    [("+00:00", 0), ("+5:7", 307), ("+13:00", 780), ("-12:59", -779), ("-05:30", -330)],
)
def test_an_offset_is_read(name, minutes):
    zone = time_zone_of(name)
    assert zone is not None
    assert zone.utcoffset(None) == timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["+13:01", "-13:00", "5:30", "+05:60", "UTC", "Europe/Berlin"])
def test_what_is_no_offset_is_refused(name):
    with pytest.raises(ValueError, match=name.replace("+", r"\+")):
        time_zone_of(name)


def test_sessions_know_utc_by_name_and_the_machines_zone():
    assert session_zone_of("utc") is UTC
    assert session_zone_of("system") is None


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_every_year_is_some_time(year):
    moment = datetime(year, 12, 31, 23, tzinfo=UTC).replace(tzinfo=None)
    seconds = seconds_of(moment, None)
    assert (seconds < 0) == (year < 1970)


async def test_a_session_tells_the_time_of_its_zone(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.query("SET time_zone = '+05:00', timestamp = 1000000000.25")
        ask = (
            "SELECT FROM_UNIXTIME(0), UNIX_TIMESTAMP('2024-01-01 00:00:00'), NOW(),"
            " UTC_TIMESTAMP(), UNIX_TIMESTAMP(), CURDATE(), @@timestamp, SYSDATE() > NOW()"
        )
        (row,) = await client.rows(ask)
        assert [value.decode() if isinstance(value, bytes) else value for value in row] == [
            *("1970-01-01 05:00:00", "1704049200", "2001-09-09 06:46:40", "2001-09-09 01:46:40"),
            *("1000000000", "2001-09-09", "1000000000.250000", "1"),
        ]
        await client.query("SET timestamp = DEFAULT")
        assert int(await client.value("SELECT UNIX_TIMESTAMP()")) > 1_700_000_000
        await client.query(["SET timestamp = 1", " SET timestamp = 0"][0])
        await client.query("SET timestamp = 0")
        assert int(await client.value("SELECT UNIX_TIMESTAMP()")) > 1_700_000_000


async def test_purge_goes_by_the_sessions_zone(serve, store):
    """A moment two hours from now is an hour ago where clocks are three hours ahead."""
    store.switch_file()
    server = await serve(store)
    later = datetime.fromtimestamp(server.now() + DAY / 12, UTC).strftime("%Y-%m-%d %H:%M:%S")
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        await client.query("SET time_zone = '+03:00'")
        await client.query(f"PURGE BINARY LOGS BEFORE '{later}'")
        assert len(await client.rows("SHOW BINARY LOGS")) == 2 + 1
        await client.query("SET time_zone = 'UTC'")
        await client.query(f"PURGE BINARY LOGS BEFORE '{later}'")
        assert len(await client.rows("SHOW BINARY LOGS")) < 2 + 1


@pytest.mark.parametrize("moment", ["'0001-01-01 00:00:00'", "NULL", "0", "'1969-01-01'"])
async def test_a_purge_before_everything_purges_nothing(serve, store, moment):
    store.switch_file()
    server = await serve(store)
    async with await RawClient.logged_in(server, "admin", "mighty") as client:
        before = await client.rows("SHOW BINARY LOGS")
        done = await client.query(f"PURGE BINARY LOGS BEFORE {moment}")
        after = await client.rows("SHOW BINARY LOGS")
        assert after[: len(before)] == before  # the next file may have been made meanwhile
        assert done.warnings == 0
