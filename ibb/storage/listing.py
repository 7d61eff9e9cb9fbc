"""What a look at a directory of binlog files showed."""

from typing import NamedTuple


class Listing(NamedTuple):
    """
    What a look at the directory showed, for telling whether somebody writes there.

    Attributes:
        numbers: of the files, ascending.
        last: highest number that holds data; -1 without any.
        last_page: last used page of that file.
        changed: when the two newest of the files were modified, in seconds since 1970.
    """

    numbers: tuple[int, ...]
    last: int
    last_page: int
    changed: tuple[float, ...]


NOTHING_LISTED = Listing((), -1, 0, ())
