"""What keeps files from being read or written is logged when it begins, and when it is over."""

import os
import threading
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ibb.protocol.gtid import Gtid
from ibb.server import storage_watch
from ibb.server.measured_disk import MeasuredDisk
from ibb.server.storage_figures import StorageFigures
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ..storage.binlog_builder import BinlogBuilder, event
from ..tiny import SMALL
from .conftest import publish
from .waiting import until

BY_HAND = replace(SMALL, flush_log_at_commit=0, flush_log_interval=1e6)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    monkeypatch.setattr(storage_watch, "LOOK_SECONDS", 0.01)


@pytest.fixture
def lines():
    """Return the lines of the log, by event, that tell of troubles."""
    with capture_logs() as captured:
        yield lambda: [
            (line["log_level"], line["event"], line.get("trouble"))
            for line in captured
            if line["event"] in ("history_damaged", "disk_hangs", "trouble_over")
        ]


@pytest.fixture
def damaged(tmp_path):
    """Return a directory of another program's whose newest page is damaged, and what mends it."""
    builder = BinlogBuilder(interval=2, pages=8)
    for seq in range(1, 41):
        builder.commit(Gtid(0, 1, seq), event(200))
    builder.write(tmp_path)
    path = tmp_path / f"binlog-{builder.file_no:06d}.ibb"
    whole = path.read_bytes()
    image = bytearray(whole)
    image[builder.place // 512 * 512 + 9] ^= 1
    path.write_bytes(image)
    return str(tmp_path), lambda: path.write_bytes(whole)


async def test_damage_is_told_once_and_so_is_its_end(serve, damaged, lines):
    directory, mend = damaged
    history = ReadOnlyHistory(OsDisk(), directory)
    server = await serve(history, poll_interval=0.01)
    await until(lines)
    (text,) = storage_watch.storage_troubles(server).values()
    assert "the files cannot be read further: " in text
    assert ".ibb" in text
    mend()
    await until(lambda: len(lines()) > 1)
    assert lines() == [
        ("error", "history_damaged", None),
        ("info", "trouble_over", "history_damaged"),
    ]
    assert history.state().newest(0).seq == 40
    history.close()


async def test_syncs_that_do_not_come_back_are_told_once_each_and_so_is_their_end(
    serve, tmp_path, lines, monkeypatch
):
    directory, at = str(tmp_path / "store"), [1000.0]
    disk = MeasuredDisk(directory, monotonic=lambda: at[0])
    goes_on, sync = threading.Event(), os.fdatasync

    def hanging(descriptor):
        assert goes_on.wait(60)
        sync(descriptor)

    with Store.open(directory, BY_HAND, disk=disk) as store:
        server = await serve(store)
        server.storage = StorageFigures(store, directory, disk, BY_HAND)
        monkeypatch.setattr(os, "fdatasync", hanging)
        for number in (1, 2):
            goes_on.clear()
            publish(store, Gtid(0, 1, number))
            syncing = threading.Thread(target=store.sync)
            syncing.start()
            await until(lambda: disk._waiting)
            at[0] += storage_watch.SYNC_SECONDS_MAX
            assert storage_watch.storage_troubles(server) == {}
            at[0] += 65
            await until(lambda so_far=2 * number - 2: len(lines()) > so_far)
            assert storage_watch.storage_troubles(server) == {
                "disk_hangs": "a sync has not come back for 75 s"
            }
            goes_on.set()
            await until(lambda so_far=2 * number - 1: len(lines()) > so_far)
            syncing.join()
    once = [("error", "disk_hangs", None), ("info", "trouble_over", "disk_hangs")]
    assert lines() == once * 2
