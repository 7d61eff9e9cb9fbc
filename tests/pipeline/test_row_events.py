"""The rows of small transactions are the same, by the kernel and read event by event."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibb.pipeline.row_events import RowEvents
from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag

from ..protocol.rows import row_encoder as enc

COLUMNS = [("id", enc.integer(4))]
SPECS = [spec for _, spec in COLUMNS]
GTID = GtidEvent(Gtid(1, 2, 3), 7, int(GtidFlag.TRANSACTIONAL)).encode()
XID = build_event(EventType.XID, bytes(8), timestamp=7, server_id=2)
NOTE = build_event(EventType.ANNOTATE_ROWS, b"INSERT", timestamp=7, server_id=2)


def of_table(number, event):
    """Return a table map or rows event as one of the table with that number."""
    return event[:19] + number.to_bytes(6, "little") + event[25:]


def rows_event(number, value):
    return of_table(number, enc.rows_event(enc.WRITE, SPECS, [[(value,)]]))


MAPS = [
    of_table(number, enc.table_map(COLUMNS).replace(b"\1d\0", b"\1%s\0" % name))
    for number, name in ((1, b"a"), (2, b"b"))
]

EVENTS = st.one_of(
    st.just(NOTE),
    st.sampled_from(MAPS),
    st.builds(rows_event, st.integers(1, 2), st.integers(0, 255)),
)


def group(pieces):
    """Return a group as the reader gives it."""

    def taken():
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return SimpleNamespace(head=GTID, gtid=Gtid(1, 2, 3), pieces=taken)


def rows_of(pieces, wanted="a"):
    events = RowEvents(None, lambda name, _: name in wanted, None, allow_statements=False)
    try:
        return [
            (rows.group.gtid, rows.table.database, bytes(rows.event), rows.position, rows.number)
            for rows in events.of(group(pieces))
        ]
    except FormatError as error:
        return str(error)


@settings(max_examples=200)
@given(st.lists(EVENTS, max_size=8), st.integers(1, 300), st.sampled_from(["a", "ab", ""]))
def test_both_ways_find_the_same(events, cut, wanted):
    data = b"".join((GTID, *events, XID))
    pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
    assert rows_of([data], wanted) == rows_of(pieces, wanted)


def test_rows_that_are_wanted_are_found():
    found = rows_of([b"".join((GTID, *MAPS, rows_event(2, 5), rows_event(1, 6), XID))])
    assert found == [(Gtid(1, 2, 3), "a", rows_event(1, 6), 4, 1)]


def test_what_comes_behind_the_end_is_looked_at():
    whole = b"".join((GTID, MAPS[0], rows_event(1, 6), XID))
    assert len(rows_of([whole, MAPS[0] + rows_event(1, 7)])) == 2
    assert rows_of([whole, b"\0"]) == "group 1-2-3: it ends inside an event"


@pytest.mark.parametrize("before", [[], [GTID], [b"".join((GTID, MAPS[0], XID))]])
def test_an_error_names_the_group_whichever_piece_it_is_met_at(before):
    assert rows_of([*before, FormatError("gone")]) == "group 1-2-3: gone"


def test_a_damaged_table_map_names_the_group():
    broken = build_event(EventType.TABLE_MAP, b"\1\0\0\0\0\0\1\0\5a", timestamp=7, server_id=2)
    whole = b"".join((GTID, broken, rows_event(1, 6), XID))
    found = rows_of([whole])
    assert found.startswith("group 1-2-3: ")
    assert found == rows_of([whole[:30], whole[30:]])
