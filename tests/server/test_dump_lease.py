"""Leases that dumps keep for their replicas, by account, by server and by SQL."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.accounts import AccountBook, make_account
from ibb.server.dump_batch import Place
from ibb.server.dump_lease import DumpLease, lease_name
from ibb.server.readers import Progress
from ibb.storage.position import Position

from .conftest import publish
from .raw_client import RawClient, dumping
from .waiting import until

HOUR = 3600
NAME = lease_name("kept", 33)


@pytest.fixture
def accounts():
    grants = ["REPLICATION SLAVE"]
    return AccountBook(
        [
            make_account("kept", "%", "secret", grants, dump_lease=HOUR),
            make_account("repl", "%", "secret", grants),
        ]
    )


def leases(store):
    return {lease.name: (lease.position, lease.age_limit) for lease in store.leases.all()}


async def test_an_accounts_replica_has_a_lease_from_where_it_began(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-4", user="kept", server_id=33, non_block=False)
    await dump.groups(6)
    await until(lambda: leases(store) == {NAME: ("0-1-4", HOUR)})
    publish(store, Gtid(0, 1, 11))
    before = store.leases.all()[0].renewed_at
    await dump.client.close()
    await until(lambda: store.leases.all()[0].renewed_at > before)
    assert leases(store) == {NAME: ("0-1-4", HOUR)}


async def test_it_moves_when_the_replica_comes_back_with_more(serve, store):
    server = await serve(store)
    for start in ("0-1-2", "0-1-8"):
        dump = await dumping(server, start, user="kept", server_id=33, non_block=False)
        await until(lambda start=start: leases(store) == {NAME: (start, HOUR)})
        await dump.client.close()
        await until(lambda: not server.has_dumps())
    assert leases(store) == {NAME: ("0-1-8", HOUR)}


@pytest.mark.parametrize("had", [None, "0-1-4"])
async def test_a_replica_that_is_refused_neither_makes_nor_moves_one(serve, store, had):
    """Purge would go by a position which is not the replica's, that of one restored elsewhere."""
    server = await serve(store)
    if had is not None:
        dump = await dumping(server, had, user="kept", server_id=33, non_block=False)
        await until(lambda: leases(store) == {NAME: (had, HOUR)})
        await dump.client.close()
        await until(lambda: not store._holds.all())
    before = store.leases.all()
    async with await RawClient.logged_in(server, "kept") as client:
        await client.prepare("0-1-999999")
        refused = await client.dump(server_id=33)
        with pytest.raises(SqlError) as caught:
            await refused.event()
        assert caught.value.code == 1236
        await until(lambda: not server.has_dumps() and not store._holds.all())
    assert store.leases.all() == before


async def test_the_server_may_want_it_for_all(serve, store):
    server = await serve(store, dump_lease=60)
    dump = await dumping(server, "0-1-4", server_id=34, non_block=False)
    await until(lambda: leases(store))
    await dump.client.close()
    assert leases(store) == {lease_name("repl", 34): ("0-1-4", 60)}


@pytest.mark.parametrize("reader", [{"user": "repl", "server_id": 34}, {"user": "kept"}])
async def test_nobody_else_gets_one(serve, store, reader):
    """Neither other accounts nor tools, which have no server id."""
    dump = await dumping(await serve(store), "0-1-4", **reader)
    await dump.groups()
    await dump.client.close()
    assert leases(store) == {}


async def test_what_was_sent_counts_as_had_after_half_the_time(store):
    slept = []
    waiting = asyncio.Event()

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) > 1:
            waiting.set()
            await asyncio.Event().wait()

    sent = iter(
        [
            Progress(Place(Position(0, 1)), GtidPosition.parse("0-1-7"), 0, None),
            Progress(Place(Position(0, 1)), GtidPosition.parse("0-1-9"), 0, None),
        ]
    )
    with ThreadPoolExecutor(1) as pool:
        lease = DumpLease(
            store.leases,
            NAME,
            GtidPosition.parse("0-1-4"),
            HOUR,
            progress=lambda: next(sent),
            pool=pool,
            sleep=sleep,
        )
        task = asyncio.create_task(lease.keep())
        await asyncio.wait_for(waiting.wait(), 20)
        task.cancel()
        lease.renew()
    assert slept == [HOUR / 2, HOUR / 2]
    assert leases(store) == {NAME: ("0-1-7", HOUR)}
