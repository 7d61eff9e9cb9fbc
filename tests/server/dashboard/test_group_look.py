"""A look into a group, and the groups of a file."""

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.dashboard import group_look
from ibb.server.dashboard.group_look import NoSuchGroup, list_groups, look_into
from ibb.storage.position import Position

from ...storage.events import TIMESTAMP, query, rows_event, xid


def commit(store, gtid, events):
    with store.begin() as group:
        group.write(encode_gtid_event(gtid, TIMESTAMP, 0) + events)
        place = group.commit(gtid)
    groups = list(list_groups(store, f"binlog-{place.file_no:06d}.ibb", 0, 200).rows)
    return next(Position(place.file_no, row["Position"]) for row in groups
                if row["Gtid"] == str(gtid))  # fmt: skip


def test_events_have_the_words_of_show_binlog_events(store):
    gtid = Gtid(0, 1, 11)
    sizes = [len(encode_gtid_event(gtid, TIMESTAMP, 0)), len(query("BEGIN")), len(xid(5))]
    look = look_into(store, commit(store, gtid, query("BEGIN") + xid(5)))
    assert (look.gtid, look.timestamp, look.events) == (gtid, TIMESTAMP, 3)
    assert [row["Event_type"] for row in look.rows] == ["Gtid", "Query", "Xid"]
    assert [row["Bytes"] for row in look.rows] == sizes
    assert [row["Offset"] for row in look.rows] == [0, sizes[0], sum(sizes[:2])]
    assert look.rows[0]["Info"] == "BEGIN GTID 0-1-11"
    assert look.rows[2]["Info"] == "COMMIT /* xid=5 */"
    assert (look.size, look.left_out) == (sum(sizes), "")


def test_a_large_group_is_read_and_shown_in_part(store, monkeypatch):
    gtid = Gtid(0, 1, 11)
    events = query("BEGIN") + b"".join(rows_event(4000) for _ in range(40)) + xid(5)
    position = commit(store, gtid, events)
    monkeypatch.setattr(group_look, "EVENTS_MAX", 10)
    look = look_into(store, position)
    assert (look.events, len(look.rows), look.left_out) == (43, 10, "")
    assert [row["Number"] for row in look_into(store, position, skip=40).rows] == [40, 41, 42]
    monkeypatch.setattr(group_look, "BYTES_MAX", 20_000)
    look = look_into(store, position)
    assert 20_000 <= look.size < len(events)
    assert look.left_out == f"only its first {look.size} bytes were read"
    monkeypatch.setattr(group_look, "SECONDS_MAX", -1.0)
    monkeypatch.setattr(group_look, "BYTES_MAX", 1 << 30)
    assert "in the time for a look" in look_into(store, position).left_out


def test_groups_of_a_file_come_in_pages(store):
    name = "binlog-000000.ibb"
    first = list_groups(store, name, 0, 4)
    assert [row["Gtid"] for row in first.rows] == ["0-1-1", "0-1-2", "0-1-3", "0-1-4"]
    second = list_groups(store, name, first.following, 200)
    assert [row["Gtid"] for row in second.rows] == [f"0-1-{seq}" for seq in range(5, 11)]
    assert second.following is None
    for row in first.rows:
        assert str(look_into(store, Position(0, row["Position"])).gtid) == row["Gtid"]
    assert list_groups(store, name, 1 << 40, 10).rows == []


@pytest.mark.parametrize("place", [Position(0, 5), Position(9, 512), Position(0, 1 << 60)])
def test_a_place_without_a_group_is_told(store, place):
    with pytest.raises(NoSuchGroup, match="no group begins in"):
        look_into(store, place)


def test_a_file_that_is_not_there_is_told(store):
    for name in ("binlog-000099.ibb", "../../etc/passwd", ""):
        with pytest.raises(NoSuchGroup, match="there is no file"):
            list_groups(store, name, 0, 10)


def test_nothing_is_held_behind_a_look(store):
    list_groups(store, "binlog-000000.ibb", 0, 2)
    assert store._holds.all() == []
