"""Parameters and binary rows of prepared statements, by the types that drivers declare."""

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from mysql_mimic.types import ColumnType

from ibb.protocol.errors import FormatError
from ibb.protocol.prepared_statement import Parameters, encode_binary_row
from ibb.protocol.result_set import Column

MOMENT = datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001 - SQL's moments have no zone


def read_one(code, data):
    """Return the value of a statement's only parameter."""
    return Parameters(1).read(b"\0\1" + bytes([code, 0]) + data, {})[0]


@pytest.mark.parametrize(
    ("code", "data", "value"),
    [
        (ColumnType.LONGLONG, b"\xff" * 8, -1),
        (ColumnType.VAR_STRING, b"\x03\xe2\x82\xac", "€"),
        (ColumnType.VAR_STRING, b"\x03\x00\xff\x80", "\0\udcff\udc80"),
        (ColumnType.BLOB, b"\x01a", b"a"),
        (ColumnType.NEWDECIMAL, b"\x05-1.25", Decimal("-1.25")),
        (ColumnType.DATETIME, bytes.fromhex("0b e807 02 1d 01 02 03 04000000"), MOMENT),
        (ColumnType.DATETIME, bytes.fromhex("04 e807 02 1d"), datetime(2024, 2, 29)),  # noqa: DTZ001
        (ColumnType.DATETIME, b"\0", "0000-00-00"),
        (
            ColumnType.DATETIME,
            bytes.fromhex("0b e807 02 1d 01 02 03 ffffffff"),
            "2024-02-29 01:02:03.4294967295",
        ),
        (ColumnType.DOUBLE, bytes.fromhex("000000000000f87f"), None),
        (ColumnType.FLOAT, bytes.fromhex("000080ff"), None),
        (ColumnType.DATETIME, bytes.fromhex("07 0000 00 00 01 02 03"), "0000-00-00 01:02:03"),
        (ColumnType.DATE, bytes.fromhex("04 e807 02 1d"), date(2024, 2, 29)),
        (
            ColumnType.TIME,
            bytes.fromhex("0c 01 01000000 06 00 05 01000000"),
            -timedelta(hours=30, seconds=5, microseconds=1),
        ),
    ],
)
def test_a_parameter_has_the_type_that_its_driver_declares(code, data, value):
    found = read_one(code, data)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (ColumnType.NEWDECIMAL, b"\x03one"),
        (ColumnType.NEWDECIMAL, b"\x01\xff"),
        (ColumnType.NEWDECIMAL, b"\x03NaN"),
        (ColumnType.NEWDECIMAL, b"\x09-Infinity"),
        (ColumnType.NEWDECIMAL, b"\x0b1e999999999"),
        (ColumnType.NEWDECIMAL, b"\x0c1e-999999999"),
        (ColumnType.TIME, bytes.fromhex("08 00 ffffffff 00 00 00")),
        (ColumnType.LONG, b"\1"),
        (0xF0, b"\0"),
    ],
)
def test_a_parameter_that_is_no_value_of_its_type_is_refused(code, data):
    with pytest.raises(FormatError):
        read_one(code, data)


def test_a_time_goes_out_with_its_fraction():
    row = encode_binary_row([Column("t", ColumnType.TIME, 10, 0)], ["-30:00:05.000001"])
    assert row == bytes.fromhex("00 00 0c 01 01000000 06 00 05 01000000")
