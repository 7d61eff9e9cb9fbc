"""A dump taken apart: however its bytes are cut, checked, and held in bounds."""

import random

import pytest

from ibb.demo.made_up_groups import made_up_groups
from ibb.pipeline.server_dump import HELD_BYTES_MAX, DumpedGroups
from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.event import EventHeader, EventType, with_checksum
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidFlag, encode_gtid_event
from ibb.protocol.incident import Incident
from ibb.protocol.packet import frame, next_seq
from ibb.protocol.reply import eof, err
from ibb.protocol.rotate import Rotate

from ..storage.events import transaction

LARGE = 1 << 20


def events_of(group):
    """Return the events of a group's bytes."""
    found, event = [], b""
    for part in EventSplitter().feed(group):
        event = bytes(part.data) if part.first else event + bytes(part.data)
        if part.last:
            found.append(event)
    return found


def group_of(number, size):
    head = encode_gtid_event(Gtid(0, 1, number), 1_700_000_000, GtidFlag.TRANSACTIONAL)
    return head + transaction("x", size)


GROUPS = [
    *(events for _, events in made_up_groups(30)),
    *(group_of(number, size) for number, size in ((901, LARGE), (902, 10), (903, 20 << 20))),
]


def packets(payloads, seq=1):
    data = b""
    for payload in payloads:
        data += frame(payload, seq)
        seq = next_seq(seq + len(payload) // 0xFFFFFF)
    return data


def dump(groups, *, checksum=True, end=True):
    """Return the bytes of a dump."""
    described = FormatDescription.default("10.11.6-MariaDB", 1, 1_700_000_000)
    sealed = with_checksum if checksum else bytes
    payloads = [
        b"\0" + Rotate.fake("bin.000001", 1).encode(),
        b"\0" + described.to_wire(int(checksum)),
        *(b"\0" + sealed(event) for group in groups for event in events_of(group)),
    ]
    return packets([*payloads, *([eof()] if end else [])])


def pieces(data, sizes):
    at = 0
    while at < len(data):
        size = sizes()
        yield data[at : at + size]
        at += size


def taken(data, sizes=lambda: 256 << 10):
    groups = DumpedGroups()
    try:
        found = [b"".join(group.pieces()) for group in groups.groups(pieces(data, sizes))]
    finally:
        groups.close()
    return found


@pytest.mark.parametrize("checksum", [True, False])
def test_groups_come_whole_without_checksums(checksum):
    assert taken(dump(GROUPS, checksum=checksum)) == GROUPS


@pytest.mark.parametrize("seed", range(4))
def test_however_the_bytes_are_cut(seed):
    rng = random.Random(seed)
    small = [*GROUPS[:20], group_of(901, 70_000), group_of(902, 3)]
    longest = (7, 100, 5000, 90_000)[seed]
    assert taken(dump(small), lambda: rng.randint(1, longest)) == small


def test_a_large_group_is_not_held_in_memory():
    groups = DumpedGroups()
    for group in groups.groups([dump(GROUPS[-1:])]):
        held = sum(map(len, group._held))
        assert held <= HELD_BYTES_MAX
        kept = group.kept()
    assert b"".join(kept.pieces()) == b"".join(kept.pieces()) == GROUPS[-1]
    kept.close()


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_wrong_checksum_is_noticed(size):
    data = bytearray(dump([group_of(1, size)]))
    data[data.index(b"xxx")] ^= 1
    with pytest.raises(FormatError, match="event has checksum"):
        taken(bytes(data))


def test_a_dump_that_is_cut_is_no_end():
    whole = dump(GROUPS[:3], end=False)
    with pytest.raises(ProtocolError, match="closed the connection in the middle of a dump"):
        taken(whole)
    events = events_of(GROUPS[0])
    cut = dump([b"".join(events[:-1])])
    with pytest.raises(FormatError, match=r"the dump ends inside group \d+-\d+-\d+"):
        taken(cut)


def test_what_a_server_says_instead_is_told():
    with pytest.raises(SqlError, match="purged") as caught:
        taken(packets([err(1236, "HY000", "it has been purged")]))
    assert caught.value.code == 1236
    with pytest.raises(ProtocolError, match="begins with 07"):
        taken(packets([b"\x07"]))
    incident = Incident(1, "LOST_EVENTS", 1_700_000_000, 1).encode()
    assert EventHeader.unpack(incident).type == EventType.INCIDENT
    with pytest.raises(FormatError, match="INCIDENT event that it has lost changes"):
        taken(dump([GROUPS[0], incident]))
