"""Files that another program writes, looked at for who comes after nobody did for a while."""

from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server import durable_signal
from ibb.storage.disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish
from ..raw_client import RawClient, dumping
from ..waiting import answer_of

pytestmark = pytest.mark.tiny


async def test_who_comes_is_served_what_another_program_wrote_while_nobody_read(
    serve, tmp_path, monkeypatch
):
    monkeypatch.setattr(durable_signal, "IDLE_LOOK_SECONDS", 1000)
    path = tmp_path / "foreign"
    with Store.open(path, replace(SMALL, background=False)) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        history = ReadOnlyHistory(OsDisk(), str(path), follow_unsynced=True)
        server = await serve(history)
        for seq in range(2, 40):
            publish(store, Gtid(0, 1, seq), size=4000, wait=True)
        store.sync()
        assert not history.state().contains(Gtid(0, 1, 20))
        dump = await dumping(server, "0-1-20", server_id=5)  # as another server has told it
        assert (await dump.next_group()).gtid == Gtid(0, 1, 21)
        await dump.client.close()
        await server.stop()
        history.close()


async def test_sql_tells_what_another_program_wrote_while_nobody_read(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(durable_signal, "IDLE_LOOK_SECONDS", 0.01)
    path = tmp_path / "foreign"
    with Store.open(path, replace(SMALL, background=False)) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        history = ReadOnlyHistory(OsDisk(), str(path), follow_unsynced=True)
        server = await serve(history)
        async with await RawClient.logged_in(server) as client:
            for seq in range(2, 40):
                publish(store, Gtid(0, 1, seq), size=4000, wait=True)
            store.sync()
            seen = await answer_of(lambda: newer_than(client, "0-1-1"))
        await server.stop()
        history.close()
    assert int(seen.rpartition("-")[2]) > 20


async def newer_than(client, position):
    value = await client.value("SELECT @@gtid_binlog_pos")
    return value if value != position else None
