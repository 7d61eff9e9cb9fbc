"""Opening what must be a file: a pipe of its name would wait for a writer for ever."""

import errno
import os
import stat

_READ_LIKE_FILES = stat.S_IFREG, stat.S_IFDIR  # of a directory, reading tells what it is


def open_regular(path: str, flags: int, mode: int) -> int:
    """
    Return a descriptor of a regular file or a directory.

    Args:
        path: of the file.
        flags: as of `os.open`.
        mode: permissions of a file that is made.

    Raises:
        OSError: it cannot be opened, or is a pipe, a socket or a device.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK, mode)
    if stat.S_IFMT(os.fstat(descriptor).st_mode) in _READ_LIKE_FILES:
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file")
