"""Which privilege a statement, a dump or a variable needs, by MariaDB 10.11's names; error 1227."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.error_codes import SPECIFIC_ACCESS_DENIED_ERROR
from ibb.server.login.privileges import REPLICATION_SLAVE

if TYPE_CHECKING:
    from ibb.protocol.errors import SqlError
    from ibb.server.login.accounts import Account
    from ibb.server.sql.context import Context

DUMP: Final = "BINLOG DUMP"  # no statement, but what a replica asks for: all that is in groups

# The privileges that MariaDB names in its error; any of them will do.
_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "SHOW ALL REPLICAS STATUS": ("SUPER", "SLAVE MONITOR"),
    "SHOW BINARY LOGS": ("SUPER", "BINLOG MONITOR"),
    "SHOW BINLOG EVENTS": ("BINLOG MONITOR",),
    "SHOW BINLOG LEASES": ("SUPER", "BINLOG MONITOR"),
    "SHOW BINLOG READERS": ("REPLICATION MASTER ADMIN",),
    "SHOW BINLOG STATUS": ("SUPER", "BINLOG MONITOR"),
    "SHOW BINLOG STORAGE": ("SUPER", "BINLOG MONITOR"),
    "SHOW RELAYLOG EVENTS": ("SLAVE MONITOR",),
    "SHOW REPLICA HOSTS": ("REPLICATION MASTER ADMIN",),
    "SHOW REPLICA STATUS": ("SUPER", "SLAVE MONITOR"),
    "BINLOG LEASE": ("SUPER", "BINLOG ADMIN"),
    "CHANGE MASTER": ("SUPER", "REPLICATION SLAVE ADMIN"),
    "FLUSH": ("RELOAD",),
    "PURGE": ("SUPER", "BINLOG ADMIN"),
    "RESET": ("RELOAD",),
    "START SLAVE": ("SUPER", "REPLICATION SLAVE ADMIN"),
    "STOP SLAVE": ("SUPER", "REPLICATION SLAVE ADMIN"),
}
_NEEDS: Final = _STATEMENTS | {DUMP: (REPLICATION_SLAVE,)}
_BINLOG: Final = ("SUPER", "BINLOG ADMIN")
_CONNECTION: Final = ("SUPER", "CONNECTION ADMIN")
_MASTER: Final = ("SUPER", "REPLICATION MASTER ADMIN")
_REPLICA: Final = ("SUPER", "REPLICATION SLAVE ADMIN")
_GLOBALS: Final[dict[str, tuple[str, ...]]] = {
    "binlog_expire_logs_seconds": _BINLOG,
    "expire_logs_days": _BINLOG,
    "max_binlog_total_size": _BINLOG,
    "slave_connections_needed_for_purge": _BINLOG,
    "max_binlog_size": _BINLOG,
    "sync_binlog": _BINLOG,
    "binlog_annotate_row_events": _BINLOG,
    "binlog_cache_size": _BINLOG,
    "binlog_format": _BINLOG,
    "binlog_row_image": _BINLOG,
    "binlog_row_metadata": _BINLOG,
    "log_bin_compress": _BINLOG,
    "log_bin_compress_min_len": _BINLOG,
    "log_bin_trust_function_creators": _BINLOG,
    "sql_log_bin": _BINLOG,
    "master_verify_checksum": _MASTER,
    "connect_timeout": _CONNECTION,
    "init_connect": _CONNECTION,
    "max_connections": _CONNECTION,
    "max_connect_errors": _CONNECTION,
    "secure_auth": _CONNECTION,
    "gtid_binlog_state": _MASTER,
    "gtid_domain_id": _MASTER,
    "server_id": _MASTER,
    "rpl_semi_sync_master_enabled": _MASTER,
    "rpl_semi_sync_master_timeout": _MASTER,
    "rpl_semi_sync_master_trace_level": _MASTER,
    "rpl_semi_sync_master_wait_no_slave": _MASTER,
    "gtid_ignore_duplicates": _REPLICA,
    "gtid_slave_pos": _REPLICA,
    "gtid_strict_mode": _REPLICA,
    "init_slave": _REPLICA,
    "slave_compressed_protocol": _REPLICA,
    "slave_net_timeout": _REPLICA,
    "rpl_semi_sync_slave_delay_master": _REPLICA,
    "rpl_semi_sync_slave_enabled": _REPLICA,
    "rpl_semi_sync_slave_kill_conn_timeout": _REPLICA,
    "rpl_semi_sync_slave_trace_level": _REPLICA,
    "slave_max_allowed_packet": _REPLICA,
    "slave_parallel_max_queued": _REPLICA,
    "slave_parallel_mode": _REPLICA,
    "slave_parallel_threads": _REPLICA,
    "slave_parallel_workers": _REPLICA,
    "slave_type_conversions": _REPLICA,
    "read_only": ("READ_ONLY ADMIN",),
}
_REPLAY: Final = ("SUPER", "BINLOG REPLAY")
_SESSIONS: Final[dict[str, tuple[str, ...]]] = {
    "binlog_annotate_row_events": _BINLOG,
    "binlog_format": _BINLOG,
    "binlog_row_image": _BINLOG,
    "gtid_domain_id": _REPLAY,
    "gtid_seq_no": _REPLAY,
    "pseudo_thread_id": _REPLAY,
    "server_id": _REPLAY,
    "sql_log_bin": _BINLOG,
}


def may(statement: str, account: Account | None) -> bool:
    """
    Tell whether an account has the privilege that a statement needs, if it needs one.

    Args:
        statement: by its words, or `DUMP`.
        account: None may everything.
    """
    return _has(_NEEDS.get(statement, ()), account)


def denied(statement: str) -> SqlError:
    """Return the error 1227 for who may not have *statement*, which needs a privilege."""
    return _denied(_NEEDS[statement])


def require(statement: str, context: Context) -> None:
    """
    Check the privilege that a statement needs, if it needs one.

    Raises:
        SqlError: 1227, the account does not have it.
    """
    _check(_STATEMENTS.get(statement, ()), context)


def require_for_variable(name: str, context: Context, *, is_global: bool) -> None:
    """Check the privilege that setting a system variable needs; raises SqlError 1227."""
    name = name.lower()
    needed = _GLOBALS.get(name, ("SUPER",)) if is_global else _SESSIONS.get(name, ())
    _check(needed, context)


def _check(needed: tuple[str, ...], context: Context) -> None:
    if not _has(needed, context.account):
        raise _denied(needed)


def _has(needed: tuple[str, ...], account: Account | None) -> bool:
    return not needed or account is None or any(map(account.may, needed))


def _denied(needed: tuple[str, ...]) -> SqlError:
    return SPECIFIC_ACCESS_DENIED_ERROR.error(", ".join(needed))
