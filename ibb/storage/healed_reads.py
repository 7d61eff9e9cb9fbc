"""Pages that were wrong when first read and right from the device: a sign of failing hardware."""

from collections.abc import Callable

from ibb.protocol.errors import FormatError


def _keep_quiet(_: FormatError) -> None:
    """Nobody wants to know."""


class HealedReads:
    """
    Counts them, and tells of each.

    Attributes:
        count: so far.
        tell: called with what was wrong, from the reading thread; must not block.
    """

    def __init__(self) -> None:
        self.count = 0
        self.tell: Callable[[FormatError], None] = _keep_quiet

    def add(self, wrong: FormatError) -> None:
        """Note one."""
        self.count += 1
        self.tell(wrong)
