"""
The system variables that clients ask for or set: names, values, bounds.

Names, defaults and bounds are those of a MariaDB 10.11 primary that writes row events with
checksums; what `ibb` has a setting for shows the setting. Source: dump-protocol 2.1, 2.3, 9.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.server.config import EXPIRE_SECONDS_MAX, RATE_MAX, SEMI_SYNC_TIMEOUT_MS_MAX, TOTAL_SIZE_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from .context import Context
    from .types import SqlValue

_UINT_MAX: Final = (1 << 32) - 1
_WORD_MAX: Final = (1 << 64) - 1
_YEAR: Final = 31_536_000  # seconds
_GIB: Final = 1 << 30

SQL_MODE_DEFAULT: Final = (
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"
)
SQL_MODES: Final = frozenset(
    {
        *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "ONLY_FULL_GROUP_BY"),
        *("NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL", "DB2"),
        *("MAXDB", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40"),
        *("ANSI", "NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES"),
        *("STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES"),
        *(
            "ERROR_FOR_DIVISION_BY_ZERO",
            "TRADITIONAL",
            "NO_AUTO_CREATE_USER",
            "HIGH_NOT_PRECEDENCE",
        ),
        *("NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH", "EMPTY_STRING_IS_NULL"),
        *("SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL"),
    }
)
_TRACKED: Final = (
    "autocommit,character_set_client,character_set_connection,character_set_results,time_zone"
)


class VariableKind(Enum):
    """What a variable holds."""

    SWITCH = "ON or OFF in SHOW VARIABLES, 1 or 0 in SELECT"
    NUMBER = "an unsigned integer"
    SECONDS = "a number with six decimals"
    TEXT = "a text"
    CHOICE = "one of several words"


@dataclass(frozen=True, slots=True)
class SystemVariable:
    """
    One system variable.

    Attributes:
        value: what it is, or how to learn it.
        session: a session may have its own value.
        server: there is a value of the server's.
        read_only: nobody may set it while the server runs.
        least, most: bounds of a number.
        words: choices.
        reads_history: to learn it may take a look at the disk.
    """

    kind: VariableKind
    value: SqlValue | Callable[[Context], SqlValue]
    session: bool = False
    server: bool = True
    read_only: bool = False
    least: int = 0
    most: int = _WORD_MAX
    words: tuple[str, ...] = ()
    reads_history: bool = False


_Source: TypeAlias = "SqlValue | Callable[[Context], SqlValue]"


def _switch(
    value: _Source, *, session: bool = False, read_only: bool = False, server: bool = True
) -> SystemVariable:
    return SystemVariable(VariableKind.SWITCH, value, session, server, read_only)


def _number(
    value: _Source, least: int = 0, most: int = _WORD_MAX, *, session: bool = False
) -> SystemVariable:
    return SystemVariable(VariableKind.NUMBER, value, session, least=least, most=most)


def _fixed(value: _Source) -> SystemVariable:
    return SystemVariable(VariableKind.NUMBER, value, read_only=True)


def _text(
    value: _Source, *, session: bool = False, read_only: bool = True, server: bool = True
) -> SystemVariable:
    return SystemVariable(VariableKind.TEXT, value, session, server, read_only and not session)


def _choice(value: _Source, *words: str, session: bool = False) -> SystemVariable:
    return SystemVariable(VariableKind.CHOICE, value, session, words=words)


def _own(value: _Source, *, read_only: bool = False) -> SystemVariable:
    """Return a number that each session has for itself."""
    return SystemVariable(
        VariableKind.NUMBER, value, session=True, server=False, read_only=read_only
    )


def _seconds(
    value: str, most: int = _YEAR, *, session: bool = False, read_only: bool = False
) -> SystemVariable:
    return SystemVariable(
        VariableKind.SECONDS, Decimal(value), session, read_only=read_only, most=most
    )


def _history(value: Callable[[Context], SqlValue], *, read_only: bool) -> SystemVariable:
    return SystemVariable(VariableKind.TEXT, value, read_only=read_only, reads_history=True)


def _position(context: Context) -> str:
    return str(context.facts.history.state().position())


_ON: Final = _switch(1, read_only=True)
_OFF: Final = _switch(0, read_only=True)
_CHARSET: Final = _text("utf8mb4", session=True)
_COLLATION: Final = _text("utf8mb4_general_ci", session=True)
_ISOLATION: Final = _choice(
    "REPEATABLE-READ",
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
    session=True,
)

SYSTEM_VARIABLES: Final[dict[str, SystemVariable]] = {
    "auto_increment_increment": _number(1, 1, 65535, session=True),
    "auto_increment_offset": _number(1, 1, 65535, session=True),
    "autocommit": _switch(1, session=True),
    "bind_address": _text(lambda c: c.facts.config.listen.rpartition(":")[0]),
    "binlog_cache_size": _number(32768),
    "binlog_annotate_row_events": _switch(1, session=True),
    "binlog_checksum": _choice("CRC32", "NONE", "CRC32"),
    "binlog_expire_logs_seconds": _number(
        lambda c: c.facts.purging.value("binlog_expire_logs_seconds"), 0, EXPIRE_SECONDS_MAX
    ),
    "binlog_format": _choice("ROW", "MIXED", "STATEMENT", "ROW", session=True),
    "binlog_row_image": _choice("FULL", "MINIMAL", "NOBLOB", "FULL", session=True),
    "binlog_row_metadata": _choice("NO_LOG", "NO_LOG", "MINIMAL", "FULL"),
    "character_set_client": _CHARSET,
    "character_set_connection": _CHARSET,
    "character_set_database": _CHARSET,
    "character_set_filesystem": _text("binary", session=True),
    "character_set_results": _CHARSET,
    "character_set_server": _CHARSET,
    "character_set_system": _text("utf8mb3"),
    "check_constraint_checks": _switch(1, session=True),
    "collation_connection": _COLLATION,
    "collation_database": _COLLATION,
    "collation_server": _COLLATION,
    "completion_type": _choice("NO_CHAIN", "NO_CHAIN", "CHAIN", "RELEASE", session=True),
    "connect_timeout": _number(lambda c: int(c.facts.config.connect_timeout), 2, _YEAR),
    "datadir": _text(lambda c: c.facts.place),
    "default_storage_engine": _text("InnoDB", session=True),
    "div_precision_increment": _number(4, 0, 38, session=True),
    "dump_delay": _number(lambda c: int(c.facts.pacing.delay), 0, _YEAR),
    "dump_lease": _number(lambda c: c.facts.config.dump_lease, 0, _YEAR),
    "dump_rate": _number(lambda c: c.facts.pacing.rate, 0, RATE_MAX),
    "dump_rate_total": _number(lambda c: c.facts.pacing.total_rate, 0, RATE_MAX),
    "encrypt_binlog": _OFF,
    "error_count": _own(lambda c: len(c.diagnostics.errors()), read_only=True),
    "event_scheduler": _choice("OFF", "OFF", "ON", "DISABLED"),
    "expire_logs_days": SystemVariable(
        VariableKind.SECONDS, lambda c: c.facts.purging.value("expire_logs_days"), most=99
    ),
    "explicit_defaults_for_timestamp": _switch(1, session=True),
    "foreign_key_checks": _switch(1, session=True),
    "group_concat_max_len": _number(1 << 20, 4, _GIB, session=True),
    "gtid_binlog_pos": _history(_position, read_only=True),
    "gtid_binlog_state": _history(lambda c: str(c.facts.history.state()), read_only=False),
    "gtid_current_pos": _history(_position, read_only=True),
    "gtid_domain_id": _number(0, 0, _UINT_MAX, session=True),
    "gtid_ignore_duplicates": _switch(0),
    "gtid_seq_no": _own(0),
    "gtid_slave_pos": _history(lambda c: _position(c) if c.facts.relays else "", read_only=False),
    "gtid_strict_mode": _switch(lambda c: int(c.facts.config.gtid_strict_mode)),
    "have_compress": _text("NO"),
    "have_openssl": _text("YES"),
    "have_query_cache": _text("NO"),
    "have_ssl": _text(lambda c: "DISABLED" if c.facts.tls is None else "YES"),
    "hostname": _text(lambda c: c.facts.host_name()),
    "identity": _own(0),
    "in_transaction": _own(lambda c: int(c.in_transaction()), read_only=True),
    "init_connect": _text("", read_only=False),
    "init_file": _text(""),
    "init_slave": _text("", read_only=False),
    "innodb_flush_log_at_trx_commit": _number(lambda c: c.facts.config.flush_log_at_commit),
    "innodb_version": _text(lambda c: c.facts.config.server_version.partition("-")[0]),
    "insert_id": _own(0),
    "interactive_timeout": _number(
        lambda c: int(c.facts.config.interactive_timeout), 1, _YEAR, session=True
    ),
    "last_gtid": _text("", session=True, server=False),
    "last_insert_id": _own(0),
    "lc_messages": _text("en_US", session=True),
    "lc_time_names": _text("en_US", session=True),
    "license": _text("Apache-2.0"),
    "local_infile": _switch(0),
    "lock_wait_timeout": _number(86400, 0, _YEAR, session=True),
    "log_bin": _ON,
    "log_bin_basename": _text(lambda c: f"{c.facts.place}/binlog"),
    "log_bin_compress": _switch(0),
    "log_bin_compress_min_len": _number(256),
    "log_bin_index": _text(""),
    "log_bin_trust_function_creators": _switch(0),
    "log_output": _text("FILE", read_only=False),
    "log_slave_updates": _ON,
    "long_query_time": _seconds("10.000000", session=True),
    "lower_case_file_system": _OFF,
    "lower_case_table_names": _fixed(0),
    "master_verify_checksum": _switch(1),
    "max_allowed_packet": _number(
        lambda c: c.facts.config.max_allowed_packet, 1024, _GIB, session=True
    ),
    "max_binlog_size": _number(lambda c: c.facts.config.max_binlog_size, 4096, _GIB),
    "max_binlog_total_size": _number(
        lambda c: c.facts.purging.value("max_binlog_total_size"), 0, TOTAL_SIZE_MAX
    ),
    "max_connect_errors": _number(lambda c: c.facts.config.max_connect_errors, 1, _UINT_MAX),
    "max_connections": _number(lambda c: c.facts.config.max_connections, 10, 100_000),
    "max_error_count": _number(64, 0, 65535, session=True),
    "max_join_size": _number(_WORD_MAX, 1, session=True),
    "max_prepared_stmt_count": _number(16382, 0, _UINT_MAX),
    "max_statement_time": _seconds("0.000000", session=True),
    "max_user_connections": _number(lambda c: c.facts.config.max_user_connections, 0, 100_000),
    "net_buffer_length": _number(16384, 1024, 1 << 20, session=True),
    "net_read_timeout": _number(30, 1, _YEAR, session=True),
    "net_retry_count": _number(10, 1, _UINT_MAX, session=True),
    "net_write_timeout": _number(
        lambda c: int(c.facts.config.net_write_timeout), 1, _YEAR, session=True
    ),
    "old_mode": _text("UTF8_IS_UTF8MB3", session=True),
    "performance_schema": _OFF,
    "port": _fixed(lambda c: c.facts.port()),
    "protocol_version": _fixed(10),
    "proxy_user": _text(None, session=True, server=False),
    "pseudo_thread_id": _own(lambda c: c.connection_id),
    "query_cache_size": _number(0),
    "query_cache_type": _choice("OFF", "OFF", "ON", "DEMAND", session=True),
    "read_only": _switch(1),
    "replicate_annotate_row_events": _ON,
    "report_host": _text(None),
    "report_port": _fixed(lambda c: c.facts.port()),
    "require_secure_transport": _switch(lambda c: int(c.facts.config.require_tls)),
    "rpl_semi_sync_master_enabled": _switch(lambda c: int(c.facts.semi_sync.enabled)),
    "rpl_semi_sync_master_timeout": _number(
        lambda c: c.facts.semi_sync.timeout_ms, 0, SEMI_SYNC_TIMEOUT_MS_MAX
    ),
    "rpl_semi_sync_master_trace_level": _number(32),
    "rpl_semi_sync_master_wait_no_slave": _switch(lambda c: int(c.facts.semi_sync.wait_no_slave)),
    "rpl_semi_sync_master_wait_point": SystemVariable(
        VariableKind.CHOICE, "AFTER_COMMIT", read_only=True, words=("AFTER_COMMIT",)
    ),
    "rpl_semi_sync_slave_delay_master": _switch(0),
    "rpl_semi_sync_slave_enabled": _switch(
        lambda c: int(c.facts.config.rpl_semi_sync_slave_enabled)
    ),
    "rpl_semi_sync_slave_kill_conn_timeout": _number(5, 0, _UINT_MAX),
    "rpl_semi_sync_slave_trace_level": _number(32),
    "secure_auth": _switch(1),
    "secure_file_priv": _text(None),
    "server_id": _number(lambda c: c.facts.server_id, 1, _UINT_MAX, session=True),
    "session_track_schema": _switch(1, session=True),
    "session_track_state_change": _switch(0, session=True),
    "session_track_system_variables": _text(_TRACKED, session=True),
    "session_track_transaction_info": _choice(
        "OFF", "OFF", "STATE", "CHARACTERISTICS", session=True
    ),
    "skip_name_resolve": _ON,
    "skip_networking": _OFF,
    "skip_parallel_replication": _switch(0, session=True, server=False),
    "skip_replication": _switch(0, session=True, server=False),
    "slave_compressed_protocol": _switch(0),
    "slave_max_allowed_packet": _number(_GIB),
    "slave_net_timeout": _number(lambda c: int(c.facts.config.slave_net_timeout), 1, _YEAR),
    "slave_connections_needed_for_purge": _number(
        lambda c: c.facts.purging.value("slave_connections_needed_for_purge"), 0, _UINT_MAX
    ),
    "slave_parallel_max_queued": _number(131_072),
    "slave_parallel_mode": _text("optimistic", read_only=False),
    "slave_parallel_threads": _number(0),
    "slave_parallel_workers": _number(0),
    "slave_type_conversions": _text("", read_only=False),
    "socket": _text(lambda c: c.facts.config.socket),
    "sql_auto_is_null": _switch(0, session=True),
    "sql_big_selects": _switch(1, session=True),
    "sql_log_bin": _switch(1, session=True),
    "sql_mode": _text(SQL_MODE_DEFAULT, session=True),
    "sql_notes": _switch(1, session=True),
    "sql_quote_show_create": _switch(1, session=True),
    "sql_safe_updates": _switch(0, session=True),
    "sql_select_limit": _number(_WORD_MAX, session=True),
    "sql_warnings": _switch(0, session=True),
    "ssl_ca": _text(lambda c: c.facts.config.ssl_ca or None),
    "ssl_capath": _text(None),
    "ssl_cert": _text(lambda c: c.facts.config.ssl_cert or None),
    "ssl_cipher": _text(None),
    "ssl_crl": _text(None),
    "ssl_crlpath": _text(None),
    "ssl_key": _text(lambda c: c.facts.config.ssl_key or None),
    "storage_engine": _text("InnoDB", session=True),
    "sync_binlog": _number(lambda c: int(c.facts.config.flush_log_at_commit == 1), 0, _UINT_MAX),
    "system_time_zone": _text(lambda c: c.facts.time_zone()),
    "system_versioning_alter_history": _choice("ERROR", "ERROR", "KEEP", session=True),
    "time_zone": _text("SYSTEM", session=True),
    "timestamp": SystemVariable(
        VariableKind.SECONDS,
        lambda c: Decimal(f"{c.now:.6f}"),
        session=True,
        server=False,
        most=(1 << 31) - 1,
    ),
    "tls_version": _text(lambda c: c.facts.config.tls_version),
    "tx_isolation": _ISOLATION,
    "tx_read_only": _switch(0, session=True),
    "unique_checks": _switch(1, session=True),
    "updatable_views_with_limit": _switch(1, session=True),
    "version": _text(lambda c: c.facts.config.server_version),
    "version_comment": _text("ibb, a replication master over .ibb binlogs"),
    "version_compile_machine": _text("any"),
    "version_compile_os": _text("Linux"),
    "version_ssl_library": _text(ssl.OPENSSL_VERSION),
    "wait_timeout": _number(lambda c: int(c.facts.config.wait_timeout), 1, _YEAR, session=True),
    "warning_count": _own(lambda c: c.warning_count(), read_only=True),
}
# What shapes events: a relay says what its upstream says, since readers decode by it.
OF_UPSTREAM: Final = ("binlog_format", "binlog_row_image", "binlog_row_metadata")
# What describes the stream to readers: SET GLOBAL changes what they are told.
DESCRIBING: Final = frozenset({*OF_UPSTREAM, "binlog_checksum"})
# What nothing here goes by, or what only a start can change: SET GLOBAL takes what it is already.
FIXED: Final = frozenset(
    {
        *(
            "max_binlog_size",
            "sync_binlog",
            "server_id",
            "gtid_domain_id",
            "gtid_ignore_duplicates",
            "read_only",
            "local_infile",
        ),
        *("init_connect", "init_slave", "event_scheduler", "log_output", "query_cache_size"),
        *("log_bin_compress", "master_verify_checksum", "slave_compressed_protocol"),
        *("rpl_semi_sync_master_trace_level", "rpl_semi_sync_slave_trace_level"),
        *("rpl_semi_sync_slave_delay_master", "rpl_semi_sync_slave_kill_conn_timeout"),
        *("net_buffer_length", "binlog_cache_size", "secure_auth"),
        *("log_bin_compress_min_len", "log_bin_trust_function_creators"),
        *("innodb_flush_log_at_trx_commit", "slave_max_allowed_packet", "slave_type_conversions"),
        *("slave_parallel_max_queued", "slave_parallel_mode"),
        *("slave_parallel_threads", "slave_parallel_workers"),
    }
)
# Names that newer drivers know a variable by; `@@` finds them, SHOW VARIABLES does too.
_ALIASES: Final = {
    "transaction_isolation": "tx_isolation",
    "transaction_read_only": "tx_read_only",
}
SYSTEM_VARIABLES.update({alias: SYSTEM_VARIABLES[name] for alias, name in _ALIASES.items()})


def own_name(name: str) -> str:
    """Return the one name that a variable's value is kept by, of *name* in any case."""
    return _ALIASES.get(name.lower(), name.lower())
