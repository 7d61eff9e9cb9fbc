"""Numbers, sqlstates and texts are those that real servers were seen to send."""

import re

import pytest

from ibb.protocol import error_codes
from ibb.protocol.error_codes import ErrorCode

ALL = {name: value for name, value in vars(error_codes).items() if isinstance(value, ErrorCode)}


@pytest.mark.parametrize(
    ("error", "code", "sqlstate", "message"),
    [
        (
            error_codes.ACCESS_DENIED_ERROR.error("repl", "localhost", "YES"),
            1045,
            "28000",
            "Access denied for user 'repl'@'localhost' (using password: YES)",
        ),
        (
            error_codes.PARSE_ERROR.error("LOG STATUS", 1),
            1064,
            "42000",
            (
                "You have an error in your SQL syntax; check the manual that corresponds to your "
                "MariaDB server version for the right syntax to use near 'LOG STATUS' at line 1"
            ),
        ),
        (
            error_codes.SLAVE_SAME_ID.error(),
            4052,
            "HY000",
            "A slave with the same server_id as this slave has connected to the master",
        ),
        (
            error_codes.DUPLICATE_GTID_DOMAIN.error("0-1-2", "0-2-3", 0),
            1943,
            "HY000",
            "GTID 0-1-2 and 0-2-3 conflict (duplicate domain id 0)",
        ),
        (
            error_codes.MASTER_FATAL_ERROR_READING_BINLOG.error("100 % gone"),
            1236,
            "HY000",
            "100 % gone",
        ),
    ],
)
def test_texts_are_those_of_a_real_server(error, code, sqlstate, message):
    assert (error.code, error.sqlstate, error.message) == (code, sqlstate, message)


@pytest.mark.parametrize("name", ALL)
def test_every_entry_is_fit_for_the_wire(name):
    code, sqlstate, text = ALL[name]
    assert 1000 <= code < 65536
    assert re.fullmatch(r"[0-9A-Z]{5}", sqlstate)
    assert text
    assert set(re.findall(r"%(.)", text)) <= {"s", "d"}


def test_no_number_is_used_twice():
    assert len({value.code for value in ALL.values()}) == len(ALL)
