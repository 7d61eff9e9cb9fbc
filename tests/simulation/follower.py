"""A reader that begins somewhere and follows: what it got must be what was sent, in that order."""

from __future__ import annotations

from ibb.protocol.errors import FormatError
from ibb.storage import Store
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_start
from ibb.storage.holds import HoldKind

from .model import Model, Seen, WrongError
from .reading import is_own, read_group


class Follower:
    """
    Reads behind a GTID position.

    Args:
        store: the store.
        model: what it must hold.
        count: it has the first *count* items already.

    Raises:
        TooOld: files that it needs are gone.
    """

    def __init__(self, store: Store, model: Model, count: int) -> None:
        self._store = store
        self._model = model
        self._wanted = count
        self._next: int | None = None  # item, after the first group
        self.hold = store.hold(HoldKind.READER, f"follower of item {count}")
        try:
            place = find_start(store.pages, model.state(count).position())
            self._start_state = place.state
            self.hold.move(place.position.file_no)
            self.reader = GroupReader(store.pages, place.position)
        except BaseException:
            self.hold.release()
            raise

    def read(self, groups_max: int) -> int:
        """Read on; return how many groups there were."""
        for done in range(groups_max):
            if self.read_one() is None:
                return done
        return groups_max

    def read_one(self) -> Seen | None:
        """
        Read one group and compare it with the model.

        Raises:
            FormatError, DiskError: it could not be read; the next call reads it again.
        """
        position = self.reader.position
        try:
            group = self.reader.next()
            if group is None:
                return None
            one = read_group(group, self._store.pages.first_file())
        except (FormatError, DiskError):
            self.reader = GroupReader(self._store.pages, position)
            raise
        self.hold.move(group.position.file_no)
        self._check(one, own=is_own(group))
        return one

    def _check(self, one: Seen, *, own: bool) -> None:
        model = self._model
        if one.position >= self._store.end():
            raise WrongError(f"group {one.gtid} was read behind the durable end")
        if one.gtid is None:
            if not own and not any(item.data == one.data for item in model.items):
                raise WrongError(f"format description at {one.position} was never sent")
            return
        number = model.index(one.gtid)
        if number >= model.safe:
            raise WrongError(f"group {one.gtid} was read before it was durable")
        if one.data is None and number >= self._wanted:
            raise WrongError(f"group {one.gtid} has lost pieces that its reader was to get")
        if one.data not in (None, model.items[number].data):
            raise WrongError(f"group {one.gtid} has other contents")
        if self._next is None:
            self._check_start(number)
        elif number != self._next_group():
            expected = model.items[self._next_group()].gtid
            raise WrongError(f"group {one.gtid} was read where {expected} follows")
        self._next = number + 1

    def _check_start(self, number: int) -> None:
        model = self._model
        forgotten = frozenset().union(*(item.domains for item in model.items))
        for item in model.items[self._wanted : number]:
            if item.gtid is not None and item.gtid.domain not in forgotten:
                raise WrongError(f"the reader begins behind {item.gtid}, which it needs")
        if forgotten:
            return  # the start may lie before a domain was forgotten
        if str(self._start_state.position()) != str(model.state(number).position()):
            raise WrongError(
                f"the state at the start is '{self._start_state}', expected '{model.state(number)}'"
            )

    def _next_group(self) -> int:
        assert self._next is not None
        number = self._next
        while self._model.items[number].gtid is None:
            number += 1
        return number
