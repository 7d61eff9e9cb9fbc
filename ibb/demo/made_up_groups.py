"""Event groups made without a database: well-formed transactions with a line of SQL in each."""

import struct
from collections.abc import Iterator

from ibb.protocol.event import QUERY_POST_HEADER, EventType, build_event
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent, GtidFlag

SERVER_ID = 1
DOMAINS = 3
BEGUN_AT = 1_700_000_000  # seconds since 1970; a fixed time makes each run's groups the same
DATABASE = b"demo"

_XID = struct.Struct("<Q")


def made_up_groups(count: int) -> Iterator[tuple[Gtid, bytes]]:
    """Yield *count* groups, each its GTID and its events as stored, domains taking turns."""
    for number in range(count):
        gtid = Gtid(number % DOMAINS, SERVER_ID, number // DOMAINS + 1)
        timestamp = BEGUN_AT + number // 1000
        begin = GtidEvent(gtid, timestamp, GtidFlag.TRANSACTIONAL | GtidFlag.ALLOW_PARALLEL)
        note = "x" * (number % 97)
        sql = f"INSERT INTO journal VALUES ({number}, '{note}')".encode()
        query = QUERY_POST_HEADER.pack(1, 0, len(DATABASE), 0, 0) + DATABASE + b"\0" + sql
        yield (
            gtid,
            begin.encode()
            + build_event(EventType.QUERY, query, timestamp=timestamp, server_id=SERVER_ID)
            + build_event(
                EventType.XID, _XID.pack(number), timestamp=timestamp, server_id=SERVER_ID
            ),
        )
