"""
Settings and limits of the server, frozen; one name in TOML, on the command line and in Python.

Sizes are bytes and may be written as MariaDB writes them (`1M`), times are seconds. The field's
metadata hold its one-line help, its unit, and where it may be written; `ibb serve --help` is made
from them.
"""

from __future__ import annotations

import ipaddress
import zlib
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ibb.protocol.errors import IbbError

from .addresses import overlap

DEFAULT_PORT: Final = 3307
ADMIN_PORT: Final = 8307
ADMIN_CONNECTIONS_MAX: Final = 128  # to the admin's port, whether or not they have logged in
SERVER_VERSION_DEFAULT: Final = "10.11.99-MariaDB-ibb"
SERVER_ID_MAX: Final = 2**32 - 1
DERIVED_SERVER_ID_BIT: Final = 1 << 31  # people number their servers from 1 up: stay above
STREAM_NAME: Final = "ibb-bin.000001"  # the file that every stream says it comes from
LOGIN_PACKET_BYTES_MAX: Final = 16 << 10  # a handshake response with its connection attributes
EXPIRE_SECONDS_MAX: Final = 99 * 86_400  # as MariaDB's
TOTAL_SIZE_MAX: Final = 2**64 - 1  # bytes
SEMI_SYNC_TIMEOUT_MS_MAX: Final = 2**32 - 1  # 49 days, as MariaDB's
BATCH_BYTES: Final = 256 << 10  # framed bytes that a dump encodes and writes at a time
FIRST_BATCH_BYTES: Final = 16 << 10  # the same of the first one: who seeks waits for it
SHARED_BYTES_MAX: Final = 32 << 20  # packets kept for readers that follow one another
TAIL_BYTES: Final = 64 << 10  # framed bytes made at a time for the readers that have all else
BATCH_GROUPS_MAX: Final = 8192  # groups looked at for one batch, most of them perhaps skipped
WRITE_BUFFER_BYTES: Final = 256 << 10  # unsent bytes of a connection above which its writer waits
END_GRACE_SECONDS: Final = 5.0  # for the last packets of a connection that the server ends
INGEST_BYTES_MAX: Final = 8 << 20  # received upstream bytes that wait for the storage thread
CLIENT_NAME: Final = "ibb"  # what a relay calls itself
READ_BYTES: Final = 256 << 10  # one read from an upstream

_SIZE_SUFFIXES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

DUMP_RATE_MIN: Final = 64 << 10  # so that a batch takes a few seconds at most
RATE_MAX: Final = 1 << 50  # bytes a second

assert BATCH_BYTES <= INGEST_BYTES_MAX
assert len(STREAM_NAME) < 512  # replicas refuse longer names
assert STREAM_NAME.rpartition(".")[2].isdigit()  # drivers read the number


class ConfigError(IbbError):
    """A setting is wrong; the message names it."""


def _setting(default: Any, help_text: str, *, unit: str = "", **metadata: Any) -> Any:
    return field(default=default, metadata={"help": help_text, "unit": unit, **metadata})


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """
    All settings of `ibb serve`; see each field's help.

    Raises:
        ConfigError: a value is outside its bounds, or two settings exclude each other.
    """

    listen: str = _setting("127.0.0.1:3307", "Address to listen on, HOST:PORT; port 0 picks one.")
    socket: str = _setting("", "Unix socket to listen on as well.")
    accounts: str = _setting("", "File of accounts, made by `ibb account`.")
    skip_ssl: bool = _setting(False, "Offer no TLS.")
    ssl_cert: str = _setting(
        "", "Certificate for TLS, PEM, its chain behind it; empty: one that signs itself."
    )
    ssl_key: str = _setting("", "Key of the certificate, PEM.")
    ssl_ca: str = _setting("", "Certificates that vouch for clients' certificates, PEM.")
    ssl_state: str = _setting(
        "", "Folder that keeps the self-signed certificate; empty: a new one at each start."
    )
    tls_version: str = _setting(
        "TLSv1.2,TLSv1.3", "Versions of TLS.", choices=("TLSv1.2,TLSv1.3", "TLSv1.3")
    )
    require_tls: bool = _setting(False, "Let nobody log in without TLS, but by unix socket.")
    server_id: int = _setting(0, "Replication server id; 0 derives one from host and directory.")
    server_version: str = _setting(SERVER_VERSION_DEFAULT, "Version that clients are told.")
    read_only: bool = _setting(False, "Serve files that another program writes.")
    follow_unsynced: bool = _setting(
        False,
        "With read_only: serve also what that program may not have synced yet.",
    )
    upstream: str = _setting("", "Relay from this primary: mariadb://USER@HOST:PORT.")
    upstream_password_file: str = _setting("", "File that holds the upstream's password.")
    upstream_password: str = _setting("", "The upstream's password.", file_only=True)
    upstream_ssl: str = _setting(
        "prefer",
        "TLS towards the upstream.",
        choices=("off", "prefer", "verify", "unverified"),
    )
    upstream_ssl_ca: str = _setting("", "Certificates that vouch for the upstream's, PEM.")
    upstream_ssl_fp: str = _setting("", "SHA-256 of the upstream's certificate, hexadecimal.")
    upstream_ssl_cert: str = _setting("", "Our certificate for the upstream, PEM.")
    upstream_ssl_key: str = _setting("", "Key of our certificate, PEM.")
    gtid_strict_mode: bool = _setting(
        False,
        "Stop the relay at a GTID that is not above its domain's newest.",
    )
    skip_incidents: bool = _setting(
        False,
        "Let the relay go on behind events that the upstream says to have lost.",
    )
    max_binlog_size: int = _setting(1 << 30, "Size of a binlog file.", unit="bytes")
    page_size: int = _setting(16 << 10, "Page size of new binlog files.", unit="bytes")
    state_interval: int = _setting(2 << 20, "Distance of GTID state records.", unit="bytes")
    binlog_expire_logs_seconds: int = _setting(
        0, "Age at which binlog files go by themselves; 0: never."
    )
    expire_logs_days: float = _setting(
        0.0, "The same in days of 86400 seconds, with decimals; set one of them."
    )
    max_binlog_total_size: int = _setting(
        0, "Size of all binlog files above which the oldest go by themselves; 0: any.", unit="bytes"
    )
    slave_connections_needed_for_purge: int = _setting(
        1, "Connected replicas that must have got past a file before it goes by itself."
    )
    flush_log_at_commit: int = _setting(
        1,
        "What a relay waits for: 1 that groups are durable, 2 that the system has them, 0 nothing.",
    )
    flush_log_interval: float = _setting(
        1.0, "Seconds between syncs, with flush_log_at_commit 0 or 2."
    )
    rpl_semi_sync_master_enabled: bool = _setting(
        False,
        "Commits return when a semi-synchronous replica has them.",
    )
    rpl_semi_sync_master_timeout: int = _setting(
        10_000,
        "Milliseconds that a commit waits before waiting is switched off for a while.",
    )
    rpl_semi_sync_master_wait_no_slave: bool = _setting(
        True,
        "Wait also while no semi-synchronous replica is connected.",
    )
    rpl_semi_sync_slave_enabled: bool = _setting(
        False,
        "Acknowledge to the upstream what is synced here.",
    )
    max_connections: int = _setting(512, "Connections at a time.")
    max_user_connections: int = _setting(
        0, "Connections of one account at a time; 0: no limit but max_connections."
    )
    max_connections_per_address: int = _setting(
        0, "Connections from one address at a time; 0: no limit but max_connections."
    )
    max_logins_per_address: int = _setting(
        128, "Connections from one address that have not logged in yet."
    )
    max_connect_errors: int = _setting(
        100, "Failed logins of an address before it is blocked for a while."
    )
    connect_timeout: float = _setting(10.0, "Seconds that a login may take.")
    wait_timeout: float = _setting(28800.0, "Seconds that a session may be idle.")
    interactive_timeout: float = _setting(28800.0, "The same where a person types statements.")
    net_write_timeout: float = _setting(60.0, "Seconds that a client may refuse to read.")
    max_allowed_packet: int = _setting(1 << 20, "Largest command of a client.", unit="bytes")
    dump_rate: int = _setting(0, "Bytes a second for each reader; 0: no limit.", unit="bytes")
    dump_rate_total: int = _setting(
        0, "Bytes a second for all readers together; 0: no limit.", unit="bytes"
    )
    dump_delay: int = _setting(0, "Seconds that a group must be old before readers get it.")
    dump_lease: int = _setting(
        0, "Seconds for which a replica that has gone finds what it needs; 0: not kept for it."
    )
    dump_threads: int = _setting(4, "Threads that read and encode for dumps at a time.")
    poll_interval: float = _setting(0.1, "Seconds between looks at files others write.")
    master_heartbeat_period: float = _setting(10.0, "Seconds between upstream's heartbeats.")
    slave_net_timeout: float = _setting(30.0, "Seconds of upstream's silence before reconnecting.")
    master_connect_retry: float = _setting(60.0, "Longest wait in seconds between connects.")
    admin_listen: str = _setting(
        "", "Address of the web page for administrators, HOST:PORT; needs the extra `web`."
    )
    metrics_open: bool = _setting(
        False, "Let everybody have /metrics of the admin's port, not this machine alone."
    )
    log_level: str = _setting(
        "info", "Least level to log.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", "Shape of log lines.", choices=("text", "json"))

    def __post_init__(self) -> None:
        _address_of("listen", self.listen, DEFAULT_PORT)
        self._check_admin_listen()
        _check(0 <= self.server_id <= SERVER_ID_MAX, "server_id must be 1 to 4294967295")
        _check(bool(self.server_version), "server_version must not be empty")
        _check(
            self.server_version.isascii() and self.server_version.isprintable(),
            "server_version must be printable ASCII",
        )
        _check(len(self.server_version) < 50, "server_version must be under 50 bytes")
        _check(not (self.read_only and self.upstream), "upstream and read_only exclude each other")
        _check(self.read_only or not self.follow_unsynced, "follow_unsynced needs read_only")
        _check(self.flush_log_at_commit in (0, 1, 2), "flush_log_at_commit must be 0, 1 or 2")
        _check(
            0 <= self.rpl_semi_sync_master_timeout <= SEMI_SYNC_TIMEOUT_MS_MAX,
            "rpl_semi_sync_master_timeout must be 0 to 4294967295",
        )
        _check(1 <= self.max_connections <= 100_000, "max_connections must be 1 to 100000")
        _check(
            0 <= self.max_user_connections <= 100_000, "max_user_connections must be 0 to 100000"
        )
        _check(
            0 <= self.max_connections_per_address <= 100_000,
            "max_connections_per_address must be 0 to 100000",
        )
        _check(
            1 <= self.max_logins_per_address <= 100_000,
            "max_logins_per_address must be 1 to 100000",
        )
        _check(
            1 <= self.max_connect_errors <= 1 << 32, "max_connect_errors must be 1 to 4294967296"
        )
        _check(bool(self.ssl_cert) == bool(self.ssl_key), "ssl_cert and ssl_key belong together")
        _check(
            bool(self.upstream_ssl_cert) == bool(self.upstream_ssl_key),
            "upstream_ssl_cert and upstream_ssl_key belong together",
        )
        _check(not (self.ssl_cert and self.ssl_state), "ssl_state is for no ssl_cert")
        _check(
            not (self.skip_ssl and self.require_tls), "require_tls and skip_ssl exclude each other"
        )
        self._check_purge()
        for name in ("dump_rate", "dump_rate_total"):
            check_rate(name, getattr(self, name))
        check_delay("dump_delay", self.dump_delay)
        check_delay("dump_lease", self.dump_lease)
        _check(1 <= self.dump_threads <= 64, "dump_threads must be 1 to 64")
        _check(
            1024 <= self.max_allowed_packet <= 1 << 30,
            "max_allowed_packet must be 1K to 1G",
        )
        for name in _SECONDS:
            _check(
                0 < getattr(self, name) <= 31_536_000, f"{name} must be above 0 and below a year"
            )
        _check(
            self.master_heartbeat_period < self.slave_net_timeout,
            "master_heartbeat_period must be below slave_net_timeout",
        )
        for setting in fields(self):
            choices = setting.metadata.get("choices")
            if choices:
                _check(
                    getattr(self, setting.name) in choices,
                    f"{setting.name} must be one of {', '.join(choices)}",
                )

    def _check_admin_listen(self) -> None:
        if self.admin_listen:
            address = _address_of("admin_listen", self.admin_listen, ADMIN_PORT)
            host, is_apart = address[0], not overlap(address, parse_address(self.listen))
            _check(is_apart, "admin_listen and listen are the same address, or one has both")
            _check(
                is_loopback(host) or bool(self.ssl_cert or self.ssl_state) or self.skip_ssl,
                f"admin_listen: passwords would go over {host} as plain text: set ssl_cert or "
                "ssl_state, listen on 127.0.0.1, or set skip_ssl if something before it encrypts",
            )

    def _check_purge(self) -> None:
        seconds, days = self.binlog_expire_logs_seconds, self.expire_logs_days
        _check(
            0 <= seconds <= EXPIRE_SECONDS_MAX,
            f"binlog_expire_logs_seconds must be 0 to {EXPIRE_SECONDS_MAX}",
        )
        _check(0 <= days <= EXPIRE_SECONDS_MAX / 86_400, "expire_logs_days must be 0 to 99")
        _check(
            not (seconds and days),
            "binlog_expire_logs_seconds and expire_logs_days say the same: set one of them",
        )
        _check(
            0 <= self.max_binlog_total_size <= TOTAL_SIZE_MAX,
            f"max_binlog_total_size must be 0 to {TOTAL_SIZE_MAX}",
        )
        _check(
            0 <= self.slave_connections_needed_for_purge <= SERVER_ID_MAX,
            "slave_connections_needed_for_purge must be 0 to 4294967295",
        )
        _check(
            not (self.read_only and (seconds or days or self.max_binlog_total_size)),
            "with read_only the files are another program's: no purge setting can be",
        )

    @property
    def expire_seconds(self) -> int:
        """Age in seconds at which files go by themselves, whichever way it was written."""
        return self.binlog_expire_logs_seconds or int(self.expire_logs_days * 86_400)


_SECONDS: Final = (
    "flush_log_interval",
    "connect_timeout",
    "wait_timeout",
    "interactive_timeout",
    "net_write_timeout",
    "poll_interval",
    "master_heartbeat_period",
    "slave_net_timeout",
    "master_connect_retry",
)


def check_rate(name: str, rate: int) -> None:
    """Raise ConfigError unless *rate*, in bytes a second, is 0 for none or within the bounds."""
    _check(
        rate == 0 or DUMP_RATE_MIN <= rate <= RATE_MAX,
        f"{name} must be 0 or at least {DUMP_RATE_MIN >> 10}K",
    )


def check_delay(name: str, seconds: int) -> None:
    """Raise ConfigError unless *seconds* are 0 to a year."""
    _check(0 <= seconds <= 31_536_000, f"{name} must be 0 to 31536000 seconds")


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigError(message)


def parse_size(text: str) -> int:
    """
    Read a size in bytes: digits and perhaps K, M, G or T, powers of 1024.

    Raises:
        ConfigError: it is anything else.
    """
    digits = text.strip().upper()
    factor = _SIZE_SUFFIXES.get(digits[-1:], 1)
    if factor > 1:
        digits = digits[:-1]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise ConfigError(f"not a size: {text!r} (write 512, 16K, 1M, 1G)")
    return int(digits) * factor


def size_text(size: int) -> str:
    """Return *size* as `parse_size` reads it, in the largest unit that divides it."""
    for suffix, factor in sorted(_SIZE_SUFFIXES.items(), key=lambda unit: -unit[1]):
        if size and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def parse_address(text: str, port_default: int = DEFAULT_PORT) -> tuple[str, int]:
    """
    Read `HOST:PORT`, `HOST`, or `[V6ADDRESS]:PORT`.

    Raises:
        ConfigError: it is anything else.
    """
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(port_default)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"write an IPv6 address in brackets: {text!r}")
    if host.isdigit() and not colon:  # the system would take it for an IPv4 address in one number
        raise ConfigError(f"not an address: {text!r} (write HOST:PORT, e.g. 127.0.0.1:{host})")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > 5 or int(port) > 0xFFFF:
        raise ConfigError(f"not an address: {text!r} (write HOST:PORT)")
    return host, int(port)


def _address_of(name: str, text: str, port_default: int) -> tuple[str, int]:
    """Read the address that a setting says; raises ConfigError with its name."""
    try:
        return parse_address(text, port_default)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from error


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches *host*; other names mean what somebody else says."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def derived_server_id(host_name: str, place: str) -> int:
    """
    Return the server id for who set none: the same at each start on the same host and directory.

    It lies above 2**31, where hand-numbered servers do not, since a replica refuses a primary with
    its own id and drops events that carry it. Source: dump-protocol 10, trap 15.
    """
    return zlib.crc32(f"{host_name}\0{place}".encode()) | DERIVED_SERVER_ID_BIT
