"""A disk that lies once: ways in which one read can be wrong."""

from collections.abc import Callable


def flipped(data: bytes, at: int) -> bytes:
    """One bit is another."""
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def blank(data: bytes, at: int) -> bytes:
    """A sector comes back empty."""
    return (data[:at] + bytes(512) + data[at + 512 :])[: len(data)]


def short(data: bytes, at: int) -> bytes:
    """The read ends early, but not at once: so would one behind the end of a file."""
    return data[: max(at, 1)]


WAYS = (flipped, blank, short)


class OneLie:
    """
    Lies at one read of those that give anything but zeros; append it to `SimDisk.lies`.

    Args:
        nth: which of them, from 1 on.
        place: where in what is used of the bytes, 0 to below 1.
        wrong: makes them wrong.

    Attributes:
        reads: such reads so far.
        path: of the file that was lied about, or empty.
    """

    def __init__(self, nth: int, place: float, wrong: Callable[[bytes, int], bytes]) -> None:
        self.nth = nth
        self.reads = 0
        self.path = ""
        self._place = place
        self._wrong = wrong

    def __call__(self, path: str, offset: int, data: bytes) -> bytes:
        used = len(data.rstrip(b"\0"))
        if not used:
            return data
        self.reads += 1
        if self.reads != self.nth:
            return data
        self.path = path
        return self._wrong(data, int(self._place * used))
