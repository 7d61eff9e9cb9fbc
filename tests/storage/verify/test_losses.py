"""What is said to be lost: exact, or "at least", never another server's groups."""

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage.position import Position
from ibb.storage.verify.losses import GtidRange, missing_in, name_servers

from ..binlog_builder import event
from .verify_rig import SIZE, Binlog, findings


def lost(path):
    (found,) = findings(path)
    return found.lost


def binlog(path, gtids, size=100, **shape):
    """Return a binlog with these groups, and where they begin."""
    made = Binlog(path, pages=40, interval=4, **shape)
    places = {}
    for gtid in gtids:
        places[gtid] = made.builder.commit(gtid, event(size))
    made.write()
    return made, places


def cut_into(places, page):
    """Return the groups of which any byte is in a page."""
    before = [gtid for gtid, place in places.items() if place.offset // SIZE < page]
    return [before[-1], *(gtid for gtid, at in places.items() if at.offset // SIZE == page)]


def test_groups_of_two_servers_that_take_turns(tmp_path):
    """The next groups tell the numbers, but not who had logged them; the one begun is known."""
    made, places = binlog(tmp_path, [Gtid(0, 1 + seq % 2, seq) for seq in range(1, 60)])
    made.raw(Position(0, 6 * SIZE + 30), b"\x5a")
    first, *rest = cut_into(places, 6)
    expected = f"{first}, 0-?-{rest[0].seq}..{rest[-1].seq} (server unknown)"
    assert lost(tmp_path) == expected


def test_groups_behind_which_only_one_server_went_on(tmp_path):
    """The state has the other one's newest number; higher ones can only be of the one."""
    gtids = [Gtid(0, 2 if seq <= 20 else 1, seq) for seq in range(1, 60)]
    made, places = binlog(tmp_path, gtids)
    assert [gtid.seq for gtid in cut_into(places, 6)] == [18, 19, 20, 21, 22]
    made.raw(Position(0, 6 * SIZE + 30), b"\x5a")
    assert lost(tmp_path) == "0-2-18, 0-?-19, 0-2-20, 0-1-21..22 (server unknown)"


def test_the_first_groups_of_a_domain_are_named_as_far_as_they_are_known(tmp_path):
    """Where the numbers of a domain begin, nothing tells."""
    old = [Gtid(0, 1, seq) for seq in range(1, 20)]
    new = [Gtid(7, 1, seq) for seq in range(50, 80)]
    made, places = binlog(tmp_path, [*old, *new])
    page = places[new[0]].offset // SIZE
    assert [gtid.seq for gtid in cut_into(places, page)] == [18, 19, 50, 51, 52]
    made.raw(Position(0, page * SIZE + 30), b"\x5a")
    assert lost(tmp_path) == "0-1-18..19 at least"


def test_the_first_groups_of_a_domain_that_begins_with_one(tmp_path):
    old = [Gtid(0, 1, seq) for seq in range(1, 20)]
    new = [Gtid(7, 1, seq) for seq in range(1, 30)]
    made, places = binlog(tmp_path, [*old, *new])
    page = places[new[0]].offset // SIZE + 1
    made.raw(Position(0, page * SIZE + 30), b"\x5a")
    first, *rest = cut_into(places, page)
    assert lost(tmp_path) == f"7-1-{first.seq}..{rest[-1].seq}"


def test_numbers_are_cut_by_who_can_have_logged_them():
    gap = GtidRange(0, None, 10, 30)
    assert name_servers(gap, {1: 40}) == [GtidRange(0, 1, 10, 30)]
    assert name_servers(gap, {1: 40, 2: 9}) == [GtidRange(0, 1, 10, 30)]
    assert name_servers(gap, {1: 30, 2: 50}) == [
        GtidRange(0, None, 10, 29),
        GtidRange(0, 1, 30, 30),
    ]
    assert name_servers(gap, {1: 20, 2: 50}) == [
        GtidRange(0, None, 10, 19),
        GtidRange(0, 1, 20, 20),
        GtidRange(0, 2, 21, 30),
    ]
    assert name_servers(gap, {1: 10, 2: 30}) == [GtidRange(0, 1, 10, 10), GtidRange(0, 2, 11, 30)]
    assert name_servers(gap, {}) == [gap]


def test_a_server_that_came_late_may_have_logged_more_than_its_newest():
    told, found = {1: 20, 2: 15}, BinlogState([Gtid(0, 2, 12), Gtid(0, 1, 20)])
    missing = missing_in(told, Gtid(0, 1, 20), found)
    assert missing == ([GtidRange(0, 2, 15, 15)], False)
    assert missing_in(told, Gtid(0, 1, 20), found, [GtidRange(0, None, 13, 16)]) == ([], True)
