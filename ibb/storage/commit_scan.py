"""
The search of a page for a group, by its commit record: a kernel.

Who looks for a place passes over half a page of groups of which nothing but a number is wanted.
Runs as plain Python, too; `commit_scan.pxd` gives it C types. Source: ibb-format 4, 5.1.
"""

from __future__ import annotations

from typing import Final

try:
    import cython
except ImportError:  # nothing needs it to run
    from ibb import uncompiled as cython

from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid

from .chunk import CHUNK_HEADER_SIZE, CONTINUATION, FILLER, TYPE_MASK, UNUSED, last_chunk_start
from .group_head import GTID_EVENT_SIZE_MIN
from .record import NO_LISTS, RecordType

if not cython.compiled:  # else the .pxd names it
    from ibb.protocol.little_endian import number_at

_TYPE_AT: Final = 4  # in an event
_SERVER_AT: Final = 5
_SEQ_AT: Final = 19  # in a GTID event
_DOMAIN_AT: Final = 27

_type_at, _server_at, _seq_at, _domain_at = _TYPE_AT, _SERVER_AT, _SEQ_AT, _DOMAIN_AT
_filler, _unused, _chunk_header = FILLER, UNUSED, CHUNK_HEADER_SIZE
_kind_bits, _commit = TYPE_MASK | CONTINUATION, int(RecordType.COMMIT)
(_no_lists,) = NO_LISTS
_whole, _gtid_type = len(NO_LISTS) + GTID_EVENT_SIZE_MIN, int(EventType.GTID)
_format = int(EventType.FORMAT_DESCRIPTION)  # such a record is no group's


def find_commit(page: bytes, first: int, end: int, gtid: Gtid | None) -> int:
    """
    Return where a commit record begins that is, or may be, a group's; -1: none in this page does.

    Args:
        page: the page image.
        first: offset of a chunk's type byte, from which on it is looked for.
        end: the end of what can be read of the page.
        gtid: of the group; None: of any. It may be that of a record whose beginning does not tell
            one by itself.
    """
    last = last_chunk_start(len(page))
    if gtid is None:
        return _find(page, first, end, last, True, False, 0, 0, 0)
    return _find(page, first, end, last, False, False, gtid.domain, gtid.server, gtid.seq)


def find_alone(page: bytes, end: int, gtid: Gtid) -> int:
    """
    Return where a group's commit record begins; -1: it is not in this page, or others may be.

    Others are groups before it, but those of its server with lower numbers, and records before it
    whose beginning does not tell whose they are.
    """
    last = last_chunk_start(len(page))
    return _find(page, 0, end, last, False, True, gtid.domain, gtid.server, gtid.seq)


def _find(
    page: bytes,
    at: int,
    end: int,
    last: int,
    is_any: bool,
    is_alone: bool,
    domain: int,
    server: int,
    seq: int,
) -> int:
    view, end = page, min(end, len(page))
    while 0 <= at <= last and view[at] != _filler and view[at] != _unused:
        data = at + _chunk_header
        size = view[at + 1] | view[at + 2] << 8
        if size == 0 or data + size > end:
            break
        if view[at] & _kind_bits == _commit:
            event = data + 1
            if size < _whole or view[data] != _no_lists:
                return -1 if is_alone else at
            kind = view[event + _type_at]
            if kind == _gtid_type:
                if is_any:
                    return at
                number = number_at(view, event + _seq_at, 8)
                if number == seq or is_alone:
                    is_own = number_at(view, event + _domain_at, 4) == domain
                    is_own = is_own and number_at(view, event + _server_at, 4) == server
                    if is_own and number == seq:
                        return at
                    if is_alone and not (is_own and number < seq):
                        return -1
            elif kind != _format:
                return -1 if is_alone else at
        at = data + size
    return -1
