"""Files that another program writes, looked at for who comes after nobody did for a while."""

from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server import durable_signal
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish
from ..raw_client import RawClient, dumping
from ..waiting import answer_of

pytestmark = pytest.mark.tiny

POSITION = "SELECT @@gtid_binlog_pos"


@pytest.fixture
async def foreign(serve, tmp_path, monkeypatch, look_seconds):
    """Return a server of files that another program writes, and what has it write on."""
    monkeypatch.setattr(durable_signal, "IDLE_LOOK_SECONDS", look_seconds)
    path = tmp_path / "foreign"
    with Store.open(path, replace(SMALL, background=False)) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        history = ReadOnlyHistory(OsDisk(), str(path), follow_unsynced=True)
        server = await serve(history)

        def write_on():
            for seq in range(2, 40):
                publish(store, Gtid(0, 1, seq), size=4000, wait=True)
            store.sync()

        yield server, write_on
        await server.stop()
        history.close()


@pytest.mark.parametrize("look_seconds", [1000])
async def test_who_comes_is_served_what_another_program_wrote_while_nobody_read(foreign):
    server, write_on = foreign
    async with await RawClient.logged_in(server) as client:
        before = await client.value(POSITION)
        write_on()
        assert await client.value(POSITION) == before
        dump = await dumping(server, "0-1-20", server_id=5)  # as another server has told it
        assert (await dump.next_group()).gtid == Gtid(0, 1, 21)
        await dump.client.close()


@pytest.mark.parametrize("look_seconds", [0.01])
async def test_sql_tells_what_another_program_wrote_while_nobody_read(foreign):
    server, write_on = foreign
    async with await RawClient.logged_in(server) as client:
        before = await client.value(POSITION)
        write_on()
        seen = await answer_of(lambda: newer_than(client, before))
    assert int(seen.rpartition("-")[2]) > 20


async def newer_than(client, position):
    value = await client.value(POSITION)
    return value if value != position else None
