"""
Pins: which files open and prepared transactions still refer to.

A transaction pins the file that is active when its first out-of-band piece is written, until its
commit record is complete. The lowest pinned file goes into the header of each new file, so that
nobody purges what a commit record in that file may point to. Prepared XA transactions pin for
their own reference too. Source: ibb-format 3.5, 5.5, 9.2.
"""

from collections.abc import Hashable

from .record import Xid


class FilePins:
    """
    Pins by owner. Changed by the holder of the store's write lock; anybody may ask.

    A pin that is handed on is never missing in between.
    """

    def __init__(self) -> None:
        self._pins: dict[Hashable, int] = {}
        self._prepared: dict[Hashable, Xid] = {}

    def __len__(self) -> int:
        return len(self._pins)

    def pin(self, owner: Hashable, file_no: int) -> None:
        """Pin *file_no* unless the owner has a pin already."""
        self._pins.setdefault(owner, file_no)

    def prepare(self, owner: Hashable, prepared: Xid) -> None:
        """Hand an owner's pin on to the prepared transaction that it becomes."""
        self._pins[prepared] = self._pins[owner]
        self._prepared[prepared] = prepared
        if owner != prepared:
            del self._pins[owner]

    def unprepare(self, prepared: Xid, owner: Hashable) -> None:
        """Take `prepare` back."""
        self._pins[owner] = self._pins[prepared]
        self._prepared.pop(prepared, None)
        del self._pins[prepared]

    def unpin(self, owner: Hashable) -> None:
        """Give a pin up, if the owner has one."""
        self._prepared.pop(owner, None)
        self._pins.pop(owner, None)

    def lowest(self) -> int | None:
        """Return the lowest file pinned, or None."""
        return min(list(self._pins.values()), default=None)

    def lowest_prepared(self) -> int | None:
        """Return the lowest file pinned by a prepared XA transaction, or None."""
        return min((file_no for _, file_no in self.prepared()), default=None)

    def lowest_open(self) -> int | None:
        """Return the lowest file pinned by a transaction that is not prepared, or None."""
        pins = dict(self._pins)
        return min((pins[owner] for owner in pins if owner not in self._prepared), default=None)

    def prepared(self) -> list[tuple[Xid, int]]:
        """Return the prepared transactions with the files that they pin."""
        pins = dict(self._pins)
        return [(xid, pins[xid]) for xid in list(self._prepared.values()) if xid in pins]
