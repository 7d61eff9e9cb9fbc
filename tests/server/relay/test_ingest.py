"""Taking a dump apart, however its bytes are cut."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError, ProtocolError, SqlError
from ibb.protocol.event import with_checksum
from ibb.protocol.format_description import CHECKSUM_CRC32, FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag
from ibb.protocol.incident import Incident, IncidentKind
from ibb.protocol.packet import frame_all
from ibb.protocol.reply import eof
from ibb.server.relay.commit_sync import CommitSync
from ibb.server.relay.dump_end import UpstreamEnded
from ibb.server.relay.ingest import Ingest
from ibb.server.relay.relay_lag import RelayLag
from ibb.server.relay.stored_numbers import Runs, StoredNumbers
from ibb.storage.errors import GroupError
from ibb.storage.group_reader import GroupReader
from ibb.storage.position import Position
from ibb.storage.store import Store

from ...storage.events import query, xid
from ...tiny import SMALL
from .fake_primary import group, preamble, stored

pytestmark = pytest.mark.tiny


def ingest(target, **options):
    return Ingest(target, has_checksum=True, strict=False, **options)


def framed(*events):
    return frame_all([b"\0" + event for event in events], 1)[0]


def feed(taking, piece):
    """Feed what lies in memory that is used for something else at once."""
    room = bytearray(piece)
    try:
        return taking.feed([memoryview(room)])
    finally:
        room[:] = b"?" * len(room)


def contents(store, after=0):
    reader = GroupReader(store.pages, Position(0, 0))
    found = []
    while (one := reader.next()) is not None:
        if one.gtid is not None and one.gtid.seq > after:
            found.append(b"".join(one.pieces()))
    return found


@pytest.mark.roomy
@settings(max_examples=40)
@given(data=st.data())
def test_any_cut_of_the_stream_stores_the_same(tmp_path_factory, data):
    sizes = [0, 70_000, 10, 65_500]
    stream = framed(
        *preamble(),
        *(event for seq, size in enumerate(sizes, 1) for event in group(Gtid(0, 1, seq), size)),
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    options = replace(SMALL, format_description="upstream")
    with Store.open(tmp_path_factory.mktemp("cut"), options) as target:
        taking = ingest(target)
        for piece in pieces:
            feed(taking, piece)
        assert taking.groups == len(sizes)
        assert contents(target) == [
            stored(Gtid(0, 1, seq), size) for seq, size in enumerate(sizes, 1)
        ]


@pytest.mark.parametrize(
    ("mode", "durable", "is_written"), [(0, 0, False), (2, 0, True), (1, 3, True)]
)
def test_feed_waits_for_what_the_mode_promises(tmp_path, mode, durable, is_written):
    options = replace(
        SMALL, format_description="upstream", flush_log_at_commit=mode, flush_log_interval=1e6
    )
    with Store.open(tmp_path / "relay", options) as store:
        groups = [event for seq in (1, 2, 3) for event in group(Gtid(0, 1, seq))]
        ingest(store).feed([framed(*preamble(), *groups)])
        assert len(contents(store)) == durable
        assert (store._engine._redo._written_lsn == store._engine._redo.next_lsn) is is_written


def test_what_came_whole_is_durable_when_feed_returns(target):
    taking = ingest(target)
    taking.feed([framed(*preamble(), *group(Gtid(0, 1, 1)))])
    assert target.state().contains(Gtid(0, 1, 1))


def test_groups_before_an_error_stay_and_the_open_one_goes(target, monkeypatch):
    begin_group, writers = target.begin, []

    def begin_and_keep():
        writers.append(begin_group())
        return writers[-1]

    monkeypatch.setattr(target, "begin", begin_and_keep)
    taking = ingest(target)
    begin, body, _ = group(Gtid(0, 1, 2))
    stream = framed(*preamble(), *group(Gtid(0, 1, 1)), begin, body[:-1] + b"?")
    with pytest.raises(FormatError, match="checksum"):
        taking.feed([stream])
    taking.close()
    assert contents(target) == [stored(Gtid(0, 1, 1))]
    with pytest.raises(GroupError, match="rolled back"):
        writers[-1].write(body)


def test_before_an_error_is_told_what_came_before_it_is_synced(target, monkeypatch):
    """However much has come already: who is told may ask the store at once."""
    monkeypatch.setattr(CommitSync, "_begin_beside", None)
    taking = ingest(target)
    begin, body, _ = group(Gtid(0, 1, 2))
    stream = framed(*preamble(), *group(Gtid(0, 1, 1)), begin, body[:-1] + b"?")
    with pytest.raises(FormatError, match="checksum"):
        taking.feed([stream], lambda: True)
    assert str(target.state()) == "0-1-1"


@pytest.mark.parametrize("has_more", [True, False])
def test_a_group_that_the_primary_s_crash_cut_off_is_dropped_and_the_dump_goes_on(target, has_more):
    """Connecting again would bring the same beginning of a group, for ever."""
    taking = ingest(target)
    taking.feed([framed(*preamble(), *group(Gtid(0, 1, 1)))], lambda: has_more)
    begin, body, _ = group(Gtid(0, 1, 2))
    restarted = FormatDescription.default("10.11.99-MariaDB", 101, 1_800_000_000)
    events = (
        *(begin, body, restarted.to_wire(CHECKSUM_CRC32, restarted.created)),
        *group(Gtid(0, 1, 3)),
    )
    begun = len(framed(*preamble(), *group(Gtid(0, 1, 1))))
    rest = framed(*preamble(), *group(Gtid(0, 1, 1)), *events)[begun:]
    taking.feed([rest], lambda: has_more)
    taking.close()
    assert contents(target) == [stored(Gtid(0, 1, 1)), stored(Gtid(0, 1, 3))]
    assert str(target.state()) == "0-1-3"


def test_eof_ends_the_dump(target):
    taking = ingest(target)
    with pytest.raises(UpstreamEnded):
        taking.feed([frame_all([eof()], 1)[0]])


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"", ProtocolError),
        (b"\x01\x02", ProtocolError),
        (b"\xfe" + bytes(20), ProtocolError),
        (b"\0" + bytes(5), FormatError),
        (b"\0" + preamble()[0] + b"x", FormatError),
        (b"\0" + preamble()[0][:-1], FormatError),
        (b"\0" + group(Gtid(0, 1, 1))[1], FormatError),  # no GTID before it
    ],
)
def test_packets_that_hold_no_event_are_errors(target, payload, error):
    taking = ingest(target)
    with pytest.raises(error):
        taking.feed([frame_all([payload], 1)[0]])
    assert contents(target) == []


def test_a_large_event_that_says_another_length_is_an_error(target):
    begin, body, _ = group(Gtid(0, 1, 1), 200_000)
    taking = ingest(target)
    with pytest.raises(FormatError):
        taking.feed([framed(*preamble(), begin, body + b"more")])
    taking.close()


@given(st.lists(st.integers(0, 60)))
def test_runs_are_a_set(numbers):
    runs = Runs()
    for number in numbers:
        runs.add(number)
    assert [number for number in range(70) if number in runs] == sorted(set(numbers))
    ordered = sorted(set(numbers))
    assert len(runs) == sum(number - 1 not in ordered for number in ordered)


def test_stored_numbers_know_history_and_what_comes_after(store):
    numbers = StoredNumbers(store)
    assert numbers.holds(Gtid(0, 1, 4))
    assert not numbers.holds(Gtid(0, 1, 11))
    assert not numbers.holds(Gtid(0, 2, 4))
    numbers.note(Gtid(0, 2, 4))
    assert numbers.holds(Gtid(0, 2, 4))


INCIDENT = Incident(IncidentKind.LOST_EVENTS, "error writing to the binary log", 5, 1)


def with_incident():
    incident = with_checksum(INCIDENT.encode())
    return framed(*preamble(), *group(Gtid(0, 1, 1)), incident, *group(Gtid(0, 1, 2)))


def test_an_incident_stops_behind_the_groups_before_it(target):
    taking = ingest(target)
    with pytest.raises(SqlError) as caught:
        taking.feed([with_incident()])
    assert caught.value.code == 1590
    assert "The incident LOST_EVENTS occurred on the master" in caught.value.message
    assert "error writing to the binary log. This is behind 0-1-1" in caught.value.message
    assert contents(target) == [stored(Gtid(0, 1, 1))]


def test_an_incident_is_passed_over_only_if_asked_for(target, capfd):
    ingest(target, skip_incidents=True).feed([with_incident()])
    assert contents(target) == [stored(Gtid(0, 1, 1)), stored(Gtid(0, 1, 2))]
    output = capfd.readouterr()
    assert "incident_skipped" in output.out + output.err


def one_by_one(taking, monkeypatch):
    monkeypatch.setattr(taking, "_take_run", lambda _, at: at)
    return taking


class Noted(RelayLag):
    def begin(self, timestamp):
        self.newest = timestamp
        super().begin(timestamp)


def kinds_of_groups(rng, count):
    """Return groups as they go over the wire: ordinary ones, odd ones, numbers that come again."""
    found, seq = [], 0
    for _ in range(count):
        seq = max(1, seq + rng.choice((1, 1, 1, 1, 5, 0, -1)))
        gtid = Gtid(rng.randrange(2), rng.randrange(1, 3), seq)
        flags2 = rng.choice((GtidFlag.TRANSACTIONAL, GtidFlag.TRANSACTIONAL, GtidFlag.STANDALONE))
        head = GtidEvent(gtid=gtid, timestamp=seq, flags2=flags2).encode()
        body = [query("x" * rng.choice((5, 300, 5000, 70_000)), server=gtid.server)]
        if flags2 == GtidFlag.TRANSACTIONAL:
            body *= rng.choice((1, 1, 3))
            body.append(rng.choice((xid(7), query("COMMIT"), query("ROLLBACK"))))
        found += map(with_checksum, (head, *body))
    return found


@pytest.mark.kernel
@pytest.mark.parametrize("seed", range(12))
def test_many_at_a_time_is_the_same_as_one_by_one(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    stream = framed(*preamble(), *kinds_of_groups(rng, 60))
    cuts = sorted(rng.randrange(len(stream)) for _ in range(rng.choice((0, 3, 200))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    found = []
    for name in ("many", "one"):
        with Store.open(tmp_path / name, replace(SMALL, format_description="upstream")) as target:
            lag = Noted()
            taking = ingest(target, lag=lag)
            if name == "one":
                one_by_one(taking, monkeypatch)
            for piece in pieces:
                feed(taking, piece)
            state = str(target.state())
            found.append((contents(target), state, taking.groups, taking.skipped, lag.newest))
    assert found[0] == found[1]
    assert found[0][2] > 10
