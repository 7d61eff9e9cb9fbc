"""Modes 0 and 2: nobody syncs for a commit; a reader at the end has it done, one sync for all."""

import asyncio
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.store import Store

from ...faults.counting_disk import CountingDisk
from ...tiny import SMALL
from ..conftest import publish
from ..raw_client import dumping, until_sessions
from ..waiting import until

pytestmark = pytest.mark.tiny

LONG_SECONDS = 1e6  # flush_log_interval: the clock has no part in this
READERS = 5


@pytest.fixture(params=[0, 2])
def counted(tmp_path, request):
    """A store in such a mode, and its disk."""
    options = replace(SMALL, flush_log_at_commit=request.param, flush_log_interval=LONG_SECONDS)
    disk = CountingDisk()
    with Store.open(tmp_path / "store", options, disk=disk) as store:
        yield store, disk


@pytest.mark.roomy
async def test_commits_that_nobody_reads_cause_no_sync(serve, counted):
    store, disk = counted
    server = await serve(store)
    dump = await dumping(server, non_block=False)
    publish(store, Gtid(0, 1, 1), wait=True)
    assert (await dump.next_group()).gtid.seq == 1
    (session,) = server.sessions
    await until(lambda: session.is_idle_dump)  # no thread looks for more any more
    await dump.client.close()
    await until_sessions(server, 0)
    before = disk.syncs.copy()
    for seq in range(2, 500):
        publish(store, Gtid(0, 1, seq), wait=True)
        await asyncio.sleep(0)
    made = disk.syncs - before
    # A thread may have looked once more for the reader that went, and meet the first of them.
    assert made.total() == disk.of("redo") - sum(before[name] for name in SEGMENT_NAMES) <= 1


async def test_a_reader_that_catches_up_causes_one_sync(serve, counted):
    store, disk = counted
    server = await serve(store)
    for seq in range(1, 101):
        publish(store, Gtid(0, 1, seq), wait=True)
    before = disk.of("redo")
    dump = await dumping(server, non_block=False)
    assert len(await dump.groups(100)) == 100
    assert disk.of("redo") == before + 1
    await dump.client.close()


async def test_readers_at_the_end_get_a_commit_at_once_and_share_its_sync(serve, counted):
    store, disk = counted
    server = await serve(store)
    dumps = [await dumping(server, non_block=False) for _ in range(READERS)]
    for seq in range(1, 21):
        before = disk.of("redo")
        publish(store, Gtid(0, 1, seq), wait=True)
        groups = await asyncio.gather(*(dump.next_group() for dump in dumps))
        assert {group.gtid.seq for group in groups} == {seq}
        assert disk.of("redo") == before + 1
    for dump in dumps:
        await dump.client.close()
