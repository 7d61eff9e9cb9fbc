"""
A file of settings looked at as a whole: everything that is wrong with it, by line, before a start.

It looks for what a start would refuse, one thing after the other, and has advice about what it
would not: files that others can read, accounts that nobody can log in to.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ibb.protocol.errors import IbbError

from .config import Config, ConfigError, is_loopback, parse_address
from .config_file import CONFIG_FILE_BYTES_MAX, convert, read_text_file
from .connections.certificate import KEY_FILE, server_tls
from .login.accounts import AccountBook, shut_out
from .relay.upstream_tls import UpstreamTls
from .service import store_options, upstream_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FINDINGS_MAX: Final = 100
WEB_PACKAGES: Final = ("starlette", "uvicorn", "prometheus_client")
# Files that settings name, with the bits of the mode that should not be set: a group may read them,
# as Debian's `ssl-cert` its keys.
_FILES: Final = {
    "accounts": stat.S_IRWXO,
    "ssl_cert": stat.S_IWOTH,
    "ssl_key": stat.S_IRWXO,
    "ssl_ca": stat.S_IWOTH,
    "upstream_password_file": stat.S_IRWXO,
    "upstream_ssl_ca": stat.S_IWOTH,
    "upstream_ssl_cert": stat.S_IWOTH,
    "upstream_ssl_key": stat.S_IRWXO,
}
_KEY: Final = re.compile(r"^\s*\"?([A-Za-z0-9_-]+)\"?\s*=")
_TOML_LINE: Final = re.compile(r"\(at line (\d+), column \d+\)")


class Finding(NamedTuple):
    """
    Something that is wrong.

    Attributes:
        line: of the file, from 1; of what is missing, 1.
        text: what it is, and what to do.
        is_advice: a server starts all the same.
    """

    line: int
    text: str
    is_advice: bool = False


def check_config_file(path: str) -> list[Finding]:
    """
    Return everything that is wrong with a file of settings, in the order of its lines.

    Raises:
        ConfigError: it cannot be read.
    """
    text = read_text_file(path, CONFIG_FILE_BYTES_MAX)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_LINE.search(str(error))
        line = int(found[1]) if found else len(text.splitlines())
        return [Finding(line, f"not TOML: {_TOML_LINE.sub('', str(error)).strip()}")]
    return sorted(_Check(path, text, values).findings())[:FINDINGS_MAX]


class _Check:
    def __init__(self, path: str, text: str, values: dict[str, object]) -> None:
        self._path = path
        self._values = values
        self._lines = {
            found[1]: number
            for number, line in enumerate(text.splitlines(), 1)
            if (found := _KEY.match(line))
        }

    def findings(self) -> Iterator[Finding]:
        settings: dict[str, Any] = {}
        known = {setting.name: setting for setting in fields(Config)}
        for name, value in self._values.items():
            if name not in known:
                yield self._at(name, _unknown(name, known))
                continue
            try:
                settings[name] = convert(known[name], value)
            except ConfigError as error:
                yield self._at(name, str(error))
        if "upstream_password" in settings and _mode(self._path) & (stat.S_IRWXG | stat.S_IRWXO):
            yield self._at("upstream_password", "a password stands here: chmod 600 this file")
        wrong_files = set()
        for name, forbidden in _FILES.items():
            path = settings.get(name)
            if not path:
                continue
            if trouble := _unreadable(path):
                wrong_files.add(name)
                yield self._at(name, f"{name}: {trouble}")
            elif (mode := _mode(path)) & forbidden:
                what = f"{path} is open to others (mode {mode:04o}): chmod {mode & ~forbidden:o} it"
                yield self._advice(name, f"{name}: {what}")
        config: Config | None = None
        while config is None:
            try:
                config = Config(**settings)
            except ConfigError as error:
                yield self._at(self._named_in(str(error)), str(error))
                named = [name for name in settings if re.search(rf"\b{name}\b", str(error))]
                if not named:  # whatever it is, it is told
                    return
                for name in named:  # and the rest is looked at without them
                    del settings[name]
        yield from self._of_whole(config, wrong_files)

    def _of_whole(self, config: Config, wrong_files: set[str]) -> Iterator[Finding]:
        """Yield what only all settings together, and the files that they name, can tell."""
        if not config.accounts and not is_loopback(parse_address(config.listen)[0]):
            text = f"accounts: without accounts only loopback is listened on, not {config.listen}"
            yield self._at("listen", text)
        if config.metrics_open and not config.admin_listen:
            yield self._advice("metrics_open", "metrics_open does nothing without admin_listen")
        missing = [name for name in WEB_PACKAGES if find_spec(name) is None]
        if config.admin_listen and missing:
            text = f"admin_listen needs {', '.join(missing)}: in a checkout, pip install '.[web]'"
            yield self._at("admin_listen", text)
        yield from self._of_folders(config)
        looks: list[tuple[set[str], Callable[[], object]]] = [
            ({"page_size"}, lambda: store_options(config)),
            ({"ssl_cert", "ssl_key", "ssl_ca"}, lambda: _load_tls(config)),
            (
                {"upstream_ssl_ca", "upstream_ssl_cert", "upstream_ssl_key"},
                lambda: UpstreamTls.from_config(config),
            ),
            (
                {name for name in _FILES if name.startswith("upstream")},
                lambda: upstream_address(config, UpstreamTls.from_config(config)),
            ),
        ]
        told = set()
        for names, look in looks:
            if names & wrong_files:
                continue
            try:
                look()
            except IbbError as error:
                if str(error) not in told:
                    yield self._at(self._named_in(str(error)), str(error))
                told.add(str(error))
        if config.accounts and "accounts" not in wrong_files:
            yield from self._of_accounts(config)

    def _of_folders(self, config: Config) -> Iterator[Finding]:
        folder = Path(config.socket).parent
        if config.socket and not folder.is_dir():
            text = f"socket: there is no folder {folder}: make it, if no RuntimeDirectory= does"
            yield self._advice("socket", text)
        if config.ssl_state and not (Path(config.ssl_state) / KEY_FILE).exists():
            there = Path(config.ssl_state)
            while not there.exists():
                there = there.parent
            if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
                text = f"ssl_state: cannot make {config.ssl_state}: {there} cannot be written to"
                yield self._at("ssl_state", text)

    def _of_accounts(self, config: Config) -> Iterator[Finding]:
        try:
            book = AccountBook.load(config.accounts)
        except ConfigError as error:
            yield self._at("accounts", f"accounts: {error}")
            return
        if not len(book):
            text = "accounts: nobody has one yet: see ibb account add --help"
            yield self._advice("accounts", text)
        for which in shut_out(book, config):
            yield self._advice("accounts", f"accounts: nobody can log in to {which}")

    def _named_in(self, text: str) -> str:
        """Return the first setting that *text* names and the file has."""
        words = re.findall(r"\w+", text)
        return next((word for word in words if word in self._values), "")

    def _at(self, name: str, text: str) -> Finding:
        return Finding(self._lines.get(name, 1), text)

    def _advice(self, name: str, text: str) -> Finding:
        return self._at(name, text)._replace(is_advice=True)


def _unknown(name: str, known: dict[str, Any]) -> str:
    near = difflib.get_close_matches(name.replace("-", "_"), known, 1)
    return f"unknown setting: {name}" + (f" (did you mean {near[0]}?)" if near else "")


def _unreadable(path: str) -> str:
    """Say why a file that a setting names cannot be read, "" if it can."""
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    return ""


def _mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def _load_tls(config: Config) -> None:
    if config.ssl_cert:  # what a start would make itself is not made here
        server_tls(config, "")
