"""
Where a client believes to be in its stream: a file name and a position that only it knows.

A store of groups has no such coordinates. But clients count the bytes of the events that they
get, semi-synchronous ones say in this coin what they have, and a heartbeat may not be below it. So
the sender counts as they do: a made-up file begins at 4, each event of a group adds its length, and
a new file begins before the numbers no longer fit an event header.
Source: dump-protocol 4.8, 7.
"""

from __future__ import annotations

from typing import Final

from .rotate import FIRST_POSITION

LOG_POS_MAX: Final = 2**32 - 1  # what an event header can say
STREAM_FILE_BYTES: Final = 1 << 30  # behind which the next group begins a new file
_NUMBER_DIGITS_MAX: Final = 18


class StreamPosition:
    """
    The file and the position that a client has reached.

    Args:
        name: of the first file; a number at its end is counted up.
        file_bytes: size from which on `is_full` says so.

    Attributes:
        name: of the file.
        position: behind the last event; beyond `LOG_POS_MAX` only inside a huge group.
    """

    __slots__ = ("_file_bytes", "name", "position")

    def __init__(self, name: str, file_bytes: int = STREAM_FILE_BYTES) -> None:
        self.name = name
        self.position = FIRST_POSITION
        self._file_bytes = file_bytes

    @property
    def is_full(self) -> bool:
        """Whether the next group should begin a new file."""
        return self.position >= self._file_bytes

    def begin_next_file(self) -> None:
        """Go on at the beginning of the file that is named next."""
        stem, dot, number = self.name.rpartition(".")
        if dot and number.isascii() and number.isdigit() and len(number) <= _NUMBER_DIGITS_MAX:
            self.name = f"{stem}.{int(number) + 1:0{len(number)}d}"
        else:
            self.name += ".000002"
        self.position = FIRST_POSITION

    def log_pos(self, length: int) -> int:
        """Return the log_pos of an event of *length* bytes that comes next; 0 if it has no room."""
        behind = self.position + length
        return behind if behind <= LOG_POS_MAX else 0
