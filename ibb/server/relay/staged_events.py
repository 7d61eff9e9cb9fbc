"""Events of the group that comes in, on their way to the store: many small ones at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ibb.storage.group_writer import GroupWriter

STAGED_BYTES: Final = 32 << 10  # that are handed over together


class StagedEvents:
    """What has come of a group and was not handed over."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._bytes = 0

    def add(self, events: bytes | memoryview, writer: GroupWriter) -> None:
        """
        Keep events until there is enough for the store.

        Args:
            events: whole ones; a view is not needed any more behind this call.
            writer: of their group.
        """
        if len(events) >= STAGED_BYTES:
            self.hand_over(writer)
            writer.write(events)
            return
        self._events.append(bytes(events))
        self._bytes += len(events)
        if self._bytes >= STAGED_BYTES:
            self.hand_over(writer)

    def hand_over(self, writer: GroupWriter) -> None:
        """Give the store what there is."""
        if self._events:
            writer.write(self._events[0] if len(self._events) == 1 else b"".join(self._events))
            self.clear()

    def clear(self) -> None:
        """Forget what there is."""
        self._events.clear()
        self._bytes = 0
