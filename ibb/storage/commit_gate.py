"""
The commit gate: who wants to know of a group before anybody can see it, and may hold its caller.

A semi-synchronous master returns from a commit only when a replica has it. The group is durable
and visible by then (AFTER_COMMIT): nothing that the gate does can undo it.
"""

from typing import Protocol

from ibb.protocol.gtid import Gtid

from .commit_position import CommitPosition


class CommitGate(Protocol):
    """Stands behind every commit."""

    def expect(self, gtid: Gtid) -> None:
        """Note that a group will be written next; in the order of the history."""

    def give_up(self, gtid: Gtid) -> None:
        """Forget the group noted last: it was not written after all."""

    def written(self, position: CommitPosition) -> None:
        """Note where the group ends that was noted last; nobody can see it yet."""

    def wait(self, position: CommitPosition) -> None:
        """Return when the caller of a commit may go on; from any thread."""
