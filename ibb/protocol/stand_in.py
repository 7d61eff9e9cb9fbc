"""
What old clients get in place of an event that they do not know.

A stand-in has the length of the event that it replaces, so that positions stay what they were.
Source: dump-protocol 4.12.
"""

from __future__ import annotations

from typing import Final

from .error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from .event import (
    FLAGS_OFFSET,
    HEADER_SIZE,
    QUERY_POST_HEADER,
    TYPE_OFFSET,
    EventFlag,
    EventType,
    type_name,
)
from .fields import U16, U32

USER_VAR_BYTES_MIN: Final = 25  # header, name size, one character of name, the NULL mark
QUERY_BYTES_MIN: Final = 34  # header, post-header, NUL of the db name, one character of text

_USER_VAR_NAME: Final = b"!dummyvar"
_COMMENT: Final = b"# Dummy event replacing event type %d that slave cannot handle."  # MariaDB's
_BEGIN: Final = b"BEGIN"
_STATUS_SKIP: Final = b"\xff"  # status variable code: skip the rest


def replace_with_begin(event: bytearray) -> None:
    """
    Turn *event*, a GTID event without checksum, into a QUERY `BEGIN` of the same length.

    Raises:
        SqlError: 1236, the event is shorter than MariaDB ever writes it.
    """
    fixed_size = HEADER_SIZE + QUERY_POST_HEADER.size
    status_size = len(event) - fixed_size - 1 - len(_BEGIN)
    if status_size < 0:
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(
            "Failed to replace GTID event with backwards-compatible event: corrupt event."
        )
    _become(event, EventType.QUERY)
    QUERY_POST_HEADER.pack_into(event, HEADER_SIZE, 0, 0, 0, 0, status_size)
    event[fixed_size:] = _STATUS_SKIP * status_size + b"\0" + _BEGIN


def replace_with_dummy(event: bytearray) -> None:
    """
    Turn *event*, without checksum, into one of the same length that does nothing.

    That is a comment, or the setting of a user variable where a comment does not fit. A comment
    may go on behind *event* in as many spaces as one likes.

    Raises:
        SqlError: 1236, the event is too short for either.
    """
    size = len(event)
    code = event[TYPE_OFFSET]
    if size < USER_VAR_BYTES_MIN:
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(
            f"Failed to replace {type_name(code)} event with a dummy: it has only {size} bytes"
        )
    if size < QUERY_BYTES_MIN:
        name_size = size - USER_VAR_BYTES_MIN + 1
        _become(event, EventType.USER_VAR)
        event[HEADER_SIZE:] = U32.pack(name_size) + _USER_VAR_NAME[:name_size] + b"\1"
        return
    text_offset = QUERY_BYTES_MIN - 1
    text_size = size - text_offset
    _become(event, EventType.QUERY)
    event[HEADER_SIZE:text_offset] = bytes(text_offset - HEADER_SIZE)
    event[text_offset:] = (_COMMENT % code).ljust(text_size)[:text_size]


def _become(event: bytearray, code: EventType) -> None:
    """Change the header to that of a harmless statement event of type *code*."""
    event[TYPE_OFFSET] = code
    (flags,) = U16.unpack_from(event, FLAGS_OFFSET)
    flags = flags & ~int(EventFlag.THREAD_SPECIFIC) | EventFlag.SUPPRESS_USE
    U16.pack_into(event, FLAGS_OFFSET, flags)
