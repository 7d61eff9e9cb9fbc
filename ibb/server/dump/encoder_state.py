"""
How far a `RunEncoder` is, copied from one to another, without its pages: a kernel.

So an encoder can go on behind packets that another one has made. What is not here are the terms of
an encoder, which are the same on both sides, and what it is handed for a run. Runs as plain Python,
too; `encoder_state.pxd` gives it C types.
"""
# ruff: noqa: SLF001 (kernels reach into one another: a copy has all that an encoder knows)

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer
    from ibb.storage.record_walker import RecordWalker

    from .event_packets import EventPackets
    from .run_encoder import RunEncoder


def place_of(encoder: RunEncoder) -> tuple[int, int]:
    """Return its border, and how many bytes of the present group were handed out; -1: no group."""
    return encoder.border, encoder.packets._group_sent if encoder._phase else -1


def copy_state(to: RunEncoder, source: RunEncoder) -> None:
    """
    Have an encoder go on where another one is: both have handed out all, and pass over no group.

    It has no page then: before it runs inside a chunk, pages must be given by `attach`.
    """
    to.border = source.border
    if source.behind:  # else the other has begun later: it knows no more than this one
        to.behind = source.behind
    to._gtids = to.kept = to.error = 0
    to.sent = to.sent_bytes = 0
    to._phase, to._count = source._phase, source._count
    to._first, to._resume = source._first, source._resume
    to._node, to._node_at, to._node_open = source._node, source._node_at, source._node_open
    _copy_group(to.packets, source.packets)
    _copy_walk(to.walker, source.walker)


def _copy_group(packets: EventPackets, other: EventPackets) -> None:
    packets.used = packets.event_bytes = packets._group_used = packets._group_bytes = 0
    packets.in_event, packets._event_size, packets._fate = 0, 0, 0
    packets.is_first, packets.skip = other.is_first, other.skip
    packets.domain, packets.server, packets.number = other.domain, other.server, other.number
    packets.seq, packets._group_seq = other.seq, other._group_seq
    packets._group_sent = other._group_sent


def _copy_walk(walker: RecordWalker, other: RecordWalker) -> None:
    walker.data = memoryview(b"")
    walker._first_page = walker._end_page = walker._visible = walker._turn = walker._room = 0
    walker.file_no, walker.page_size, walker._start = other.file_no, other.page_size, other._start
    walker._area_end, walker._last_start = other._area_end, other._last_start
    walker.page, walker._place, walker.left = other.page, other._place, other.left
    walker.part = 0
    walker.begin, walker.ends, walker.type = other.begin, other.ends, other.type
    walker._kind, walker._nested = other._kind, other._nested
    walker.list_count, walker.count = other.list_count, other.count
    walker.first, walker.last = other.first, other.last
    walker._roots = other._roots
    for place in range(other._roots):
        walker._root_at[place], walker._height[place] = other._root_at[place], other._height[place]
    for place in range(5):
        walker.links[place] = other.links[place]


def attach(
    encoder: RunEncoder, data: Buffer, page_size: int, first: int, pages: int, visible: int
) -> bool:
    """Give pages to an encoder that has none; tell whether they hold what it is inside of."""
    walker = encoder.walker
    if not walker.load(data, page_size, first, pages, visible):
        return False
    page = walker.page - first
    end = visible if page == pages - 1 else page_size - 4
    if not walker.left + 3 <= walker._place <= end:
        return False
    walker.part = page * page_size + walker._place - walker.left
    return True
