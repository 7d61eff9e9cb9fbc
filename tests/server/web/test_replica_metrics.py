"""Which replicas are refused, which readers are late on purpose, whether commits should wait."""

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.server.dump.refused_dumps import KEPT_SECONDS, RefusedDump
from ibb.server.web import replica_metrics

from ..conftest import publish
from ..raw_client import RawClient
from .test_metrics import as_lists, scrape


async def test_a_replica_is_refused_until_it_is_served(pages, store):
    shown = await pages(store)
    for start in ("0-1-99", "0-1-98"):
        async with await RawClient.logged_in(shown.server) as client:
            await client.prepare(start)
            with pytest.raises(SqlError):
                await (await client.dump(server_id=5)).event()
    found = as_lists(await scrape(shown), "ibb_replica_refused")
    assert found == [(("ibb_replica_refused", ("5",)), 1)]
    async with await RawClient.logged_in(shown.server) as client:
        await client.prepare("0-1-10")
        await (await client.dump(server_id=5)).preamble(rotate_checksum=True)
        assert not as_lists(await scrape(shown), "ibb_replica_refused")


async def test_a_replica_that_nobody_seems_to_miss_is_refused_no_more(pages, store):
    shown = await pages(store)
    at = shown.server.now() - KEPT_SECONDS
    shown.server.refused_dumps.note(RefusedDump(6, "10.0.0.7:4711", "no such GTID", at + 60))
    shown.server.refused_dumps.note(RefusedDump(7, "10.0.0.8:4711", "no such GTID", at - 60))
    values = await scrape(shown)
    assert values["ibb_replica_refused", "6"] == 1
    assert ("ibb_replica_refused", "7") not in values


@pytest.mark.parametrize("delay", [0, 3600])
async def test_a_reader_that_is_late_on_purpose_has_its_delay_beside_its_lag(pages, store, delay):
    shown = await pages(store, dump_delay=delay)
    reader = ("5", "localhost", "repl")
    async with await RawClient.logged_in(shown.server) as client:
        await client.prepare("0-1-10")
        await (await client.dump(server_id=5)).preamble(rotate_checksum=True)
        values = await scrape(shown)
    assert ("ibb_reader_lag_bytes", *reader) in values
    assert values.get(("ibb_reader_delay_seconds", *reader), 0) == delay
    assert len(as_lists(values, "ibb_reader_delay_seconds")) == (delay > 0)


async def test_delays_are_bounded_in_lines_and_are_those_of_the_readers_most_behind(
    pages, store, monkeypatch
):
    monkeypatch.setattr(replica_metrics, "READERS_MAX", 1)
    shown = await pages(store)
    shown.server.pacing.delay = 1 << 31  # the groups are old
    async with (
        await RawClient.logged_in(shown.server) as first,
        await RawClient.logged_in(shown.server) as second,
    ):
        await first.prepare("0-1-10")
        await (await first.dump(server_id=5)).preamble(rotate_checksum=True)
        await second.prepare("0-1-3")
        await (await second.dump(server_id=6)).preamble(rotate_checksum=True)
        values = await scrape(shown)
    found = as_lists(values, "ibb_reader_delay_seconds")
    assert [labels for (_, labels), _ in found] == [("6", "localhost", "repl")]


async def test_commits_that_should_wait_and_do_not_are_seen(pages, store):
    shown = await pages(store, rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=1)
    values = await scrape(shown)
    assert values["ibb_semi_sync_wanted",] == values["ibb_semi_sync_on",] == 1
    publish(store, Gtid(0, 1, 11), wait=True)
    values = await scrape(shown)
    assert values["ibb_semi_sync_wanted",] == 1
    assert values["ibb_semi_sync_on",] == 0
    shown.server.semi_sync.enabled = False
    assert (await scrape(shown))["ibb_semi_sync_wanted",] == 0
