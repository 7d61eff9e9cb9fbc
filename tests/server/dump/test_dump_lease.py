"""Leases that dumps keep for their replicas, by account, by server and by SQL."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump.dump_batch import Place
from ibb.server.dump.dump_lease import DumpLease, LeaseTerms, lease_name
from ibb.server.dump.lease_renewals import LeaseRenewals
from ibb.server.dump.readers import Progress
from ibb.server.login.accounts import AccountBook, make_account
from ibb.storage.position import Position

from ..conftest import publish
from ..raw_client import RawClient, dumping
from ..waiting import until

HOUR = 3600
NAME = lease_name("kept", 33)


@pytest.fixture
def accounts():
    grants = ["REPLICATION SLAVE"]
    return AccountBook(
        [
            make_account("kept", "%", "secret", grants, dump_lease=HOUR),
            make_account("repl", "%", "secret", grants),
            make_account("dba", "%", "secret", ["BINLOG ADMIN"]),
        ]
    )


def leases(store):
    return {lease.name: (lease.position, lease.age_limit) for lease in store.leases.all()}


def idle_lease(renewals, name, start):
    """Return the lease of a dump that does not get on."""
    return DumpLease(
        LeaseTerms(name, HOUR, "kept"),
        GtidPosition.parse(start),
        progress=lambda: None,
        renewals=renewals,
    )


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
        renewals = LeaseRenewals(store.leases, pool)
        lease = DumpLease(
            LeaseTerms(NAME, HOUR, "kept"),
            GtidPosition.parse("0-1-4"),
            progress=lambda: next(sent),
            renewals=renewals,
            sleep=sleep,
        )
        task = asyncio.create_task(lease.keep())
        await asyncio.wait_for(waiting.wait(), 20)
        task.cancel()
        renewals.finish(lease, lambda: None)
        await renewals.finished()
    assert slept == [HOUR / 2, HOUR / 2]
    assert leases(store) == {NAME: ("0-1-7", HOUR)}


@pytest.mark.parametrize("name", ["replica 34 of repl", "replica 34"])
async def test_one_that_people_made_for_a_replica_follows_it(serve, store, name):
    """With the age limit that they gave it, whatever the settings say."""
    server = await serve(store, dump_lease=60)
    store.leases.renew(name, "0-1-1", age_limit=None)
    dump = await dumping(server, "0-1-4", server_id=34, non_block=False)
    await until(lambda: leases(store) == {name: ("0-1-4", None)})
    await dump.client.close()
    other = await dumping(server, "0-1-5", server_id=35, non_block=False)
    await until(lambda: len(leases(store)) == 2)
    assert leases(store)[name] == ("0-1-4", None)
    await other.client.close()


async def test_one_that_lapsed_holds_again_when_its_replica_is_back(serve, store):
    server = await serve(store)
    store.leases.renew("replica 34", "0-1-1", age_limit=1e-6)
    assert [lease.lapsed for lease in store.leases.lapse()] == [True]
    dump = await dumping(server, "0-1-4", server_id=34, non_block=False)
    await until(lambda: [one.lapsed for one in store.leases.all()] == [False])
    await dump.client.close()


async def test_a_drop_ends_it_for_as_long_as_the_replica_stays_connected(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-4", user="kept", server_id=33, non_block=False)
    await until(lambda: leases(store))
    async with await RawClient.logged_in(server, "dba") as dba:
        await dba.query(f"DROP BINLOG LEASE '{NAME}'")
    assert leases(store) == {}
    await server.renewals.renew(server.renewals._kept[NAME])
    await dump.client.close()
    await until(lambda: not store._holds.all())
    assert leases(store) == {}
    again = await dumping(server, "0-1-4", user="kept", server_id=33, non_block=False)
    await until(lambda: leases(store) == {NAME: ("0-1-4", HOUR)})
    await again.client.close()


async def test_many_renewals_are_stored_together(store, monkeypatch):
    stored = []
    renew_all = store.leases.renew_all

    def noted(renewals):
        stored.append(len(renewals))
        return renew_all(renewals)

    monkeypatch.setattr(store.leases, "renew_all", noted)
    with ThreadPoolExecutor(1) as pool:
        renewals = LeaseRenewals(store.leases, pool)
        kept = [idle_lease(renewals, f"replica {number}", "0-1-4") for number in range(100)]
        await asyncio.gather(*(renewals.renew(lease) for lease in kept))
    assert len(leases(store)) == sum(stored) == 100
    assert len(stored) <= 2


async def test_a_dump_that_was_replaced_takes_nothing_back(store):
    """It may renew once more before it has ended; a DROP then ends what the living one keeps."""
    with ThreadPoolExecutor(1) as pool:
        renewals = LeaseRenewals(store.leases, pool)
        old, new = (idle_lease(renewals, NAME, start) for start in ("0-1-2", "0-1-9"))
        for lease in (old, new, old):
            await renewals.renew(lease)
        assert leases(store) == {NAME: ("0-1-9", HOUR)}
        renewals.finish(old, lambda: None)
        await renewals.finished()
        renewals.drop(NAME)
        await renewals.renew(new)
        assert leases(store) == {}


async def test_a_dump_that_ends_late_does_not_move_back_what_the_next_one_keeps(store):
    with ThreadPoolExecutor(1) as pool:
        renewals = LeaseRenewals(store.leases, pool)
        old, new = (idle_lease(renewals, NAME, start) for start in ("0-1-2", "0-1-9"))
        await renewals.renew(old)
        await renewals.renew(new)
        closed = []
        renewals.finish(old, lambda: closed.append("old"))
        await renewals.finished()
        assert (leases(store), closed) == ({NAME: ("0-1-9", HOUR)}, ["old"])


async def test_whatever_goes_wrong_dumps_end_and_the_next_renewal_works(store, monkeypatch):
    def failing(*_):
        raise MemoryError("as if")

    with ThreadPoolExecutor(1) as pool:
        renewals = LeaseRenewals(store.leases, pool)
        leases_of_two = [idle_lease(renewals, name, "0-1-4") for name in ("replica 1", "replica 2")]
        first, second = leases_of_two
        closed = []
        with monkeypatch.context() as patched, capture_logs() as lines:
            patched.setattr(store.leases, "renew_all", failing)
            renewals.finish(first, failing)
            renewals._kept[second.name] = second
            renewals.finish(second, lambda: closed.append("second"))
            await asyncio.wait_for(renewals.renew(first), 20)
        assert closed == ["second"]
        assert [line["event"] for line in lines] == ["leases_not_renewed", "dump_not_ended"]
        await asyncio.wait_for(renewals.renew(second), 20)
    assert leases(store) == {"replica 2": ("0-1-4", HOUR)}


async def test_at_shutdown_it_is_renewed_for_the_last_time(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-4", user="kept", server_id=33, non_block=False)
    await until(lambda: leases(store))
    before = store.leases.all()[0].renewed_at
    await server.stop()
    assert store.leases.all()[0].renewed_at > before
    await dump.client.close()


async def test_trouble_with_one_is_logged_without_its_account(serve, store):
    server = await serve(store)
    with capture_logs() as lines:
        lease = DumpLease(
            LeaseTerms(lease_name("x" * 300, 33), HOUR, "kept"),
            GtidPosition.parse("0-1-4"),
            progress=lambda: None,
            renewals=server.renewals,
        )
        await server.renewals.renew(lease)
    (line,) = lines
    assert (line["event"], line["lease"]) == ("lease_not_renewed", "replica 33")
    assert "1 to 200 printable characters" in line["error"]
