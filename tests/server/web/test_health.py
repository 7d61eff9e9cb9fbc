"""`/healthz` and `/readyz`: what they say of a server that works, and of one that does not."""

import errno

import pytest

from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.storage.errors import DiskError, StoreFull

from ..waiting import answer_of


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


async def test_files_of_another_program_are_served_from_the_start(pages, sample):
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
