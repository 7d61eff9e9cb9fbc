"""The search for a start copes with every interval and with states that are left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.chunk import used_end
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import LeaseError
from ibb.storage.file_header import FileHeader
from ibb.storage.file_states import FileStates
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import (
    Newest,
    TooOld,
    _guess,
    find_file_start,
    find_oldest,
    find_start,
)
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_source import NO_MORE_DATA, NO_MORE_PAGES, PageRead, PageStatus
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from .binlog_builder import BinlogBuilder, event
from .events import query, xid
from .test_purge import fill_to, options, publish

SIZE = 512


@pytest.fixture
def built(tmp_path):
    """Return a function that builds groups with some layout and opens the directory."""

    def build(groups=60, size=200, **layout):
        builder = BinlogBuilder(**{"pages": 32, **layout})
        builder.places = [
            builder.commit(Gtid(seq % 2, 1, seq), event(size)) for seq in range(1, groups + 1)
        ]
        builder.write(tmp_path)
        return builder, BinlogDirectory(OsDisk(), str(tmp_path))

    return build


def states_after(count):
    """Return the state before the first group, after it, and so on."""
    states = [BinlogState()]
    for seq in range(1, count + 1):
        states.append(states[-1].copy())
        states[-1].update(Gtid(seq % 2, 1, seq))
    return states


@pytest.mark.parametrize("interval", [0, 1, 2, 3, 5, 31, 32, 33, 2097152, 2**63])
def test_any_interval_gives_a_place_and_the_state_there(built, interval):
    builder, source = built(interval=interval)
    states = states_after(60)
    for index in range(2, 61, 7):
        start = find_start(source, states[index].position())
        skipped = sum(place < start.position for place in builder.places)
        assert skipped <= index
        assert start.state == states[skipped]
        if 1 <= interval <= 5 and start.position.file_no == builder.places[index - 1].file_no:
            behind = builder.places[index - 1].offset - start.position.offset
            assert behind <= (interval + 1) * SIZE


@given(st.integers(0, 40), st.integers(1, 40))
def test_a_page_count_that_lies_does_not_mislead(interval, claimed):
    builder = BinlogBuilder(pages=16, interval=interval)
    for seq in range(1, 30):
        builder.commit(Gtid(0, 1, seq), event(150))
    source = InMemory(builder, page_count=claimed**12)
    for seq in (1, 9, 17, 29):
        start = find_start(source, GtidPosition([Gtid(0, 1, seq)]))
        following = GroupReader(source, start.position).next()
        assert start.state.seq(0, 1) in (None, *range(seq + 1))
        if following is not None:
            assert following.gtid.seq <= seq + 1


class InMemory:
    """The pages of a builder as they are, headers with another page count."""

    tail_is_final = True

    def __init__(self, builder, page_count):
        self.builder, self.page_count = builder, page_count
        self.file_states = FileStates()

    def first_file(self):
        return 0

    def last_file(self):
        return len(self.builder.files) - 1

    def file_numbers(self):
        return list(range(len(self.builder.files)))

    def header(self, file_no):
        if file_no > self.last_file():
            return None
        return FileHeader(
            file_no=file_no,
            page_size=SIZE,
            page_count=self.page_count,
            lsn=0,
            state_interval=self.builder.interval,
            oob_reference=0,
        )

    def first_state(self, file_no):
        return None  # page by page

    def read_page(self, file_no, page_no):
        start = page_no * SIZE
        image = self.builder.files[file_no]
        last = file_no == self.last_file()
        if start >= len(image):
            return NO_MORE_DATA if last else NO_MORE_PAGES
        page = bytes(image[start : start + SIZE])
        return PageRead(page, used_end(page), PageStatus.PAGE)


def test_a_state_that_was_left_out_does_not_hide_the_later_ones():
    builder = BinlogBuilder(pages=32, interval=2)
    builder.left_out = {16, 18}
    for seq in range(1, 56):
        builder.commit(Gtid(0, 1, seq), event(200))
    assert builder.place > 26 * SIZE
    start = find_start(InMemory(builder, page_count=32), GtidPosition([Gtid(0, 1, 55)]))
    assert start.position.offset >= 26 * SIZE


@given(
    st.lists(st.integers(0, 2**64), min_size=3, max_size=3).map(sorted),
    st.integers(0, 12),
    st.none() | st.fractions(0, 2**64).map(float),
)
def test_a_guess_is_where_nobody_has_looked(borders, probes, share):
    low, floor, high = borders
    guess = _guess(low, floor, high, probes, share)
    assert floor < guess < high if high - floor > 1 else guess == floor


@pytest.mark.parametrize("left_out", [{2}, {2, 4}, {2, 6, 10}])
def test_a_state_that_was_left_out_where_it_is_guessed_does_not_hide_the_later_ones(left_out):
    """A domain of which little is to come, far on, makes the first guesses too early ones."""
    builder = BinlogBuilder(pages=32, interval=2)
    builder.left_out = left_out
    rare, state = Gtid(1, 1, 1), BinlogState()
    gtids = [rare, *(Gtid(0, 1, seq) for seq in range(1, 51)), rare._replace(seq=10**12)]
    places = []
    for gtid in gtids:
        places.append(builder.commit(gtid, event(200)))
        state.update(gtid)
    newest = Newest(Position(len(builder.files) - 1, builder.place), state)
    for seq in (36, 40, 44):
        position = GtidPosition([Gtid(0, 1, seq), rare])
        start = find_start(InMemory(builder, page_count=32), position, newest)
        assert abs(places[seq].offset - start.position.offset) <= 3 * SIZE


def test_a_state_further_on_in_a_page_is_not_the_state_of_that_page():
    """The page begins with the rest of a record before which the state was left out."""
    builder = BinlogBuilder(pages=16, interval=2, states=False)
    builder.state([])
    builder.commit(Gtid(0, 1, 5), event(200))
    builder.record(3, b"x" * 400)
    assert 2 * SIZE < builder.place < 3 * SIZE
    builder.state([Gtid(0, 1, 5)])
    builder.commit(Gtid(0, 1, 6), event(50))
    start = find_start(InMemory(builder, page_count=16), GtidPosition([Gtid(0, 1, 5)]))
    assert start == (Position(0, SIZE), BinlogState())


def test_files_without_a_full_state_are_stepped_over(tmp_path):
    builder = BinlogBuilder(pages=8, interval=0)
    builder.commit(Gtid(0, 1, 1), event(50))
    builder.fill_file()
    builder.states = False
    builder.commit(Gtid(0, 1, 2), event(50))
    builder.fill_file()
    builder.commit(Gtid(0, 1, 3), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    assert find_start(source, GtidPosition([Gtid(0, 1, 2)])) == (Position(0, SIZE), BinlogState())


def test_without_any_state_reading_begins_at_the_beginning_of_file_0(tmp_path):
    builder = BinlogBuilder(states=False)
    builder.commit(Gtid(0, 1, 1), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    assert find_start(source, GtidPosition()) == (Position(0, SIZE), BinlogState())


def test_without_any_state_and_without_file_0_every_position_is_too_old(tmp_path):
    builder = BinlogBuilder(states=False, first=3)
    builder.commit(Gtid(0, 1, 1), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    with pytest.raises(TooOld):
        find_start(source, GtidPosition([Gtid(0, 1, 1)]))


def test_a_position_before_the_oldest_file_is_too_old(tmp_path):
    builder = BinlogBuilder(first=3)
    builder.full.update(Gtid(0, 1, 7))
    builder.commit(Gtid(0, 1, 8), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    assert find_start(source, GtidPosition([Gtid(0, 1, 7)])).position == Position(3, SIZE)
    for position in (GtidPosition(), GtidPosition([Gtid(0, 1, 6)]), GtidPosition([Gtid(5, 1, 6)])):
        with pytest.raises(TooOld):
            find_start(source, position)


def test_an_empty_directory_begins_where_its_first_file_will(tmp_path):
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    assert find_start(source, GtidPosition()) == (Position(0, 0), BinlogState())
    assert find_file_start(source, 0) == Position(0, 0)


def test_damage_in_newer_files_does_not_hide_the_older_ones(built, tmp_path):
    _, source = built(pages=8)
    last = source.last_file()
    name = f"binlog-{last:06d}.ibb"
    image = bytearray((tmp_path / name).read_bytes())
    image[SIZE + 9] ^= 1
    (tmp_path / name).write_bytes(image)
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    everything = states_after(60)[60].position()
    assert find_start(source, everything).position.file_no == last - 1


def test_when_only_damage_keeps_a_position_from_being_served_it_is_named(tmp_path):
    builder = BinlogBuilder(first=3)
    builder.full.update(Gtid(0, 1, 7))
    builder.commit(Gtid(0, 1, 8), event(50))
    builder.write(tmp_path)
    file = tmp_path / "binlog-000003.ibb"
    image = bytearray(file.read_bytes())
    image[SIZE + 2] ^= 1
    file.write_bytes(image)
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    with pytest.raises(FormatError, match="Page corruption"):
        find_start(source, GtidPosition([Gtid(0, 1, 7)]))


def test_groups_that_lost_their_beginning_make_a_position_too_old(tmp_path):
    """Their file is there still, for pieces of later groups; no lease is given for it."""
    with Store.open(tmp_path, options()) as store:
        with store.begin() as first:
            first.write(query("x" * 3000))
            fill_to(store, 1)
            before = store.state().position()
            publish(store)
            first.write(xid(1))
            first.commit(Gtid(8, 1, 1))
            publish(store)
            between = store.state().position()  # all that is behind it in its file is whole
            with store.begin() as second:
                second.write(query("y" * 3000))
                fill_to(store, 2)
                behind = store.state().position()
                second.write(xid(2))
                second.commit(Gtid(9, 1, 1))
        fill_to(store, 4)
        assert store.purge_to("binlog-000002.ibb").removed == ["binlog-000000.ibb"]
        assert (store.pages.first_file(), find_oldest(store.pages).file_no) == (1, 2)
        with pytest.raises(TooOld, match="from before file 2"):
            list(store.reader(before))
        with pytest.raises(LeaseError, match="have been purged"):
            store.leases.renew("early", before)
        assert find_start(store.pages, between).position.file_no == 1
        whole = [group.gtid for group in store.reader(between) if b"".join(group.pieces())]
        assert Gtid(9, 1, 1) in whole
        store.leases.renew("timely", behind)
        found = [(group.gtid, b"".join(group.pieces())) for group in store.reader(behind)]
        assert Gtid(9, 1, 1) in [gtid for gtid, _ in found]
    pages = ReadOnlyHistory(OsDisk(), str(tmp_path)).pages
    with pytest.raises(TooOld):
        find_start(pages, before)
    assert find_start(pages, behind).position.file_no == 2
