"""What can be prepared and committed as prepared is a group that readers take."""

import struct

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store
from ibb.storage.errors import GroupError
from ibb.storage.group_shape import TRANSACTION_FLAGS2
from ibb.storage.record import Xid

from .events import query, transaction
from .verify.verify_rig import SMALL, findings

NAME = Xid(1, b"name", b"")
ID = Gtid(0, 1, 5)
HEAD = GtidEvent(ID, 5, TRANSACTION_FLAGS2).encode()


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, SMALL) as store:
        yield store


def prepare(store, events, xid=NAME, **how):
    with store.begin() as group:
        group.write(events)
        group.prepare(xid, **how)


def stored(store):
    return [
        (group.gtid, b"".join(bytes(piece) for piece in group.pieces()))
        for group in store.reader()
        if group.gtid is not None
    ]


@pytest.mark.parametrize(
    "events",
    [
        query("CREATE TABLE t (a INT)"),
        query("INSERT") + query("COMMIT"),
        query("INSERT") + query("ROLLBACK"),
    ],
)
def test_only_transactions_can_be_prepared(store, events):
    with pytest.raises(GroupError, match="transaction that ends with XID"):
        prepare(store, events)
    assert store.prepared() == []


@pytest.mark.parametrize(
    ("xid", "engines"),
    [
        (Xid(1, b"a" * 65, b""), 1),
        (Xid(1, b"a", b"b" * 65), 1),
        (Xid(1 << 32, b"a", b""), 1),
        (Xid(-1, b"a", b""), 1),
        (NAME, 256),
        (NAME, -1),
    ],
)
def test_names_that_no_record_can_hold_are_refused(store, xid, engines):
    with pytest.raises(GroupError):
        prepare(store, transaction("a"), xid, engines=engines)
    if xid != NAME:
        with pytest.raises(GroupError, match="is prepared"):
            store.commit_prepared(xid, ID)
        with pytest.raises(GroupError, match="is prepared"):
            store.rollback_prepared(xid)
    prepare(store, transaction("b"))  # the store goes on


@pytest.mark.parametrize(
    "event",
    [
        HEAD + b"garbage",
        HEAD[:25],
        b"",
        query("no GTID"),
        GtidEvent(Gtid(0, 1, 6), 5, TRANSACTION_FLAGS2).encode(),
        GtidEvent(ID, 5, 1).encode(),
    ],
)
def test_what_is_no_gtid_event_of_the_transaction_is_refused(store, event):
    prepare(store, transaction("a"))
    with pytest.raises(GroupError):
        store.commit_prepared(NAME, ID, gtid_event=event)
    assert stored(store) == []
    store.commit_prepared(NAME, ID)
    assert [gtid for gtid, _ in stored(store)] == [ID]


def test_a_position_in_the_gtid_event_is_stored_as_zero(store, tmp_path):
    prepare(store, transaction("a"))
    event = bytearray(HEAD)
    struct.pack_into("<I", event, 13, 0xDEADBEEF)
    store.commit_prepared(NAME, ID, gtid_event=bytes(event))
    assert stored(store) == [(ID, HEAD + transaction("a"))]
    store.close()
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    "gtid", [(0, 1, 0), (0, 1, -1), (0, 1, 1 << 64), (1 << 32, 1, 1), (0, 1 << 32, 1), (-1, 1, 1)]
)
def test_a_gtid_out_of_range_is_refused(store, gtid):
    prepare(store, transaction("a"))
    with pytest.raises(GroupError, match="cannot be stored: domain and server id are 0 to"):
        store.commit_prepared(NAME, Gtid(*gtid))
    for events in (transaction("whole"), query("INSERT") + query("COMMIT")):
        with store.begin() as group:
            group.write(events)
            with pytest.raises(GroupError, match="cannot be stored: domain and server id are 0 to"):
                group.commit(Gtid(*gtid))
    store.commit_prepared(NAME, ID)
