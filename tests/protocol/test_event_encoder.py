from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.event import EventFlag, EventType, build_event, check_event, without_checksum
from ibb.protocol.event_encoder import EventEncoder
from ibb.protocol.event_splitter import WHOLE_EVENT_BYTES_MAX
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.protocol.stand_in import replace_with_begin, replace_with_dummy


def event(code, body=b"\1" * 10, flags=0, log_pos=0):
    return build_event(
        code, body, timestamp=1700000000, server_id=101, flags=flags, log_pos=log_pos
    )


def encoder(checksum=False, annotate=False, capability=4, skip_marked=False):
    return EventEncoder(checksum, annotate, capability, skip_marked)


def encode(which, *pieces):
    """Return the client's events, put together from their parts, and check how they are cut."""
    events = []
    open_event = False
    for part in which.encode_group(pieces):
        assert part.first is not open_event
        if part.first:
            events.append((b"", part.total_length))
        data, total_length = events[-1]
        assert part.total_length == total_length
        events[-1] = (data + part.data, total_length)
        open_event = not part.last
        assert not part.last or len(events[-1][0]) == total_length
    assert not open_event
    return [data for data, _ in events]


TRANSACTION = GtidEvent(Gtid(0, 101, 7), 1700000000, 0x0C).encode()
STANDALONE = GtidEvent(Gtid(0, 101, 8), 1700000000, 0x29).encode()
ANNOTATE = event(EventType.ANNOTATE_ROWS, b"insert into t.a values (1)")
ROWS = event(EventType.WRITE_ROWS_V1)
XID = event(EventType.XID)
LARGE_ROWS = event(EventType.WRITE_ROWS_V1, b"r" * 200_000)
LARGE_ANNOTATE = event(EventType.ANNOTATE_ROWS, b"a" * 200_000)


def replaced(original, how):
    changed = bytearray(original)
    how(changed)
    return bytes(changed)


small_or_large = st.sampled_from([TRANSACTION, ANNOTATE, ROWS, XID, LARGE_ROWS, LARGE_ANNOTATE])


@given(st.lists(small_or_large, max_size=6), st.data(), st.booleans(), st.booleans())
def test_cuts_do_not_matter(events, data, checksum, annotate):
    stream = b"".join(events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[at:end] for at, end in pairwise(edges)]
    encoded = encode(encoder(checksum, annotate), *pieces)
    if checksum:
        encoded = [without_checksum(each) for each in encoded]
    wanted = [each for each in events if annotate or each not in (ANNOTATE, LARGE_ANNOTATE)]
    assert encoded == wanted


def test_log_positions_become_0():
    stored = event(EventType.QUERY, log_pos=4711)
    large = event(EventType.QUERY, b"x" * 100_000, log_pos=4711)
    for checksum in (False, True):
        for each in encode(encoder(checksum), stored + large):
            assert check_event(each).log_pos == 0


@pytest.mark.parametrize("checksum", [False, True])
def test_equal_settings_give_equal_bytes(checksum):
    group = TRANSACTION + ANNOTATE + LARGE_ROWS + XID
    first = encode(encoder(checksum, capability=0), group)
    again = encode(encoder(checksum, capability=0), group[:100], group[100:90_000], group[90_000:])
    assert first == again
    same = encoder(checksum, capability=0)
    assert encode(same, group) == encode(same, group) == first


def test_events_of_the_stream_are_left_out():
    for code in (
        EventType.STOP,
        EventType.ROTATE,
        EventType.BINLOG_CHECKPOINT,
        EventType.GTID_LIST,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.START_ENCRYPTION,
    ):
        assert encode(encoder(), TRANSACTION + event(code) + XID) == [TRANSACTION, XID]


@pytest.mark.parametrize(
    "code",
    [EventType.FORMAT_DESCRIPTION, EventType.TRANSACTION_PAYLOAD, EventType.PARTIAL_UPDATE_ROWS],
)
def test_events_that_can_neither_be_sent_nor_left_out_are_refused(code):
    with pytest.raises(FormatError, match="inside a group"):
        encode(encoder(), TRANSACTION + event(code) + XID)


@pytest.mark.parametrize(
    ("capability", "annotate", "wanted"),
    [
        (4, True, ANNOTATE),
        (4, False, None),
        (3, False, None),
        (2, False, None),
        (1, False, ANNOTATE),
        (0, False, replaced(ANNOTATE, replace_with_dummy)),
        (0, True, ANNOTATE),  # it asked for them
    ],
)
def test_annotations_by_capability(capability, annotate, wanted):
    which = encoder(annotate=annotate, capability=capability)
    assert encode(which, ANNOTATE + XID) == ([XID] if wanted is None else [wanted, XID])


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(
    ("capability", "standalone"),
    [
        (4, STANDALONE),
        (3, None),
        (2, None),
        (1, replaced(STANDALONE, replace_with_dummy)),
        (0, replaced(STANDALONE, replace_with_dummy)),
    ],
)
def test_gtid_events_by_capability(capability, standalone, checksum):
    begin = TRANSACTION if capability == 4 else replaced(TRANSACTION, replace_with_begin)
    encoded = encode(encoder(checksum, capability=capability), STANDALONE + TRANSACTION)
    if checksum:
        encoded = [without_checksum(each) for each in encoded]
    assert encoded == ([begin] if standalone is None else [standalone, begin])


@pytest.mark.parametrize("checksum", [False, True])
def test_large_annotation_becomes_one_long_comment(checksum):
    (encoded,) = encode(
        encoder(checksum, capability=0),
        LARGE_ANNOTATE[:150],
        LARGE_ANNOTATE[150:80_000],
        LARGE_ANNOTATE[80_000:],
    )
    if checksum:
        encoded = without_checksum(encoded)
    assert encoded == replaced(LARGE_ANNOTATE, replace_with_dummy)


def test_large_annotation_is_left_out_part_by_part():
    cut = len(LARGE_ANNOTATE) // 2
    group = TRANSACTION + LARGE_ANNOTATE[:cut], LARGE_ANNOTATE[cut:] + XID
    assert encode(encoder(), *group) == [TRANSACTION, XID]


def test_marked_events_are_left_out_only_when_asked():
    marked = event(EventType.QUERY, flags=EventFlag.SKIP_REPLICATION)
    large = event(EventType.QUERY, b"x" * 100_000, flags=EventFlag.SKIP_REPLICATION)
    group = ROWS + marked + large + XID
    assert encode(encoder(skip_marked=True), group) == [ROWS, XID]
    assert encode(encoder(), group) == [ROWS, marked, large, XID]


def test_flag_that_only_replicas_use_is_cleared():
    own = event(EventType.QUERY, flags=EventFlag.ACCEPT_OWN | EventFlag.SUPPRESS_USE)
    assert encode(encoder(), own) == [event(EventType.QUERY, flags=EventFlag.SUPPRESS_USE)]


def test_parts_of_large_events_stay_as_small_as_the_pieces():
    pieces = [LARGE_ROWS[at : at + 16_000] for at in range(0, len(LARGE_ROWS), 16_000)]
    parts = list(encoder(checksum=True).encode_group(pieces))
    assert max(len(part.data) for part in parts) <= 16_000
    assert all(part.total_length == len(LARGE_ROWS) + 4 for part in parts)


def test_largest_whole_event_comes_whole():
    whole = event(EventType.WRITE_ROWS_V1, bytes(WHOLE_EVENT_BYTES_MAX - 19))
    (part,) = encoder(checksum=True).encode_group([whole[:9], whole[9:70], whole[70:]])
    assert part.first
    assert part.last
    assert without_checksum(part.data) == whole


@pytest.mark.parametrize("missing", [1, 10, len(XID) - 1])
def test_group_that_ends_inside_an_event_is_damage(missing):
    with pytest.raises(FormatError, match="ends inside an event"):
        encode(encoder(), TRANSACTION + XID[:-missing])


def test_event_with_no_room_for_its_checksum_is_damage():
    header = XID[:9] + (2**32 - 4).to_bytes(4, "little") + XID[13:19]
    with pytest.raises(FormatError, match="4294967292 bytes"):
        encode(encoder(checksum=True), header)


def test_gtid_event_cut_short_is_damage():
    with pytest.raises(FormatError, match="only 29 bytes"):
        encode(encoder(capability=0), event(EventType.GTID))


def test_event_too_short_for_a_stand_in_gets_1236():
    with pytest.raises(SqlError, match="1236"):
        encode(encoder(capability=0), event(EventType.ANNOTATE_ROWS, b"abcde"))
