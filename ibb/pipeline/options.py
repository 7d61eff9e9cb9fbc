"""Options of the Spark data source: texts to checked values. Errors name the option."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.rows.value_policy import BadText, NoDates, Times, Unknown, ValuePolicy

from .errors import OptionError
from .option_table import OPTIONS
from .purge_lease import PurgeLease
from .server_address import ServerAddress

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum

MODES: Final = ("groups", "events", "changes", "table")
IMAGES: Final = ("after", "both")
OPS: Final = ("insert", "update", "delete")
PARTITIONS_MAX: Final = 100_000
TRIGGER_GROUPS_MAX: Final = 10**15
LEASE_SECONDS_MAX: Final = 100 * 365 * 24 * 3600
NAMES_MAX: Final = 10_000  # in a list
EARLIEST: Final = "earliest"
LATEST: Final = "latest"

_SIZE: Final = re.compile(r"(\d{1,15})\s*([kmgt]?)b?", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_DOMAIN_MAX: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """
    What a read was asked for.

    Attributes:
        paths: as given, one entry each; none with a server.
        server: that is read, or None.
        mode: one of `MODES`.
        table: (database, name) in mode table, else None.
        images: one of `IMAGES`.
        columns: names as given; empty: all.
        start: `EARLIEST`, `LATEST` or a position: groups behind it.
        end: `LATEST` or a position: nothing behind it.
        since: seconds since 1970; groups from then on, in files that begin about then or later.
        before: seconds since 1970; groups up to there, in files that begin about then or earlier.
        filtered_since: as *since*, by a filter: wherever the groups are.
        filtered_before: as *before*, in the same way.
        databases: events of these only; empty: of all.
        tables: (database, table) pairs; empty: all.
        ops: changes of these kinds; empty: all.
        keeps: tables of engines that cannot roll back; None: nobody has said.
        allow_statements: pass over changes that are not rows.
        schema_file: path of one, or empty.
        schema_history: follow the statements that define tables.
        schema_server: that says what tables are, or None.
        schema_unchanged: it says so for rows of before, too.
        policy: for values without an exact counterpart.
        domains: of GTIDs; empty: all.
        partitions_min: wanted partitions.
        partition_bytes_max: size of one in the files.
        event_bytes_max: of an event whose bytes are shown.
        trigger_groups_max: in a micro-batch, or None.
        trigger_bytes_max: in a micro-batch, or None.
        fail_on_data_loss: stop when groups were purged unread.
        lease: of a stream, or None.
    """

    paths: tuple[str, ...]
    server: ServerAddress | None
    mode: str
    table: tuple[str, str] | None
    images: str
    columns: tuple[str, ...]
    start: str
    end: str
    since: float | None
    before: float | None
    filtered_since: float | None
    filtered_before: float | None
    databases: frozenset[str]
    tables: frozenset[tuple[str, str]]
    ops: frozenset[str]
    keeps: frozenset[tuple[str, str]] | None
    allow_statements: bool
    schema_file: str
    schema_history: bool
    schema_server: ServerAddress | None
    schema_unchanged: bool
    policy: ValuePolicy
    domains: frozenset[int]
    partitions_min: int
    partition_bytes_max: int
    event_bytes_max: int
    trigger_groups_max: int | None
    trigger_bytes_max: int | None
    fail_on_data_loss: bool
    lease: PurgeLease | None

    @property
    def times(self) -> tuple[float | None, float | None]:
        """Of groups that count: committed at the first or later, and before the second."""
        since = [time for time in (self.since, self.filtered_since) if time is not None]
        before = [time for time in (self.before, self.filtered_before) if time is not None]
        return max(since, default=None), min(before, default=None)

    @property
    def has_changes(self) -> bool:
        """Whether rows are changed rows, for which schemas matter."""
        return self.mode in ("changes", "table")

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> SourceOptions:
        """
        Read the options of a Spark read; names in any case.

        Raises:
            OptionError: unknown, missing or wrong; it names the option.
        """
        texts = _Texts(given)
        server = ServerAddress.parse(texts.text)
        mode = _mode(texts)
        lease_seconds = texts.number("leaseSeconds", 1, LEASE_SECONDS_MAX)
        return cls(
            paths=_paths(texts, server),
            server=server,
            mode=mode,
            table=_table("table", texts.text("table")) if texts.text("table") else None,
            images=texts.choice("images", IMAGES),
            columns=tuple(texts.names("columns")),
            start=texts.position("startingGtid", (EARLIEST, LATEST)),
            end=texts.position("endingGtid", (LATEST,)),
            since=texts.time("startingTime"),
            before=texts.time("endingTime"),
            filtered_since=None,
            filtered_before=None,
            databases=frozenset(texts.names("databases")),
            tables=frozenset(_table("tables", name) for name in texts.names("tables")),
            ops=frozenset(_op(name) for name in texts.names("ops")),
            keeps=_keeps(texts),
            allow_statements=texts.flag("allowStatements"),
            schema_file=texts.text("schemaFile"),
            schema_history=texts.flag("schemaHistory"),
            schema_server=ServerAddress.parse(texts.text, "schema"),
            schema_unchanged=texts.flag("schemaUnchanged"),
            policy=_policy(texts, mode),
            domains=frozenset(_domain(name) for name in texts.names("domains")),
            partitions_min=texts.number("minPartitions", 1, PARTITIONS_MAX),
            partition_bytes_max=texts.size("maxPartitionBytes"),
            event_bytes_max=texts.size("maxEventBytes"),
            trigger_groups_max=(
                texts.number("maxGroupsPerTrigger", 1, TRIGGER_GROUPS_MAX)
                if texts.text("maxGroupsPerTrigger")
                else None
            ),
            trigger_bytes_max=(
                texts.size("maxBytesPerTrigger") if texts.text("maxBytesPerTrigger") else None
            ),
            fail_on_data_loss=texts.flag("failOnDataLoss"),
            lease=PurgeLease.parse(texts.text, lease_seconds, server),
        )


class _Texts:
    """The texts of the options, by documented name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {name.lower(): name for name in OPTIONS}
        self._texts: dict[str, str] = {}
        for key, value in given.items():
            name = known.get(key.lower())
            if name is None:
                close = get_close_matches(key.lower(), known, 1)
                hint = f": did you mean {known[close[0]]}?" if close else ", see docs/spark.md"
                raise OptionError(key, f"there is no such option{hint}")
            self._texts[name] = str(value).strip()

    def text(self, name: str) -> str:
        return self._texts.get(name) or OPTIONS[name].default

    def is_given(self, name: str) -> bool:
        return bool(self._texts.get(name))

    def choice(self, name: str, values: tuple[str, ...]) -> str:
        text = self.text(name).lower()
        if text not in values:
            raise OptionError(name, f"'{text}' is none of {', '.join(values)}")
        return text

    def names(self, name: str) -> list[str]:
        names = [part.strip() for part in self.text(name).split(",") if part.strip()]
        if len(names) > NAMES_MAX:
            raise OptionError(name, f"more than {NAMES_MAX} names")
        return names

    def position(self, name: str, words: tuple[str, ...]) -> str:
        text = self.text(name)
        if text.lower() in words:
            return text.lower()
        try:
            return str(GtidPosition.parse(text))
        except SqlError as error:
            wanted = " or ".join((*words, "a GTID list such as 0-1-100,7-1-5"))
            raise OptionError(name, f"'{text}' is not {wanted}") from error

    def time(self, name: str) -> float | None:
        text = self.text(name)
        if not text:
            return None
        try:
            seconds = float(text)  # since 1970
        except ValueError:
            seconds = _seconds_of(name, text)
        if not math.isfinite(seconds):
            raise OptionError(name, f"'{text}' is no moment")
        return seconds

    def number(self, name: str, least: int, most: int) -> int:
        text = self.text(name)
        if not text.isascii() or not text.isdigit() or not least <= int(text[:19]) <= most:
            raise OptionError(name, f"'{text}' is not a whole number from {least} to {most}")
        return int(text)

    def size(self, name: str) -> int:
        text = self.text(name)
        match = _SIZE.fullmatch(text)
        size = 0 if match is None else int(match[1]) * _UNITS[match[2].lower()]
        if not size:
            raise OptionError(name, f"'{text}' is not a size such as 1048576, 512k or 64m")
        return size

    def flag(self, name: str) -> bool:
        return self.choice(name, ("true", "false")) == "true"


def _paths(texts: _Texts, server: ServerAddress | None) -> tuple[str, ...]:
    paths = tuple(texts.names("path"))
    if not paths and server is None:
        meaning = OPTIONS["path"].meaning
        raise OptionError("path", f"missing: {meaning}; or option url, a server")
    if paths and server is not None:
        raise OptionError("url", "either path or url: one of them is read")
    return paths


def _table(option: str, name: str) -> tuple[str, str]:
    database, dot, table = name.partition(".")
    if not database or not dot or not table:
        raise OptionError(option, f"'{name}' is not database.table")
    return database, table


def _keeps(texts: _Texts) -> frozenset[tuple[str, str]] | None:
    names = texts.names("nonTransactional")
    if not names:
        return None
    if [name.lower() for name in names] == ["none"]:
        return frozenset()
    return frozenset(_table("nonTransactional", name) for name in names)


def _mode(texts: _Texts) -> str:
    named = bool(texts.text("table"))
    mode = "table" if named and not texts.is_given("mode") else texts.choice("mode", MODES)
    if named != (mode == "table"):
        raise OptionError("table", "it goes with mode table, or without option mode")
    return mode


def _policy(texts: _Texts, mode: str) -> ValuePolicy:
    """Return what becomes of values without an exact counterpart; mode changes has texts."""
    as_texts = mode == "changes"

    def chosen(name: str, kinds: type[StrEnum], default: StrEnum) -> Any:
        return kinds(texts.choice(name, tuple(kinds)) if texts.is_given(name) else default)

    return ValuePolicy(
        no_dates=chosen("noDates", NoDates, NoDates.TEXT if as_texts else NoDates.NULL),
        times=chosen("times", Times, Times.TEXT if as_texts else Times.DURATION),
        bad_text=chosen("badText", BadText, BadText.ERROR),
        unknown=chosen("unknownColumns", Unknown, Unknown.ERROR),
    )


def _op(name: str) -> str:
    if name.lower() not in OPS:
        raise OptionError("ops", f"'{name}' is none of {', '.join(OPS)}")
    return name.lower()


def _domain(name: str) -> int:
    if not name.isascii() or not name.isdigit() or int(name[:11]) > _DOMAIN_MAX:
        raise OptionError("domains", f"'{name}' is not a GTID domain")
    return int(name)


def _seconds_of(name: str, text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise OptionError(name, f"'{text}' is not a time such as 2026-01-31T12:00:00Z") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
