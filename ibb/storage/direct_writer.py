"""
Large writes past the page cache, to the device.

What is not read again soon would be copied into the cache for nothing, push out there what others
read, and be written from there by the next sync all the same.
"""

import errno
import mmap
import os
from collections.abc import Sequence
from contextlib import suppress

from .disk import BLOCK_BYTES, Buffer

DIRECT_BYTES_MIN = 64 << 10  # of a write: less is written as fast through the cache
STAGE_BYTES = 1 << 20  # handed to the system at a time, from memory that lies as it wants it
_UNSUPPORTED = frozenset({errno.EINVAL, errno.EOPNOTSUPP})


class DirectWriter:
    """
    The large writes to one file; calls must not overlap.

    Args:
        descriptor: of the file, open for writing.
    """

    def __init__(self, descriptor: int) -> None:
        self._opened_by = descriptor
        self._descriptor: int | None = None
        self._stage: mmap.mmap | None = None  # until the first large write there is none
        self._works = hasattr(os, "O_DIRECT")

    def write(self, offset: int, data: Buffer | Sequence[Buffer]) -> int:
        """
        Write whole blocks, if there are many of them.

        Args:
            offset: in the file.
            data: one buffer or several one behind the other.

        Returns:
            how many bytes were written, from the first on: all, or what the system has taken; none
            of those that are few or no whole blocks, or where it does not write past its cache.

        Raises:
            OSError: they could not be written.
        """
        if offset % BLOCK_BYTES:
            return 0  # as nearly always
        buffers = [data] if isinstance(data, (bytes, bytearray, memoryview)) else data
        size = sum(len(buffer) for buffer in buffers)
        if size < DIRECT_BYTES_MIN or size % BLOCK_BYTES:
            return 0
        if self._stage is None and not self._begin():
            return 0
        assert self._stage is not None
        stage, filled, written = memoryview(self._stage), 0, 0
        for buffer in buffers:
            left = memoryview(buffer).cast("B")
            while left:
                part = min(len(left), STAGE_BYTES - filled)
                stage[filled : filled + part] = left[:part]
                filled, left = filled + part, left[part:]
                if filled == STAGE_BYTES or written + filled == size:
                    taken = self._put(stage[:filled], offset + written)
                    written += taken
                    if taken < filled:
                        return written
                    filled = 0
        return written

    def close(self) -> None:
        """Give the descriptor and the memory up; nothing is written any more."""
        descriptor, self._descriptor, self._works = self._descriptor, None, False
        self._stage = None
        if descriptor is not None:
            os.close(descriptor)

    def _begin(self) -> bool:
        """Open the file once more, in its own way; return whether that can be."""
        if self._works:
            with suppress(OSError):  # no /proc, or a file system that always caches
                path = f"/proc/self/fd/{self._opened_by}"
                self._descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC)
                self._stage = mmap.mmap(-1, STAGE_BYTES)
        self._works = self._stage is not None
        return self._works

    def _put(self, data: memoryview, offset: int) -> int:
        """Return how many bytes the system took."""
        assert self._descriptor is not None
        try:
            return os.pwrite(self._descriptor, data, offset)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self.close()  # its blocks are larger, or it only seemed to do so
            return 0
