"""Histories drawn at random, and lists with wrong links: both ways make the same packets."""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ibb.protocol.event import HEADER_SIZE, EventFlag, EventHeader, EventType, build_event
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump import event_packets
from ibb.server.dump.dump_stream import DumpStream
from ibb.server.dump.run_stream import RunStream
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.record import RecordType, encode_commit_prefix

from ...storage.binlog_builder import BinlogBuilder
from .made_streams import (
    assert_same,
    note_quick_bytes,
    often,
    packets_of,
    request,
    rest_of,
    stream,
)

pytestmark = pytest.mark.kernel

FILE_BYTES = 1 << 17
UNKNOWN_RECORD = 60
TYPES = (
    *(EventType.QUERY, EventType.XID, EventType.TABLE_MAP, EventType.WRITE_ROWS_V1),
    *(EventType.ANNOTATE_ROWS, EventType.INTVAR, EventType.INCIDENT),
)
SIZES = (0, 1, 7, 40, 300, 700, 3000, 20_000)
LARGE = event_packets.EVENT_BYTES_MAX  # of a body: not for the kernel
u32 = st.sampled_from((0, 1, 4, 255, 70_000, 2**32 - 1))
flags = st.sampled_from((0, 0, 8, EventFlag.ACCEPT_OWN, EventFlag.SKIP_REPLICATION, 0xFFFF))


def made_event(code, size, server, log_pos, flags):
    body = bytes(number % 251 for number in range(size))
    return build_event(
        code, body, timestamp=size, server_id=server, log_pos=log_pos, flags=int(flags)
    )


events = st.builds(made_event, st.sampled_from(TYPES), st.sampled_from(SIZES), u32, u32, flags)
large = st.builds(
    made_event, st.just(TYPES[3]), st.sampled_from((LARGE - 99, LARGE)), u32, u32, flags
)


class Group(NamedTuple):
    """A group as it is to be stored: how its events are cut, and what comes between the pieces."""

    domain: int
    server: int
    log_pos: int
    flags: int
    events: list
    cuts: list  # where pieces begin, modulo their bytes; none: all is in the commit record
    stray: int  # behind this piece comes one of another group
    lists: tuple  # which of the two the pieces of the first half are in, and of the second
    ahead: int  # of its number in the history


groups = st.builds(
    Group,
    st.sampled_from((0, 0, 1, 40)),
    st.sampled_from((1, 2)),
    u32,
    flags,
    st.lists(events, max_size=9) | st.lists(events | large, max_size=3),
    st.just([]) | st.lists(st.integers(0, 1 << 18), min_size=1, max_size=9),
    st.sampled_from((-1, -1, -1, 0, 2)),
    st.sampled_from(((0, 0), (0, 0), (1, 1), (0, 1), (1, 0))),
    st.sampled_from((0, 0, 0, 50)),
)
others = st.sampled_from(("format", "unknown", "lost", "file"))
requests = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in ("checksum", "annotate", "skip_marked", "join_fragments", "needs_start_list")
    }
)


def gtid_event(gtid, group):
    body = gtid.seq.to_bytes(8, "little") + gtid.domain.to_bytes(4, "little") + b"\x01" + bytes(6)
    return build_event(
        EventType.GTID,
        body,
        timestamp=gtid.seq,
        server_id=gtid.server,
        log_pos=group.log_pos,
        flags=int(group.flags),
    )


def group_of(*events, log_pos=0, cuts=()):
    return Group(0, 1, log_pos, 0, list(events), list(cuts), -1, (0, 0), 0)


def write_group(builder, group, number):
    """Write a group, out-of-band pieces first; return its GTID."""
    gtid = Gtid(group.domain, group.server, number + group.ahead)
    data = b"".join(group.events)
    half = len(data) // 2
    if group.cuts and group.lists == (1, 0):  # what is read last lies first
        data, half = data[half:] + data[:half], len(data) - half
    forests, stray = (OobForest(), OobForest()), OobForest()
    cuts = {cut % len(data) for cut in group.cuts} | {0, half} if data and group.cuts else ()
    for piece, (start, end) in enumerate(itertools.pairwise([*sorted(cuts), len(data)])):
        which = group.lists[start >= half]
        builder.oob(forests[which], data[start:end])
        if piece == group.stray:
            builder.oob(stray, b"?" * 50)
    lists = [forest.reference() for forest in forests if forest.count]
    rest = b"" if lists else data
    contents = encode_commit_prefix(lists, builder.major) + gtid_event(gtid, group) + rest
    builder.record(RecordType.COMMIT, contents, gtid)
    return gtid


def write_other(builder, what):
    if what == "format":
        event = FormatDescription.default("12.3.1", 1, 7).to_store()
        builder.record(RecordType.COMMIT, encode_commit_prefix((), builder.major) + event)
    elif what == "unknown":
        builder.record(UNKNOWN_RECORD, b"?" * 30)
    elif what == "lost":
        builder.oob(OobForest(), b"?" * 600)
    elif builder.place > builder.page_size:
        builder.fill_file()


def compared(builder, asked, batch=1 << 18, run=1 << 18):
    """Compare what is made of files; return it."""
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patch:
        history = ReadOnlyHistory(OsDisk(), str(builder.write(Path(path))))
        try:
            with often(patch, batch, run):
                return assert_same(history, asked)
        finally:
            history.close()


def test_both_ways_make_the_same_packets_of_any_groups(monkeypatch):
    quick = note_quick_bytes(monkeypatch)

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from((512, 1024, 4096, 16384, 65536)),
        st.integers(0, 4),
        st.lists(groups | groups | groups | others, min_size=3, max_size=12),
        requests,
        st.integers(0, 12),
        st.sets(st.sampled_from((0, 1, 40))),
        st.sampled_from((1, 700, 5000, 1 << 18)),
        st.sampled_from((1024, 4096, 1 << 18)),
    )
    def compare(page_size, interval, steps, wanted, had, forgotten, batch, run):
        builder = BinlogBuilder(page_size, max(FILE_BYTES // page_size, 4), interval)
        known = GtidPosition()
        for number, step in enumerate(steps, 1):
            if isinstance(step, Group):
                gtid = write_group(builder, step, number)
                if number <= had and gtid.domain not in forgotten:
                    known.set(gtid)
            else:
                write_other(builder, step)
        compared(builder, request(connect_state=known, **wanted), batch, run)

    compare()
    assert sum(quick) > 10_000


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("cuts", [[], [10, 500]])
def test_where_an_event_says_that_it_ends_is_not_sent(checksum, cuts, monkeypatch):
    quick, builder = note_quick_bytes(monkeypatch), BinlogBuilder(4096)
    inside = [made_event(code, 300, 1, 12345, 0) for code in TYPES[:4]]
    for seq in (1, 2):  # a client that has nothing is sent the first one as ever
        write_group(builder, group_of(*inside, log_pos=678, cuts=cuts), seq)
    made = compared(builder, request(checksum=checksum))
    headers = [EventHeader.unpack(payload[1:]) for _, payload in packets_of(made.data)]
    assert [header.type for header in headers][2:] == [EventType.GTID, *TYPES[:4]] * 2
    assert {header.log_pos for header in headers[2:]} == {0}
    assert sum(quick) > 4 * (300 + HEADER_SIZE)  # the kernel has made them


@pytest.mark.parametrize("kind", [DumpStream, RunStream])
def test_sequence_ids_go_on_where_the_next_page_is_not_there_yet(kind, tmp_path):
    builder = BinlogBuilder(4096, interval=0)
    for number in (1, 2):
        write_group(builder, group_of(made_event(TYPES[0], 300, 1, 0, 0)), number)
    around = len(encode_commit_prefix((), builder.major)) + len(
        gtid_event(Gtid(0, 1, 3), group_of())
    )
    size = builder.room - 3 - around - HEADER_SIZE
    write_group(builder, group_of(made_event(TYPES[0], size, 1, 0, 0)), 3)
    assert builder.place == 2 * builder.page_size
    history = ReadOnlyHistory(OsDisk(), str(builder.write(tmp_path)))
    one = stream(kind, history, request())
    rest_of(one, one.start())
    found = []
    for _ in range(3):  # a client that waits is sent heartbeats
        found.append(one.heartbeat()[3])
        assert one.next_batch().data == b""
    one.close()
    history.close()
    assert found == list(range(found[0], found[0] + 3))
    assert found[0] > 3


class WrongLinks:
    """
    A forest one of whose nodes is written with another header.

    Args:
        node: which.
        change: makes it of the right one.
    """

    def __init__(self, node, change):
        self.right, self._node, self._change = OobForest(), node, change
        self.positions = []

    def next_node(self):
        header = self.right.next_node()
        return self._change(header, self.positions) if self.right.count == self._node else header

    def add(self, position):
        self.positions.append(position)
        self.right.add(position)


def moved(position, by):
    return position._replace(offset=position.offset + by)


NOWHERE = Position(0, 0)
CHANGES = {
    "another index": lambda header, _: replace(header, index=header.index + 1),
    "no left link": lambda header, _: replace(header, left=NOWHERE),
    "no right link": lambda header, _: replace(header, right=NOWHERE),
    "left to the first": lambda header, places: replace(header, left=(*places, NOWHERE)[0]),
    "right to the first": lambda header, places: replace(header, right=(*places, NOWHERE)[0]),
    "right to the last": lambda header, places: replace(header, right=(NOWHERE, *places)[-1]),
    "right to another file": lambda header, _: replace(
        header, right=header.right._replace(file_no=header.right.file_no + 1)
    ),
    "right beside it": lambda header, _: replace(header, right=moved(header.right, 1)),
    "left beside it": lambda header, _: replace(header, left=moved(header.left, 1)),
}


REFERENCES = {
    "as it is": lambda reference, _: reference,
    "one more": lambda reference, _: replace(reference, count=reference.count + 1),
    "one fewer": lambda reference, _: replace(reference, count=reference.count - 1),
    "another first": lambda reference, places: replace(reference, first=places[-1]),
    "another last": lambda reference, places: replace(reference, last=places[0]),
    "first beside it": lambda reference, _: replace(reference, first=moved(reference.first, 1)),
    "last beside it": lambda reference, _: replace(reference, last=moved(reference.last, -1)),
}


def with_a_list(count, forest, change):
    """Return what is made of a history in which a list has something wrong."""
    piece, builder = made_event(TYPES[0], 700, 1, 0, 0), BinlogBuilder(4096)
    write_group(builder, group_of(piece), 1)
    for _ in range(count):
        builder.oob(forest, piece)
    reference = change(forest.right.reference(), forest.positions)
    gtid, prefix = Gtid(0, 1, 2), encode_commit_prefix([reference], builder.major)
    builder.record(RecordType.COMMIT, prefix + gtid_event(gtid, group_of()), gtid)
    write_group(builder, group_of(piece), 3)
    return compared(builder, request())


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_a_list_with_a_wrong_link_is_told_as_ever(count):
    made = [
        with_a_list(count, WrongLinks(node, change), REFERENCES["as it is"])
        for node in range(count)
        for change in CHANGES.values()
    ]
    assert any(one.error for one in made)
    assert count == 1 or not all(one.error for one in made)  # some are of no consequence


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_a_list_that_is_told_of_wrongly_is_told_as_ever(count):
    made = [with_a_list(count, WrongLinks(-1, None), change) for change in REFERENCES.values()]
    assert any(one.error for one in made)
    assert made[0].error is None
