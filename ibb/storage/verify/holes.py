"""What is reserved in a file and holds nothing: it reads as zero, and need not be read."""

from ibb.storage.disk import File

TRIES_MAX = 4  # of forgetting what is cached, in vain
_AROUND = 2 << 20  # bytes that are forgotten on either side: a cache keeps large pieces whole


class Holes:
    """
    The holes of a file.

    What has been read of one, by a system that reads ahead too, lies in the page cache, and looks
    as if it were stored as long as it does. So it is forgotten and looked at again, but where that
    is in vain the file has stored zeros, which had to be read from the device again each time.

    Args:
        file: the open file.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._tries = 0

    def has(self, start: int, size: int) -> bool:
        """
        Tell whether nothing is stored of some bytes.

        Raises:
            DiskError: that cannot be told.
        """
        if self._is_free(start, size):
            return True
        if self._tries == TRIES_MAX:
            return False
        self._tries += 1
        first = max(start - _AROUND, 0)
        self._file.forget_cached(first, start + size + _AROUND - first)
        if not self._is_free(start, size):
            return False
        self._tries -= 1
        return True

    def _is_free(self, start: int, size: int) -> bool:
        found = self._file.next_data(start)
        return found is None or found >= start + size
