"""The relay: against ibb itself, and against a primary that follows a script."""

import asyncio
from dataclasses import replace

import pytest

from ibb.protocol.error_codes import (
    ACCESS_DENIED_ERROR,
    CON_COUNT_ERROR,
    MASTER_FATAL_ERROR_READING_BINLOG,
    SERVER_SHUTDOWN,
    SLAVE_INCIDENT,
    SLAVE_SAME_ID,
)
from ibb.protocol.errors import FormatError
from ibb.protocol.event import with_checksum
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_list import GtidList
from ibb.server.config import Config
from ibb.server.relay.ingest import NotAscending
from ibb.server.relay.relay import Cure, Relay, cure_of
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_login import UpstreamRefused
from ibb.storage.errors import DiskError, StoreFailed, StoreFull
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish
from ..waiting import until
from .fake_primary import CUT, HANG, FakePrimary, group, preamble, stored

pytestmark = pytest.mark.tiny

SECONDS_MAX = 20


class Following:
    """A relay at work, which notes its waits instead of waiting."""

    def __init__(
        self, target, port, *, password="upstream-pw", server_id=50, learn=None, **settings
    ):
        self.delays = []
        self.relay = Relay(
            target,
            UpstreamAddress("127.0.0.1", port, "repl", password),
            config=Config(**settings),
            server_id=server_id,
            port=lambda: 3307,
            sleep=self._sleep,
            learn=learn,
        )

    async def _sleep(self, seconds):
        self.delays.append(seconds)
        await asyncio.sleep(0)

    async def __aenter__(self):
        self.task = asyncio.create_task(self.relay.run())
        return self

    async def __aexit__(self, *_):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def contents(store):
    """Return the groups of a store with their bytes, and the format descriptions between."""
    store.sync()
    reader = GroupReader(store.pages, Position(store.pages.first_file(), 0))
    found = []
    while (stored_group := reader.next()) is not None:
        gtid = stored_group.gtid
        found.append((gtid and str(gtid), b"".join(stored_group.pieces())))
    return found


def gtids(store):
    return [gtid for gtid, _ in contents(store) if gtid]


def formats(store):
    return [data for gtid, data in contents(store) if not gtid]


@pytest.mark.roomy
async def test_a_chain_of_two_holds_the_same_groups(serve, store, target):
    publish(store, Gtid(3, 8, 1), size=3 << 20)
    server = await serve(store)
    async with Following(target, server.port(), password="secret"):
        await until(lambda: target.state() == store.state())
        for seq in range(11, 31):
            publish(store, Gtid(0, 1, seq), wait=seq % 5 == 0)
        await until(lambda: target.state() == store.state())
    assert contents(target) == contents(store)


async def test_it_learns_how_its_upstream_shapes_events(serve, store, target):
    server = await serve(store)
    server.set_global("binlog_row_metadata", "FULL")
    learned = {}
    wanted = {
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_row_metadata": "FULL",
    }
    async with Following(
        target, server.port(), password="secret", learn=learned.__setitem__
    ) as following:
        await until(lambda: following.relay.connected)
    assert learned == wanted


async def test_it_goes_on_where_it_ended(serve, store, target):
    server = await serve(store)
    for seq in (11, 12):
        async with Following(target, server.port(), password="secret"):
            publish(store, Gtid(0, 1, seq), wait=True)
            await until(lambda: target.state() == store.state())
    assert contents(target) == contents(store)


async def test_it_says_what_a_replica_says_in_that_order(target):
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 5)), HANG]) as primary,
        Following(target, primary.port, master_heartbeat_period=5.0),
    ):
        await until(lambda: gtids(target) == ["0-1-5"])
        async with Following(target, primary.port):
            await until(lambda: len(primary.dumps) == 2)
    assert primary.statements[0] == [
        "SELECT UNIX_TIMESTAMP()",
        "SHOW VARIABLES LIKE 'SERVER_ID'",
        "SET @master_heartbeat_period= 5000000000",
        "SET @master_binlog_checksum= @@global.binlog_checksum",
        "SELECT @master_binlog_checksum",
        "SET @mariadb_slave_capability=4",
        "SELECT @@GLOBAL.gtid_domain_id",
        "SET @slave_connect_state=''",
        "SET @slave_gtid_strict_mode=0",
        "SET @slave_gtid_ignore_duplicates=0",
    ]
    assert "SET @slave_connect_state='0-1-5'" in primary.statements[1]
    assert (primary.registered[0].server_id, primary.registered[0].port) == (50, 3307)
    dump = primary.dumps[0]
    assert (dump.position, dump.flags, dump.server_id, dump.file_name) == (4, 2, 50, "")


@pytest.mark.roomy
async def test_groups_are_stored_without_checksum_and_byte_for_byte(target):
    sizes = {5: 0, 6: 70_000, 7: 64 << 10, 8: 17 << 20}
    script = preamble() + [e for seq, size in sizes.items() for e in group(Gtid(0, 1, seq), size)]
    async with FakePrimary([*script, HANG]) as primary, Following(target, primary.port):
        await until(lambda: target.state().contains(Gtid(0, 1, 8)))
    assert [entry for entry in contents(target) if entry[0]] == [
        (f"0-1-{seq}", stored(Gtid(0, 1, seq), size)) for seq, size in sizes.items()
    ]


def damaged(event):
    broken = bytearray(event)
    broken[30] ^= 1
    return bytes(broken)


@pytest.mark.parametrize("size", [0, 200_000])
async def test_a_wrong_checksum_stores_nothing_of_the_group_and_is_asked_for_again(target, size):
    begin, body, end = group(Gtid(0, 1, 2), size)
    bad = [*preamble(), *group(Gtid(0, 1, 1)), begin, damaged(body), end, HANG]
    good = [*preamble(), begin, body, end, HANG]
    async with FakePrimary(bad, good) as primary, Following(target, primary.port) as following:
        await until(lambda: gtids(target) == ["0-1-1", "0-1-2"])
        assert following.delays == [1.0]
    assert "SET @slave_connect_state='0-1-1'" in primary.statements[1]
    assert contents(target)[-1][1] == stored(Gtid(0, 1, 2), size)


@pytest.mark.parametrize("wrong", [0, 1])
async def test_a_wrong_checksum_outside_of_groups_is_no_less_wrong(target, wrong):
    begin = preamble()
    begin[wrong] = damaged(begin[wrong])
    async with (
        FakePrimary([*begin, *group(Gtid(0, 1, 1)), HANG], [HANG]) as primary,
        Following(target, primary.port),
    ):
        await until(lambda: len(primary.dumps) == 2)
    assert contents(target) == []


async def test_a_connection_cut_inside_a_group_leaves_nothing_of_it(target):
    begin, body, end = group(Gtid(0, 1, 2), 300_000)
    half = (frame_part := b"\0" + body)[:100_000]
    cut = [*preamble(), *group(Gtid(0, 1, 1)), begin, (_header(len(frame_part), 7) + half,), CUT]
    async with (
        FakePrimary(cut, [*preamble(), begin, body, end, HANG]) as primary,
        Following(target, primary.port) as following,
    ):
        await until(lambda: gtids(target) == ["0-1-1", "0-1-2"])
        assert following.delays == [1.0]
    assert contents(target)[-1][1] == stored(Gtid(0, 1, 2), 300_000)


async def test_after_an_interruption_it_asks_behind_what_is_not_synced_yet(tmp_path):
    options = replace(
        SMALL, format_description="upstream", flush_log_at_commit=0, flush_log_interval=1e6
    )
    first = [*preamble(), *group(Gtid(0, 1, 1)), CUT]
    with Store.open(tmp_path / "lazy", options) as lazy:
        async with (
            FakePrimary(first, [*preamble(), *group(Gtid(0, 1, 2)), HANG]) as primary,
            Following(lazy, primary.port),
        ):
            await until(lambda: len(primary.dumps) == 2)
            assert "SET @slave_connect_state='0-1-1'" in primary.statements[1]
            await until(lambda: gtids(lazy) == ["0-1-1", "0-1-2"])


def _header(length, seq):
    return (seq << 24 | length).to_bytes(4, "little")


async def test_a_gtid_inside_a_group_drops_both_and_connects_again(target):
    first, second = group(Gtid(0, 1, 1)), group(Gtid(0, 1, 2))
    async with (
        FakePrimary(
            [*preamble(), *first[:2], *second, HANG], [*preamble(), *first, *second, HANG]
        ) as primary,
        Following(target, primary.port),
    ):
        await until(lambda: gtids(target) == ["0-1-1", "0-1-2"])
    assert len(primary.dumps) == 2


async def test_a_restart_of_the_primary_inside_a_group_drops_its_beginning(target):
    begin, body, end = group(Gtid(0, 1, 1), 300_000)
    restarted = preamble(created=500)[1]
    script = [*preamble(created=100), begin, body, restarted, begin, body, end, HANG]
    async with (
        FakePrimary(script) as primary,
        Following(target, primary.port),
    ):
        await until(lambda: gtids(target) == ["0-1-1"])
    assert len(primary.dumps) == 1  # it went on in the same dump
    assert contents(target)[-1] == ("0-1-1", stored(Gtid(0, 1, 1), 300_000))
    assert len(formats(target)) == 2


async def test_a_fake_list_inside_a_group_is_passed_over(target):
    begin, body, end = group(Gtid(0, 1, 1))
    fake = with_checksum(GtidList.fake([Gtid(0, 1, 0)], 1).encode())
    script = [*preamble(), fake, begin, fake, body, end, HANG]
    async with FakePrimary(script) as primary, Following(target, primary.port):
        await until(lambda: gtids(target) == ["0-1-1"])
    assert contents(target)[-1][1] == stored(Gtid(0, 1, 1))


async def test_a_group_that_is_held_is_skipped_and_legal_oddities_are_kept(target):
    order = ["0-1-5", "0-1-7", "0-1-5", "0-1-7", "0-2-7", "0-1-6", "0-2-3", "0-2-3", "1-1-1"]
    events = [event for text in order for event in group(Gtid.parse(text))]
    async with (
        FakePrimary([*preamble(), *events, HANG]) as primary,
        Following(target, primary.port),
    ):
        await until(lambda: target.state().contains(Gtid(1, 1, 1)))
    assert gtids(target) == ["0-1-5", "0-1-7", "0-2-7", "0-1-6", "0-2-3", "1-1-1"]


async def test_strict_mode_stops_with_both_gtids(target):
    events = [*group(Gtid(0, 1, 5)), *group(Gtid(0, 2, 5))]
    async with (
        FakePrimary([*preamble(), *events, HANG]) as primary,
        Following(target, primary.port, gtid_strict_mode=True) as following,
    ):
        await asyncio.wait_for(following.task, SECONDS_MAX)
    assert isinstance(following.relay.stopped_by, NotAscending)
    assert "0-2-5" in str(following.relay.stopped_by)
    assert "0-1-5" in str(following.relay.stopped_by)
    assert gtids(target) == ["0-1-5"]


async def test_format_descriptions_are_stored_when_they_are_news(target):
    scripts = [
        [*preamble(created=100), *group(Gtid(0, 1, 1)), CUT],
        [*preamble(created=100), *group(Gtid(0, 1, 2)), CUT],  # connected again: no news
        [*preamble(created=0), *group(Gtid(0, 1, 3)), CUT],
        [*preamble(created=0), preamble(created=300)[1], *group(Gtid(0, 1, 4)), CUT],
        [*preamble(created=100), preamble(created=300)[1], *group(Gtid(0, 1, 5)), CUT],
        [*preamble(version="11.8.6-MariaDB"), *group(Gtid(0, 1, 6)), HANG],
    ]
    async with FakePrimary(*scripts) as primary, Following(target, primary.port):
        await until(lambda: target.state().contains(Gtid(0, 1, 6)))
    order = [gtid or "format" for gtid, _ in contents(target)]
    assert order == [
        "format", "0-1-1", "0-1-2", "0-1-3", "format", "0-1-4", "0-1-5", "format", "0-1-6",
    ]  # fmt: skip
    created = [int.from_bytes(event[71:75], "little") for event in formats(target)]
    assert created == [100, 300, 0]


async def test_a_primary_with_our_server_id_is_refused(target):
    async with (
        FakePrimary([HANG], server_id=50) as primary,
        Following(target, primary.port) as following,
    ):
        await asyncio.wait_for(following.task, SECONDS_MAX)
    assert isinstance(following.relay.stopped_by, UpstreamRefused)
    assert "server id 50" in str(following.relay.stopped_by)
    assert primary.dumps == []


@pytest.mark.parametrize("version", ["8.0.30", "5.5.5-9.9.9-MariaDB", "nonsense"])
async def test_a_primary_without_mariadb_gtids_is_refused(target, version):
    async with (
        FakePrimary([HANG], version=version) as primary,
        Following(target, primary.port) as following,
    ):
        await asyncio.wait_for(following.task, SECONDS_MAX)
    assert isinstance(following.relay.stopped_by, UpstreamRefused)


async def test_a_switch_of_the_login_plugin_is_answered(target):
    async with (
        FakePrimary([HANG], plugin="mysql_native_password") as primary,
        Following(target, primary.port),
    ):
        await until(lambda: primary.dumps)
    assert primary.dumps


async def test_a_wrong_password_is_tried_again_but_seldom(target):
    async with (
        FakePrimary([HANG]) as primary,
        Following(target, primary.port, password="wrong") as following,
    ):
        await until(lambda: len(following.delays) > 1)
    assert set(following.delays) == {60.0}


async def test_an_error_1236_ends_the_relay(target):
    error = MASTER_FATAL_ERROR_READING_BINLOG.error("Could not find GTID state")
    async with FakePrimary([error]) as primary, Following(target, primary.port) as following:
        await asyncio.wait_for(following.task, SECONDS_MAX)
    assert following.relay.stopped_by.code == 1236


async def test_a_silent_primary_is_left_and_waits_grow(target):
    async with FakePrimary([*preamble(), HANG]) as primary:
        settings = {"slave_net_timeout": 0.05, "master_heartbeat_period": 0.02}
        async with Following(target, primary.port, **settings) as following:
            await until(lambda: len(following.delays) >= 8)
    assert following.delays[:8] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


async def test_a_full_disk_is_waited_for(target, monkeypatch):
    failures = [StoreFull("no room"), DiskError(28, "full", operation="write", path="x"), None]

    def sometimes(real):
        def call(*arguments):
            failure = failures.pop(0) if failures else None
            if failure is not None:
                raise failure
            return real(*arguments)

        return call

    for name in ("commit_run", "begin"):  # of a group that comes whole, and of one in parts
        monkeypatch.setattr(target, name, sometimes(getattr(target, name)))
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 1)), HANG]) as primary,
        Following(target, primary.port) as following,
    ):
        await until(lambda: gtids(target) == ["0-1-1"])
        assert following.delays == [1.0, 2.0]


def test_errors_have_their_cures():
    assert cure_of(FormatError("x")) is Cure.SOON
    assert cure_of(ConnectionResetError()) is Cure.SOON
    assert cure_of(TimeoutError()) is Cure.SOON
    assert cure_of(SERVER_SHUTDOWN.error()) is Cure.SOON
    assert cure_of(CON_COUNT_ERROR.error()) is Cure.SOON
    assert cure_of(ACCESS_DENIED_ERROR.error("u", "h", "YES")) is Cure.LATER
    assert cure_of(SLAVE_SAME_ID.error()) is Cure.LATER
    assert cure_of(SLAVE_INCIDENT.error("LOST_EVENTS", "x")) is Cure.PERSON
    assert cure_of(MASTER_FATAL_ERROR_READING_BINLOG.error("x")) is Cure.PERSON
    assert cure_of(StoreFailed(OSError())) is Cure.PERSON
    assert cure_of(StoreFull("x")) is Cure.SOON
    assert cure_of(DiskError(5, "EIO", operation="read", path="x")) is Cure.PERSON
    assert cure_of(DiskError(28, "full", operation="write", path="x")) is Cure.SOON
