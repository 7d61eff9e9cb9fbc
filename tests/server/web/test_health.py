"""`/healthz` and `/readyz`: what they say of a server that works, and of one that does not."""

import errno
import os
import threading

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.storage.errors import DiskError, StoreFull

from ..conftest import publish
from ..waiting import answer_of, until


async def readiness(browser):
    answer = await browser.get("/readyz")
    content = answer.json()
    assert (answer.status_code == 200) == content["ready"] == (not content["reasons"])
    return content


async def test_a_server_that_works_is_ready(pages, store):
    shown = await pages(store)
    async with shown.browser() as browser:
        assert (await browser.get("/healthz")).text == "ok\n"
        assert await readiness(browser) == {"ready": True, "reasons": []}


async def test_files_of_another_program_are_served_from_the_start(sample, pages):
    shown = await pages(sample[0])
    async with shown.browser() as browser:
        assert (await readiness(browser))["ready"]


async def test_a_store_that_stopped_writing_is_not_ready_and_still_lives(pages, store):
    shown = await pages(store)
    store._engine._redo.fail(OSError(errno.EIO, "the disk has gone"))
    async with shown.logged_in() as browser:
        found = await readiness(browser)
        assert found["reasons"] == ["store_stopped"]
        assert "the disk has gone" in found["texts"][0]
        assert (await browser.get("/healthz")).status_code == 200
    async with shown.browser() as browser:
        assert (await readiness(browser)) == {"ready": False, "reasons": ["store_stopped"]}


async def test_a_directory_that_cannot_be_read_to_its_end_is_not_ready(sample, pages, monkeypatch):
    shown = await pages(sample[0])
    monkeypatch.setattr(shown.server.history, "refresh", lambda: None)
    shown.server.history.damage = FormatError("page 5 of binlog-000001.ibb: wrong checksum")
    async with shown.logged_in() as browser:
        found = await readiness(browser)
        assert found["reasons"] == ["history_damaged"]
        assert found["texts"] == [
            "the files cannot be read further: page 5 of binlog-000001.ibb: wrong checksum"
        ]
        assert 'ibb_not_ready{reason="history_damaged"} 1.0' in (await browser.get("/metrics")).text


async def test_a_store_whose_disk_hangs_is_not_ready_and_is_not_asked(pages, measured, monkeypatch):
    store, figures = measured
    shown = await pages(store)
    shown.server.storage = figures
    hang, goes_on, sync = set(), threading.Event(), os.fdatasync

    def hanging(descriptor):
        hang.add(threading.get_ident())
        assert goes_on.wait(60)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", hanging)
    syncing = threading.Thread(target=lambda: publish(store, Gtid(0, 1, 1), wait=True))
    syncing.start()
    try:
        # A sync of before, as of the file that is made ahead, may still be on its way.
        await until(lambda: hang and hang == figures.disk._waiting.keys())
        began = min(figures.disk._waiting.values())
        monkeypatch.setattr(figures.disk, "_monotonic", lambda: began + 75)
        monkeypatch.setattr(store, "begin", None)  # it might wait with the disk
        async with shown.logged_in() as browser:
            found = await readiness(browser)
            assert found["reasons"] == ["disk_hangs"]
            assert found["texts"] == ["a sync has not come back for 75 s"]
            metrics = (await browser.get("/metrics")).text
            assert 'ibb_not_ready{reason="disk_hangs"} 1.0' in metrics
            assert "ibb_disk_sync_waiting_seconds 75.0" in metrics
    finally:
        goes_on.set()
        syncing.join()


@pytest.fixture
async def relay(pages, target):
    """Return the pages of a relay whose upstream is a port that nobody listens on."""
    shown = await pages(target)
    tls = UpstreamTls.from_config(shown.server.config)
    address = UpstreamAddress("127.0.0.1", 1, "repl", "hidden", tls)
    shown.server.upstream = RelayControl(target, shown.server, address, tls)
    yield shown
    await shown.server.upstream.stop()


async def test_a_relay_without_its_upstream_is_not_ready(relay):
    async with relay.logged_in() as browser:
        found = await readiness(browser)
        assert found["reasons"] == ["upstream_stopped"]
        relay.server.upstream.start()

        async def refused():
            return await readiness(browser) if relay.server.upstream.trouble else None

        found = await answer_of(refused)
        assert found["reasons"] == ["upstream_lost"]
        assert "hidden" not in found["texts"][0]


@pytest.mark.parametrize(
    "error",
    [
        StoreFull("no room for the next file"),
        DiskError(errno.ENOSPC, "No space left on device", operation="write", path="f"),
    ],
)
async def test_a_full_disk_is_told_as_that(relay, error):
    relay.server.upstream.start()
    relay.server.upstream._relay.stopped_by = error
    async with relay.browser() as browser:
        assert (await readiness(browser))["reasons"] == ["disk_full"]
