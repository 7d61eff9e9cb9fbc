"""
The MariaDB errors that we send or meet: number, sqlstate and text, under MariaDB's own names.

Replicas and tools act on the numbers and search for phrases of the texts, so both are MariaDB's.
Source: dump-protocol 1.4, 2, 3, 6, 9.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .errors import SqlError


class ErrorCode(NamedTuple):
    """One MariaDB error; *text* is a printf template for `error`."""

    code: int
    sqlstate: str
    text: str

    def error(self, *values: object) -> SqlError:
        """Return the error to raise, with *values* in the gaps of the text."""
        return SqlError(self.code, self.sqlstate, self.text % values)


CON_COUNT_ERROR: Final = ErrorCode(1040, "08004", "Too many connections")
OUT_OF_RESOURCES: Final = ErrorCode(1041, "HY000", "Out of memory.")
HANDSHAKE_ERROR: Final = ErrorCode(1043, "08S01", "Bad handshake")
ACCESS_DENIED_ERROR: Final = ErrorCode(
    1045, "28000", "Access denied for user '%s'@'%s' (using password: %s)"
)
UNKNOWN_COM_ERROR: Final = ErrorCode(1047, "08S01", "Unknown command")
SERVER_SHUTDOWN: Final = ErrorCode(1053, "08S01", "Server shutdown in progress")
PARSE_ERROR: Final = ErrorCode(
    1064,
    "42000",
    "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB "
    "server version for the right syntax to use near '%s' at line %d",
)
EMPTY_QUERY: Final = ErrorCode(1065, "42000", "Query was empty")
NO_SUCH_THREAD: Final = ErrorCode(1094, "HY000", "Unknown thread id: %d")
KILL_DENIED_ERROR: Final = ErrorCode(1095, "HY000", "You are not owner of thread %d")
UNKNOWN_ERROR: Final = ErrorCode(1105, "HY000", "%s")
NET_PACKET_TOO_LARGE: Final = ErrorCode(
    1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"
)
NET_PACKETS_OUT_OF_ORDER: Final = ErrorCode(1156, "08S01", "Got packets out of order")
NET_READ_INTERRUPTED: Final = ErrorCode(1159, "08S01", "Got timeout reading communication packets")
HOST_IS_BLOCKED: Final = ErrorCode(
    1129,
    "HY000",
    "Host '%s' is blocked because of many connection errors; unblock with "
    "'mariadb-admin flush-hosts'",
)
TOO_MANY_USER_CONNECTIONS: Final = ErrorCode(
    1203, "42000", "User %s already has more than 'max_user_connections' active connections"
)
USER_LIMIT_REACHED: Final = ErrorCode(
    1226, "42000", "User '%s' has exceeded the '%s' resource (current value: %d)"
)
UNKNOWN_SYSTEM_VARIABLE: Final = ErrorCode(1193, "HY000", "Unknown system variable '%s'")
ERROR_WHEN_EXECUTING_COMMAND: Final = ErrorCode(
    1220, "HY000", "Error when executing command %s: %s"
)
SPECIFIC_ACCESS_DENIED_ERROR: Final = ErrorCode(
    1227,
    "42000",
    "Access denied; you need (at least one of) the %s privilege(s) for this operation",
)
WRONG_VALUE_FOR_VAR: Final = ErrorCode(
    1231, "42000", "Variable '%s' can't be set to the value of '%s'"
)
WRONG_TYPE_FOR_VAR: Final = ErrorCode(1232, "42000", "Incorrect argument type to variable '%s'")
NOT_SUPPORTED_YET: Final = ErrorCode(
    1235, "42000", "This version of MariaDB doesn't yet support '%s'"
)
MASTER_FATAL_ERROR_READING_BINLOG: Final = ErrorCode(1236, "HY000", "%s")  # final for replicas
INCORRECT_GLOBAL_LOCAL_VAR: Final = ErrorCode(1238, "HY000", "Variable '%s' is a %s variable")
QUERY_INTERRUPTED: Final = ErrorCode(1317, "70100", "Query execution was interrupted")
UNKNOWN_TARGET_BINLOG: Final = ErrorCode(1373, "HY000", "Target log not found in binlog index")
MALFORMED_PACKET: Final = ErrorCode(1835, "HY000", "Malformed communication packet")
CONNECTION_KILLED: Final = ErrorCode(1927, "70100", "Connection was killed")
INCORRECT_GTID_STATE: Final = ErrorCode(1941, "HY000", "Could not parse GTID list")
DUPLICATE_GTID_DOMAIN: Final = ErrorCode(
    1943, "HY000", "GTID %s and %s conflict (duplicate domain id %d)"
)
SLAVE_SAME_ID: Final = ErrorCode(
    4052, "HY000", "A slave with the same server_id as this slave has connected to the master"
)
