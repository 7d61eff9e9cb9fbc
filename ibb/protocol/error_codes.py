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
DBACCESS_DENIED_ERROR: Final = ErrorCode(
    1044, "42000", "Access denied for user '%s'@'%s' to database '%s'"
)
ACCESS_DENIED_ERROR: Final = ErrorCode(
    1045, "28000", "Access denied for user '%s'@'%s' (using password: %s)"
)
NO_DB_ERROR: Final = ErrorCode(1046, "3D000", "No database selected")
UNKNOWN_COM_ERROR: Final = ErrorCode(1047, "08S01", "Unknown command")
BAD_DB_ERROR: Final = ErrorCode(1049, "42000", "Unknown database '%s'")
BAD_TABLE_ERROR: Final = ErrorCode(1051, "42S02", "Unknown table '%s'")
SERVER_SHUTDOWN: Final = ErrorCode(1053, "08S01", "Server shutdown in progress")
BAD_FIELD_ERROR: Final = ErrorCode(1054, "42S22", "Unknown column '%s' in '%s'")
PARSE_ERROR: Final = ErrorCode(
    1064,
    "42000",
    "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB "
    "server version for the right syntax to use near '%s' at line %d",
)
EMPTY_QUERY: Final = ErrorCode(1065, "42000", "Query was empty")
NO_SUCH_THREAD: Final = ErrorCode(1094, "HY000", "Unknown thread id: %d")
KILL_DENIED_ERROR: Final = ErrorCode(1095, "HY000", "You are not owner of thread %d")
NO_TABLES_USED: Final = ErrorCode(1096, "HY000", "No tables used")
UNKNOWN_ERROR: Final = ErrorCode(1105, "HY000", "%s")
UNKNOWN_TABLE: Final = ErrorCode(1109, "42S02", "Unknown table '%s' in %s")
UNKNOWN_CHARACTER_SET: Final = ErrorCode(1115, "42000", "Unknown character set: '%s'")
HOST_IS_BLOCKED: Final = ErrorCode(
    1129,
    "HY000",
    "Host '%s' is blocked because of many connection errors; unblock with "
    "'mariadb-admin flush-hosts'",
)
PASSWORD_NO_MATCH: Final = ErrorCode(1133, "28000", "Can't find any matching row in the user table")
NONEXISTING_GRANT: Final = ErrorCode(
    1141, "42000", "There is no such grant defined for user '%s' on host '%s'"
)
NO_SUCH_TABLE: Final = ErrorCode(1146, "42S02", "Table '%s.%s' doesn't exist")
NET_PACKET_TOO_LARGE: Final = ErrorCode(
    1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"
)
NET_PACKETS_OUT_OF_ORDER: Final = ErrorCode(1156, "08S01", "Got packets out of order")
NET_READ_INTERRUPTED: Final = ErrorCode(1159, "08S01", "Got timeout reading communication packets")
LOCK_OR_ACTIVE_TRANSACTION: Final = ErrorCode(
    1192,
    "HY000",
    "Can't execute the given command because you have active locked tables or an active "
    "transaction",
)
UNKNOWN_SYSTEM_VARIABLE: Final = ErrorCode(1193, "HY000", "Unknown system variable '%s'")
SLAVE_MUST_STOP: Final = ErrorCode(
    1198,
    "HY000",
    "This operation cannot be performed as you have a running slave '%s'; run STOP SLAVE '%s' "
    "first",
)
BAD_SLAVE: Final = ErrorCode(
    1200,
    "HY000",
    "Misconfigured slave: MASTER_HOST was not set; Fix in config file or with CHANGE MASTER TO",
)
TOO_MANY_USER_CONNECTIONS: Final = ErrorCode(
    1203, "42000", "User %s already has more than 'max_user_connections' active connections"
)
WRONG_ARGUMENTS: Final = ErrorCode(1210, "HY000", "Incorrect arguments to %s")
ERROR_WHEN_EXECUTING_COMMAND: Final = ErrorCode(
    1220, "HY000", "Error when executing command %s: %s"
)
WRONG_USAGE: Final = ErrorCode(1221, "HY000", "Incorrect usage of %s and %s")
DUP_ARGUMENT: Final = ErrorCode(1225, "HY000", "Option '%s' used twice in statement")
USER_LIMIT_REACHED: Final = ErrorCode(
    1226, "42000", "User '%s' has exceeded the '%s' resource (current value: %d)"
)
SPECIFIC_ACCESS_DENIED_ERROR: Final = ErrorCode(
    1227,
    "42000",
    "Access denied; you need (at least one of) the %s privilege(s) for this operation",
)
LOCAL_VARIABLE: Final = ErrorCode(
    1228, "HY000", "Variable '%s' is a SESSION variable and can't be used with SET GLOBAL"
)
GLOBAL_VARIABLE: Final = ErrorCode(
    1229, "HY000", "Variable '%s' is a GLOBAL variable and should be set with SET GLOBAL"
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
UNKNOWN_STMT_HANDLER: Final = ErrorCode(
    1243, "HY000", "Unknown prepared statement handler (%s) given to %s"
)
COLLATION_CHARSET_MISMATCH: Final = ErrorCode(
    1253, "42000", "COLLATION '%s' is not valid for CHARACTER SET '%s'"
)
UNKNOWN_COLLATION: Final = ErrorCode(1273, "HY000", "Unknown collation: '%s'")
OPTION_PREVENTS_STATEMENT: Final = ErrorCode(
    1290,
    "HY000",
    "The MariaDB server is running with the %s option so it cannot execute this statement",
)
UNSUPPORTED_PS: Final = ErrorCode(
    1295, "HY000", "This command is not supported in the prepared statement protocol yet"
)
UNKNOWN_TIME_ZONE: Final = ErrorCode(1298, "HY000", "Unknown or incorrect time zone: '%s'")
SP_DOES_NOT_EXIST: Final = ErrorCode(1305, "42000", "%s %s does not exist")
INVALID_CHARACTER_STRING: Final = ErrorCode(1300, "HY000", "Invalid %s character string: '%s'")
QUERY_INTERRUPTED: Final = ErrorCode(1317, "70100", "Query execution was interrupted")
UNKNOWN_TARGET_BINLOG: Final = ErrorCode(1373, "HY000", "Target log not found in binlog index")
LOG_IN_USE: Final = ErrorCode(1378, "HY000", "A purgeable log is in use, will not purge: %s")
STMT_HAS_NO_OPEN_CURSOR: Final = ErrorCode(1421, "HY000", "The statement (%d) has no open cursor")
TOO_BIG_PRECISION: Final = ErrorCode(
    1426, "42000", "Too big precision specified for '%s'. Maximum is %d"
)
MAX_PREPARED_STMT_COUNT_REACHED: Final = ErrorCode(
    1461,
    "42000",
    "Can't create more than max_prepared_stmt_count statements (current value: %d)",
)
WRONG_VALUE: Final = ErrorCode(1525, "HY000", "Incorrect %s value: '%s'")
WRONG_PARAMCOUNT_TO_NATIVE_FCT: Final = ErrorCode(
    1582, "42000", "Incorrect parameter count in the call to native function '%s'"
)
SLAVE_INCIDENT: Final = ErrorCode(
    1590, "HY000", "The incident %s occurred on the master. Message: %s"
)
NO_MASTER_CONNECTION: Final = ErrorCode(1617, "HY000", "There is no master connection '%s'")
WRONG_OBJECT: Final = ErrorCode(1347, "HY000", "'%s.%s' is not of type '%s'")
VARIABLE_IS_READONLY: Final = ErrorCode(
    1621, "HY000", "%s variable '%s' is read-only. Use SET %s to assign the value"
)
SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE: Final = ErrorCode(
    1624,
    "HY000",
    "The requested value for the heartbeat period is either negative or exceeds the maximum "
    "allowed (%d seconds)",
)
ILLEGAL_VALUE_FOR_TYPE: Final = ErrorCode(
    1367, "22007", "Illegal %s '%s' value found during parsing"
)
DATA_OUT_OF_RANGE: Final = ErrorCode(1690, "22003", "%s value is out of range in '%s'")
SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX: Final = ErrorCode(
    1704,
    "HY000",
    "The requested value for the heartbeat period exceeds the value of `slave_net_timeout' "
    "seconds. A sensible value for the period should be less than the timeout",
)
MALFORMED_PACKET: Final = ErrorCode(1835, "HY000", "Malformed communication packet")
CONNECTION_KILLED: Final = ErrorCode(1927, "70100", "Connection was killed")
STATEMENT_TIMEOUT: Final = ErrorCode(
    1969, "70100", "Query execution was interrupted (max_statement_time exceeded)"
)
INCORRECT_GTID_STATE: Final = ErrorCode(1941, "HY000", "Could not parse GTID list")
DUPLICATE_GTID_DOMAIN: Final = ErrorCode(
    1943, "HY000", "GTID %s and %s conflict (duplicate domain id %d)"
)
INSIDE_TRANSACTION_PREVENTS_SWITCH_GTID: Final = ErrorCode(
    1953,
    "HY000",
    "Cannot modify @@session.gtid_domain_id or @@session.gtid_seq_no inside a transaction",
)
NO_SUCH_QUERY: Final = ErrorCode(1957, "HY000", "Unknown query id: %d")
ILLEGAL_PARAMETER_DATA_TYPE: Final = ErrorCode(
    4079, "HY000", "Illegal parameter data type %s for operation '%s'"
)
SLAVE_SAME_ID: Final = ErrorCode(
    4052, "HY000", "A slave with the same server_id as this slave has connected to the master"
)
BINLOG_IN_USE: Final = ErrorCode(
    4243,
    "HY000",
    "Cannot execute RESET MASTER as the binlog is in use by a connected slave or other RESET "
    'MASTER or binlog reader. Check SHOW PROCESSLIST for "Binlog Dump" commands and use KILL to '
    "stop such readers",
)
BINLOG_IN_USE_TRX: Final = ErrorCode(
    4244, "HY000", "Cannot execute RESET MASTER as the binlog is in use by an active transaction"
)

# Codes of errors that say that somebody may not do something.
DENIALS: Final = frozenset(
    denial.code
    for denial in (DBACCESS_DENIED_ERROR, ACCESS_DENIED_ERROR, SPECIFIC_ACCESS_DENIED_ERROR)
)
