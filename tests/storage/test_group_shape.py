"""The quick look at a whole transaction never says more than the close one."""

from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.event_splitter import EventSplitter
from ibb.storage.errors import GroupError
from ibb.storage.group_shape import TRANSACTION_FLAGS2, GroupShape, is_whole_transaction

from .events import query, transaction, xid

ROW_TYPES = (EventType.TABLE_MAP, EventType.WRITE_ROWS_V1, EventType.ANNOTATE_ROWS)


def row(code: EventType, *, log_pos: int = 0, flags: int = 1) -> bytes:
    body = bytes(6) + flags.to_bytes(2, "little") + b"row"
    return build_event(code, body, timestamp=1, server_id=1, log_pos=log_pos)


def rows() -> bytes:
    return b"".join(map(row, ROW_TYPES))


def test_what_most_transactions_look_like() -> None:
    assert is_whole_transaction(rows() + xid(7))
    assert is_whole_transaction(transaction("INSERT INTO t VALUES (1)", 500))
    assert is_whole_transaction(xid(7))


def test_what_takes_a_closer_look() -> None:
    short_query = build_event(EventType.QUERY, bytes(12), timestamp=1, server_id=1)
    long_name = bytearray(query("x"))
    long_name[19 + 8] = 200  # bytes of the db name
    for events in (
        b"",
        b"x",
        rows(),  # goes on
        (rows() + xid(7))[:-1],
        rows() + xid(7) + b"\0",
        rows() + xid(7) + rows(),
        row(EventType.TABLE_MAP, log_pos=4711) + xid(7),
        query("commit"),
        query("ROLLBACK") + xid(7),
        query("CREATE TABLE t (a INT)"),
        short_query + xid(7),
        bytes(long_name) + xid(7),
        row(EventType.GTID) + xid(7),
        row(EventType.XA_PREPARE),
        row(EventType.ROTATE) + xid(7),
    ):
        assert not is_whole_transaction(events), events


events_of_a_group = st.lists(
    st.one_of(
        st.builds(row, st.sampled_from(EventType), flags=st.integers(0, 1)),
        st.builds(query, st.sampled_from(("COMMIT", "rollback", "SELECT 1", ""))),
        st.binary(max_size=40),
        st.just(xid(3)),
    ),
    max_size=6,
)


@given(events_of_a_group, st.booleans())
def test_agrees_with_the_close_look(pieces: list[bytes], ends: bool) -> None:
    events = b"".join(pieces) + (xid(9) if ends else b"")
    if is_whole_transaction(events):
        shape, splitter = GroupShape(None), EventSplitter()
        for part in splitter.feed(events):
            shape.add(part)
        assert splitter.at_boundary
        assert not shape.is_open
        assert shape.finished() == TRANSACTION_FLAGS2


@given(events_of_a_group)
def test_misses_none_of_rows_and_xid(pieces: list[bytes]) -> None:
    """The other way round, for groups without log positions: rows and statements up to XID."""
    events = b"".join(pieces)
    try:
        shape, splitter = GroupShape(None), EventSplitter()
        parts = list(splitter.feed(events))
        for part in parts:
            shape.add(part)
        whole = splitter.at_boundary and shape.finished() == TRANSACTION_FLAGS2
    except (FormatError, GroupError):
        whole = False
    plain = {*ROW_TYPES, EventType.QUERY, EventType.XID}
    if whole and all(part.header.type in plain for part in parts) and parts[-1].header.type == 16:
        assert is_whole_transaction(events)
