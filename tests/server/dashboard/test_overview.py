"""Overviews: rates, who is behind, alerts; and that they come by themselves."""

import asyncio
import json
import time

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dashboard import live
from ibb.server.dashboard.alerts import ERROR, WARNING, find_alerts
from ibb.server.dashboard.live import LOOKS_MAX, Dashboard, TooManyLooks
from ibb.server.dashboard.overview import UPSTREAM_SHOWN, Observer
from ibb.server.dashboard.reader_table import KEEPS_UP, LATE_ON_PURPOSE
from ibb.server.dashboard.statement_rows import statement_rows
from ibb.server.dump.refused_dumps import RefusedDump
from ibb.server.measured_disk import MeasuredDisk
from ibb.server.storage_figures import StorageFigures
from ibb.storage.purge import PurgeResult
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish


def ready():
    return []


async def test_an_overview_has_rates_from_the_second_on(server, store, reading):
    await reading("0-1-10")
    observer = Observer(server, ready)
    first = await asyncio.to_thread(observer.look)
    assert first.sample[1:4] == (0.0, 0.0, 0.0)
    assert (first.sample.readers, first.upstream) == (1, None)
    assert first.binlog["gtid_binlog_pos"] == "0-1-10"
    await asyncio.to_thread(publish, store, Gtid(0, 1, 11), 5000, wait=True)
    second = await asyncio.to_thread(observer.look)
    assert second.sample.bytes_written > 0
    assert second.sample.groups_written > 0
    assert second.binlog["Position"] > first.binlog["Position"]
    json.dumps(live.encode_overview(second).decode())


async def test_an_overview_tells_how_full_the_store_is_and_how_long_syncs_took(server, tmp_path):
    observer = Observer(server, ready)
    assert (await asyncio.to_thread(observer.look)).storage is None
    directory = str(tmp_path / "measured")
    disk = MeasuredDisk(directory)
    with Store.open(directory, SMALL, disk=disk) as store:
        server.storage = figures = StorageFigures(store, directory, disk, SMALL)
        await asyncio.to_thread(observer.look)
        quiet = (await asyncio.to_thread(observer.look)).storage
        filling = figures.filling(None)._asdict()
        assert quiet["sync_seconds"] is None
        assert quiet.items() >= {name.capitalize(): size for name, size in filling.items()}.items()
        await asyncio.to_thread(publish, store, Gtid(0, 1, 1), 5000, wait=True)
        busy = (await asyncio.to_thread(observer.look)).storage
        assert busy["Redo_used"] > quiet["Redo_used"] + 5000
        assert 0 < busy["sync_seconds"] < disk.redo_syncs.counted().seconds


async def test_sql_tells_of_the_store_what_the_dashboard_shows(server, tmp_path):
    def line():
        return statement_rows(server, "SHOW BINLOG STORAGE")

    assert await asyncio.to_thread(line) == []
    directory = str(tmp_path / "measured")
    disk = MeasuredDisk(directory)
    with Store.open(directory, SMALL, disk=disk) as store:
        server.storage = StorageFigures(store, directory, disk, SMALL)
        await asyncio.to_thread(publish, store, Gtid(0, 1, 1), 5000, wait=True)
        shown = (await asyncio.to_thread(Observer(server, ready).look)).storage
        (found,) = await asyncio.to_thread(line)
        counted = disk.redo_syncs.counted()
        assert found["Syncs"] == counted.up_to[-1] > 0
        assert found["Sync_time"] == round(counted.seconds * 1e6) > 0
        del shown["sync_seconds"]
        assert found == shown
        assert found["Redo_used"] > 5000
        disk.segment = f"{directory}/nosuch/{disk.segment.rpartition('/')[2]}"
        (unknown,) = await asyncio.to_thread(line)
        assert {unknown[name] for name in found if not name.startswith("Sync")} == {None}
        assert unknown["Syncs"] >= counted.up_to[-1]


async def test_a_new_history_has_no_negative_rates(server, store):
    observer = Observer(server, ready)
    await asyncio.to_thread(observer.look)
    await asyncio.to_thread(store.reset)
    found = await asyncio.to_thread(observer.look)
    assert found.sample[1:4] == (0.0, 0.0, 0.0)


def upstream(**changed):
    row = dict.fromkeys(UPSTREAM_SHOWN, "")
    return row | {"Master_Host": "one", "Master_Port": 3306, "Seconds_Behind_Master": 0} | changed


def alerts(server, reasons=(), readers=(), upstream=None, leases=()):
    return find_alerts(server, reasons, readers, upstream, leases)


async def test_nothing_to_look_at_is_no_alert(server):
    assert alerts(server, upstream=upstream()) == []


async def test_each_trouble_has_its_alert_errors_first(server, store, monkeypatch):
    reader = {"Seconds_behind": 90, "Why": "does not read", "Server_id": 3, "Host": "h:1"}
    late = reader | {"Seconds_behind": 7200, "Why": LATE_ON_PURPOSE}
    lapsed = PurgeResult([], "binlog-000000.ibb", [], ["lease 'x' needs it"], [], 0)
    store.purger.last_automatic = lapsed
    server.semi_sync.enabled = True
    monkeypatch.setattr(server.semi_sync, "_is_on", False)
    store.pages.healed.count = 2
    found = alerts(
        server,
        [
            ("upstream_stopped", "the relay stands still: error 1236"),
            ("disk_hangs", "a sync has not come back for 75 s"),
        ],
        [reader, late, reader | {"Why": KEEPS_UP}],
        upstream(Seconds_Behind_Master=61),
        [{"Name": "x", "Lapsed": "Yes"}, {"Name": "y", "Lapsed": "No"}],
    )
    assert [alert.about for alert in found] == [
        *("upstream", "disk", "upstream", "disk", "purge", "lease", "reader", "semi-sync")
    ]
    assert [alert.level for alert in found] == [ERROR] * 2 + [WARNING] * 6
    assert "START SLAVE" in found[0].text
    assert "a sync has not come back for 75 s; see the disk" in found[1].text
    assert "server 3 at h:1 is 90 s behind: does not read" in found[6].text
    store.purger.last_automatic = lapsed._replace(failure="disk on fire")
    assert any(alert == (ERROR, "purge", "files could not go by themselves: disk on fire")
               for alert in alerts(server))  # fmt: skip


async def test_a_replica_that_was_refused_is_an_alert(server):
    server.refused_dumps.note(RefusedDump(5, "10.0.0.7:4711", "no such GTID", time.time() - 600))
    (found,) = alerts(server)
    text = "server 5 at 10.0.0.7:4711 was refused 10 min ago and stands still: no such GTID"
    assert found == (ERROR, "reader", text)


async def test_a_disk_without_room_is_an_alert(server, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": server.config.max_binlog_size * 3 // 2})
    server.place = str(tmp_path)
    monkeypatch.setattr("ibb.server.dashboard.alerts.shutil.disk_usage", lambda _: usage)
    (alert,) = alerts(server)
    assert (alert.level, alert.about) == (WARNING, "disk")
    usage.free = 1
    (alert,) = alerts(server)
    assert alert.level == ERROR


async def test_overviews_come_by_themselves_and_failures_are_survived(server, store, monkeypatch):
    monkeypatch.setattr(live, "SAMPLE_SECONDS", 0.01)
    store.leases.renew("archive", GtidPosition([Gtid(0, 1, 5)]))
    dashboard = Dashboard(server, ready)
    fails = iter([True, True])
    look = dashboard.observer.look

    def look_or_fail():
        if next(fails, False):
            raise OSError("a disk that hiccups")
        return look()

    monkeypatch.setattr(dashboard.observer, "look", look_or_fail)
    dashboard.start()
    with dashboard.broadcaster.watching(frozenset()) as watcher:
        for _ in range(2):
            message = await asyncio.wait_for(watcher.next(), 20)
            name, data = message.decode().split("\n")[:2]
            assert name == "event: overview"
            assert json.loads(data.removeprefix("data: "))["binlog"]["gtid_binlog_pos"] == "0-1-10"
        stopping = asyncio.create_task(dashboard.stop())
        while await asyncio.wait_for(watcher.next(), 20) is not None:
            pass
        await stopping
    assert len(dashboard.samples) >= 2


async def test_so_many_looks_at_a_time_and_no_more(server):
    dashboard = Dashboard(server, ready)
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait():
        asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()

    looks = [asyncio.create_task(dashboard.look(wait)) for _ in range(LOOKS_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyLooks, match="try again"):
        await dashboard.look(wait)
    gate.set()
    await asyncio.gather(*looks)
    assert await dashboard.look(lambda: 5) == 5
    await dashboard.stop()
