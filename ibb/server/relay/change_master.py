"""What CHANGE MASTER changes: the upstream's address, and settings of the relay."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.error_codes import (
    DUP_ARGUMENT,
    NOT_SUPPORTED_YET,
    SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE,
    SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX,
    WRONG_ARGUMENTS,
)
from ibb.server.sql.context import Warned

from .upstream import is_host_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ibb.server.config import Config

    from .upstream import UpstreamAddress

# Options that change nothing here, with the values that they may have.
_FIXED_OPTIONS: Final[dict[str, tuple[str | int, ...]]] = {
    "MASTER_USE_GTID": ("SLAVE_POS", "REPLICA_POS", "CURRENT_POS"),
    "MASTER_DELAY": (0,),
    "IGNORE_SERVER_IDS": ("",),
    "IGNORE_DOMAIN_IDS": ("",),
    "MASTER_DEMOTE_TO_SLAVE": (0,),
}
_PORT_MAX: Final = 0xFFFF
_RETRY_SECONDS_MIN: Final = 1
_RETRY_SECONDS_MAX: Final = 31_536_000
_HEARTBEAT_SECONDS_MIN: Final = 0.001
_HEARTBEAT_SECONDS_MAX: Final = 4_294_967
_WRONG_VALUE: Final = 1292


class Changed(NamedTuple):
    """What a CHANGE MASTER leaves: the address, settings by name, and what to warn of."""

    address: UpstreamAddress
    settings: dict[str, float]
    warnings: list[Warned]


def change_master(
    options: Sequence[tuple[str, str | int]], address: UpstreamAddress, config: Config
) -> Changed:
    """
    Return what *options* make of *address* and of the relay's settings; the last of a name counts.

    Raises:
        SqlError: 1210, 1225 or 1624 an option is wrong, 1235 one means nothing here.
    """
    settings: dict[str, float] = {}
    warnings: list[Warned] = []
    if [name for name, _ in options].count("MASTER_USE_GTID") > 1:
        raise DUP_ARGUMENT.error("MASTER_use_gtid")
    for name, value in options:
        match name:
            case "MASTER_HOST":
                if not is_host_name(str(value)):
                    raise WRONG_ARGUMENTS.error("MASTER_HOST")
                address = replace(address, host=str(value))
            case "MASTER_USER":
                address = replace(address, user=str(value))
            case "MASTER_PASSWORD":
                address = replace(address, password=str(value))
            case "MASTER_PORT":
                if not 0 < int(value) <= _PORT_MAX:
                    raise WRONG_ARGUMENTS.error("MASTER_PORT")
                address = replace(address, port=int(value))
            case "MASTER_CONNECT_RETRY":
                settings["master_connect_retry"] = _retry_seconds(int(value), warnings)
            case "MASTER_HEARTBEAT_PERIOD":
                settings["master_heartbeat_period"] = _period(float(value), config, warnings)
            case _ if value not in _FIXED_OPTIONS.get(name, ()):
                raise NOT_SUPPORTED_YET.error(f"{name} of a relay")
    return Changed(address, settings, warnings)


def _retry_seconds(seconds: int, warnings: list[Warned]) -> float:
    bounded = max(_RETRY_SECONDS_MIN, min(seconds, _RETRY_SECONDS_MAX))
    if bounded != seconds:
        text = f"Truncated incorrect MASTER_CONNECT_RETRY value: '{seconds}'"
        warnings.append(Warned("Warning", _WRONG_VALUE, text))
    return float(bounded)


def _period(seconds: float, config: Config, warnings: list[Warned]) -> float:
    """Return how often the upstream is to say that it lives; one that never does is not for us."""
    if seconds > _HEARTBEAT_SECONDS_MAX:
        raise SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE.error(_HEARTBEAT_SECONDS_MAX)
    if seconds < _HEARTBEAT_SECONDS_MIN:
        raise NOT_SUPPORTED_YET.error("MASTER_HEARTBEAT_PERIOD = 0 of a relay")
    if seconds < config.slave_net_timeout:
        return seconds
    warning = SLAVE_HEARTBEAT_VALUE_OUT_OF_RANGE_MAX.error()
    warnings.append(Warned("Warning", warning.code, warning.message))
    return config.slave_net_timeout / 2
