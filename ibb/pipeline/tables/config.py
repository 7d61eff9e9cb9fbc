"""The configuration of a pipeline: TOML, checked key by key; errors name the key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ibb.pipeline.errors import OptionError
from ibb.pipeline.options import LEASE_SECONDS_MAX
from ibb.pipeline.purge_lease import PurgeLease

from .errors import PipelineError
from .row_changes import TableName

CONFIG_BYTES_MAX: Final = 1 << 20
PATTERNS_MAX: Final = 1000
WORKERS_MAX: Final = 64
LEASE_SECONDS: Final = 7 * 24 * 3600
PAUSE_SECONDS_MAX: Final = 86_400
BATCH_MAX: Final = 10_000_000
BATCH_MIB_MAX: Final = 1 << 16
SMALL_FILES_MAX: Final = 100_000
FILE_MIB_MAX: Final = 4096
KEEP_HOURS_MIN: Final = 168  # as Delta has it
KEEP_HOURS_MAX: Final = 24 * 366 * 100

_LEASE_OPTIONS: Final = {  # keys by the options of a Spark stream that say the same
    "lease": "name",
    "leaseUrl": "url",
    "leasePasswordFile": "password_file",
    "leasePasswordEnv": "password_env",
    "leaseTlsCa": "tls_ca",
}
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ConfigError(PipelineError):
    """A key of the configuration is wrong; the text begins with it."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{key}: {what}")
        self.key = key


@dataclass(frozen=True)
class ServerConfig:
    """
    `[server]`: the source's MariaDB, for snapshots and `ibb pipeline check`.

    Args:
        host: name or address.
        port: TCP port.
        user: an account with SELECT and RELOAD.
        socket: a unix socket in place of host and port.
        password_file: holds the password in its first line.
        workers: connections that read at a time.
        chunk_rows: rows read at a time by each.
    """

    host: str = "127.0.0.1"
    port: int = 3306
    user: str = "root"
    socket: str = ""
    password_file: str = ""
    workers: int = 2
    chunk_rows: int = 50_000


@dataclass(frozen=True)
class CompactionConfig:
    """
    `[compaction]`: what is done about the files of Delta tables between batches.

    Args:
        small_files: a table with more of them has them put together.
        file_mib: MiB that a file is to have; those with less than a quarter of it are small.
        keep_hours: files that no version of so many last hours needs are removed; None: none.
    """

    small_files: int = 50
    file_mib: int = 128
    keep_hours: int | None = None


@dataclass(frozen=True)
class PipelineConfig:
    """
    One pipeline.

    Args:
        name: under which tables store how far they are.
        source: a directory of `.ibb` files.
        target: a folder or an URL for the tables.
        format: of the tables: "delta" or "parquet".
        storage: options of the target's object store.
        include: patterns of `database.table`; `*` and `?` stand for what they do in a shell.
        exclude: the same; wins over include.
        history: patterns of the tables whose history is kept too.
        keys: primary keys in place of those that the source says.
        undecoded: "stop", or "keep" in the table of dead letters.
        batch_groups: event groups in a batch, at most.
        batch_rows: changed rows after which a batch ends with its group.
        batch_bytes: of rows events after which it does.
        batch_seconds: between batches, where the tables have everything: each batch is a commit.
        compaction: of the target's files; None: nothing is done about them.
        server: the source's MariaDB, or None.
        lease: what keeps purges from what is not applied yet, or None.
        lower_case: whether the source compares names in lower case, and so all names here are.
    """

    name: str
    source: str
    target: str
    format: str = "delta"
    storage: dict[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ("*.*",)
    exclude: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    keys: dict[TableName, tuple[str, ...]] = field(default_factory=dict)
    undecoded: str = "stop"
    batch_groups: int = 50_000
    batch_rows: int = 200_000
    batch_bytes: int = 64 << 20
    batch_seconds: int = 5
    compaction: CompactionConfig | None = None
    server: ServerConfig | None = None
    lease: PurgeLease | None = None
    lower_case: bool = False

    def in_lower_case(self) -> PipelineConfig:
        """Return the configuration for a source with lower_case_table_names of 1 or 2."""
        return replace(
            self,
            lower_case=True,
            include=tuple(pattern.lower() for pattern in self.include),
            exclude=tuple(pattern.lower() for pattern in self.exclude),
            history=tuple(pattern.lower() for pattern in self.history),
            keys={name.lower(): key for name, key in self.keys.items()},
        )

    def table_name(self, database: str, table: str) -> TableName:
        """Return the name of a table that the source spells so."""
        name = TableName(database, table)
        return name.lower() if self.lower_case else name

    def wants(self, name: TableName) -> bool:
        """Whether the table is one of the pipeline's."""
        return matches(name, self.include) and not matches(name, self.exclude)

    def keeps_history(self, name: TableName) -> bool:
        """Whether there is a history of the table beside it."""
        return self.wants(name) and matches(name, self.history)


def read_config(path: str | Path) -> PipelineConfig:
    """
    Read the configuration file at *path*; relative paths in it begin at its folder.

    Raises:
        ConfigError: a key is missing, unknown or wrong.
        PipelineError: the file cannot be read, or is not TOML.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
        if len(data) > CONFIG_BYTES_MAX:
            raise PipelineError(f"{path} is longer than {CONFIG_BYTES_MAX} bytes")
        values = tomllib.loads(data.decode())
    except OSError as error:
        raise PipelineError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise PipelineError(f"{path}: {error}") from error
    return parse_config(values, Path(path).parent)


def parse_config(values: dict[str, Any], folder: Path) -> PipelineConfig:
    """
    Return the configuration that *values* say.

    Args:
        values: what TOML gave.
        folder: where relative paths begin.

    Raises:
        ConfigError: a key is missing, unknown or wrong.
    """
    top = _Section(
        "",
        values,
        {"pipeline", "source", "target", "tables", "batch", "compaction", "server", "lease"},
    )
    about = top.section("pipeline", {"name"})
    source = top.section("source", {"path"})
    target = top.section("target", {"path", "format", "storage"})
    tables = top.section("tables", {"include", "exclude", "history", "keys", "undecoded"})
    batch = top.section("batch", {"groups", "rows", "mib", "seconds"})
    name = about.text("name", "ibb")
    if not _NAME.fullmatch(name):
        raise ConfigError("pipeline.name", "1 to 64 letters, digits, '_', '.' and '-' are allowed")
    undecoded = tables.text("undecoded", "stop")
    if undecoded not in ("stop", "keep"):
        raise ConfigError("tables.undecoded", f"'{undecoded}' is neither stop nor keep")
    kind, history = target.text("format", "delta"), tables.patterns("history", ())
    if kind not in ("delta", "parquet"):
        raise ConfigError("target.format", f"'{kind}' is neither delta nor parquet")
    return PipelineConfig(
        name=name,
        source=_place(source.text("path"), folder),
        target=_place(target.text("path"), folder),
        format=kind,
        storage=target.texts_by_name("storage"),
        include=tables.patterns("include", ("*.*",)),
        exclude=tables.patterns("exclude", ()),
        history=history,
        keys=_keys(tables),
        undecoded=undecoded,
        batch_groups=batch.number("groups", 50_000, BATCH_MAX),
        batch_rows=batch.number("rows", 200_000, BATCH_MAX),
        batch_bytes=batch.number("mib", 64, BATCH_MIB_MAX) << 20,
        batch_seconds=batch.number("seconds", 5, PAUSE_SECONDS_MAX),
        compaction=_compaction(top, kind) if "compaction" in values else None,
        server=_server(top, folder) if "server" in values else None,
        lease=_lease(top, name, folder) if "lease" in values else None,
    )


class _Section:
    """A table of the file; takes known keys out of it and names those that are wrong."""

    def __init__(self, name: str, values: Any, known: set[str]) -> None:
        self._prefix = f"{name}." if name else ""
        if not isinstance(values, dict):
            raise ConfigError(name, "is a table: write it as [" + name + "]")
        self._values = values
        for key in values:
            if key not in known:
                close = get_close_matches(key, known, 1)
                hint = f": did you mean {self._prefix}{close[0]}?" if close else ""
                raise ConfigError(f"{self._prefix}{key}", f"there is no such key{hint}")

    def section(self, name: str, known: set[str]) -> _Section:
        return _Section(f"{self._prefix}{name}", self._values.get(name, {}), known)

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        value = self._values.get(key, default)
        if value is None:
            raise ConfigError(f"{self._prefix}{key}", "is missing")
        if not isinstance(value, str) or not (value or default == ""):
            raise ConfigError(f"{self._prefix}{key}", "is a text that is not empty")
        return value

    def number(self, key: str, default: int, most: int) -> int:
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ConfigError(f"{self._prefix}{key}", f"is a whole number from 1 to {most}")
        return value

    def texts(self, key: str, value: Any) -> tuple[str, ...]:
        is_list = isinstance(value, list) and all(isinstance(item, str) and item for item in value)
        if not is_list or len(value) > PATTERNS_MAX:
            raise ConfigError(f"{self._prefix}{key}", f"is a list of at most {PATTERNS_MAX} texts")
        return tuple(value)

    def patterns(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        patterns = self.texts(key, self._values.get(key, list(default)))
        for pattern in patterns:
            if pattern.count(".") != 1 or pattern.startswith(".") or pattern.endswith("."):
                raise ConfigError(f"{self._prefix}{key}", f"'{pattern}' is not database.table")
        return patterns

    def texts_by_name(self, key: str) -> dict[str, str]:
        value = self._values.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            raise ConfigError(f"{self._prefix}{key}", "is a table of texts")
        return dict(value)

    def items(self, key: str) -> list[tuple[str, Any]]:
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise ConfigError(f"{self._prefix}{key}", "is a table")
        return list(value.items())


def _keys(tables: _Section) -> dict[TableName, tuple[str, ...]]:
    keys = {}
    for name, columns in tables.items("keys"):
        database, dot, table = name.partition(".")
        if not (database and dot and table):
            raise ConfigError(f"tables.keys.{name}", "is not database.table: write it in quotes")
        keys[TableName(database, table)] = tables.texts(f"keys.{name}", columns)
    return keys


def _compaction(top: _Section, kind: str) -> CompactionConfig:
    section = top.section("compaction", {"small_files", "file_mib", "keep_hours"})
    if kind != "delta":
        raise ConfigError(
            "compaction", "is for Delta tables: Parquet files are put together anyway"
        )
    keep_hours = section.number("keep_hours", KEEP_HOURS_MAX, KEEP_HOURS_MAX)
    if keep_hours < KEEP_HOURS_MIN:
        raise ConfigError(
            "compaction.keep_hours",
            f"is at least {KEEP_HOURS_MIN}, a week: readers at work, and as-of, need the files",
        )
    return CompactionConfig(
        section.number("small_files", 50, SMALL_FILES_MAX),
        section.number("file_mib", 128, FILE_MIB_MAX),
        keep_hours if section.has("keep_hours") else None,
    )


def _server(top: _Section, folder: Path) -> ServerConfig:
    known = {item.name for item in fields(ServerConfig)}
    server = top.section("server", known)
    password_file = server.text("password_file", "")
    return ServerConfig(
        host=server.text("host", "127.0.0.1"),
        port=server.number("port", 3306, 65535),
        user=server.text("user", "root"),
        socket=server.text("socket", ""),
        password_file=str(folder / password_file) if password_file else "",
        workers=server.number("workers", 2, WORKERS_MAX),
        chunk_rows=server.number("chunk_rows", 50_000, BATCH_MAX),
    )


def _lease(top: _Section, name: str, folder: Path) -> PurgeLease:
    section = top.section("lease", set(_LEASE_OPTIONS.values()) | {"seconds"})
    given = {
        option: section.text(key, name if key == "name" else "")
        for option, key in _LEASE_OPTIONS.items()
    }
    given |= {
        option: str(folder / given[option])
        for option in ("leasePasswordFile", "leaseTlsCa")
        if given[option]
    }
    seconds = section.number("seconds", LEASE_SECONDS, LEASE_SECONDS_MAX)
    try:
        lease = PurgeLease.parse(given.__getitem__, seconds, None)
    except OptionError as error:
        raise lease_error(error) from error
    assert lease is not None  # it has a name
    return lease


def lease_error(error: OptionError) -> ConfigError:
    """Return the error of a lease's option as one of the key that said it."""
    what = str(error).partition(": ")[2]
    for option, key in _LEASE_OPTIONS.items():
        what = re.sub(rf"\b{option}\b", f"lease.{key}", what) if key != "name" else what
    return ConfigError(f"lease.{_LEASE_OPTIONS.get(error.name, error.name)}", what)


def _place(text: str, folder: Path) -> str:
    return text if urlsplit(text).scheme else str(folder / text)


def matches(name: TableName, patterns: tuple[str, ...]) -> bool:
    """Whether *name* fits one of *patterns*."""
    return any(fnmatchcase(str(name), pattern) for pattern in patterns)
