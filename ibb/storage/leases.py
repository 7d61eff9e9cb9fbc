"""
Leases: named GTID positions that outlive a connection.

A replica that is away for the night, a Spark checkpoint, an archive: each says up to where it has
the history, and purge keeps the rest for it. A lease has an age limit: one that was not renewed
for so long lapses, which is kept on record until somebody takes note of it; those that a server
makes for its replicas have an owner, and go when they lapse. Leases live in one small file beside
the binlog, replaced as a whole:

    {"version": 1, "leases": [{"name": ..., "position": "0-1-100", "renewed_at": 1700000000.0,
                               "age_limit": 604800.0, "lapsed": false, "owner": ""}, ...]}
"""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from reprlib import repr as shortened
from typing import Any, NamedTuple

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.gtid import GtidPosition

from .checked_json import encode_checked, parse_checked
from .clock import Clock
from .disk import Disk
from .errors import DiskError, LeaseError, StoreFailed
from .gtid_search import is_there
from .page_source import PageSource
from .small_file import SMALL_FILE_BYTES_MAX, read_small_file, replace_small_file

LEASES_NAME = "leases.json"
LEASES_MAX = 10_000
OWNED_LEASES_MAX = 8_000  # of all owners: the rest is for those that people make
LEASES_OF_OWNER_MAX = 1_000
LEASES_BYTES_MAX = SMALL_FILE_BYTES_MAX - 4096  # of all; what is around them is in the margin
OWNED_LEASES_BYTES_MAX = LEASES_BYTES_MAX // 4 * 3  # beyond it grow only those that people make
OWNED_POSITION_CHARS_MAX = 4096  # of one of a replica
NAME_CHARS_MAX = 200
AGE_LIMIT_SECONDS = 7 * 24 * 3600.0  # unless the holder says otherwise
AGE_LIMIT_SECONDS_MAX = 100 * 365 * 24 * 3600.0
_VERSION = 1
_MOMENTS_END = 1e12  # in seconds from 1970, on both sides
_FIELDS_BYTES_MAX = 256  # of a lease in the file: names of fields, numbers and spaces


class Lease(NamedTuple):
    """
    One lease.

    Attributes:
        name: who has it.
        position: the last GTID that it has in each domain; all behind it is kept.
        renewed_at: seconds since 1970.
        age_limit: seconds without renewal after which it lapses; None: never.
        lapsed: it holds nothing any more.
        owner: whose it is of those for whom a server makes leases; empty: people made it.
    """

    name: str
    position: str
    renewed_at: float
    age_limit: float | None
    lapsed: bool = False
    owner: str = ""

    def is_over(self, now: float) -> bool:
        """Tell whether it has lapsed, or will as soon as anybody looks; *now* since 1970."""
        too_old = self.age_limit is not None and now - self.renewed_at > self.age_limit
        return self.lapsed or too_old


class Renewal(NamedTuple):
    """One lease to be made or renewed, see `Leases.renew`."""

    name: str
    position: GtidPosition
    age_limit: float | None
    owner: str


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
        self._ahead: dict[tuple[str, float], float] = {}  # see `_is_over`
        self._is_closed = False
        self._is_stored = True  # the file holds the same, nothing else
        self._leases = read_small_file(disk, self._path, self._parse) or {}

    def _parse(self, text: bytes) -> dict[str, Lease]:
        try:
            return _leases_in(text)
        except (ValueError, RecursionError) as error:
            what = f"not a file of leases: {error}; mend it, or move it away to hold nothing"
            raise FormatError(what, file=self._path) from error

    def close(self) -> None:
        """Change nothing any more: the directory will be somebody else's."""
        with self._mutex:
            self._is_closed = True

    def disown(self) -> None:
        """Change nothing any more, see `Disownable`."""
        self._mutex, self._is_closed = threading.Lock(), True

    def renew(
        self,
        name: str,
        position: str | GtidPosition,
        *,
        age_limit: float | None = AGE_LIMIT_SECONDS,
        replace: bool = True,
    ) -> Lease:
        """
        Make or renew a lease, durably.

        Args:
            name: who has it, 1 to `NAME_CHARS_MAX` characters.
            position: the last GTID had in each domain.
            age_limit: seconds after which it lapses unless renewed, above 0 and at most
                `AGE_LIMIT_SECONDS_MAX`; None: never.
            replace: one of this name may be there.

        Raises:
            LeaseError: a bad name or age limit, too many leases or too long ones, one of this name
                that must not be, or files that the position needs are gone.
            SqlError: not a GTID position.
            DiskError: it could not be stored; the lease that was there before holds.
            StoreFailed: the store is closed.
        """
        wanted = GtidPosition.parse(position) if isinstance(position, str) else position
        with self._frozen(), self._mutex:
            if not replace and name in self._leases:
                raise LeaseError(f"there is a lease named '{name}'")
            size = _size(self._leases)
            lease = self._checked(Renewal(name, wanted, age_limit, ""), self._leases, size)
            self._replace({**self._leases, name: lease})
            return lease

    def renew_all(self, renewals: Iterable[Renewal]) -> dict[str, LeaseError]:
        """
        Make or renew leases at once, durably; those that people made keep their age limits.

        Returns:
            By name what is against those that could not be.

        Raises:
            DiskError: they could not be stored; those that were there before hold.
            StoreFailed: the store is closed.
        """
        errors = {}
        with self._frozen(), self._mutex:
            leases = dict(self._leases)
            size = _size(leases)
            for renewal in renewals:
                old = leases.get(renewal.name)
                if old is not None and not old.owner:
                    renewal = renewal._replace(age_limit=old.age_limit, owner="")  # noqa: PLW2901
                try:
                    lease = self._checked(renewal, leases, size)
                except LeaseError as error:
                    errors[renewal.name] = error
                    continue
                leases[renewal.name] = lease
                size += _growth(lease, old)
            self._replace(leases)
        return errors

    def _checked(self, wanted: Renewal, leases: dict[str, Lease], size: int) -> Lease:
        """Return the lease that *wanted* makes of *leases*, of *size*, or raise LeaseError."""
        name, position, age_limit, owner = wanted
        if not _is_name(name):
            raise LeaseError(f"a lease's name has 1 to {NAME_CHARS_MAX} printable characters")
        if age_limit is not None and not _is_age_limit(age_limit):
            raise LeaseError(
                f"a lease expires after a number of seconds above 0 and up to "
                f"{AGE_LIMIT_SECONDS_MAX:.0f}"
            )
        if name not in leases:
            _check_room(owner, leases)
        lease = Lease(name, str(position), self._clock.now(), age_limit, owner=owner)
        _check_size(lease, leases.get(name), size)
        if not is_there(self._pages(), position):
            raise LeaseError(f"groups behind position '{position}' have been purged")
        return lease

    def remove(self, name: str) -> None:
        """
        End a lease, or take note of one that lapsed.

        Raises:
            LeaseError: there is none of this name.
            StoreFailed: the store is closed.
        """
        with self._mutex:
            if name not in self._leases:
                raise LeaseError(f"there is no lease named '{name}'")
            self._replace({key: lease for key, lease in self._leases.items() if key != name})

    def forget_history(self) -> None:
        """
        End those that have something of a history which is gone (RESET MASTER).

        Raises:
            DiskError: that could not be stored.
        """
        with self._mutex:
            left = {name: lease for name, lease in self._leases.items() if not lease.position}
            if len(left) < len(self._leases) or not self._is_stored:
                self._replace(left)

    def get(self, name: str) -> Lease | None:
        """Return one lease, None without such."""
        with self._mutex:
            return self._leases.get(name)

    def all(self) -> list[Lease]:
        """Return the leases by name, those that lapsed included."""
        with self._mutex:
            return sorted(self._leases.values())

    def lapse(self) -> list[Lease]:
        """
        Let those lapse that are too old; return those that just did.

        Raises:
            DiskError: that could not be stored.
            StoreFailed: the store is closed.
        """
        now, moment = self._clock.now(), self._clock.monotonic()
        with self._mutex:
            self._ahead = {
                (lease.name, lease.renewed_at): self._ahead.get(
                    (lease.name, lease.renewed_at), moment
                )
                for lease in self._leases.values()
                if lease.renewed_at > now
            }
            old = {
                lease.name: lease._replace(lapsed=True)
                for lease in self._leases.values()
                if not lease.lapsed and self._is_over(lease, now, moment)
            }
            if old:
                leases = {**self._leases, **old}
                leases = {name: lease for name, lease in leases.items() if not _is_done(lease)}
                try:
                    self._replace(leases)
                except DiskError as error:
                    if not error.full:
                        raise
                    # What they held must be able to go, or the disk stays full; after a restart
                    # they lapse again.
                    self._leases = leases
            return list(old.values())

    def _is_over(self, lease: Lease, now: float, moment: float) -> bool:
        """
        Tell whether a lease is too old.

        One renewed while the clock was ahead counts as renewed when that was found, by a clock
        that nobody sets: the one that tells the time may be behind now, and jump ahead again.
        """
        found = self._ahead.get((lease.name, lease.renewed_at))
        if found is None or lease.age_limit is None:
            return lease.is_over(now)
        return moment - found > lease.age_limit

    def _replace(self, leases: dict[str, Lease]) -> None:
        if self._is_closed:
            raise StoreFailed(RuntimeError("it is closed"))
        content = {"version": _VERSION, "leases": [lease._asdict() for lease in leases.values()]}
        self._is_stored = False  # a file that could not be made durable may be there all the same
        replace_small_file(self._disk, self._path, encode_checked(content, indent=1))
        self._is_stored, self._leases = True, leases


def _check_room(owner: str, leases: dict[str, Lease]) -> None:
    """Raise LeaseError if there is no room for one more."""
    if len(leases) >= LEASES_MAX:
        raise LeaseError(f"there are {LEASES_MAX} leases already")
    if owner:
        owned = [lease.owner for lease in leases.values() if lease.owner]
        if len(owned) >= OWNED_LEASES_MAX:
            raise LeaseError(f"there are {OWNED_LEASES_MAX} leases of replicas already")
        if owned.count(owner) >= LEASES_OF_OWNER_MAX:
            raise LeaseError(f"there are {LEASES_OF_OWNER_MAX} leases of its account already")


def _check_size(lease: Lease, old: Lease | None, size: int) -> None:
    """Raise LeaseError if a lease is too long, or grows where those of *size* leave no room."""
    if lease.owner and len(lease.position) > OWNED_POSITION_CHARS_MAX:
        raise LeaseError(
            f"the position of a replica's lease has {OWNED_POSITION_CHARS_MAX} characters at most"
        )
    most = OWNED_LEASES_BYTES_MAX if lease.owner else LEASES_BYTES_MAX
    growth = _growth(lease, old)
    if growth > 0 and size + growth > most:
        raise LeaseError(f"there are {size} bytes of leases already")


def _growth(lease: Lease, old: Lease | None) -> int:
    """Return how many bytes more there are once a lease has replaced the *old* one."""
    return _size_of(lease) - (0 if old is None else _size_of(old))


def _size(leases: dict[str, Lease]) -> int:
    """Return how many bytes leases have in their file, at most."""
    return sum(_size_of(lease) for lease in leases.values())


def _size_of(lease: Lease) -> int:
    texts = (lease.name, lease.position, lease.owner)
    return _FIELDS_BYTES_MAX + sum(len(json.dumps(text)) for text in texts)


def _is_done(lease: Lease) -> bool:
    """Tell whether a lease has nobody who would take note that it lapsed."""
    return lease.lapsed and bool(lease.owner)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARS_MAX and name.isprintable()


def _is_age_limit(seconds: float) -> bool:
    return 0 < seconds <= AGE_LIMIT_SECONDS_MAX


def _leases_in(text: bytes) -> dict[str, Lease]:
    """Return the leases in a file, or raise ValueError: people may have edited it."""
    content = parse_checked(text)
    listed = content.get("leases") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no list 'leases'")  # noqa: TRY004 - as whatever else is wrong with it
    if content.get("version") != _VERSION:
        raise ValueError(f"version {shortened(content.get('version'))}")
    leases = [_lease_of(fields) for fields in listed]
    return {lease.name: lease for lease in leases}


def _lease_of(fields: Any) -> Lease:
    try:
        lease = Lease(**fields)
    except TypeError as error:
        raise ValueError(f"not the fields of a lease: {shortened(fields)}") from error
    is_right = {
        "name": isinstance(lease.name, str) and _is_name(lease.name),
        "position": isinstance(lease.position, str),
        "renewed_at": _is_number(lease.renewed_at) and abs(lease.renewed_at) < _MOMENTS_END,
        "age_limit": lease.age_limit is None
        or (_is_number(lease.age_limit) and _is_age_limit(lease.age_limit)),
        "lapsed": isinstance(lease.lapsed, bool),
        "owner": isinstance(lease.owner, str),
    }
    for field, value in lease._asdict().items():
        if not is_right[field]:
            raise ValueError(f"lease {shortened(lease.name)} has {field} {shortened(value)}")
    try:
        GtidPosition.parse(lease.position)
    except SqlError as error:
        raise ValueError(f"lease {shortened(lease.name)} has a bad position: {error}") from error
    return lease


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
