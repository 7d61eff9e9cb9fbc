"""The types that parameters of prepared statements have in their statement."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from ibb.server.sql.parameter_values import typed_parameter
from ibb.server.sql.types import Kind

MOMENT = datetime(2024, 2, 29, 1, 2, 3)  # noqa: DTZ001 - SQL's moments have no zone


@pytest.mark.parametrize(
    ("value", "kind", "decimals"),
    [
        (None, Kind.NULL, 0),
        (7, Kind.INTEGER, 0),
        (Decimal("-1.250"), Kind.DECIMAL, 3),
        (Decimal("1e3"), Kind.DECIMAL, 0),
        (b"\0", Kind.BINARY, 0),
        ("text", Kind.TEXT, 0),
        (date(2024, 2, 29), Kind.DATE, 0),
        (MOMENT, Kind.DATETIME, 0),
        (MOMENT.replace(microsecond=1), Kind.DATETIME, 6),
        (timedelta(hours=30), Kind.TIME, 0),
        (-timedelta(hours=30, microseconds=1), Kind.TIME, 6),
    ],
)
def test_a_parameter_is_declared_as_mariadb_does(value, kind, decimals):
    found = typed_parameter(value)
    assert found.value == value
    assert (found.type.kind, found.type.decimals) == (kind, decimals)
