"""What is odd about a directory but no reason to stop."""

import threading
from typing import Final

ODDITIES_MAX: Final = 100  # kept in memory


class Oddities:
    """
    Keeps findings, each once. Safe to use from several threads.

    Attributes:
        found: the first `ODDITIES_MAX`.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self._mutex = threading.Lock()

    def add(self, finding: str) -> None:
        """Keep a finding, if it is new and there is room."""
        with self._mutex:
            if finding not in self.found and len(self.found) < ODDITIES_MAX:
                self.found.append(finding)
