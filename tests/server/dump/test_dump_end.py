"""How dumps end, whoever ends them, and what they let go."""

import asyncio
import threading

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid
from ibb.storage.errors import StoreBusy
from ibb.storage.file_name import binlog_name

from ..conftest import publish
from ..raw_client import RawClient, dumping, until_sessions
from ..waiting import until

pytestmark = pytest.mark.tiny


async def test_a_second_dump_with_the_same_server_id_ends_the_first(serve, store):
    server = await serve(store)
    first = await dumping(server, "0-1-10", non_block=False, server_id=5)
    other = await dumping(server, "0-1-10", non_block=False, server_id=6)
    second = await dumping(server, "0-1-10", non_block=False, server_id=5)
    with pytest.raises(SqlError) as caught:
        await first.event()
    assert caught.value.code == 4052
    assert await first.client.packet() is None
    publish(store, Gtid(0, 1, 11), wait=True)
    assert (await second.next_group()).gtid.seq == 11
    assert (await other.next_group()).gtid.seq == 11
    for dump in (first, other, second):
        await dump.client.close()


async def test_stopping_the_server_tells_every_dump(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5)
    stopping = asyncio.create_task(server.stop())
    with pytest.raises(SqlError) as caught:
        await dump.event()
    assert caught.value.code == 1053
    assert await dump.client.packet() is None
    await dump.client.close()
    await stopping


async def test_a_client_that_leaves_before_its_dump_could_begin_leaves_nothing_held(serve, store):
    """A purge or a renewal of leases is under way meanwhile, and keeps new readers waiting."""
    server = await serve(store)
    with store._holds.frozen():
        client = await RawClient.logged_in(server)
        await client.prepare("0-1-10")
        await client.dump(server_id=33)
        await until(server.has_dumps)
        await client.close()
        await until(lambda: not server.has_dumps())
        await until(lambda: not server.sessions)
    # The thread that was kept waiting may take the hold only now, before it lets go of it.
    await until(lambda: is_reset(store))
    assert len(store.state()) == 0


def is_reset(store):
    try:
        store.reset()
    except StoreBusy:
        return False
    return True


async def large_dump_unread(server, store):
    """Return a dump that is in the middle of a group, since its client does not read."""
    for seq in (11, 12):
        publish(store, Gtid(0, 1, seq), size=16 << 20, wait=True)
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    dump = await client.dump(server_id=5)
    await dump.preamble(rotate_checksum=True)
    client.writer.transport.pause_reading()
    (session,) = server.sessions
    transport = session._connection._writer.transport
    await until(transport.get_write_buffer_size)
    return dump


@pytest.mark.roomy
async def test_a_dump_is_ended_behind_the_group_that_it_sends(serve, store):
    server = await serve(store)
    dump = await large_dump_unread(server, store)
    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0)
    dump.client.writer.transport.resume_reading()
    assert (await dump.next_group()).gtid.seq == 11
    with pytest.raises(SqlError) as caught:
        await dump.event()
    assert caught.value.code == 1053
    await stopping
    await dump.client.close()


@pytest.mark.roomy
async def test_a_dump_whose_group_does_not_end_is_cut_off(serve, store, monkeypatch):
    monkeypatch.setattr("ibb.server.session.END_GRACE_SECONDS", 0.1)
    server = await serve(store)
    dump = await large_dump_unread(server, store)
    async with asyncio.timeout(5):
        await server.stop()
    dump.client.writer.transport.resume_reading()
    try:
        with pytest.raises((AssertionError, OSError)):
            await dump.next_group()
    finally:
        await dump.client.close()


async def test_a_client_that_quits_or_vanishes_ends_its_dump(serve, store):
    server = await serve(store)
    quitting = await dumping(server, "0-1-10", non_block=False, server_id=5)
    vanishing = await dumping(server, "0-1-10", non_block=False, server_id=6)
    await quitting.client.send(b"\x01")
    await vanishing.client.close()
    await until_sessions(server, 0)
    assert not server.has_dumps()
    assert store.purge_to(store.files()[-1].name).kept == binlog_name(store.end().file_no)
    await quitting.client.close()


@pytest.mark.roomy
async def test_files_that_a_dump_still_has_to_send_are_kept_from_purge(serve, store):
    for seq in range(11, 61):
        publish(store, Gtid(0, 1, seq), size=200_000)
    store.sync()
    newest = f"binlog-{store.end().file_no:06d}.ibb"
    server = await serve(store)
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    dump = await client.dump(server_id=5)
    await dump.preamble(rotate_checksum=True)
    client.writer.transport.pause_reading()
    kept = await asyncio.to_thread(store.purge_to, newest)
    assert kept.kept is not None
    assert kept.reasons == ["it is in use by a binlog dump thread (connected slave): server id 5"]
    client.writer.transport.abort()
    await until_sessions(server, 0)
    reasons = kept.reasons
    while "it is in use by a binlog dump thread (connected slave): server id 5" in reasons:
        reasons = (await asyncio.to_thread(store.purge_to, newest)).reasons
    assert store.files()[0].file_no >= store.end().file_no - 1


async def test_bytes_too_many_behind_the_command_change_nothing(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-8")
        dump = await client.dump(non_block=True)
        client.writer.write(b"\x00")
        await dump.preamble(rotate_checksum=True)
        assert len(await dump.groups()) == 2
        assert await client.packet() is None


async def test_what_is_no_acknowledgement_and_no_goodbye_is_thrown_away(serve, store, capfd):
    server = await serve(store)
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5)
    for stray in (b"\x07", b"\xef\x01", b"\x15\0", b"", b"\x16\xff", b"\x0e", b"\x03SELECT 1"):
        await dump.client.send(stray)
    publish(store, Gtid(0, 1, 11), wait=True)
    assert (await dump.next_group()).gtid.seq == 11
    await dump.client.send(b"\x01")
    assert await dump.client.packet() is None
    await dump.client.close()
    await until_sessions(server, 0)
    assert "client_refused" not in capfd.readouterr().out


async def test_a_client_that_leaves_while_a_purge_is_at_work_keeps_nobody_waiting(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5)
    is_frozen, may_go = threading.Event(), threading.Event()

    def purge():
        with store._holds.frozen():
            is_frozen.set()
            assert may_go.wait(60)

    purging = threading.Thread(target=purge)
    purging.start()
    try:
        await asyncio.to_thread(is_frozen.wait, 60)
        await dump.client.close()
        await until(lambda: not server.sessions)
        async with await RawClient.logged_in(server) as other:
            await other.query("SELECT 1")
    finally:
        may_go.set()
        await asyncio.to_thread(purging.join)
    await until(lambda: not store._holds.all())


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("0-1-10", ["dump_started", "dump_ended"]),
        ("0-1-99", ["dump_started", "dump_refused", "dump_ended"]),
    ],
)
async def test_the_log_has_once_that_a_dump_runs_before_all_else_of_it(serve, store, start, told):
    server = await serve(store)
    with capture_logs() as lines:
        async with await RawClient.logged_in(server) as client:
            await client.prepare(start)
            dump = await client.dump(server_id=5, non_block=True)
            if start == "0-1-99":
                with pytest.raises(SqlError):
                    await dump.event()
            else:
                await dump.preamble(rotate_checksum=True)
                assert await dump.event() is None
        await until(lambda: not server.sessions)
    found = [line for line in lines if line["event"].startswith("dump_")]
    assert [line["event"] for line in found] == told
    assert (found[0]["start"], found[0]["replica_server_id"]) == (start, 5)
