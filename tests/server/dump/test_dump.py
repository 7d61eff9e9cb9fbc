"""Dumps over a real socket: what is sent, in which order, and how it ends."""

import asyncio
from dataclasses import replace

import pytest

from ibb.protocol.errors import SqlError
from ibb.protocol.event import EventHeader, EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.rotate import Rotate
from ibb.server.dump.dump_session import DumpSession
from ibb.server.dump.socket_pump import PumpTurns
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ...storage.events import query, xid
from ...tiny import SMALL
from ..conftest import publish
from ..raw_client import RawClient, dumping, until_sessions

pytestmark = pytest.mark.tiny


@pytest.mark.parametrize("checksum", [True, False])
async def test_a_sample_is_dumped_group_by_group_as_it_is_stored(sample, serve, checksum):
    history, expected = sample
    dump = await dumping(await serve(history), checksum=checksum)
    groups = await dump.groups()
    assert [(str(group.gtid), group.sha256) for group in groups] == [
        (group["gtid"], group["sha256"]) for group in expected["groups"]
    ]
    assert dump.checksum is checksum
    assert await dump.client.packet() is None
    await dump.client.close()


async def test_a_dump_starts_behind_the_position_in_every_domain(sample, serve):
    history, expected = sample
    server = await serve(history)
    gtids = [Gtid.parse(group["gtid"]) for group in expected["groups"]]
    for cut in (1, 57, 200, len(gtids) - 1):
        newest = {gtid.domain: gtid for gtid in gtids[:cut]}
        if len(newest) < 2:
            continue
        dump = await dumping(server, ",".join(map(str, newest.values())))
        assert [group.gtid for group in await dump.groups()] == gtids[cut:]
        await dump.client.close()


async def test_the_stream_begins_with_rotate_and_format_description(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-5")
        dump = await client.dump(non_block=True, server_id=5)
        rotate = Rotate.parse(await dump.preamble(rotate_checksum=True))
        assert (rotate.file_name, rotate.position, rotate.timestamp) == ("ibb-bin.000001", 4, 0)
        assert rotate.server_id == 99
        assert dump.format.created == 0
        assert dump.format.server_version == "10.11.99-MariaDB-ibb"
        groups = await dump.groups()
        assert [group.gtid.seq for group in groups] == [6, 7, 8, 9, 10]


async def test_the_name_asked_for_is_the_name_in_the_rotate(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-5")
        dump = await client.dump(non_block=True, name="bin.000017\0", position=5544)
        rotate = Rotate.parse(await dump.preamble(rotate_checksum=True))
        assert rotate.file_name == "bin.000017"
        assert len(await dump.groups()) == 5


async def test_the_first_format_description_of_the_history_is_sent_once(serve, store):
    dump = await dumping(await serve(store), "")
    assert dump.format.created != 0  # the store tells when it was made
    header, _ = await dump.event()
    assert header.type == EventType.GTID
    await dump.client.close()


async def test_a_restart_of_the_writer_is_passed_on(serve, store):
    restarted = store.formats.in_force(store.end())
    store.write_format_description(restarted)
    publish(store, Gtid(0, 1, 11))
    dump = await dumping(await serve(store), "0-1-9")
    assert dump.format.created == 0
    assert (await dump.next_group()).gtid.seq == 10
    header, _ = await dump.event()
    assert header.type == EventType.FORMAT_DESCRIPTION
    assert dump.format.created != 0
    assert (await dump.next_group()).gtid.seq == 11
    await dump.client.close()


async def test_mariadb_binlog_gets_a_list_of_exactly_what_it_asked_for(serve, store):
    server = await serve(store)
    async with await RawClient.logged_in(
        server, attributes={"program_name": "mysqlbinlog"}
    ) as client:
        await client.prepare("0-1-10,5-1-1", checksum=False)
        dump = await client.dump(server_id=3, name="ibb-bin.000001", non_block=True)
        await dump.preamble(rotate_checksum=False)
        _, event = await dump.event()
        listed = GtidList.parse(event)
        assert list(map(str, listed.gtids)) == ["0-1-10", "5-1-1"]
        assert listed.timestamp > 0
        assert await dump.event() is None


async def test_until_ends_behind_the_group_with_the_list_that_stops_a_replica(serve, store):
    publish(store, Gtid(3, 1, 1))
    dump = await dumping(
        await serve(store), "0-1-5", non_block=False, server_id=5, slave_until_gtid="0-1-7"
    )
    assert [group.gtid.seq for group in await dump.groups(2)] == [6, 7]
    header, event = await dump.event()
    listed = GtidList.parse(event)
    assert listed.until_reached
    assert listed.gtids == (Gtid(0, 1, 7),)
    assert header.timestamp == 0
    assert await dump.event() is None
    await dump.client.close()


async def test_an_until_that_was_reached_before_ends_at_once(serve, store):
    dump = await dumping(
        await serve(store), "0-1-5", non_block=False, server_id=5, slave_until_gtid="0-1-5"
    )
    _, event = await dump.event()
    assert GtidList.parse(event).until_reached
    assert await dump.event() is None
    await dump.client.close()


async def test_the_first_groups_are_made_with_the_beginning(serve, store, monkeypatch):
    real = DumpSession._next_batch

    async def only_the_first(session, make=None):
        return await (asyncio.Event().wait() if make is None else real(session, make))

    monkeypatch.setattr(PumpTurns, "has_room", False)  # so that nothing is made behind it at once
    monkeypatch.setattr(DumpSession, "_next_batch", only_the_first)
    dump = await dumping(await serve(store), "0-1-5", non_block=False)
    assert [group.gtid.seq for group in await dump.groups(5)] == [6, 7, 8, 9, 10]
    await dump.client.close()


async def test_what_is_published_later_follows(serve, store):
    dump = await dumping(await serve(store), "0-1-10", non_block=False)
    for seq in range(11, 14):
        publish(store, Gtid(0, 1, seq), wait=True)
        assert (await dump.next_group()).gtid.seq == seq
    await dump.client.close()


async def test_what_is_not_durable_is_flushed_for_a_reader_and_then_sent(serve, store):
    publish(store, Gtid(0, 1, 11), wait=False)
    dump = await dumping(await serve(store), "0-1-10", non_block=False)
    assert (await dump.next_group()).gtid.seq == 11
    assert store.state().contains(Gtid(0, 1, 11))
    await dump.client.close()


async def test_heartbeats_come_while_nothing_is_due_and_only_when_asked_for(serve, store):
    server = await serve(store)
    dump = await dumping(server, "0-1-10", non_block=False, server_id=5, heartbeat=0.05)
    beats = []
    for _ in range(3):
        header, event = await dump.event()
        assert header.type == EventType.HEARTBEAT
        beats.append(Heartbeat.parse(event))
    assert {beat.file_name for beat in beats} == {"ibb-bin.000001"}
    assert all(beat.position >= 4 for beat in beats)
    publish(store, Gtid(0, 1, 11), size=100_000, wait=True)
    group = await dump.next_group()
    after = await dump.event()
    while after[0].type != EventType.HEARTBEAT:
        after = await dump.event()
    sent = sum(map(len, group.events))
    assert Heartbeat.parse(after[1]).position >= 4 + sent
    await dump.client.close()


@pytest.mark.roomy
async def test_a_large_event_comes_whole_in_several_packets(serve, store):
    publish(store, Gtid(0, 1, 11), size=17 << 20, wait=True)
    dump = await dumping(await serve(store), "0-1-10")
    (group,) = await dump.groups()
    assert max(map(len, group.events)) > 17 << 20
    await dump.client.close()


@pytest.mark.roomy
async def test_a_client_that_does_not_read_does_not_grow_memory(serve, store):
    for seq in range(11, 51):
        publish(store, Gtid(0, 1, seq), size=1 << 20)
    server = await serve(store)
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    dump = await client.dump(server_id=5, non_block=True)
    client.writer.transport.pause_reading()
    (session,) = server.sessions
    transport = session._connection._writer.transport
    sizes = set()
    for _ in range(50):
        await asyncio.sleep(0)
        sizes.add(transport.get_write_buffer_size())
    async with await RawClient.logged_in(server) as other:  # the others go on
        assert await other.value("SELECT 1") == "1"
    assert transport.get_write_buffer_size() <= 1 << 20
    client.writer.transport.resume_reading()
    await dump.preamble(rotate_checksum=True)
    assert len(await dump.groups()) == 40
    await client.close()


@pytest.mark.parametrize(
    ("position", "code", "text"),
    [
        ("0-1-99", 1236, "connecting slave requested to start from GTID 0-1-99, which is not in"),
        ("0-2-5", 1236, "the slave has diverged due to executing extra erroneous transactions"),
        ("garbage", 1941, "Could not parse GTID list"),
        ("0-1-5,0-1-6", 1943, "GTID 0-1-6 and 0-1-5 conflict (duplicate domain id 0)"),
    ],
)
async def test_a_position_that_cannot_be_served_is_refused(serve, store, position, code, text):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare(position)
        dump = await client.dump(server_id=5)
        with pytest.raises(SqlError) as caught:
            await dump.event()
        assert caught.value.code == code
        assert text in caught.value.message
        assert await client.packet() is None


@pytest.mark.parametrize(
    ("name", "position", "text"),
    [
        ("nosuch.000001", 4, "Could not find first log file name in binary log index file"),
        ("ibb-bin.000001", 5, "impossible position"),
        ("ibb-bin.000001", 0, "impossible position"),
        ("", 500, "impossible position"),
        ("binlog-000009.ibb", 4, "Could not find first log file name in binary log index file"),
    ],
)
async def test_a_file_or_offset_that_is_nowhere_is_refused(serve, store, name, position, text):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare()
        dump = await client.dump(name=name, position=position)
        with pytest.raises(SqlError, match=text) as caught:
            await dump.event()
        assert caught.value.code == 1236
        assert "MASTER_USE_GTID" in caught.value.message


@pytest.mark.parametrize(("name", "position"), [("", 0), ("", 4), ("ibb-bin.000001", 4)])
async def test_without_a_gtid_position_the_stream_starts_at_the_oldest_group(
    serve, store, name, position
):
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare()
        dump = await client.dump(name=name, position=position, non_block=True)
        await dump.preamble(rotate_checksum=True)
        assert len(await dump.groups()) == 10


async def test_a_listed_file_starts_at_its_first_group(sample, serve):
    history, expected = sample
    server = await serve(history)
    async with await RawClient.logged_in(server) as client:
        await client.prepare()
        dump = await client.dump(name="binlog-000030.ibb", non_block=True)
        await dump.preamble(rotate_checksum=True)
        wanted = [group["gtid"] for group in expected["groups"] if group["file"] >= 30]
        assert [str(group.gtid) for group in await dump.groups()] == wanted


async def test_damage_ends_the_dump_with_its_place(serve, sample_folder, tmp_path):
    for file in sample_folder[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    damaged = bytearray((tmp_path / "binlog-000002.ibb").read_bytes())
    damaged[5 * 16384 + 100] ^= 1
    (tmp_path / "binlog-000002.ibb").write_bytes(damaged)
    history = ReadOnlyHistory(OsDisk(), str(tmp_path))
    server = await serve(history)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("")
        dump = await client.dump(non_block=True)
        await dump.preamble(rotate_checksum=True)
        with pytest.raises(SqlError, match=r"binlog-000002\.ibb.*page 5") as caught:
            while await dump.event():
                pass
        assert caught.value.code == 1236
    await server.stop()
    history.close()


async def test_annotate_events_are_sent_only_when_asked_for(serve, store):
    note = build_event(EventType.ANNOTATE_ROWS, b"insert", timestamp=1, server_id=1)
    with store.begin() as group:
        group.write(note + query("insert") + xid(1))
        group.commit(Gtid(0, 1, 11))
    server = await serve(store)
    for annotate, count in ((True, 4), (False, 3)):
        async with await RawClient.logged_in(server) as client:
            await client.prepare("0-1-10")
            dump = await client.dump(non_block=True, annotate=annotate)
            await dump.preamble(rotate_checksum=True)
            (group,) = await dump.groups()
            assert len(group.events) == count
            assert EventHeader.unpack(group.events[0]).log_pos == 0


async def test_files_that_another_program_writes_are_followed(serve, tmp_path):
    options = replace(SMALL, background=False)
    with Store.open(tmp_path / "foreign", options) as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        store.close()
    with Store.open(tmp_path / "foreign", options) as store:
        history = ReadOnlyHistory(OsDisk(), str(tmp_path / "foreign"), follow_unsynced=True)
        server = await serve(history, poll_interval=0.01)
        dump = await dumping(server, "0-1-1", non_block=False, server_id=5)
        for seq in range(2, 90):  # 40 KiB each: several files, pages written as they fill
            publish(store, Gtid(0, 1, seq), size=40_000, wait=True)
        for seq in range(2, 60):
            assert (await dump.next_group()).gtid.seq == seq
        await dump.client.close()
        await server.stop()
        history.close()


async def test_files_that_another_program_begins_anew_end_the_dumps_of_them(serve, tmp_path):
    """They would go on in the middle of another history."""
    path = tmp_path / "foreign"
    with Store.open(path, replace(SMALL, background=False)) as store:
        for seq in range(1, 11):
            publish(store, Gtid(0, 1, seq), wait=True)
        history = ReadOnlyHistory(OsDisk(), str(path), follow_unsynced=True)
        server = await serve(history, poll_interval=0.01)
        dump = await dumping(server, non_block=False, server_id=5)
        store.reset()
        for seq in range(1, 40):
            publish(store, Gtid(0, 1, seq), size=4000, wait=True)
        with pytest.raises(SqlError, match="deleted and begun anew") as caught:
            while True:
                await dump.event()
        assert caught.value.code == 1236
        await dump.client.close()
        again = await dumping(server, "0-1-2", non_block=False, server_id=5)
        assert (await again.next_group()).gtid == Gtid(0, 1, 3)
        await again.client.close()
        await server.stop()
        history.close()


@pytest.mark.roomy
async def test_a_client_that_reads_nothing_for_too_long_is_dropped(serve, store, capfd):
    for seq in range(11, 51):
        publish(store, Gtid(0, 1, seq), size=1 << 20)
    server = await serve(store, net_write_timeout=0.1)
    client = await RawClient.logged_in(server)
    await client.prepare("0-1-10")
    await client.dump(server_id=5)
    client.writer.transport.pause_reading()
    await until_sessions(server, 0)
    output = capfd.readouterr()
    assert "the client did not read for 0.1 s" in output.out + output.err
    await client.close()
