"""Huge rows events that are stored in fragments: who gets them so, and who gets the event."""

import pytest

from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid

from ...storage.events import fragments, rows_event, xid
from ..raw_client import RawClient

ROWS = rows_event(300_000)
PIECES = fragments(ROWS, 70_000)
FRAGMENTS = [EventType.PARTIAL_ROW_DATA] * len(PIECES)


def replica(version):
    return {"_client_name": "libmysql", "_client_version": version}


@pytest.mark.parametrize(
    ("attributes", "knows"),
    [
        (replica("12.3.2"), True),
        (replica("12.10.1"), True),
        (replica("13.0.0"), True),
        (replica("12.2.9"), False),
        (replica("11.8.6"), False),
        (replica("new"), False),
        ({"_client_name": "libmariadb", "_client_version": "12.3.2"}, False),
        ({"_client_name": "ibb", "_client_version": "0.1.0"}, True),
        ({}, False),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("capability", [3, 4])
async def test_only_who_says_to_know_fragments_gets_them(
    serve, store, attributes, knows, capability
):
    with store.begin() as group:
        group.write(b"".join(PIECES) + xid(7))
        group.commit(Gtid(0, 1, 11))
    client = await RawClient.logged_in(await serve(store), attributes=attributes)
    await client.prepare("0-1-10", capability=capability)
    dump = await client.dump(non_block=True)
    await dump.preamble(rotate_checksum=True)
    events = []
    while (found := await dump.event()) is not None:
        if found[0].type not in (EventType.GTID, EventType.GTID_LIST, EventType.QUERY):
            events.append(found)
    await client.close()
    types = [header.type for header, _ in events]
    assert types == [*(FRAGMENTS if knows else [EventType.WRITE_ROWS_V1]), EventType.XID]
    bodies = [event[19:] for _, event in events[:-1]]
    assert bodies == [event[19:] for event in (PIECES if knows else [ROWS])]
