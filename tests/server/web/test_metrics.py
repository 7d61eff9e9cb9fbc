"""`/metrics`: that its numbers are those of the server, who may have it, and how much there is."""

import asyncio
from collections import Counter

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.server.latencies import BOUNDS, Latencies
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.relay_figures import RelayFigures
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.web import server_metrics
from ibb.storage.errors import StoreFull

from ..conftest import publish
from ..raw_client import RawClient
from ..waiting import until


async def scrape(shown):
    """Return the values by name and labels."""
    async with shown.browser() as browser:
        answer = await browser.get("/metrics")
    assert answer.status_code == 200, answer.text
    values = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            values[sample.name, *sorted(sample.labels.values())] = sample.value
    return values


async def test_a_store_and_its_readers_are_measured(pages, store):
    shown = await pages(store)
    async with await RawClient.logged_in(shown.server) as client:
        await client.prepare("0-1-10")
        dump = await client.dump(server_id=5)
        await dump.preamble(rotate_checksum=True)
        publish(store, Gtid(0, 1, 11), wait=True)
        await dump.groups(1)
        values = await scrape(shown)
    assert values["ibb_binlog_offset_bytes",] == store.end().offset
    assert values["ibb_gtid_sequence_number", "0"] == 11
    assert values["ibb_binlog_files",] == len(store.files())
    assert values["ibb_binlog_oldest_group_timestamp_seconds",] > 0
    assert values["ibb_readers",] == 1
    assert values["ibb_reader_lag_groups", "5", "localhost", "repl"] == 0
    assert values["ibb_reader_sent_bytes_total", "5", "localhost", "repl"] > 100
    assert values["ibb_ready",] == 1
    assert values["ibb_connections",] == 1
    assert values["ibb_admin_connections",] == 1
    assert ("ibb_relay_running",) not in values
    assert values["process_open_fds",] > 0


async def test_the_start_stays_when_it_was(pages, store):
    shown = await pages(store)
    first, second = [(await scrape(shown))["ibb_start_time_seconds",] for _ in range(2)]
    assert first == second
    assert first == pytest.approx(shown.server.now() - shown.server.uptime(), abs=1)


async def test_a_replica_that_cannot_go_on_is_counted_and_told_of(pages, store):
    shown = await pages(store)
    async with await RawClient.logged_in(shown.server) as client:
        await client.prepare("0-1-99")
        with capture_logs() as lines, pytest.raises(SqlError) as caught:
            await (await client.dump(server_id=5)).event()
        assert caught.value.code == 1236
        async with await RawClient.logged_in(shown.server) as other:
            await other.prepare("0-1-10")
            dump = await other.dump(server_id=6, non_block=True)
            await dump.preamble(rotate_checksum=True)
            assert await dump.event() is None
        values = await scrape(shown)
    assert values["ibb_dumps_refused_total",] == 1
    (line,) = [line for line in lines if line["event"] == "dump_refused"]
    assert (line["log_level"], line["replica_server_id"]) == ("warning", 5)
    assert "0-1-99, which is not in the master's binlog" in line["error"]


async def test_a_relay_is_measured(pages, serve, store, target):
    primary = await serve(store)
    shown = await pages(target, server_id=98)
    tls = UpstreamTls.from_config(shown.server.config)
    address = UpstreamAddress("127.0.0.1", primary.port(), "repl", "secret", tls)
    shown.server.upstream = relay = RelayControl(target, shown.server, address, tls)
    relay.start()
    await until(lambda: relay.figures.groups == 10)
    values = await scrape(shown)
    await relay.stop()
    assert values["ibb_relay_connected",] == 1
    assert values["ibb_relay_groups_total",] == 10
    assert values["ibb_relay_received_bytes_total",] > 1000
    assert values["ibb_relay_written_offset_bytes",] == target.end().offset
    assert values["ibb_relay_sync_seconds_count",] >= 1
    assert values["ibb_relay_batch_seconds_count",] >= values["ibb_relay_sync_seconds_count",]
    assert values["ibb_relay_batch_seconds_sum",] >= values["ibb_relay_sync_seconds_sum",] > 0


async def test_what_is_between_a_commit_and_its_file_is_measured(pages, measured):
    store, figures = measured
    shown = await pages(store)
    assert not as_lists(await scrape(shown), "ibb_redo_used_bytes")  # nobody measures
    shown.server.storage = figures
    publish(store, Gtid(0, 1, 1), 5000, wait=True)
    values = await scrape(shown)
    filling = figures.filling(None)
    assert values["ibb_redo_used_bytes",] == filling.redo_used > 5000
    assert values["ibb_redo_limit_bytes",] == filling.redo_limit
    assert values["ibb_page_fifo_bytes",] == filling.page_fifo
    assert values["ibb_page_fifo_limit_bytes",] == filling.page_fifo_limit
    assert values["ibb_binlog_unsynced_bytes",] == values["ibb_disk_sync_waiting_seconds",] == 0
    assert values["ibb_redo_checkpoints_total",] == figures.disk.checkpoints
    assert values["ibb_redo_checkpoint_timestamp_seconds",] == figures.disk.checkpoint_at
    assert values["ibb_disk_sync_seconds_count", "redo"] >= 1
    assert values["ibb_disk_sync_seconds_sum", "redo"] > 0
    assert values["ibb_disk_sync_seconds_count", "binlog"] >= 1
    files = store.files()
    assert values["ibb_binlog_preallocated_bytes",] == (
        sum(file.size for file in files[store.end().file_no :]) - store.end().offset
    )


def as_lists(values, name):
    return [((key[0], key[1:]), value) for key, value in values.items() if key[0] == name]


@pytest.mark.parametrize(
    ("settings", "options", "status"),
    [
        ({}, {}, 200),
        ({}, {"headers": {"host": "db.example:8307"}}, 401),  # somebody's page, by a name of his
        ({"metrics_open": True}, {"headers": {"host": "db.example:8307"}}, 200),
        ({}, {"headers": {"forwarded": "for=192.0.2.1"}}, 401),
        ({}, {"headers": {"via": "1.1 proxy"}}, 401),
        ({}, {"headers": {"x-real-ip": "192.0.2.1"}}, 401),
        ({}, {"headers": {"x-forwarded-for": "192.0.2.1"}}, 401),
        ({}, {"headers": {"x-forwarded-proto": "https"}}, 401),
        ({}, {"headers": {"x-forwarded-for": "192.0.2.1"}, "auth": ("watcher", "looking")}, 200),
        ({"skip_ssl": True}, {}, 401),  # a proxy encrypts, and need not say that it is one
        ({"skip_ssl": True}, {"auth": ("watcher", "looking")}, 200),
        ({"skip_ssl": True, "metrics_open": True}, {}, 200),
        ({}, {"headers": {"host": "db.example"}, "auth": ("watcher", "looking")}, 200),
        ({}, {"headers": {"host": "db.example"}, "auth": ("watcher", "wrong")}, 401),
        ({}, {"headers": {"host": "db.example"}, "auth": ("repl", "secret")}, 403),
        ({}, {"headers": {"host": "db.example", "authorization": "Basic !"}}, 401),
    ],
)
async def test_who_may_have_them(pages, store, settings, options, status):
    shown = await pages(store, **settings)
    async with httpx.AsyncClient(base_url=shown.url, trust_env=False, timeout=20) as browser:
        answer = await browser.get("/metrics", **options)
    assert answer.status_code == status
    assert ("ibb_ready" in answer.text) == (status == 200)
    assert ("www-authenticate" in answer.headers) == (status == 401)
    if status == 403:
        assert "1227" in answer.json()["error"]
        assert "the BINLOG MONITOR privilege(s)" in answer.json()["error"]


async def test_who_speaks_as_an_old_proxy_does_logs_in(pages, store):
    shown = await pages(store)
    reader, writer = await asyncio.open_connection(*shown.listener.address)
    writer.write(b"GET /metrics HTTP/1.0\r\nHost: %s\r\n\r\n" % shown.url[7:].encode())
    assert b" 401 " in await reader.readline()
    writer.close()


def test_durations_are_counted_up_to_each_bound():
    latencies = Latencies()
    for seconds in (0.0, BOUNDS[0], BOUNDS[1], 99.0):
        latencies.add(seconds)
    up_to, seconds = latencies.counted()
    assert (up_to[0], up_to[1], up_to[-2], up_to[-1]) == (2, 3, 3, 4)
    assert seconds == pytest.approx(99.0 + BOUNDS[0] + BOUNDS[1])


async def test_what_the_log_warned_of_is_counted_by_event(pages, store, monkeypatch):
    found = {("warning", "dump_dropped"): 2, ("error", "dump_dropped"): 1}
    monkeypatch.setattr(server_metrics, "PROBLEMS", Counter(found))
    values = await scrape(await pages(store))
    assert values["ibb_log_problems_total", "dump_dropped", "warning"] == 2
    assert values["ibb_log_problems_total", "dump_dropped", "error"] == 1


def test_what_interrupts_a_relay_is_counted_by_kind():
    figures = RelayFigures()
    for error in (StoreFull("full"), ConnectionResetError(), TimeoutError(), ValueError()):
        figures.count_error(error)
    assert figures.errors == {"store_full": 1, "network": 1, "timeout": 1, "other": 1}
