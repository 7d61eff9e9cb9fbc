"""
In which file a replica's stream begins: the newest one whose first state is before its position.

Files are looked at from the newest back, by the full state on their page 1, which is read once;
over those whose states are known to rise, in steps. Source: ibb-format 8.3.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition

from .errors import DiskError
from .page_source import PageSource
from .state_scan import read_state

_T = TypeVar("_T")

SEARCHES_MAX = 8  # that meet a file which is no more as it was, before each file is looked at
NEWER_MAX = 64  # files behind those with known states that are looked for without a list of all


class FileWithState(NamedTuple):
    """A file, and the state before it; None: it is the very first, and has none."""

    file_no: int
    base: BinlogState | None


def search_files(
    source: PageSource,
    position: GtidPosition,
    is_certain: Callable[[int, BinlogState], bool] = lambda *_: False,
) -> FileWithState | None:
    """
    Return the newest file whose state is before *position*.

    Args:
        source: the pages.
        position: what a reader has.
        is_certain: tells of a file whose state is before it whether it surely is the newest.

    Raises:
        FormatError, DiskError: there is none, and this damage may be why.
    """
    for _ in range(SEARCHES_MAX):
        try:
            return _search(source, position, is_certain, by_steps=True)
        except KeyError:
            continue  # what was known of a file that has gone, or is damaged, is forgotten
        except _OneByOne:
            break
    return _search(source, position, is_certain, by_steps=False)


def _search(
    source: PageSource,
    position: GtidPosition,
    is_certain: Callable[[int, BinlogState], bool],
    *,
    by_steps: bool,
) -> FileWithState | None:
    """
    Search from the newest back; over files whose states are known to rise *by_steps*.

    Raises:
        KeyError, _OneByOne: not so, see `_seen`.
        FormatError, DiskError: as above.
    """
    states, last, damage = source.file_states, source.last_file(), None
    rising = states.rising if by_steps else range(0)
    known = range(max(rising.start, source.first_file()), min(rising.stop, last + 1))

    def state_of(file_no: int) -> BinlogState:
        return _seen(source, file_no, partial(_state_of, source))

    for file_no in _walk(source, last, known):
        try:
            if known and file_no == known.stop - 1:
                found = states.newest_before(known, position, state_of, is_certain)
                if found is not None:
                    _seen(source, found[0], source.header)  # of which the state was known
                    return FileWithState(*found)
                continue
            file = _file_with_state(source, file_no)
        except (FormatError, DiskError) as error:
            damage = error
            continue
        if file is not None and (file.base is None or file.base.is_before(position)):
            return file
    if damage is not None and source.last_file() >= source.first_file():
        raise damage
    return None


def _walk(source: PageSource, last: int, known: range) -> Iterator[int]:
    """Yield the numbers of the files from the last one back, of some *known* ones the newest."""
    if known and last < known.stop + NEWER_MAX:
        yield from range(last, known.stop - 2, -1)
        last = known.start - 1
        if last < source.first_file():
            return
    for file_no in reversed(source.file_numbers()):
        if file_no <= last and file_no not in known[:-1]:
            yield file_no


def _file_with_state(source: PageSource, file_no: int) -> FileWithState | None:
    """Return a file with the state before it; None if that was left out. Raises as it reads."""
    states = source.file_states  # before the look: another history has others
    base = states.get(file_no)
    if base is None:
        entries = source.first_state(file_no)
        if entries is None:
            full = read_state(source, file_no, 1)
            if full is None:
                return FileWithState(0, None) if file_no == 0 else None  # nothing was before it
            entries = full.entries
        base = BinlogState(entries)
    states.add(file_no, base)
    return FileWithState(file_no, base)


class _OneByOne(Exception):  # noqa: N818 - not an error
    """A file among those that rise cannot be read right now: a walk may step over it."""


def _seen(source: PageSource, file_no: int, look: Callable[[int], _T | None]) -> _T:
    """
    Return what a look at a file among those that rise has shown.

    Raises:
        KeyError: it has gone, or is damaged; it is forgotten.
        _OneByOne: it could not be read.
    """
    try:
        seen = look(file_no)
    except FormatError:
        seen = None
    except DiskError as error:
        if not error.missing:
            raise _OneByOne from None
        seen = None
    if seen is None:
        source.file_states.forget(file_no)
        raise KeyError(file_no)
    return seen


def _state_of(source: PageSource, file_no: int) -> BinlogState | None:
    """Return the state that a file begins with; None if it has none. Raises as it reads."""
    file = _file_with_state(source, file_no)
    return None if file is None else file.base


def learn_state(source: PageSource, file_no: int) -> BinlogState | None:
    """
    Return the state that a file begins with, which no search has to look at then.

    None: it has none, or none that can be read; who searches steps over it.
    """
    try:
        return _state_of(source, file_no)
    except (FormatError, DiskError):
        return None
