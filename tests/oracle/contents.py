"""What the data of each type of record says. Source: ibb-format 5."""

from typing import NamedTuple

from .fields import DamageError, Fields
from .files import Place

EVENT_HEADER_SIZE = 19
GTID_EVENT, FORMAT_DESCRIPTION_EVENT = 162, 15
XID_PART_MAX = 64


class Gtid(NamedTuple):
    """A GTID."""

    domain: int
    server: int
    seq: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.seq}"


class Reference(NamedTuple):
    """An out-of-band list."""

    count: int
    first: Place
    last: Place


class Commit(NamedTuple):
    """A commit record; *gtid* is None in front of a format description."""

    lists: tuple[Reference, ...]
    payload: bytes
    gtid: Gtid | None


class State(NamedTuple):
    """A GTID state record; *xa* is a file number or None."""

    xa: int | None
    entries: tuple[Gtid, ...]


class Node(NamedTuple):
    """An out-of-band record: a node and its piece."""

    index: int
    left: Place
    right: Place
    piece: bytes


class Xa(NamedTuple):
    """An XA prepare record, or (without engines) a complete record."""

    xid: tuple[int, bytes, bytes]
    engines: int = 0
    reference: Reference | None = None
    rolled_back: bool = False


def parse_commit(data: bytes, major: int) -> Commit:
    fields = Fields(data)
    lists = []
    for _ in range(1 if major == 0 else 2):
        count = fields.ci()
        if count == 0:
            break
        lists.append(Reference(count, _place(fields), _place(fields)))
    payload = fields.rest()
    return Commit(tuple(lists), payload, _gtid_of(payload))


def _gtid_of(payload: bytes) -> Gtid | None:
    if len(payload) < EVENT_HEADER_SIZE:
        raise DamageError("payload shorter than an event")
    size = int.from_bytes(payload[9:13], "little")
    if not EVENT_HEADER_SIZE <= size <= len(payload):
        raise DamageError(f"first event of {size} bytes in a payload of {len(payload)}")
    if payload[4] == FORMAT_DESCRIPTION_EVENT:
        return None
    if payload[4] != GTID_EVENT:
        raise DamageError(f"first event of type {payload[4]}")
    server, body = payload[5:9], Fields(payload[EVENT_HEADER_SIZE:size])
    seq, domain = body.number(8), body.number(4)
    return Gtid(domain, int.from_bytes(server, "little"), seq)


def parse_state(data: bytes, major: int) -> State:
    fields = Fields(data)
    count = fields.ci()
    xa = fields.ci() - 1 if major else -1
    entries = tuple(Gtid(fields.ci(), fields.ci(), fields.ci()) for _ in range(count))
    if any(gtid.domain >= 2**32 or gtid.server >= 2**32 for gtid in entries):
        raise DamageError("domain or server above 32 bits")
    return State(None if xa < 0 else xa, entries)


def parse_node(data: bytes) -> Node:
    fields = Fields(data)
    node = Node(fields.ci(), _place(fields), _place(fields), fields.rest())
    if not node.piece:
        raise DamageError("empty piece")
    return node


def parse_xa_prepare(data: bytes) -> Xa:
    fields = Fields(data)
    engines = fields.number(1)
    xid = _xid(fields)
    reference = Reference(fields.ci(), _place(fields), _place(fields))
    return Xa(xid, engines, reference)


def parse_xa_complete(data: bytes) -> Xa:
    fields = Fields(data)
    rolled_back = bool(fields.number(1) & 1)
    return Xa(_xid(fields), rolled_back=rolled_back)


def _xid(fields: Fields) -> tuple[int, bytes, bytes]:
    format_id, gtrid_size, bqual_size = fields.number(4), fields.number(1), fields.number(1)
    if max(gtrid_size, bqual_size) > XID_PART_MAX:
        raise DamageError("invalid XID lengths")
    return format_id, fields.take(gtrid_size), fields.take(bqual_size)


def _place(fields: Fields) -> Place:
    return Place(fields.ci(), fields.ci())
