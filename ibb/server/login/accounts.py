"""
Who may log in and what they may do: a TOML file of hashes, changed only as a whole.

    decoy_secret = "0f1e...."       # 64 hexadecimal digits, see `decoys`; made by `ibb account`

    [[account]]
    user = "repl"
    host = "10.0.%"                 # see `host_pattern`; "%" where left out
    grants = ["REPLICATION SLAVE"]
    require = "SSL"                 # TLS; "X509": and a certificate that ssl_ca vouches for
    max_connections = 4             # at a time; 0 or left out: no limit of its own
    dump_rate = 1048576             # bytes a second; 0 or left out: that of the server
    dump_delay = 3600               # seconds that a group must be old; the same
    dump_lease = 86400              # seconds for which history is kept for a replica; the same
    [account.auth]                  # ways to log in, tried in this order; see `auth_methods`
    ed25519 = "LIEvGDGjHTmKyz3peLRjPqahOct5n6/BQCNm1bOvot4"
    mysql_native_password = "*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9"

The strings are what MariaDB keeps in mysql.global_priv. Source: dump-protocol 1.4.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ibb.protocol.authentication import PASSWORD_BYTES_MAX
from ibb.protocol.socket_peer import METHOD_NAME as UNIX_SOCKET
from ibb.server.config import (
    Config,
    ConfigError,
    check_delay,
    check_rate,
    is_loopback,
    parse_address,
)
from ibb.server.config_file import read_text_file

from .auth_methods import DEFAULT_METHOD, METHODS
from .decoys import SECRET_BYTES, decoy_auth, outline
from .host_pattern import LOCALHOST, check_pattern, matches, vagueness
from .privileges import REPLICATION_SLAVE, allows, parse_grants
from .replaced_file import locked_folder, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ibb.server.config import Config

    from .decoys import Auth

ACCOUNTS_FILE_BYTES_MAX: Final = 4 << 20
USER_CHARS_MAX: Final = 128
ACCOUNT_CONNECTIONS_MAX: Final = 100_000

REQUIRE_NOTHING: Final = ""
REQUIRE_SSL: Final = "SSL"
REQUIRE_X509: Final = "X509"
REQUIREMENTS: Final = (REQUIRE_NOTHING, REQUIRE_SSL, REQUIRE_X509)

# Enough to replicate and to see how that goes; not to change anything.
_MADE_UP_GRANTS: Final = (
    REPLICATION_SLAVE,
    "BINLOG MONITOR",
    "PROCESS",
    "REPLICATION MASTER ADMIN",
    "SLAVE MONITOR",
)
_SECRET: Final = re.compile(f"[0-9a-fA-F]{{{2 * SECRET_BYTES}}}", re.ASCII)
_NUMBERS: Final = ("max_connections", "dump_rate", "dump_delay", "dump_lease")
_KEYS: Final = {"user", "host", "grants", "require", "auth", *_NUMBERS}


@dataclass(frozen=True, slots=True)
class Account:
    """
    One account.

    Attributes:
        user: exact name.
        host: pattern for the client's address or name.
        auth: names of methods and what they keep, in the order in which they are tried.
        grants: MariaDB's names of privileges.
        require: what the connection must have besides.
        max_connections: at a time; 0: no limit of its own.
        dump_rate: bytes a second of a dump, 0: the server's.
        dump_delay: seconds that a group must be old for a dump, 0: the server's.
        dump_lease: seconds for which a replica that has gone finds its place, 0: the server's.
    """

    user: str
    host: str
    auth: Auth
    grants: frozenset[str] = frozenset()
    require: str = REQUIRE_NOTHING
    max_connections: int = 0
    dump_rate: int = 0
    dump_delay: int = 0
    dump_lease: int = 0

    def __post_init__(self) -> None:
        if not (0 < len(self.user) <= USER_CHARS_MAX and self.user.isprintable()):
            raise ConfigError(f"an account's user has 1 to {USER_CHARS_MAX} printable characters")
        check_pattern(self.host)
        if not self.auth:
            raise ConfigError("an account needs a way to log in")
        for name, text in self.auth:
            if name not in METHODS:
                raise ConfigError(f"unknown method: {name!r} (known: {', '.join(METHODS)})")
            try:
                METHODS[name].check_text(text)
            except ValueError as error:
                raise ConfigError(f"{name}: {error}") from error
        if {name for name, _ in self.auth} == {UNIX_SOCKET} and not self.matches(LOCALHOST):
            raise ConfigError(f"by {UNIX_SOCKET} alone one comes from localhost only")
        if self.require not in REQUIREMENTS:
            raise ConfigError("require must be SSL or X509")
        if not 0 <= self.max_connections <= ACCOUNT_CONNECTIONS_MAX:
            raise ConfigError(f"max_connections must be 0 to {ACCOUNT_CONNECTIONS_MAX}")
        check_rate("dump_rate", self.dump_rate)
        check_delay("dump_delay", self.dump_delay)
        check_delay("dump_lease", self.dump_lease)

    def may(self, privilege: str) -> bool:
        """Tell whether *privilege* was granted, by its name, within SUPER, or with all."""
        return allows(self.grants, privilege)

    def matches(self, *hosts: str) -> bool:
        """Tell whether the pattern covers one of *hosts*."""
        return matches(self.host, hosts)


def make_account(
    user: str,
    host: str,
    password: str,
    grants: Iterable[str] = (),
    *,
    methods: Sequence[str] = (DEFAULT_METHOD,),
    require: str = REQUIRE_NOTHING,
    **limits: int,
) -> Account:
    """
    Return an account with what *methods* keep of *password*; unix_socket needs none.

    *limits* are an account's numbers, by their names.

    Raises:
        ConfigError: a name or the password is empty or too long, or a word is unknown.
    """
    if not password and any(name != UNIX_SOCKET for name in methods):
        raise ConfigError("an account needs a password")
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise ConfigError(f"a password has at most {PASSWORD_BYTES_MAX} bytes")
    if "\0" in password:
        raise ConfigError("a password has no NUL: clients end it there")
    auth = {}
    for name in methods:
        method = METHODS.get(name)
        if method is None:
            raise ConfigError(f"unknown method: {name!r} (known: {', '.join(METHODS)})")
        salt = secrets.token_bytes(method.salt_bytes)
        auth[name] = method.make(user if name == UNIX_SOCKET else password, salt)
    privileges = frozenset[str]().union(*map(parse_grants, grants))
    return Account(user, host, tuple(auth.items()), privileges, require, **limits)


def check_made_up_account(config: Config) -> None:
    """Raise ConfigError if others could reach a server without accounts, whose one is made up."""
    if not is_loopback(parse_address(config.listen)[0]):
        raise ConfigError(
            "without accounts only loopback (localhost, 127.0.0.1, [::1]) is listened on, "
            f"not {config.listen}"
        )


def made_up_account(user: str) -> tuple[Account, str]:
    """Return an account that may replicate from this machine, and its new random password."""
    password = secrets.token_urlsafe(18)
    return make_account(user, "localhost", password, _MADE_UP_GRANTS), password


def shut_out(accounts: Iterable[Account], config: Config) -> Iterator[str]:
    """Say, without names, which accounts nobody can log in to with these settings."""
    no_certificates = "" if config.ssl_ca else "without ssl_ca"
    no_tls = "with skip_ssl" if config.skip_ssl else ""
    for requirement, missing in (
        (REQUIRE_SSL, no_tls),
        (REQUIRE_X509, no_tls or no_certificates),
    ):
        count = sum(account.require == requirement for account in accounts)
        if count and missing:
            yield f"{count} that require {requirement}, {missing}"


class AccountBook:
    """
    All accounts of a server.

    Args:
        accounts: to begin with.
        decoy_secret: decides what users who do not exist seem to have; None makes a new one, by
            which they can be told from others once there are two of it.

    Attributes:
        secret_lasts: it was given.
    """

    def __init__(
        self, accounts: Iterable[Account] = (), *, decoy_secret: bytes | None = None
    ) -> None:
        # Not made of hashes: who sees decoys could try passwords by it, without asking us.
        self.decoy_secret = decoy_secret or secrets.token_bytes(SECRET_BYTES)
        self.secret_lasts = decoy_secret is not None
        self._accounts: dict[str, dict[str, Account]] = {}  # by user and host
        self._outlines: Counter[Auth] = Counter()
        for account in accounts:
            self.add(account)

    @classmethod
    def load(cls, path: str) -> AccountBook:
        """
        Read an accounts file.

        Raises:
            ConfigError: unreadable, not TOML, or an account is wrong; the message says which, and
                holds nothing of any hash.
        """
        try:
            content = tomllib.loads(read_text_file(path, ACCOUNTS_FILE_BYTES_MAX))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path}: {error}") from error
        entries = content.pop("account", [])
        secret = content.pop("decoy_secret", "")
        if content or not isinstance(entries, list):
            raise ConfigError(f"{path}: only decoy_secret and [[account]] tables are known")
        if secret and not (isinstance(secret, str) and _SECRET.fullmatch(secret)):
            raise ConfigError(f"{path}: decoy_secret must be {2 * SECRET_BYTES} hexadecimal digits")
        book = cls(decoy_secret=bytes.fromhex(secret) or None)
        for number, entry in enumerate(entries, 1):
            try:
                account = _from_table(entry)
            except ConfigError as error:
                raise ConfigError(f"{path}: account {number}: {error}") from error
            if account.host in book._accounts.get(account.user, ()):
                raise ConfigError(f"{path}: account {number}: its user and host were there before")
            book.add(account)
        return book

    @classmethod
    @contextmanager
    def changing(cls, path: str) -> Iterator[AccountBook]:
        """
        Give the accounts of a file, none if it is missing, and write them back in the end.

        Others who change it wait meanwhile. An exception leaves the file as it is.

        Raises:
            ConfigError, OSError, DiskError: as `load` and `save`.
        """
        with locked_folder(path):
            book = cls.load(path) if Path(path).exists() else cls()
            yield book
            book.save(path)

    def save(self, path: str) -> None:
        """
        Replace the file at *path* at once and whole; see `replace_file`.

        Raises:
            ConfigError, OSError: the file could not be written; the old one is untouched.
            DiskError: it was, but not durably.
        """
        secret = f'decoy_secret = "{self.decoy_secret.hex()}"\n'
        replace_file(path, "\n".join([secret, *map(_as_table, self)]))

    def add(self, account: Account) -> bool:
        """Hold *account*; return whether it took the place of one of the same user and host."""
        own = self._accounts.setdefault(account.user, {})
        if (old := own.get(account.host)) is not None:
            self._outlines -= Counter([outline(old.auth)])
        own[account.host] = account
        self._outlines[outline(account.auth)] += 1
        return old is not None

    def remove(self, user: str, host: str) -> bool:
        """Forget an account; return whether there was one."""
        own = self._accounts.get(user, {})
        account = own.pop(host, None)
        if account is None:
            return False
        if not own:
            del self._accounts[user]
        self._outlines -= Counter([outline(account.auth)])
        return True

    def find(self, user: str, hosts: Sequence[str]) -> Account | None:
        """
        Return the account of *user* with the most specific pattern for one of *hosts*, or None.

        A name that is none takes as long: the first user's patterns are looked at in its stead.

        Args:
            user: the name, exactly.
            hosts: address and names by which the client is known.
        """
        own = self._accounts.get(user)
        looked_at = own or next(iter(self._accounts.values()), {})
        found = [account for account in looked_at.values() if account.matches(*hosts)]
        best = min(found, key=lambda account: vagueness(account.host), default=None)
        return best if own else None

    def decoy(self, user: str) -> Auth:
        """
        Return what *user* seems to have where he has no account, always the same.

        If he has one elsewhere, it is what that seems to have: else who asks from two places could
        tell him from users who have none.
        """
        own = self._accounts.get(user)
        elsewhere = next(iter(own.values())).auth if own else None
        return decoy_auth(user, self._outlines, self.decoy_secret, elsewhere)

    def __iter__(self) -> Iterator[Account]:
        return (account for own in self._accounts.values() for account in own.values())

    def __len__(self) -> int:
        return sum(map(len, self._accounts.values()))


def _from_table(entry: object) -> Account:
    """Return the account that a TOML table describes; raises ConfigError."""
    if not isinstance(entry, dict) or set(entry) - _KEYS:
        raise ConfigError(f"only {', '.join(sorted(_KEYS))} are known")
    table: dict[str, Any] = {"host": "%", "grants": [], "require": ""} | entry
    limits = {name: table.get(name, 0) for name in _NUMBERS}
    if not isinstance(table.get("user"), str) or not isinstance(table["host"], str):
        raise ConfigError("user and host must be strings")
    auth, grants = table.get("auth", {}), table["grants"]
    if not isinstance(auth, dict) or not all(isinstance(text, str) for text in auth.values()):
        raise ConfigError("auth must be a table of strings")
    if not isinstance(grants, list) or not all(isinstance(grant, str) for grant in grants):
        raise ConfigError("grants must be a list of strings")
    if not isinstance(table["require"], str):
        raise ConfigError("require must be a string")
    if any(type(number) is not int for number in limits.values()):
        raise ConfigError(f"{', '.join(_NUMBERS)} must be numbers")
    return Account(
        table["user"],
        table["host"],
        tuple(auth.items()),
        frozenset[str]().union(*map(parse_grants, grants)),
        table["require"].upper(),
        **limits,
    )


def _as_table(account: Account) -> str:
    grants = ", ".join(f'"{grant}"' for grant in sorted(account.grants))
    lines = [
        "[[account]]",
        f"user = {_toml_string(account.user)}",
        f"host = {_toml_string(account.host)}",
        f"grants = [{grants}]",
    ]
    if account.require:
        lines.append(f'require = "{account.require}"')
    lines += (f"{name} = {getattr(account, name)}" for name in _NUMBERS if getattr(account, name))
    lines.append("[account.auth]")
    lines += (f"{name} = {_toml_string(text)}" for name, text in account.auth)
    return "\n".join(lines) + "\n"


def _toml_string(text: str) -> str:
    """Return *text* as a TOML basic string; MySQL's salts may hold control characters."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in escaped) + '"'
