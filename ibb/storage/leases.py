"""
Leases: named GTID positions that outlive a connection.

A replica that is away for the night, a Spark checkpoint, an archive: each says up to where it has
the history, and purge keeps the rest for it. A lease has an age limit: one that was not renewed
for so long lapses, which is kept on record until somebody takes note of it. Leases live in one
small file beside the binlog, replaced as a whole:

    {"version": 1, "leases": [{"name": ..., "position": "0-1-100", "renewed_at": 1700000000.0,
                               "age_limit": 604800.0, "lapsed": false}, ...]}
"""

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.gtid import GtidPosition

from .clock import Clock
from .disk import Disk
from .errors import DiskError, LeaseError
from .gtid_search import is_there
from .page_source import PageSource
from .small_file import read_small_file, replace_small_file

LEASES_NAME = "leases.json"
LEASES_MAX = 10_000
NAME_CHARS_MAX = 200
AGE_LIMIT_SECONDS = 7 * 24 * 3600.0  # unless the holder says otherwise
_VERSION = 1


class Lease(NamedTuple):
    """
    One lease.

    Attributes:
        name: who has it.
        position: the last GTID that it has in each domain; all behind it is kept.
        renewed_at: seconds since 1970.
        age_limit: seconds without renewal after which it lapses; None: never.
        lapsed: it holds nothing any more.
    """

    name: str
    position: str
    renewed_at: float
    age_limit: float | None
    lapsed: bool = False


class Leases:
    """
    The leases of a store. Safe to use from several threads.

    Args:
        disk: where the store is.
        directory: its path.
        clock: tells how old leases are.
        frozen: within it no file goes.
        pages: returns what is there.

    Raises:
        FormatError: the file of leases is damaged: purging without it could lose what they hold.
    """

    def __init__(
        self,
        disk: Disk,
        directory: str,
        clock: Clock,
        frozen: Callable[[], AbstractContextManager[None]],
        pages: Callable[[], PageSource],
    ) -> None:
        self._disk = disk
        self._path = f"{directory}/{LEASES_NAME}"
        self._clock = clock
        self._frozen = frozen
        self._pages = pages
        self._mutex = threading.Lock()
        self._leases: dict[str, Lease] = {}
        text = read_small_file(disk, self._path)
        if text is not None:
            try:
                self._leases = _parse(text)
            except (ValueError, KeyError, TypeError) as error:
                raise FormatError(f"not a file of leases: {error}", file=self._path) from error

    def renew(
        self,
        name: str,
        position: str | GtidPosition,
        *,
        age_limit: float | None = AGE_LIMIT_SECONDS,
    ) -> Lease:
        """
        Make or renew a lease, durably.

        Args:
            name: who has it, 1 to `NAME_CHARS_MAX` characters.
            position: the last GTID had in each domain.
            age_limit: seconds after which it lapses unless renewed; None: never.

        Raises:
            LeaseError: a bad name, too many leases, or files that the position needs are gone.
            SqlError: not a GTID position.
            DiskError: it could not be stored; the lease that was there before holds.
        """
        wanted = GtidPosition.parse(position) if isinstance(position, str) else position
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise LeaseError(f"a lease's name has 1 to {NAME_CHARS_MAX} printable characters")
        with self._frozen(), self._mutex:
            if name not in self._leases and len(self._leases) >= LEASES_MAX:
                raise LeaseError(f"more than {LEASES_MAX} leases")
            if not is_there(self._pages(), wanted):
                raise LeaseError(f"groups behind position '{wanted}' have been purged")
            lease = Lease(name, str(wanted), self._clock.now(), age_limit)
            self._replace({**self._leases, name: lease})
            return lease

    def remove(self, name: str) -> None:
        """
        End a lease, or take note of one that lapsed.

        Raises:
            LeaseError: there is none of this name.
        """
        with self._mutex:
            if name not in self._leases:
                raise LeaseError(f"there is no lease named '{name}'")
            self._replace({key: lease for key, lease in self._leases.items() if key != name})

    def all(self) -> list[Lease]:
        """Return the leases by name, those that lapsed included."""
        with self._mutex:
            return sorted(self._leases.values())

    def lapse(self) -> list[Lease]:
        """Let those lapse that are too old; return those that just did."""
        now = self._clock.now()
        with self._mutex:
            old = [
                lease._replace(lapsed=True)
                for lease in self._leases.values()
                if not lease.lapsed
                and lease.age_limit is not None
                and now - lease.renewed_at > lease.age_limit
            ]
            if old:
                self._store_lapsed({**self._leases, **{lease.name: lease for lease in old}})
            return old

    def _store_lapsed(self, leases: dict[str, Lease]) -> None:
        try:
            self._replace(leases)
        except DiskError as error:
            if not error.full:
                raise
            # What they held must be able to go, or the disk stays full; by their age they lapse
            # again after a restart.
            self._leases = leases

    def _replace(self, leases: dict[str, Lease]) -> None:
        content = {"version": _VERSION, "leases": [lease._asdict() for lease in leases.values()]}
        replace_small_file(self._disk, self._path, json.dumps(content, indent=1).encode())
        self._leases = leases


def _parse(text: bytes) -> dict[str, Lease]:
    content: dict[str, Any] = json.loads(text)
    if content["version"] != _VERSION:
        raise ValueError(f"version {content['version']}")
    leases = {}
    for fields in content["leases"]:
        lease = Lease(**fields)
        try:
            GtidPosition.parse(lease.position)
        except SqlError as error:
            raise ValueError(str(error)) from error
        leases[lease.name] = lease
    return leases
