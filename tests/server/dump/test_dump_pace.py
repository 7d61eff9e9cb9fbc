"""Readers that are served slowly or late: never faster, never fresher, and never silent."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.config import ConfigError
from ibb.server.dump.pacing import Pacing
from ibb.server.login.accounts import AccountBook, make_account
from ibb.storage.clock import SystemClock

from ...storage.events import transaction
from ..raw_client import RawClient, dumping
from ..waiting import until

RATE = 2_000_000
GROUP_BYTES = 50_000
GROUPS = 30
HOUR = 3600


def limited(server, *, rate=RATE, total=0, delay=0):
    """Set what a configuration would not allow to be so small."""
    server.pacing = Pacing(rate, total, SystemClock(), delay=delay)
    return server


@pytest.fixture
def filled(store):
    written = int(time.time())
    for seq in range(11, 11 + GROUPS):
        with store.begin() as group:
            gtid = Gtid(0, 1, seq)
            group.write(encode_gtid_event(gtid, written, 0) + transaction("x" * GROUP_BYTES))
            group.commit(gtid, wait=False)
    store.sync()
    return store


async def test_a_reader_gets_no_more_than_its_rate(serve, filled):
    dump = await dumping(limited(await serve(filled)), "0-1-10")
    begun = time.monotonic()
    assert len(await dump.groups()) == GROUPS
    # The burst and the last batch are on top of the rate.
    assert time.monotonic() - begun > (GROUPS * GROUP_BYTES - RATE / 4 - (300 << 10)) / RATE
    await dump.client.close()


async def test_readers_share_the_rate_of_all(serve, filled):
    server = limited(await serve(filled), rate=0, total=2 * RATE)
    dumps = [await dumping(server, "0-1-10") for _ in range(3)]
    begun = time.monotonic()
    found = await asyncio.gather(*(dump.groups() for dump in dumps))
    assert all(len(groups) == GROUPS for groups in found)
    spared = 2 * RATE / 4 + 3 * (300 << 10)
    assert time.monotonic() - begun > (3 * GROUPS * GROUP_BYTES - spared) / (2 * RATE)
    for dump in dumps:
        await dump.client.close()


async def test_heartbeats_come_while_a_reader_waits_for_its_turn(serve, filled):
    server = limited(await serve(filled), rate=RATE // 4)
    dump = await dumping(server, "0-1-10", heartbeat=0.02, server_id=5)
    types = []
    while (found := await dump.event()) is not None:  # which checks the sequence ids, too
        types.append(found[0].type)
    assert types.count(EventType.GTID) == GROUPS
    assert EventType.HEARTBEAT in types[: types.index(EventType.GTID) + GROUPS]
    await dump.client.close()


async def test_a_reader_that_waits_for_its_turn_can_be_ended(serve, filled):
    server = limited(await serve(filled), rate=1000)  # minutes for one batch
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5)
    stopping = asyncio.create_task(server.stop())
    with pytest.raises(SqlError, match="shutdown"):
        await dump.groups()
    await dump.client.close()
    await stopping


async def test_who_rests_goes_on_when_the_limit_is_taken_away(serve, filled):
    """Not when the seconds are over that were reckoned with the old one."""
    server = limited(await serve(filled), rate=1, total=1)  # days for one batch
    dumps = [await dumping(server, "0-1-10", server_id=number) for number in (5, 6, 7)]
    await until(lambda: server.pacing.shared.left() > 100)
    server.pacing.rate = server.pacing.total_rate = 0
    found = await asyncio.gather(*(dump.groups() for dump in dumps))
    assert [len(groups) for groups in found] == [GROUPS] * 3
    for dump in dumps:
        await dump.client.close()


@pytest.fixture
def late_accounts(accounts):
    late = make_account("late", "%", "secret", ["REPLICATION SLAVE"], dump_delay=HOUR)
    accounts.add(late)
    return accounts


class LaterClock(SystemClock):
    """Says that it is later than it is."""

    ahead = 0

    def now(self):
        return super().now() + self.ahead


async def late_dump(server, **options):
    return await dumping(server, "0-1-10", user="late", **options)


async def test_an_account_gets_nothing_younger_than_its_delay(serve, filled, late_accounts):
    server = await serve(filled)
    clock = LaterClock()
    server.pacing = Pacing(0, 0, clock)
    dump = await late_dump(server)
    assert await dump.groups() == []
    await dump.client.close()
    clock.ahead = HOUR + 1
    dump = await late_dump(server)
    assert len(await dump.groups()) == GROUPS
    await dump.client.close()
    other = await dumping(server, "0-1-10")
    assert len(await other.groups()) == GROUPS
    await other.client.close()


async def test_a_group_comes_once_it_is_old_enough(serve, store):
    dump = await dumping(limited(await serve(store), rate=0, delay=1), "0-1-10", non_block=False)
    written, gtid = int(time.time()), Gtid(0, 1, 11)
    with store.begin() as group:
        group.write(encode_gtid_event(gtid, written, 0) + transaction("new"))
        group.commit(gtid)
    assert (await dump.next_group()).gtid.seq == 11
    assert time.time() >= written + 1
    await dump.client.close()


async def test_groups_from_the_future_stop_no_reader_and_are_told_once(serve, store):
    """A writer's clock may be decades ahead: they wait from when they were seen, all together."""
    server = limited(await serve(store), rate=0, delay=1)
    ahead = int(time.time()) + 1_000_000_000
    for seq in range(11, 16):
        with store.begin() as group:
            gtid = Gtid(0, 1, seq)
            group.write(encode_gtid_event(gtid, ahead, 0) + transaction(f"insert {gtid}"))
            group.commit(gtid, wait=False)
    store.sync()
    with capture_logs() as lines:
        begun = time.monotonic()
        dump = await dumping(server, "0-1-10", non_block=False)
        assert [group.gtid.seq for group in await dump.groups(5)] == [11, 12, 13, 14, 15]
        assert 1 <= time.monotonic() - begun < 5
        await dump.client.close()
    (line,) = [line for line in lines if line["event"] == "group_from_the_future"]
    assert (line["gtid"], line["timestamp"]) == ("0-1-11", ahead)


async def test_a_delay_that_is_taken_away_holds_nobody(serve, store):
    server = limited(await serve(store), rate=0, delay=1 << 31)
    dump = await dumping(server, "0-1-5", non_block=False)
    await until(lambda: next(iter(server.sessions)).progress().at.unsent is not None)
    server.pacing.delay = 0
    assert len(await dump.groups(5)) == 5
    await dump.client.close()


async def test_a_late_reader_hears_heartbeats_and_can_be_ended(serve, filled, late_accounts):
    server = await serve(filled)
    dump = await late_dump(server, non_block=False, server_id=5, heartbeat=0.02)
    for _ in range(3):
        header, _ = await dump.event()
        assert header.type == EventType.HEARTBEAT
    stopping = asyncio.create_task(server.stop())
    with pytest.raises(SqlError, match="shutdown"):
        await dump.groups()
    await dump.client.close()
    await stopping


async def test_rates_and_delay_are_variables_that_an_administrator_sets(serve, store):
    server = await serve(store, dump_rate=1 << 20, dump_rate_total=2 << 20, dump_delay=HOUR)
    client = await RawClient.logged_in(server, "admin", "mighty")
    names = "@@dump_rate, @@dump_rate_total, @@dump_delay"
    assert await client.rows(f"SELECT {names}") == [("1048576", "2097152", "3600")]
    await client.query("SET GLOBAL dump_rate = 0, GLOBAL dump_rate_total = 0, GLOBAL dump_delay=0")
    assert await client.rows(f"SELECT {names}") == [("0", "0", "0")]
    dump = await dumping(server, "0-1-5")
    assert len(await dump.groups()) == 5
    await dump.client.close()
    await client.close()


def test_an_account_keeps_its_rate_and_delay_in_the_file(tmp_path):
    path = str(tmp_path / "accounts.toml")
    account = make_account("late", "%", "secret", dump_rate=1 << 20, dump_delay=HOUR)
    AccountBook([account]).save(path)
    assert list(AccountBook.load(path)) == [account]


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"dump_rate": 1000}, "dump_rate must be 0 or at least 64K"),
        ({"dump_rate": -1}, "dump_rate must be 0 or at least 64K"),
        ({"dump_delay": -1}, "dump_delay must be 0 to 31536000 seconds"),
        ({"dump_delay": 40_000_000}, "dump_delay must be 0 to 31536000 seconds"),
    ],
)
def test_a_rate_or_delay_without_sense_is_refused(limits, text):
    with pytest.raises(ConfigError, match=text):
        make_account("late", "%", "secret", **limits)
