"""What clients set before they dump, in whatever type SQL gave it."""

from decimal import Decimal
from math import inf, nan

import pytest

from ibb.protocol.command import BinlogDump
from ibb.server.dump.dump_request import HEARTBEAT_SECONDS_MAX, heartbeat_period, make_request


class Variables:
    """User variables of a session, as they were set."""

    skip_replication = False

    def __init__(self, **values):
        self.values = values

    def user(self, name):
        return self.values.get(name)


@pytest.mark.parametrize(
    ("value", "capability"),
    [
        *((value, 4) for value in (4, "4", Decimal("4.0"), 4.0, 4e0, " 4", "4.9", "4e7", 3.7)),
        *((value, 0) for value in (None, "", "x4", inf, nan, -5, "-5", Decimal("0.4"), b"4")),
    ],
)
def test_numbers_of_every_type_count(value, capability):
    variables = Variables(mariadb_slave_capability=value, slave_connect_state="")
    request = make_request(BinlogDump(4, 0, 5, ""), variables, {})
    assert request.capability == capability


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (100_000_000, 0.1),
        (1e8, 0.1),
        (Decimal("1e8"), 0.1),
        ("100000000", 0.1),
        (1, 0.001),
        (0, None),
        (0.0, None),
        (None, None),
        (2**64 - 1, HEARTBEAT_SECONDS_MAX),
        ("18446744073709551615", HEARTBEAT_SECONDS_MAX),
        (Decimal("1e18"), HEARTBEAT_SECONDS_MAX),
        ("9" * 30, HEARTBEAT_SECONDS_MAX),
        (1e300, HEARTBEAT_SECONDS_MAX),
        (Decimal("1e65"), HEARTBEAT_SECONDS_MAX),
        (-1e300, None),
    ],
)
def test_a_heartbeat_period_is_kept_within_bounds(value, seconds):
    assert heartbeat_period(Variables(master_heartbeat_period=value)) == seconds
