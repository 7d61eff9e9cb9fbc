"""SHOW BINLOG EVENTS tells of the same events in the same words as a real 10.11."""

import pytest

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("twins")]

OF_FILES = (b"Gtid_list", b"Binlog_checkpoint", b"Rotate", b"Stop")
EVENTS_MIN = 200


def events(client):
    """Return type, server id and info of each event that is not about a file."""
    (answer,) = client.query("SHOW BINLOG EVENTS")
    return [(row[2], row[3], row[5]) for row in answer.rows if row[2] not in OF_FILES]


def test_every_event_is_told_of_in_the_same_words(twins):
    with twins.clients("dba") as (real, ours):
        expected, found = events(real), events(ours)
    assert len(expected) >= EVENTS_MIN
    assert found[: len(expected)] == expected
    rest = [event for event in found[len(expected) :] if event[0] != b"Format_desc"]
    assert rest == []  # only the description that a store gets at each opening
