"""
SHOW REPLICA STATUS: the relay in the columns of MariaDB 10.11.

The relay has no SQL thread: what it has stored is what it has executed, so both threads run or
stand still together. Its positions are GTIDs; file names and offsets are empty or zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.result_set import Column, ColumnType

if TYPE_CHECKING:
    from ibb.protocol.result_set import Value


class StatusColumn(NamedTuple):
    """A column: S text, L and LL unsigned integers, D a number with three decimals."""

    name: str
    kind: str
    length: int
    default: Value

    def definition(self, collation: int) -> Column:
        """Return the definition on the wire."""
        if self.kind == "S":
            return Column.text(self.name, self.length, collation=collation)
        if self.kind == "D":
            return Column(self.name, ColumnType.DOUBLE, self.length, 0x81, decimals=3)
        return (Column.long if self.kind == "L" else Column.longlong)(self.name, self.length)


_LAYOUT: Final = """
Slave_IO_State S30 | Master_Host S766 | Master_User S385 | Master_Port L7 | Connect_Retry L10 |
Master_Log_File S512 | Read_Master_Log_Pos LL10 | Relay_Log_File S512 | Relay_Log_Pos LL10 |
Relay_Master_Log_File S512 | Slave_IO_Running S3 | Slave_SQL_Running S3 | Replicate_Do_DB S20 |
Replicate_Ignore_DB S20 | Replicate_Do_Table S20 | Replicate_Ignore_Table S23 |
Replicate_Wild_Do_Table S24 | Replicate_Wild_Ignore_Table S28 | Last_Errno L4 | Last_Error S20 |
Skip_Counter L10 | Exec_Master_Log_Pos LL10 | Relay_Log_Space LL10 | Until_Condition S6 |
Until_Log_File S512 | Until_Log_Pos LL10 | Master_SSL_Allowed S7 | Master_SSL_CA_File S512 |
Master_SSL_CA_Path S512 | Master_SSL_Cert S512 | Master_SSL_Cipher S512 | Master_SSL_Key S512 |
Seconds_Behind_Master LL10 | Master_SSL_Verify_Server_Cert S3 | Last_IO_Errno L4 |
Last_IO_Error S20 | Last_SQL_Errno L4 | Last_SQL_Error S20 | Replicate_Ignore_Server_Ids S512 |
Master_Server_Id L8 | Master_SSL_Crl S512 | Master_SSL_Crlpath S512 | Using_Gtid S11 |
Gtid_IO_Pos S30 | Replicate_Do_Domain_Ids S512 | Replicate_Ignore_Domain_Ids S512 |
Parallel_Mode S12 | SQL_Delay L10 | SQL_Remaining_Delay L8 | Slave_SQL_Running_State S20 |
Slave_DDL_Groups LL20 | Slave_Non_Transactional_Groups LL20 | Slave_Transactional_Groups LL20 |
Replicate_Rewrite_DB S23
"""
_BEFORE: Final = "Connection_name S192 | Slave_SQL_State S30"
_BEHIND: Final = """
Retried_transactions L10 | Max_relay_log_size LL10 | Executed_log_entries L10 |
Slave_received_heartbeats L10 | Slave_heartbeat_period D10 | Gtid_Slave_Pos S0
"""


def _columns(layout: str) -> tuple[StatusColumn, ...]:
    columns = []
    for entry in layout.split("|"):
        name, size = entry.split()
        kind = size.rstrip("0123456789")
        default: Value = {"S": "", "D": "0.000"}.get(kind, 0)
        columns.append(StatusColumn(name, kind, int(size.removeprefix(kind)), default))
    return tuple(columns)


STATUS_COLUMNS: Final = _columns(_LAYOUT)
ALL_STATUS_COLUMNS: Final = _columns(_BEFORE) + STATUS_COLUMNS + _columns(_BEHIND)


def status_row(**values: Value) -> dict[str, Value]:
    """Return a row by column name: *values*, and what says "none" in the columns left out."""
    row: dict[str, Value] = {column.name: column.default for column in ALL_STATUS_COLUMNS}
    row |= {
        "Until_Condition": "None",
        "Master_SSL_Allowed": "No",
        "Master_SSL_Verify_Server_Cert": "No",
        "Using_Gtid": "Slave_Pos",
        "Parallel_Mode": "optimistic",
        "Seconds_Behind_Master": None,
        "SQL_Remaining_Delay": None,
    }
    assert values.keys() <= row.keys()
    return row | values
