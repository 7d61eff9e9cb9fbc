"""The reader of a soak sees what is lost and what comes twice."""

import pytest

from ibb.protocol.gtid import Gtid

from .soak_load import SteadyReader, statement


@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [
        ((1, 2, 3), []),
        ((1, 3), ["the reader got 0-1-3 behind 0-1-1"]),
        ((1, 2, 2), ["the reader got 0-1-2 behind 0-1-2"]),
        ((2,), ["the reader got 0-1-2 behind "]),
    ],
)
def test_holes_and_repetitions_are_seen(numbers, wrong):
    reader = SteadyReader(port=1)
    for number in numbers:
        reader.take(Gtid(0, 1, number))
    assert (reader.wrong, reader.groups, reader.number) == (wrong, len(numbers), numbers[-1])


def test_a_server_that_is_away_ends_a_connection_and_nothing_else():
    reader = SteadyReader(port=1)
    reader.read()
    assert (reader.groups, reader.wrong) == (0, [])


def test_the_load_has_groups_of_all_sizes():
    kinds = {statement(number).split(" (")[0].split(" VALUES")[0][:24] for number in range(1, 501)}
    assert len(kinds) == 3
