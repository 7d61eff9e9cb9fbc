"""
How far a `RunEncoder` is, as numbers, without its pages: a kernel.

So an encoder can go on behind packets that another one has made. What is not here are the terms of
an encoder, which are the same on both sides, what it is handed for a run, and the groups that have
ended. Runs as plain Python, too; `encoder_state.pxd` gives it C types.
"""
# ruff: noqa: SLF001 (kernels reach into one another: these are all that an encoder knows)

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

if TYPE_CHECKING:
    from ibb.protocol.fields import Buffer

    from .run_encoder import RunEncoder

_links, _roots_max = 5, 64
_after_encoder, _after_packets, _after_walker = 9, 21, 39
NUMBERS: Final = _after_walker + _links + 2 * _roots_max  # of a state
USED: Final = _after_encoder + 8  # which of them are the bytes that lie ready
_sign = 1 << 63


def place_of(encoder: RunEncoder) -> tuple[int, int]:
    """Return its border, and `sent_of` it."""
    return encoder.border, sent_of(encoder)


def sent_of(encoder: RunEncoder) -> int:
    """Return how many bytes of the present group were handed out; -1: it has not begun."""
    return encoder.packets._group_sent if encoder._phase else -1


def copy_state(to: RunEncoder, source: RunEncoder) -> None:
    """
    Have an encoder go on where another one is: both have handed out all, and pass over no group.

    It has no page then: before it runs inside a chunk, pages must be given by `attach`.
    """
    numbers = memoryview(array("q", [0] * NUMBERS))
    save_state(source, numbers, 0)
    load_state(to, numbers, 0)
    to._gtids = to.kept = to.error = to.rested = 0
    to.sent = to.sent_bytes = 0
    packets, walker = to.packets, to.walker
    packets.used = packets.event_bytes = packets._group_used = packets._group_bytes = 0
    walker.data = memoryview(b"")
    walker._first_page = walker._end_page = walker._visible = walker._turn = walker._room = 0
    walker.part = 0


def save_state(encoder: RunEncoder, to: memoryview, at: int) -> None:
    """Write the `NUMBERS` of an encoder that is inside of no event, from *at* on."""
    to[at], to[at + 1], to[at + 2] = encoder.border, encoder.behind, encoder._phase
    to[at + 3], to[at + 4], to[at + 5] = encoder._count, encoder._first, encoder._resume
    to[at + 6], to[at + 7], to[at + 8] = encoder._node, encoder._node_at, encoder._node_open
    at += _after_encoder
    to[at], to[at + 1], to[at + 2] = (
        encoder.packets.is_first,
        encoder.packets.skip,
        encoder.packets.domain,
    )
    to[at + 3], to[at + 4] = encoder.packets.server, _signed(encoder.packets.number)
    to[at + 5], to[at + 6], to[at + 7] = (
        encoder.packets.seq,
        encoder.packets._group_seq,
        encoder.packets._group_sent,
    )
    to[at + 8], to[at + 9] = encoder.packets.used, encoder.packets.event_bytes
    to[at + 10], to[at + 11] = encoder.packets._group_used, encoder.packets._group_bytes
    at += _after_packets - _after_encoder
    to[at], to[at + 1], to[at + 2] = (
        encoder.walker.file_no,
        encoder.walker.page_size,
        encoder.walker._start,
    )
    to[at + 3], to[at + 4] = encoder.walker._area_end, encoder.walker._last_start
    to[at + 5], to[at + 6], to[at + 7] = (
        encoder.walker.page,
        encoder.walker._place,
        encoder.walker.left,
    )
    to[at + 8], to[at + 9], to[at + 10] = (
        encoder.walker.begin,
        encoder.walker.ends,
        encoder.walker.type,
    )
    to[at + 11], to[at + 12] = encoder.walker._kind, encoder.walker._nested
    to[at + 13], to[at + 14] = encoder.walker.list_count, encoder.walker.count
    to[at + 15], to[at + 16], to[at + 17] = (
        encoder.walker.first,
        encoder.walker.last,
        encoder.walker._roots,
    )
    at += _after_walker - _after_packets
    for place in range(_links):
        to[at + place] = encoder.walker.links[place]
    at += _links
    for place in range(encoder.walker._roots):
        to[at + 2 * place], to[at + 2 * place + 1] = (
            encoder.walker._root_at[place],
            encoder.walker._height[place],
        )


def load_state(encoder: RunEncoder, source: memoryview, at: int) -> None:
    """Have an encoder be what `save_state` wrote; its pages, if any, may not hold its place."""
    if source[at + 1]:  # else who wrote it has begun later: it knows no more than this one
        encoder.behind = source[at + 1]
    encoder.border, encoder._phase = source[at], source[at + 2]
    encoder._count, encoder._first, encoder._resume = source[at + 3], source[at + 4], source[at + 5]
    encoder._node, encoder._node_at = source[at + 6], source[at + 7]
    encoder._node_open = source[at + 8]
    at += _after_encoder
    encoder.packets.in_event, encoder.packets._event_size, encoder.packets._fate = 0, 0, 0
    encoder.packets.is_first, encoder.packets.skip, encoder.packets.domain = (
        source[at],
        source[at + 1],
        source[at + 2],
    )
    encoder.packets.server, encoder.packets.number = source[at + 3], _unsigned(source[at + 4])
    encoder.packets.seq, encoder.packets._group_seq = source[at + 5], source[at + 6]
    encoder.packets._group_sent = source[at + 7]
    encoder.packets.used, encoder.packets.event_bytes = source[at + 8], source[at + 9]
    encoder.packets._group_used, encoder.packets._group_bytes = source[at + 10], source[at + 11]
    at += _after_packets - _after_encoder
    encoder.walker.file_no, encoder.walker.page_size, encoder.walker._start = (
        source[at],
        source[at + 1],
        source[at + 2],
    )
    encoder.walker._area_end, encoder.walker._last_start = source[at + 3], source[at + 4]
    encoder.walker.page, encoder.walker._place, encoder.walker.left = (
        source[at + 5],
        source[at + 6],
        source[at + 7],
    )
    encoder.walker.begin, encoder.walker.ends, encoder.walker.type = (
        source[at + 8],
        source[at + 9],
        source[at + 10],
    )
    encoder.walker._kind, encoder.walker._nested = source[at + 11], source[at + 12]
    encoder.walker.list_count, encoder.walker.count = source[at + 13], source[at + 14]
    encoder.walker.first, encoder.walker.last, encoder.walker._roots = (
        source[at + 15],
        source[at + 16],
        source[at + 17],
    )
    at += _after_walker - _after_packets
    for place in range(_links):
        encoder.walker.links[place] = source[at + place]
    at += _links
    for place in range(encoder.walker._roots):
        encoder.walker._root_at[place] = source[at + 2 * place]
        encoder.walker._height[place] = source[at + 2 * place + 1]


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


def _signed(number: int) -> int:
    return number if cython.compiled or number < _sign else number - 2 * _sign


def _unsigned(number: int) -> int:
    return number if cython.compiled or number >= 0 else number + 2 * _sign
