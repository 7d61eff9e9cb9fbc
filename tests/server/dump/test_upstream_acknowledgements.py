"""A relay as a semi-synchronous replica: what it acknowledges, when, and in whose coordinates."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ibb.protocol.command import SemiSyncAck, parse_command
from ibb.protocol.errors import ProtocolError
from ibb.protocol.event import EventHeader, EventType, build_event, with_checksum
from ibb.protocol.gtid import Gtid
from ibb.protocol.packet import frame, frame_all
from ibb.protocol.rotate import Rotate
from ibb.server.relay.ingest import Ingest
from ibb.server.relay.upstream_place import UpstreamPlace
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish
from ..relay.fake_primary import HANG, FakePrimary, group, preamble, stored
from ..relay.test_ingest import contents, ingest
from ..relay.test_relay import Following, gtids, until

pytestmark = pytest.mark.tiny

CAPTURES = Path(__file__).parent.parent.parent / "data" / "captures"
DUMP, ACKNOWLEDGEMENT = "12", "ef"  # how payloads begin
ASKING, SILENT = b"\0\xef\1", b"\0\xef\0"


def asking_for(*events):
    """Return the packets of events, the last of which is to be acknowledged."""
    marks = [SILENT] * (len(events) - 1) + [ASKING]
    return frame_all([mark + event for mark, event in zip(marks, events, strict=True)], 1)[0]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_captured_stream_is_acknowledged_as_the_captured_replica_did(target, step):
    (path,) = CAPTURES.glob("*_semisync.json")
    packets = json.loads(path.read_text())
    begin = next(n for n, packet in enumerate(packets) if packet.get("hex", "")[:2] == DUMP)
    taking = ingest(target, semi_sync=True)
    due = None
    count = 0
    for packet in packets[begin + 1 :]:
        payload = bytes.fromhex(packet.get("hex", ""))
        if packet["dir"] == "C" and packet.get("hex", "")[:2] == ACKNOWLEDGEMENT:
            assert due == parse_command(payload)
            count += 1
        elif packet["dir"] == "S" and payload:
            data = frame(payload, packet["seq"])
            answers = [taking.feed([data[at : at + step]]) for at in range(0, len(data), step)]
            assert not any(answers[:-1])
            due = answers[-1]
            assert (due is not None) == (payload[2] == 1)
    assert count == 4
    assert target.state().contains(Gtid(0, 111, 17))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_is_acknowledged_is_durable_whatever_the_mode(tmp_path, mode):
    options = replace(
        SMALL, format_description="upstream", flush_log_at_commit=mode, flush_log_interval=1e6
    )
    with Store.open(tmp_path / "store", options) as store:
        taking = ingest(store, semi_sync=True)
        assert taking.feed([asking_for(*preamble(), *group(Gtid(0, 1, 1)))]) is not None
        assert contents(store) == [stored(Gtid(0, 1, 1))]


def test_a_group_that_is_stored_already_is_acknowledged_too(target):
    ingest(target, semi_sync=True).feed([asking_for(*preamble(), *group(Gtid(0, 1, 1)))])
    again = ingest(target, semi_sync=True)
    assert again.feed([asking_for(*preamble(), *group(Gtid(0, 1, 1)))]) is not None
    assert again.skipped == 1


def test_nothing_is_acknowledged_in_the_middle_of_a_group(target):
    taking = ingest(target, semi_sync=True)
    begin, body, end = group(Gtid(0, 1, 1))
    assert taking.feed([asking_for(*preamble(), begin, body)]) is None
    assert taking.feed([asking_for(end)]) is not None


@pytest.mark.parametrize("size", [70_000, pytest.param(17 << 20, marks=pytest.mark.roomy)])
def test_marks_are_taken_off_large_packets(target, size):
    events = [*preamble(), *group(Gtid(0, 1, 1), size)]
    stream = asking_for(*events)
    taking = ingest(target, semi_sync=True)
    answers = [taking.feed([stream[at : at + 65_537]]) for at in range(0, len(stream), 65_537)]
    counted = sum(map(len, events[2:]))  # neither the Rotate nor a description without position
    assert answers[-1] == SemiSyncAck(4 + counted, "bin.000001")
    assert contents(target) == [stored(Gtid(0, 1, 1), size)]


@pytest.mark.parametrize("status", [b"\0\xee\0", b"\0\0\0"])
def test_a_packet_without_its_mark_ends_the_dump(target, status):
    with pytest.raises(ProtocolError, match="without the mark of semi-sync"):
        ingest(target, semi_sync=True).feed([frame(status + preamble()[0], 1)])


def place_behind(*events):
    place = UpstreamPlace()
    place.enter(Rotate.fake("bin.000007", 1, 4))
    for event in events:
        place.count(EventHeader.unpack(event))
    return place.acknowledgement()


def event(code=EventType.QUERY, *, log_pos=0, flags=0, size=81):
    made = build_event(code, bytes(size), timestamp=1, server_id=1, log_pos=log_pos, flags=flags)
    return with_checksum(made)[: 19 + size]


@pytest.mark.parametrize(
    ("events", "position"),
    [
        ([event(), event()], 4 + 208),
        ([event(log_pos=5000), event()], 5104),
        ([event(log_pos=50)], 108),  # wrapped around at 4 GiB
        ([event(EventType.FORMAT_DESCRIPTION)], 4),
        ([event(EventType.FORMAT_DESCRIPTION, log_pos=256)], 256),
        ([event(EventType.HEARTBEAT)], 4),
        ([event(EventType.HEARTBEAT, log_pos=900)], 900),
        ([event(EventType.GTID_LIST, flags=0x20)], 4),
        ([event(EventType.GTID_LIST, flags=0x20, log_pos=935)], 935),
    ],
)
def test_bytes_are_counted_as_a_replica_counts_them(events, position):
    assert place_behind(*events) == SemiSyncAck(position, "bin.000007")


async def test_a_commit_upstream_waits_until_the_relay_has_it(serve, store, target):
    server = await serve(
        store, rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=1_000_000
    )
    async with Following(
        target, server.port(), password="secret", rpl_semi_sync_slave_enabled=True
    ) as following:
        for seq in range(11, 31):
            await asyncio.to_thread(publish, store, Gtid(0, 1, seq), wait=True)
            assert target.state().contains(Gtid(0, 1, seq))
        assert following.relay.acknowledges
        await until(lambda: following.relay.acknowledged >= 20)
    assert not following.relay.acknowledges
    status = server.status()
    assert status["Rpl_semi_sync_master_yes_tx"] == "20"
    assert status["Rpl_semi_sync_master_no_tx"] == "0"


async def test_a_relay_that_is_to_end_acknowledges_nothing_more(serve, store, target, monkeypatch):
    """What it stores just then may have been let go without a replica."""
    feeds, may_end, feed = threading.Event(), threading.Event(), Ingest.feed

    def slow(ingest, *pieces):
        answer = feed(ingest, *pieces)
        if answer is not None:
            feeds.set()
            assert may_end.wait(20)
        return answer

    monkeypatch.setattr(Ingest, "feed", slow)
    server = await serve(
        store, rpl_semi_sync_master_enabled=True, rpl_semi_sync_master_timeout=1_000_000
    )
    following = Following(
        target, server.port(), password="secret", rpl_semi_sync_slave_enabled=True
    )
    async with following:
        await until(lambda: following.relay.acknowledges)
        committing = asyncio.create_task(
            asyncio.to_thread(publish, store, Gtid(0, 1, 11), wait=True)
        )
        await until(feeds.is_set)
        following.task.cancel()
        may_end.set()
    assert following.relay.acknowledged == 0
    assert not committing.done()
    server.semi_sync.enabled = False
    await committing
    assert target.state().contains(Gtid(0, 1, 11))


async def test_a_primary_that_does_not_know_of_it_gets_no_acknowledgement(target):
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 5)), HANG]) as primary,
        Following(target, primary.port, rpl_semi_sync_slave_enabled=True),
    ):
        await until(lambda: gtids(target) == ["0-1-5"])
        asked, last = primary.statements[0][-2:]
    assert "rpl_semi_sync_master_enabled" in last
    assert "semi_sync" not in asked
