"""Connections that Python has logged in and a program takes over, so that a load costs little."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Self

from ibb.demo.dump_client import DumpClient

if TYPE_CHECKING:
    from collections.abc import Sequence


class LoggedIn(DumpClient):
    """A connection that a process may inherit."""

    @property
    def descriptor(self) -> int:
        """The socket's."""
        return self._socket.fileno()


class ConnectionProgram:
    """
    A process over connections that begins when it is told to; a context manager that ends both.

    Args:
        words: its command line; the numbers of the descriptors follow.
        connections: logged in, none used yet.
    """

    def __init__(self, words: Sequence[str], connections: Sequence[LoggedIn]) -> None:
        self._connections = connections
        descriptors = [one.descriptor for one in connections]
        self._process = subprocess.Popen(
            [*words, *map(str, descriptors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        for connection in self._connections:
            connection.close()
