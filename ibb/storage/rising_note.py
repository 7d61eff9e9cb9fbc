"""
Files whose GTID states rise from one to the next, noted: who starts need not look at each again.

The note is a small file beside the binlog:

    {"version": 1, "first": 0, "last": 9998, "last_lsn": 1234567, "last_page": "5f0c1a2b"}

It says that each of those files begins with a state that rises to the next one's, and nothing of
what the states are: those are read where they are compared. Such files never change any more.
That they are the same ones is told by the last one: by its header's LSN, which counts all that was
logged before it, and the checksum of its page 1, which holds that state, and groups with their
times. Of files that are not among them it says nothing, so who goes on in the directory without
keeping it does no harm; only a server keeps it (`state_learner`). Source: ibb-format 8.3.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError

from .checked_json import encode_checked, parse_checked
from .disk import Disk
from .errors import DiskError, StateTooLarge, StoreFull
from .file_search import learn_state
from .file_states import RISING_PAIRS_MAX
from .page_source import PageSource
from .small_file import SMALL_FILE_BYTES_MAX, read_small_file, replace_small_file

_log = logging.getLogger(__name__)

NOTE_NAME: Final = "rising.json"
NOTE_FILES: Final = 64  # so many, or so many more than are noted, are worth a note
_VERSION: Final = 1


class _Look(NamedTuple):
    """What tells a file from others with its number: LSN of its header, checksum of page 1."""

    lsn: int
    page: str


class _Claim(NamedTuple):
    """Files, and what the last of them looks like."""

    rising: range
    last: _Look


class RisingNote:
    """
    The note of one directory; who searches its pages knows at once what is noted.

    Args:
        disk: where it is.
        directory: its path.
        source: its pages, of which nothing was searched yet.
        is_kept: it is ours to write.
    """

    def __init__(
        self, disk: Disk, directory: str, source: PageSource, *, is_kept: bool = True
    ) -> None:
        self._disk, self._path = disk, f"{directory}/{NOTE_NAME}"
        self._source, self._noted = source, range(0)
        self._at_work = threading.Lock()
        self._is_kept, self._is_closed = is_kept, False
        self._left: list[int] | None = None  # files to look at, the next one last
        self._listed = self._looked = -1  # the newest of those, and behind all of them
        try:
            claim = read_small_file(disk, self._path, self._parse)
            rising = range(0) if claim is None else self._true_part(claim)
        except (FormatError, DiskError) as error:
            _log.warning("%s: the state of each file is read instead", error)
            return
        if rising and source.file_states.trust(rising):
            self._noted = rising

    def close(self) -> None:
        """Read and write nothing any more: the files will be gone, or another process's."""
        if not self._is_closed:
            with self._at_work:
                self._is_closed = True

    def disown(self) -> None:
        """As `close`, without waiting for who is at work: a child of ours has no such thread."""
        self._is_closed = True

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Close, while the files are deleted; if that is refused, go on."""
        self.close()
        try:
            yield
        except (StateTooLarge, StoreFull):
            self._is_closed = False
            raise

    def extend(self, is_enough: Callable[[], bool]) -> bool:
        """
        Look at all files of which it says nothing, so that no search has to; note what they say.

        Each is looked at once, and the newest again: it may hold nothing yet. Where states are
        so large that they are not compared, or are too many to be kept, the older ones are left.
        One thread at a time.

        Args:
            is_enough: tells behind each file whether to leave it at that; the next call goes on.

        Returns:
            Whether there are no more to look at.

        Raises:
            DiskError: the files cannot be listed, or the note could not be written.
        """
        is_over = False
        while not is_over:
            with self._at_work:
                if self._is_closed:
                    return True
                is_over = self._look_at_next()
            if not is_over and is_enough():
                return False
        return True

    def _look_at_next(self) -> bool:
        """Look at the next file; return whether there are no more."""
        states = self._source.file_states
        if self._left is None:
            inside = states.rising[1:]  # to compare those before, the first one is needed
            numbers = self._source.file_numbers()
            self._left = [
                number
                for number in numbers
                if number > self._looked and number not in inside and states.get(number) is None
            ]
            self._listed = numbers[-1] - 1 if numbers else -1
        if self._left:
            state = learn_state(self._source, self._left.pop())
            if (state is not None and len(state) > RISING_PAIRS_MAX) or not states.has_room():
                self._left = []
        if self._left:
            return False
        self._left, self._looked = None, self._listed
        self._write()
        return True

    def _write(self) -> None:
        """Note what is known of the files before the newest, if that is worth it."""
        noted, rising = self._noted, self._source.file_states.rising
        rising = range(rising.start, min(rising.stop, self._source.last_file()))
        if not noted:
            more = len(rising)
        else:
            more = rising.stop - noted.stop + max(noted.start - rising.start, 0)
        is_worth_it = self._is_kept and more >= NOTE_FILES and len(rising) > 0
        look = self._look_of(rising[-1]) if is_worth_it else None
        if look is None:
            return
        content = {
            "version": _VERSION,
            "first": rising.start,
            "last": rising[-1],
            "last_lsn": look.lsn,
            "last_page": look.page,
        }
        replace_small_file(self._disk, self._path, encode_checked(content, indent=0))
        self._noted = rising

    def _look_of(self, file_no: int) -> _Look | None:
        """Return what a file looks like, its state known; None: it cannot be read."""
        try:
            header = self._source.header(file_no)
            if header is None or learn_state(self._source, file_no) is None:
                return None
            page = self._source.read_page(file_no, 1)
            return _Look(header.lsn, f"{crc32c(page.data[: page.end]):08x}")
        except (FormatError, DiskError):
            return None

    def _true_part(self, claim: _Claim) -> range:
        """Return those files of a claim that are there; none if the last one is another."""
        first, last = claim.rising.start, claim.rising[-1]
        there = [number for number in self._source.file_numbers() if first <= number <= last]
        if not there or there[-1] != last or self._look_of(last) != claim.last:
            return range(0)
        back = 0
        for number in reversed(there):
            if number != last - back:
                break  # one is missing: those behind it count
            back += 1
        return range(last - back + 1, last + 1)

    def _parse(self, text: bytes) -> _Claim:
        try:
            if len(text) > SMALL_FILE_BYTES_MAX:
                raise ValueError(f"more than {SMALL_FILE_BYTES_MAX} bytes")
            content = parse_checked(text)
            if content["version"] != _VERSION:
                raise ValueError(f"version {content['version']}")
            first, last = content["first"], content["last"]
            if not (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last):
                raise ValueError(f"files {first} to {last}")
            look = _Look(content["last_lsn"], content["last_page"])
            return _Claim(range(first, last + 1), look)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"not a note of files whose states rise: {error}"
            raise FormatError(what, file=self._path) from error
