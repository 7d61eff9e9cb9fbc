"""
What a dump is asked for: the command, and the variables that the session set before it.

Source: dump-protocol 3.2, 3.3 and 6.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Final

from ibb.protocol.command import BinlogDump, BinlogDumpGtid, DumpFlag
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.event_encoder import CAPABILITY_GTID
from ibb.protocol.gtid import GtidPosition
from ibb.server.config import CLIENT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.server.sql.types import SqlValue
    from ibb.server.statements.variables import SessionVariables

HEARTBEAT_SECONDS_MIN: Final = 0.001  # as MariaDB's own least period
HEARTBEAT_SECONDS_MAX: Final = 4_294_967.0  # and its greatest
_BIGINT_MAX: Final = 2**63 - 1
_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,40}")
_NANOSECONDS: Final = 1e9
_TOOLS: Final = ("mysqlbinlog", "mariadb-binlog")
_CLIENT_OF_SERVERS: Final = "libmysql"  # what replicas call themselves; tools say libmariadb
_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.")
_FRAGMENTS: Final = (12, 3)  # the first version that knows PARTIAL_ROW_DATA


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """
    One dump.

    Attributes:
        file_name, position: where to start, heeded only without *connect_state*.
        server_id: of the replica; 0 from tools.
        non_block: end when everything stored has been sent.
        annotate: send ANNOTATE_ROWS events.
        connect_state: the last GTID had in each domain; None: start by file and position.
        until: stop at these GTIDs; None: never.
        until_before: stop before them instead of behind them.
        strict: refuse to start in a hole of a domain's numbers.
        ignore_duplicates: a position above what is stored is no error.
        capability: what events the client knows, 0 to 4.
        checksum: events carry a CRC-32.
        skip_marked: leave out events that are marked for skipping.
        semi_sync: the client acknowledges what it is asked to.
        needs_start_list: begin with a GTID list of the start position, as `mariadb-binlog` wants.
        join_fragments: the client is older than fragments of rows events, or may be.
    """

    file_name: str
    position: int
    server_id: int
    non_block: bool
    annotate: bool
    connect_state: GtidPosition | None
    until: GtidPosition | None
    until_before: bool
    strict: bool
    ignore_duplicates: bool
    capability: int
    checksum: bool
    skip_marked: bool
    semi_sync: bool
    needs_start_list: bool
    join_fragments: bool


def make_request(
    command: BinlogDump | BinlogDumpGtid,
    variables: SessionVariables,
    attributes: Mapping[str, str],
) -> DumpRequest:
    """
    Put together what the client wants.

    Args:
        command: the dump command.
        variables: of the session that sent it.
        attributes: what the client said of itself when it connected.

    Raises:
        SqlError: 1941 or 1943, a GTID list is wrong; 1236, a MySQL GTID set.
        Truncated: a GTID set too short to have a count.
    """
    connect_state = _text(variables.user("slave_connect_state"))
    if isinstance(command, BinlogDumpGtid):
        if command.has_mysql_gtids:
            raise MASTER_FATAL_ERROR_READING_BINLOG.error(
                "MySQL GTID sets are not supported: set @slave_connect_state to a MariaDB GTID list"
            )
        if connect_state is None:
            connect_state = command.mariadb_gtids
    capability = max(0, _integer(variables.user("mariadb_slave_capability")))
    until = _text(variables.user("slave_until_gtid"))
    is_tool = attributes.get("program_name") in _TOOLS
    return DumpRequest(
        file_name=command.file_name,
        position=command.position,
        server_id=command.server_id,
        non_block=bool(command.flags & DumpFlag.NON_BLOCK),
        annotate=bool(command.flags & DumpFlag.SEND_ANNOTATE_ROWS),
        connect_state=None if connect_state is None else GtidPosition.parse(connect_state),
        until=None if until is None else GtidPosition.parse(until),
        until_before=_integer(variables.user("slave_gtid_until_before_gtids")) != 0,
        strict=_integer(variables.user("slave_gtid_strict_mode")) != 0,
        ignore_duplicates=_integer(variables.user("slave_gtid_ignore_duplicates")) != 0,
        capability=capability,
        checksum=wants_checksum(variables),
        skip_marked=variables.skip_replication,
        semi_sync=_integer(variables.user("rpl_semi_sync_slave")) != 0,
        needs_start_list=capability >= CAPABILITY_GTID and (is_tool or command.server_id == 0),
        join_fragments=not _knows_fragments(attributes),
    )


def _knows_fragments(attributes: Mapping[str, str]) -> bool:
    """Tell whether the client is a replica that is new enough; of tools nobody can tell."""
    name = attributes.get("_client_name")
    if name != _CLIENT_OF_SERVERS:
        return name == CLIENT_NAME
    version = _VERSION.match(attributes.get("_client_version", ""))
    return version is not None and tuple(map(int, version.groups())) >= _FRAGMENTS


def wants_checksum(variables: SessionVariables) -> bool:
    """Tell whether the session asked for event checksums; one that never did gets none."""
    return str(variables.user("master_binlog_checksum")).upper() == "CRC32"


def heartbeat_period(variables: SessionVariables) -> float | None:
    """Return the seconds of silence after which the session wants a heartbeat, or None."""
    nanoseconds = _integer(variables.user("master_heartbeat_period"))
    if nanoseconds <= 0:
        return None
    return min(max(nanoseconds / _NANOSECONDS, HEARTBEAT_SECONDS_MIN), HEARTBEAT_SECONDS_MAX)


def _text(value: SqlValue) -> str | None:
    return None if value is None else str(value)


def _integer(value: SqlValue) -> int:
    """Return a variable as SQL makes a whole number of it: of a text the digits it begins with."""
    if isinstance(value, str):
        digits = _DIGITS.match(value)
        value = int(digits[0]) if digits else 0
    if isinstance(value, float):
        value = Decimal(value) if math.isfinite(value) else 0
    if isinstance(value, Decimal):
        value = min(max(value, Decimal(-_BIGINT_MAX)), Decimal(_BIGINT_MAX))
        value = int(value.to_integral_value(ROUND_HALF_UP))
    return max(-_BIGINT_MAX, min(value, _BIGINT_MAX)) if isinstance(value, int) else 0
