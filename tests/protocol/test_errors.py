"""The errors say where the damage is, survive pickling and keep their families apart."""

import pickle

import pytest

from ibb.protocol.errors import FormatError, IbbError, ProtocolError, SqlError, Truncated


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "page checksum is wrong"),
        ({"offset": 7}, "page checksum is wrong (offset 7)"),
        (
            {"file": "binlog-000003.ibb", "page": 0, "offset": 0},
            "page checksum is wrong (file binlog-000003.ibb, page 0, offset 0)",
        ),
    ],
)
def test_format_error_names_every_place_it_was_given(place, text):
    assert str(FormatError("page checksum is wrong", **place)) == text


def test_place_may_be_added_by_whoever_knows_it():
    error = FormatError("bad length", offset=4)
    error.file = "binlog-000001.ibb"
    assert str(error) == "bad length (file binlog-000001.ibb, offset 4)"


def test_truncated_is_damage_but_a_protocol_error_is_not():
    assert issubclass(Truncated, FormatError)
    assert not issubclass(ProtocolError, FormatError)
    assert not issubclass(SqlError, FormatError)
    assert all(issubclass(kind, IbbError) for kind in (FormatError, ProtocolError, SqlError))


def test_sql_error_shows_what_the_client_sees():
    error = SqlError(1064, "42000", "no such statement")
    assert (error.code, error.sqlstate, error.message) == (1064, "42000", "no such statement")
    assert str(error) == "1064 (42000) no such statement"


@pytest.mark.parametrize(
    "error",
    [
        FormatError("bad", file="f", page=1, offset=2),
        Truncated("short", offset=9),
        SqlError(1236, "HY000", "gone"),
    ],
)
def test_errors_cross_process_borders(error):
    """Spark pickles what a worker raises."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)
