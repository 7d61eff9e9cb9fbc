"""What SHOW BINLOG EVENTS says of an event."""

from struct import Struct

import pytest

from ibb.protocol.event import QUERY_POST_HEADER, EventType, build_event
from ibb.protocol.event_group import ROWS
from ibb.protocol.event_info import event_info, event_word
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag, XaId
from ibb.protocol.incident import Incident

XA_PREPARE = Struct("<BIII")


def info(code: int, body: bytes) -> str:
    return event_info(code, build_event(code, body, timestamp=1, server_id=1))


@pytest.mark.parametrize("code", sorted(ROWS))
@pytest.mark.parametrize(("flags", "end"), [(0, ""), (1, " flags: STMT_END_F"), (2, "")])
def test_rows_of_every_type_name_their_table(code: int, flags: int, end: str) -> None:
    number = 0x0102_0304_0506
    body = number.to_bytes(6, "little") + flags.to_bytes(2, "little") + b"rest"
    assert info(code, body) == f"table_id: {number}{end}"


def test_a_table_map_names_the_table() -> None:
    body = (0x0102_0304_0506).to_bytes(6, "little") + b"\1\0" + b"\4shop\0" + b"\6orders\0"
    assert info(EventType.TABLE_MAP, body) == f"table_id: {0x0102_0304_0506} (shop.orders)"


def test_a_query_is_shown_with_its_database_and_settings() -> None:
    status = b"\0" + (0x4000000 | 0x8000000).to_bytes(4, "little")
    head = QUERY_POST_HEADER.pack(1, 0, 4, 0, len(status))
    assert info(EventType.QUERY, head + status + b"shop\0DELETE FROM a") == (
        "use `shop`; set foreign_key_checks=0, unique_checks=0; DELETE FROM a"
    )


def test_transactions_of_xa_have_their_names() -> None:
    xa_id = XaId(7, b"\x01g", b"b")
    prepare = GtidEvent(Gtid(1, 2, 3), 0, GtidFlag.PREPARED_XA, xa_id=xa_id)
    assert event_info(EventType.GTID, prepare.encode()) == "XA START X'0167',X'62',7 GTID 1-2-3"
    body = XA_PREPARE.pack(0, 7, 2, 1) + b"\x01gb"
    assert info(EventType.XA_PREPARE, body) == "XA PREPARE X'0167',X'62',7"
    body = XA_PREPARE.pack(1, 7, 2, 1) + b"\x01gb"
    assert info(EventType.XA_PREPARE, body) == "XA COMMIT X'0167',X'62',7 ONE PHASE"


def test_an_incident_is_named() -> None:
    assert event_info(EventType.INCIDENT, Incident(1, "lost", 0, 1).encode()) == (
        "#1 (LOST_EVENTS): lost"
    )
    assert event_info(EventType.INCIDENT, Incident(0, "", 0, 1).encode()) == "#0 (NONE)"


def test_every_type_has_a_word() -> None:
    assert event_word(EventType.WRITE_ROWS_COMPRESSED) == "Write_rows_compressed"
    assert event_word(EventType.XID) == "Xid"
    assert event_word(250) == "Unknown"
