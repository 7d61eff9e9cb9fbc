"""Every event of every captured dump, through every codec that knows it."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.event import (
    HEADER_SIZE,
    LOG_POS_OFFSET,
    EventHeader,
    EventType,
    check_event,
    with_checksum,
    without_checksum,
)
from ibb.protocol.event_encoder import EventEncoder
from ibb.protocol.event_group import GroupStep, GroupTracker
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.format_description import (
    CHECKSUM_CRC32,
    POST_HEADER_LENGTHS,
    FormatDescription,
)
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, read_gtid
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.rotate import Rotate

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
COM_BINLOG_DUMP = 0x12


@dataclass
class Dump:
    """What one captured connection received behind COM_BINLOG_DUMP."""

    asked_for_checksum: bool
    events: list[bytes]  # as they came; cut short where the capture is
    whole: list[bool]

    def stored(self) -> list[bytes]:
        """Return the whole events of groups as a store keeps them, cut ones left out."""
        kept = []
        tracker = GroupTracker()
        for event, whole in zip(self.events, self.whole, strict=True):
            header = EventHeader.unpack(event)
            if tracker.add(header, event[HEADER_SIZE:], checksum_size=4) is GroupStep.OUTSIDE:
                continue
            if whole:
                kept.append(without_log_pos(without_checksum(event)))
        return kept


def without_log_pos(event: bytes) -> bytes:
    return event[:LOG_POS_OFFSET] + bytes(4) + event[LOG_POS_OFFSET + 4 :]


def load(path: Path) -> Dump:
    packets = json.loads(path.read_text())
    incomplete = any(packet["dir"] == "-" for packet in packets)
    dump = Dump(asked_for_checksum=False, events=[], whole=[])
    dumping = semi_sync = False
    continued = False
    seq = 0
    for packet in packets:
        data = bytes.fromhex(packet.get("hex", ""))
        if packet["dir"] == "C":
            dump.asked_for_checksum |= b"@master_binlog_checksum" in data and b"NONE" not in data
            semi_sync |= b"rpl_semi_sync_slave= 1" in data
            dumping |= data[:1] == bytes([COM_BINLOG_DUMP])
        if packet["dir"] != "S" or not dumping or not data:
            continue
        if incomplete and dump.events and packet["seq"] != (seq + 1) % 256:
            break  # here packets were left out; what follows belongs elsewhere
        seq = packet["seq"]
        length = packet.get("len", len(data))
        if continued:
            dump.events[-1] += data
        elif data[0] == 0:
            event = data[3 if semi_sync else 1 :]
            dump.events.append(event)
            dump.whole.append(length == len(data) and length < 0xFFFFFF)
        continued = length == 0xFFFFFF
    return dump


DUMPS = {path.stem: dump for path in sorted(CAPTURES.glob("*.json")) if (dump := load(path)).events}
every_dump = pytest.mark.parametrize("name", DUMPS)


def test_the_captures_are_there():
    assert len(DUMPS) == 26
    assert sum(len(dump.events) for dump in DUMPS.values()) > 1200


@every_dump
def test_lengths_and_checksums_are_right(name):
    dump = DUMPS[name]
    checksum = dump.asked_for_checksum  # until a format description says it
    for event, whole in zip(dump.events, dump.whole, strict=True):
        if not whole:
            continue
        header = check_event(event)
        if header.type == EventType.FORMAT_DESCRIPTION:
            described = FormatDescription.parse(event, has_checksum=True)
            checksum = described.checksum_alg == CHECKSUM_CRC32
        elif checksum:
            assert check_event(without_checksum(event)).length == header.length - 4
        else:
            assert header.type == EventType.ROTATE
            assert Rotate.parse(event).timestamp == 0
            with pytest.raises(FormatError):
                without_checksum(event)


CODECS = {
    EventType.ROTATE: Rotate,
    EventType.GTID: GtidEvent,
    EventType.GTID_LIST: GtidList,
    EventType.HEARTBEAT: Heartbeat,
}


@every_dump
def test_what_is_parsed_encodes_to_the_same_bytes(name):
    dump = DUMPS[name]
    checksum = dump.asked_for_checksum
    for event, whole in zip(dump.events, dump.whole, strict=True):
        code = EventHeader.unpack(event).type
        if code == EventType.FORMAT_DESCRIPTION:
            checksum = True
            described = FormatDescription.parse(event, has_checksum=True)
            wire = described.to_wire(described.checksum_alg, described.created)
            assert wire == with_checksum(without_log_pos(without_checksum(event)))
            assert len(described.to_store()) == 248
            assert described.post_header_lengths == POST_HEADER_LENGTHS
        elif code in CODECS and whole:
            plain = without_checksum(event) if checksum else event
            assert CODECS[code].parse(plain).encode() == plain


@every_dump
def test_groups_are_followed_through_the_whole_dump(name):
    tracker = GroupTracker()
    began, ended = [], []
    for event in DUMPS[name].events:
        header = EventHeader.unpack(event)
        step = tracker.add(header, event[HEADER_SIZE:], checksum_size=4)
        assert (step is GroupStep.BEGIN) is (header.type == EventType.GTID)
        if step is GroupStep.BEGIN:
            began.append(tracker.gtid)
            assert read_gtid(event)[0] == tracker.gtid
        elif step is GroupStep.END:
            ended.append(began[-1])
            assert header.type in (EventType.XID, EventType.XA_PREPARE, EventType.QUERY)
    # A dump that the capture cuts short may end inside its last group.
    assert ended in (began, began[:-1])


def test_groups_of_the_first_dump_are_those_of_its_primary():
    tracker = GroupTracker()
    sizes: dict[Gtid, int] = {}
    for event in DUMPS["p10-001-A_r10_gtid"].events:
        gtid_before = tracker.gtid
        step = tracker.add(EventHeader.unpack(event), event[HEADER_SIZE:], checksum_size=4)
        gtid = tracker.gtid or gtid_before
        if step is not GroupStep.OUTSIDE:
            assert gtid is not None
            sizes[gtid] = sizes.get(gtid, 0) + 1
    assert [gtid.seq for gtid in sizes if gtid.domain == 0] == list(range(1, 30))
    assert [gtid.seq for gtid in sizes if gtid.domain == 7] == list(range(1, 9))
    assert sizes[Gtid(0, 101, 1)] == 2  # DDL
    assert sizes[Gtid(0, 101, 10)] == 11  # three statements by row
    assert sizes[Gtid(0, 101, 17)] == 3  # MyISAM: ends with COMMIT
    assert sizes[Gtid(0, 101, 20)] == sizes[Gtid(0, 101, 21)] == 2  # START ALTER, COMMIT ALTER
    assert sizes[Gtid(7, 101, 2)] == 5  # XA PREPARE
    assert sizes[Gtid(7, 101, 3)] == 2  # XA COMMIT
    assert sizes[Gtid(7, 101, 7)] == 5  # compressed rows


@every_dump
def test_encoder_reproduces_what_the_primary_sent(name):
    """Up to log_pos, which we never count: same events, same bytes, same checksums."""
    stored = DUMPS[name].stored()
    encoder = EventEncoder(checksum=True, annotate=True, capability=4, skip_marked=False)
    parts = list(encoder.encode_group([b"".join(stored)]))
    assert all(part.first and part.last for part in parts)
    assert [bytes(part.data) for part in parts] == [with_checksum(event) for event in stored]
    plain = EventEncoder(checksum=False, annotate=True, capability=4, skip_marked=False)
    assert [part.data for part in plain.encode_group([b"".join(stored)])] == stored


@pytest.mark.parametrize(
    ("annotated", "bare"),
    [
        ("p10-009-G_mb10_raw", "p10-025-PMR_file"),  # dump flags 2 and 0 on the same file
        ("p10-009-G_mb10_raw", "p10-032-ZONGJI"),
    ],
)
def test_annotations_are_left_out_as_the_primary_does(annotated, bare):
    encoder = EventEncoder(checksum=False, annotate=False, capability=4, skip_marked=False)
    stored = DUMPS[annotated].stored()
    assert any(EventHeader.unpack(event).type == EventType.ANNOTATE_ROWS for event in stored)
    encoded = [part.data for part in encoder.encode_group(stored)]
    wanted = DUMPS[bare].stored()
    common = min(len(encoded), len(wanted))
    assert common > 40
    assert encoded[:common] == wanted[:common]


def huge_event() -> bytes:
    """Return the 17 MB row event of capture B2, whose cut part is one repeated letter."""
    dump = DUMPS["p10-008-B2_r10_huge"]
    (index,) = [i for i, event in enumerate(dump.events) if EventHeader.unpack(event).length > 1e6]
    head = dump.events[index][:159]  # the first packet's; the rest is of the second
    assert dump.events[index][159:] == b"A" * 160
    length = EventHeader.unpack(head).length
    return with_checksum(
        without_log_pos(head[:9] + (length - 4).to_bytes(4, "little") + head[13:]).ljust(
            length - 4, b"A"
        )
    )


def test_huge_event_passes_in_parts_with_a_running_checksum():
    event = huge_event()
    assert len(event) == 17_000_047
    first_packet = 0xFFFFFF - 1  # its status byte is no part of the event
    splitter = EventSplitter()
    parts = [
        part
        for piece in (event[:first_packet], event[first_packet:])
        for part in splitter.feed(piece)
    ]
    assert [(len(part.data), part.first, part.last) for part in parts] == [
        (first_packet, True, False),
        (len(event) - first_packet, False, True),
    ]
    stored = without_checksum(event)
    pieces = [stored[at : at + 16_000] for at in range(0, len(stored), 16_000)]
    encoder = EventEncoder(checksum=True, annotate=False, capability=4, skip_marked=False)
    wire = list(encoder.encode_group(pieces))
    assert {part.total_length for part in wire} == {len(event)}
    assert [part.first for part in wire] == [True] + [False] * (len(wire) - 1)
    assert [part.last for part in wire] == [False] * (len(wire) - 1) + [True]
    assert max(len(part.data) for part in wire) <= 16_000
    assert b"".join(part.data for part in wire) == event
