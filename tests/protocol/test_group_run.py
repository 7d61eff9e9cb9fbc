"""A run takes what is ordinary, as it is, and leaves all else where it was."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.event import HEAD_BYTES_MAX, EventType, build_event, with_checksum
from ibb.protocol.event_splitter import EventSplitter
from ibb.protocol.group_run import EVENTS_BYTES_MAX, GROUPS_MAX, RUN_BYTES_MAX, GroupRun
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, XaId
from ibb.protocol.packet import frame_all

from ..storage.events import query, rows_event, transaction, xid

LIMIT = 20_000  # bytes of a group
PLAIN = 0x0C  # flags2 of a transaction


def gtid_event(seq, flags2=PLAIN, domain=0, **more):
    return GtidEvent(Gtid(domain, 1, seq), 77, flags2, **more).encode()


def ordinary(seq, domain=0, size=0):
    return gtid_event(seq, domain=domain) + transaction(f"group {seq}", size)


def events_of(group):
    return [bytes(part.data) for part in EventSplitter().feed(group)]


def packets(groups, seq=1, *, checksum=True):
    """Return each group as it goes over the wire, from somewhere in a file."""
    found = []
    for group in groups:
        placed = [event[:13] + b"\x12\x34\x56\x78" + event[17:] for event in events_of(group)]
        events = [with_checksum(event) if checksum else event for event in placed]
        data, seq = frame_all([b"\0" + event for event in events], seq)
        found.append(data)
    return found


def groups_in(run):
    return [
        bytes(run.data[run.bounds[index] : run.bounds[index + 1]]) for index in range(run.count)
    ]


def take(data, seq=1, limit=LIMIT, checksum=4, at=0):
    run = GroupRun()
    return run, run.take(data, at, seq, checksum, limit)


ODD = {
    "a statement of its own": gtid_event(5, 1) + query("create table t (a int)"),
    "a statement that is no transaction": gtid_event(5, 1) + query("insert") + xid(1),
    "the end by COMMIT": gtid_event(5) + query("insert") + query("COMMIT"),
    "the end by rollback": gtid_event(5) + query("insert") + query("rollback"),
    "the end of a prepared transaction": gtid_event(5, PLAIN | 0x40, xa_id=XaId(1, b"a", b"b"))
    + query("x")
    + xid(1),
    "a START ALTER": gtid_event(5, flags_extra=2) + query("x") + xid(1),
    "a piece of a file": gtid_event(5)
    + build_event(EventType.APPEND_BLOCK, bytes(9), timestamp=1, server_id=1)
    + xid(1),
    "one too large": ordinary(5, size=LIMIT),
    "a GTID event that no reader takes": gtid_event(5, rest=bytes(HEAD_BYTES_MAX - 32)) + xid(1),
    "a cut XID": gtid_event(5) + build_event(EventType.XID, bytes(7), timestamp=1, server_id=1),
    "a cut QUERY": gtid_event(5)
    + build_event(EventType.QUERY, bytes(12), timestamp=1, server_id=1)
    + xid(1),
    "a QUERY whose text lies outside": gtid_event(5)
    + build_event(EventType.QUERY, bytes(8) + b"\xff" + bytes(9), timestamp=1, server_id=1)
    + xid(1),
}
FINE = {
    "rows": gtid_event(5) + rows_event(300) + xid(1),
    "a commit id": gtid_event(5, PLAIN | 2, commit_id=9) + rows_event(300) + xid(1),
    "a thread id": gtid_event(5, flags_extra=16, thread_id=9) + rows_event(300) + xid(1),
    "several engines": gtid_event(5, flags_extra=1, engines=1) + rows_event(300) + xid(1),
    "nothing": gtid_event(5) + xid(1),
    "the largest GTID event": gtid_event(5, rest=bytes(HEAD_BYTES_MAX - 33)) + xid(1),
    "the largest": ordinary(5, size=LIMIT - len(ordinary(5, size=1)) + 1),
    "a QUERY as short as COMMIT": gtid_event(5) + query("update") + xid(1),
}


@pytest.mark.kernel
@pytest.mark.parametrize("name", FINE)
def test_ordinary_groups_are_taken(name):
    groups = [ordinary(1), FINE[name], ordinary(6)]
    data = b"".join(packets(groups))
    run, end = take(data)
    assert (end, groups_in(run)) == (len(data), groups)
    assert [run.gtid(index) for index in range(3)] == [Gtid(0, 1, 1), Gtid(0, 1, 5), Gtid(0, 1, 6)]
    assert run.timestamp == 77


@pytest.mark.kernel
@pytest.mark.parametrize("name", ODD)
def test_odd_groups_are_left(name):
    parts = packets([ordinary(1), ODD[name], ordinary(6)])
    run, end = take(b"".join(parts))
    assert (end, groups_in(run)) == (len(parts[0]), [ordinary(1)])
    assert run.seq == 1 + len(events_of(ordinary(1)))


@pytest.mark.kernel
def test_a_packet_out_of_order_is_left():
    first, second = packets([ordinary(1)])[0], packets([ordinary(2)], 9)[0]
    run, end = take(first + second)
    assert (end, run.count) == (len(first), 1)
    assert run.take(first + second, end, 9, 4, LIMIT) == len(first + second)
    assert take(first, seq=2)[1] == 0


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_group_is_left_whatever_its_damage(seed):
    rng = random.Random(seed)
    groups = [ordinary(seq, size=rng.choice((0, 30, 300))) for seq in range(1, 8)]
    parts = packets(groups)
    hit = rng.randrange(7)
    damaged = bytearray(parts[hit])
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    run, end = take(b"".join([*parts[:hit], bytes(damaged), *parts[hit + 1 :]]))
    assert groups_in(run) == groups[:hit]
    assert end == sum(map(len, parts[:hit]))


@pytest.mark.kernel
@given(data=st.data())
@settings(max_examples=60)
def test_a_stream_that_is_cut_anywhere_gives_the_groups_before(data):
    sizes = data.draw(st.lists(st.sampled_from((0, 1, 40, 2000)), max_size=6))
    domains = data.draw(st.lists(st.integers(0, 1), min_size=6, max_size=6))
    groups = [ordinary(seq, domains[seq - 1], size) for seq, size in enumerate(sizes, 1)]
    checksum = data.draw(st.booleans())
    first = data.draw(st.integers(0, 255))
    parts = packets(groups, first, checksum=checksum)
    stream = b"".join(parts)
    cut = data.draw(st.integers(0, len(stream)))
    run, end = take(stream[:cut], seq=first, checksum=4 if checksum else 0)
    whole = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    assert end == max(place for place in whole if place <= cut)
    assert groups_in(run) == groups[: whole.index(end)]
    newest = run.newest(0, run.count)
    for index in range(run.count):
        assert newest.contains(run.gtid(index))
        assert run.gtid(index) == Gtid(domains[index], 1, index + 1)


@pytest.mark.kernel
@given(st.binary(max_size=200), st.integers(0, 255), st.sampled_from((0, 4)))
def test_noise_is_left(data, seq, checksum):
    run, end = take(data, seq, LIMIT, checksum)
    assert (end, run.count) == (0, 0)
    assert run.take_events(data, 0, seq, checksum) == 0


@pytest.mark.kernel
def test_numbers_that_do_not_ascend_begin_a_stretch():
    groups = [ordinary(seq) for seq in (4, 5, 5, 6, 2)] + [ordinary(7, domain=1)]
    run, _ = take(b"".join(packets(groups)))
    assert list(run.stretches()) == [(0, 2, 0, 1), (2, 4, 0, 1), (4, 5, 0, 1), (5, 6, 1, 1)]
    assert str(run.newest(1, 6)) == "0-1-2,1-1-7"
    assert str(run.newest(1, 3)) == "0-1-5"


@pytest.mark.kernel
def test_a_run_ends_where_it_is_full_and_goes_on_there():
    smallest = gtid_event(1) + xid(1)
    most = RUN_BYTES_MAX // len(smallest)
    data = b"".join(packets([smallest] * (most + 3)))
    run, end = take(data)
    assert run.count == most < GROUPS_MAX
    assert run.take(data, end, run.seq, 4, LIMIT) == len(data)
    assert run.count == 3
    large = [ordinary(seq, size=LIMIT - 500) for seq in range(1, 30)]
    data = b"".join(packets(large))
    end = run.take(data, 0, 1, 4, LIMIT)
    found = groups_in(run)
    assert RUN_BYTES_MAX - LIMIT < run.used <= RUN_BYTES_MAX
    while run.count:
        end = run.take(data, end, run.seq, 4, LIMIT)
        found += groups_in(run)
    assert (found, end) == (large, len(data))


@pytest.mark.kernel
def test_events_inside_a_transaction_are_taken_up_to_its_end():
    inside = rows_event(100) + query("update") + rows_event(9000)
    (data,) = packets([inside + xid(1) + query("behind")])
    run = GroupRun()
    end = run.take_events(data, 0, 1, 4)
    assert bytes(run.data[: run.used]) == inside
    assert data[end + 4 + 1 + 4] == EventType.XID
    assert (run.seq, run.count) == (4, 0)
    assert run.take_events(data, end, run.seq, 4) == end
    (data,) = packets([query("update") + gtid_event(1)])
    assert run.take_events(data, 0, 1, 4) == len(packets([query("update")])[0])


@pytest.mark.kernel
def test_a_run_of_events_ends_where_it_is_full_and_goes_on_there():
    events = [rows_event(9000)] * (EVENTS_BYTES_MAX // 9000 + 5)
    data = b"".join(packets([b"".join(events)]))
    run = GroupRun()
    end = run.take_events(data, 0, 1, 4)
    found = bytes(run.data[: run.used])
    assert EVENTS_BYTES_MAX - len(events[0]) < run.used <= EVENTS_BYTES_MAX
    assert run.take_events(data, end, run.seq, 4) == len(data)
    assert found + run.data[: run.used] == b"".join(events)
