"""Incident events: what a primary says when it has lost some."""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventType, build_event
from ibb.protocol.incident import Incident, IncidentKind


@pytest.mark.parametrize(
    "incident",
    [
        Incident(IncidentKind.LOST_EVENTS, "error writing to the binary log", 1_700_000_000, 101),
        Incident(IncidentKind.NONE, "", 0, 0),
        Incident(IncidentKind.LOST_EVENTS, "ä" * 127, 1, 1),
    ],
)
def test_round_trip(incident):
    assert Incident.parse(incident.encode()) == incident


def test_bytes_are_those_of_a_primary():
    event = Incident(1, "lost", 0, 1).encode()
    assert event[19:].hex() == "0100" + "04" + b"lost".hex()


@pytest.mark.parametrize(("kind", "name"), [(0, "NONE"), (1, "LOST_EVENTS"), (7, "7")])
def test_kinds_have_their_names(kind, name):
    assert Incident(kind, "", 0, 1).name == name


def test_an_event_without_message_has_none():
    event = build_event(EventType.INCIDENT, b"\1\0", timestamp=0, server_id=1)
    assert Incident.parse(event).message == ""


@pytest.mark.parametrize("body", [b"", b"\1", b"\1\0\5four"])
def test_a_short_event_is_refused(body):
    with pytest.raises(FormatError):
        Incident.parse(build_event(EventType.INCIDENT, body, timestamp=0, server_id=1))
