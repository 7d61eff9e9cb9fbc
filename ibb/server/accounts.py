"""
Who may log in and what they may do: a TOML file of hashes, changed only as a whole.

    [[account]]
    user = "repl"
    host = "%"                      # a pattern, % and _ as in SQL; "%" where left out
    password = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9"
    grants = ["REPLICATION SLAVE"]

The password is MariaDB's form of SHA1(SHA1(password)). Source: dump-protocol 1.4.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ibb.protocol.native_password import stage2

from .config import ConfigError, read_text_file
from .like import is_like

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ACCOUNTS_FILE_BYTES_MAX: Final = 4 << 20
USER_CHARS_MAX: Final = 128
HOST_CHARS_MAX: Final = 255
PASSWORD_BYTES_MAX: Final = 1024

REPLICATION_SLAVE: Final = "REPLICATION SLAVE"
CONNECTION_ADMIN: Final = "CONNECTION ADMIN"
ALL_PRIVILEGES: Final = "ALL PRIVILEGES"

# What MariaDB 10.11 accepts in GRANT and a server of binlogs has a use for, by its own names.
PRIVILEGES: Final = frozenset(
    {
        REPLICATION_SLAVE,
        CONNECTION_ADMIN,
        ALL_PRIVILEGES,
        "BINLOG ADMIN",
        "BINLOG MONITOR",
        "BINLOG REPLAY",
        "PROCESS",
        "READ_ONLY ADMIN",
        "RELOAD",
        "REPLICATION MASTER ADMIN",
        "REPLICATION SLAVE ADMIN",
        "SHUTDOWN",
        "SUPER",
    }
)
_PRIVILEGE_ALIASES: Final = {
    "ALL": ALL_PRIVILEGES,
    "REPLICATION CLIENT": "BINLOG MONITOR",
    "REPLICATION REPLICA": REPLICATION_SLAVE,
    "REPLICATION REPLICA ADMIN": "REPLICATION SLAVE ADMIN",
}
_HASH: Final = re.compile(r"\*[0-9A-Fa-f]{40}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Account:
    """
    One account.

    Attributes:
        user: exact name.
        host: pattern for the client's address or name, `%` any characters, `_` one.
        password_hash: 20 bytes, SHA1(SHA1(password)).
        grants: MariaDB's names of privileges.
    """

    user: str
    host: str
    password_hash: bytes
    grants: frozenset[str]

    def may(self, privilege: str) -> bool:
        """Tell whether *privilege* was granted, by its name or with all."""
        return not self.grants.isdisjoint((privilege, ALL_PRIVILEGES))

    def matches(self, host: str) -> bool:
        """Tell whether the pattern covers *host*."""
        return is_like(host, self.host)


def parse_grants(text: str) -> frozenset[str]:
    """
    Read privileges separated by commas, as GRANT has them, in upper or lower case.

    Raises:
        ConfigError: one is unknown.
    """
    grants = set()
    for word in text.split(","):
        name = " ".join(word.upper().split())
        name = _PRIVILEGE_ALIASES.get(name, name)
        if name not in PRIVILEGES:
            raise ConfigError(f"unknown privilege: {word.strip()!r}")
        grants.add(name)
    return frozenset(grants)


def make_account(user: str, host: str, password: str, grants: Iterable[str]) -> Account:
    """
    Return an account with the hash of *password*.

    Raises:
        ConfigError: a name or the password is empty or too long, or a privilege is unknown.
    """
    if not password:
        raise ConfigError("an account needs a password")
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise ConfigError(f"a password has at most {PASSWORD_BYTES_MAX} bytes")
    privileges = frozenset[str]().union(*map(parse_grants, grants))
    return _checked(Account(user, host, stage2(password), privileges))


def made_up_account(user: str) -> tuple[Account, str]:
    """Return an account that may replicate from this machine, and its new random password."""
    password = secrets.token_urlsafe(18)
    return make_account(user, "localhost", password, [REPLICATION_SLAVE]), password


def _checked(account: Account) -> Account:
    if not 0 < len(account.user) <= USER_CHARS_MAX:
        raise ConfigError(f"an account's user has 1 to {USER_CHARS_MAX} characters")
    if not 0 < len(account.host) <= HOST_CHARS_MAX:
        raise ConfigError(f"an account's host has 1 to {HOST_CHARS_MAX} characters")
    if not (account.user + account.host).isprintable():
        raise ConfigError("an account's user and host are printable")
    return account


class AccountBook:
    """All accounts of a server."""

    def __init__(self, accounts: Iterable[Account] = ()) -> None:
        self._accounts = {(account.user, account.host): account for account in accounts}

    @classmethod
    def load(cls, path: str) -> AccountBook:
        """
        Read an accounts file.

        Raises:
            ConfigError: unreadable, not TOML, or an account is wrong; the message says which.
        """
        try:
            content = tomllib.loads(read_text_file(path, ACCOUNTS_FILE_BYTES_MAX))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: {error}") from error
        entries = content.pop("account", [])
        if content or not isinstance(entries, list):
            raise ConfigError(f"{path}: only [[account]] tables are known")
        accounts = [_from_table(path, number, entry) for number, entry in enumerate(entries, 1)]
        return cls(accounts)

    def save(self, path: str) -> None:
        """
        Replace the file at *path* at once and whole, readable only for its owner.

        Raises:
            OSError: the file could not be written; the old one is untouched.
        """
        target = Path(path)
        text = "\n".join(map(_as_table, self))
        with tempfile.NamedTemporaryFile(  # made with mode 0600
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8"
        ) as file:
            temporary = Path(file.name)
            try:
                file.write(text)
                file.close()
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise

    def add(self, account: Account) -> None:
        """Hold *account*, in place of one of the same user and host."""
        self._accounts[account.user, account.host] = account

    def find(self, user: str, hosts: Sequence[str]) -> Account | None:
        """
        Return the account of *user* with the most specific pattern for one of *hosts*, or None.

        Args:
            user: the name, exactly.
            hosts: address and names by which the client is known.
        """
        found = [
            account for account in self if account.user == user and any(map(account.matches, hosts))
        ]
        return min(found, key=_vagueness, default=None)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def __len__(self) -> int:
        return len(self._accounts)


def _vagueness(account: Account) -> tuple[bool, int]:
    """Return a key that is least for literal hosts, then for long beginnings before a wildcard."""
    literal = re.match(r"[^%_]*", account.host)
    assert literal is not None
    return literal.end() < len(account.host), -literal.end()


def _from_table(path: str, number: int, entry: object) -> Account:
    place = f"{path}: account {number}"
    if not isinstance(entry, dict) or set(entry) - {"user", "host", "password", "grants"}:
        raise ConfigError(f"{place}: only user, host, password and grants are known")
    user, host = entry.get("user"), entry.get("host", "%")
    password, grants = entry.get("password"), entry.get("grants", [])
    if not isinstance(user, str) or not isinstance(host, str):
        raise ConfigError(f"{place}: user and host must be strings")
    if not isinstance(password, str) or _HASH.fullmatch(password) is None:
        raise ConfigError(f"{place}: password must be * and 40 hexadecimal digits")
    if not isinstance(grants, list) or not all(isinstance(grant, str) for grant in grants):
        raise ConfigError(f"{place}: grants must be a list of strings")
    privileges = frozenset[str]().union(*map(parse_grants, grants))
    return _checked(Account(user, host, bytes.fromhex(password[1:]), privileges))


def _as_table(account: Account) -> str:
    grants = ", ".join(f'"{grant}"' for grant in sorted(account.grants))
    return (
        "[[account]]\n"
        f"user = {_toml_string(account.user)}\n"
        f"host = {_toml_string(account.host)}\n"
        f'password = "*{account.password_hash.hex().upper()}"\n'
        f"grants = [{grants}]\n"
    )


def _toml_string(text: str) -> str:
    """Return printable *text* as a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
