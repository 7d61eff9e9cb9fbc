"""The kernel by itself: how far it goes, and what it hands out."""

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage.oob_forest import OobForest
from ibb.storage.position import Position
from ibb.storage.record import OobHeader, RecordType, encode_oob_header, parse_state
from ibb.storage.verify.found_items import ITEMS_MAX, NESTED_MAX, Stretch
from ibb.storage.verify.sound_run import FULL, MORE, ODD, SoundRun

from ..binlog_builder import BinlogBuilder, event
from .verify_rig import SIZE, numbered

pytestmark = pytest.mark.kernel


class Passed:
    """What the kernel says of the first file of a binlog, given so many pages at a time."""

    def __init__(self, builder, path, at_once=1000):
        builder.write(path)
        data = (path / "binlog-000000.ibb").read_bytes()
        size, pages = builder.page_size, len(data) // builder.page_size
        self.run, self.items, self.codes, self.records = SoundRun(), [], [], 0
        self.run.enter_file(0, size, builder.interval)
        self.run.begin(1, 0)
        while self.run.page < pages and ODD not in self.codes:
            first, end = self.run.page, min(self.run.page + at_once, pages)
            self.codes.append(self.run.run(data[first * size : end * size], first, end))
            self.records += self.run.records
            self.items += self.run.take()

    @property
    def groups(self):
        """The number of groups, and the newest."""
        stretches = [item for item in self.items if isinstance(item, Stretch)]
        newest = stretches[-1]
        return sum(item.groups for item in stretches), Gtid(
            newest.domain, newest.server, newest.last
        )


def end_of(builder):
    """Return the offset behind the last record; where the page is full, the checksum is next."""
    place = builder.position.offset
    return place if place % builder.page_size else place - 4


def commits(builder, count, *sizes):
    for seq in range(1, count + 1):
        builder.commit(numbered(seq), *(event(size) for size in sizes))
    return builder


def test_groups_of_one_server_are_one_item_between_two_states(tmp_path):
    builder = commits(BinlogBuilder(pages=16, interval=4), 20, 40, 31)
    builder.commit(Gtid(0, 2, 21), event(30))
    passed = Passed(builder, tmp_path)
    assert passed.run.border == end_of(builder)
    assert passed.codes == [ODD]  # unused bytes are for others
    assert passed.records == 21
    assert passed.run.last_type == RecordType.COMMIT
    assert passed.groups == (21, Gtid(0, 2, 21))
    kinds = [item.groups if isinstance(item, Stretch) else "state" for item in passed.items]
    assert kinds[0] == "state"
    assert kinds.count("state") == builder.place // SIZE // 4 + 1
    assert kinds[-1] == 1
    states = [item for item in passed.items if not isinstance(item, Stretch)]
    before = sum(item.groups for item in passed.items[:3] if isinstance(item, Stretch))
    assert parse_state(states[1].contents).entries == [numbered(before)]
    assert states[1].offset == 4 * SIZE


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_it_is_the_same_however_many_pages_come_at_a_time(tmp_path, at_once):
    builder = commits(BinlogBuilder(pages=64, interval=4), 20, 400, 31)
    for size in (100, 900, 2000):
        forest, data = OobForest(), event(size * 3)
        for start in range(0, size * 3, size):
            builder.oob(forest, data[start : start + size])
        builder.commit(numbered(size), lists=[forest.reference()])
    whole, parts = Passed(builder, tmp_path), Passed(builder, tmp_path, at_once)
    assert MORE in parts.codes
    assert (whole.run.border, whole.records) == (parts.run.border, parts.records)
    assert whole.run.border == end_of(builder)
    assert whole.groups == parts.groups == (23, numbered(2000))


def test_records_may_be_cut_anywhere(tmp_path):
    """Each byte of a group's head and of its events' headers is the first of a page once."""
    for size in range(19, 19 + SIZE):
        builder = commits(BinlogBuilder(pages=32, interval=0), 1, size)
        builder.commit(numbered(2), event(20), event(19), event(700))
        passed = Passed(builder, tmp_path)
        assert passed.run.border == end_of(builder), size
        assert passed.groups == (2, numbered(2))


def list_of(builder, data, cuts):
    """Append pieces of *data*, cut at some places."""
    forest, ends = OobForest(), [*cuts, len(data)]
    for start, end in zip([0, *cuts], ends, strict=True):
        builder.oob(forest, data[start:end])
    return forest.reference()


def test_pieces_and_what_refers_to_them_may_be_cut_anywhere(tmp_path):
    for size in range(19, 19 + SIZE):
        builder = BinlogBuilder(pages=32, interval=0)
        reference = list_of(builder, event(60) + event(30) + event(size), (1, 9, 50, 60, 75, 100))
        builder.commit(numbered(1), lists=[reference])
        passed = Passed(builder, tmp_path)
        assert passed.run.border == end_of(builder), size
        assert passed.groups == (1, numbered(1))


@pytest.mark.parametrize("cuts", [1, 2, 3, 4, 7, 8, 30, 100])
def test_lists_of_any_length(tmp_path, cuts):
    builder = BinlogBuilder(pages=128, interval=0)
    reference = list_of(builder, event(60 * cuts + 60), range(60, 60 * cuts + 1, 60))
    builder.commit(numbered(1), lists=[reference])
    passed = Passed(builder, tmp_path)
    assert passed.run.border == end_of(builder)
    assert passed.records == cuts + 2


def test_a_list_of_another_length_or_place_is_left(tmp_path):
    for field, value in (("count", 4), ("count", 2), ("first", None), ("last", None)):
        builder = BinlogBuilder(pages=32, interval=0)
        builder.commit(numbered(1), event(30))
        good = list_of(builder, event(90), (30, 60))
        wrong = value or getattr(good, field)._replace(offset=getattr(good, field).offset - 1)
        place = builder.commit(
            numbered(2),
            lists=[
                type(good)(**{"count": 3, "first": good.first, "last": good.last} | {field: wrong})
            ],
        )
        passed = Passed(builder, tmp_path)
        assert passed.run.border == place.offset, field


SHORT = event(40)[:9] + b"\x12\0\0\0" + event(40)[13:18]  # an event that says it has 18 bytes


@pytest.mark.parametrize(
    "events",
    [
        event(90)[:-1],
        b"x",
        event(40)[:18],
        event(40, event_type=162) + event(30),
        SHORT + event(30),
    ],
    ids=["cut", "byte", "header", "gtid", "short"],
)
@pytest.mark.parametrize("size", [90, *range(400, 400 + SIZE, 5), *range(437, 447)])
def test_events_that_do_not_fit_together_are_left(tmp_path, events, size):
    """Wherever they are cut, and where a page, or a piece, begins with them."""
    data = event(size) + events
    for cuts in ((), (7, 30), (size,), sorted({size, len(data) - 1})):
        builder = commits(BinlogBuilder(pages=32, interval=0), 2, 30)
        if cuts:
            place = builder.commit(numbered(3), lists=[list_of(builder, data, cuts)])
        else:
            place = builder.commit(numbered(3), data)
        builder.commit(numbered(4), event(30))
        passed = Passed(builder, tmp_path)
        assert 0 <= place.offset - passed.run.border < 8  # it may begin in the next page
        assert passed.groups == (2, numbered(2))


def test_a_second_list_that_is_not_there_is_left(tmp_path):
    for wrong in (False, True):
        builder = commits(BinlogBuilder(pages=32, interval=0), 1, 30)
        first, second = (list_of(builder, event(90), (30, 60)) for _ in range(2))
        if wrong:
            second = type(second)(second.count + 1, second.first, second.last)
        place = builder.commit(numbered(2), lists=[first, second])
        border = Passed(builder, tmp_path).run.border
        assert border == (place.offset if wrong else end_of(builder))


def test_a_list_of_another_file_is_not_that_of_this_one(tmp_path):
    """Though its records were at the same offsets."""
    builder = BinlogBuilder(pages=8, interval=0)
    reference = list_of(builder, event(90), (30, 60))
    run = Passed(builder, tmp_path).run
    other = BinlogBuilder(pages=8, interval=0)
    here = [Position(1, place.offset) for place in (reference.first, reference.last)]
    place = other.commit(numbered(1), lists=[type(reference)(3, *here)])
    other.write(tmp_path)
    run.enter_file(1, SIZE, 0)
    run.begin(1, 0)
    run.take()
    data = (tmp_path / "binlog-000000.ibb").read_bytes()
    assert run.run(data[SIZE:], 1, 8) == ODD
    assert run.border == place.offset


def test_an_inner_node_with_one_child_twice_is_left(tmp_path):
    builder = commits(BinlogBuilder(pages=8, interval=0), 1, 30)
    leaf = builder.oob(OobForest(), event(30))
    head = encode_oob_header(OobHeader(2, leaf, leaf))
    place = builder.record(RecordType.OOB, head + event(30))
    assert Passed(builder, tmp_path).run.border == place.offset


def test_the_record_before_the_border(tmp_path):
    builder = BinlogBuilder(pages=8, interval=1)
    builder.prepare_page()
    assert Passed(builder, tmp_path).run.last_type == RecordType.GTID_STATE
    builder.oob(OobForest(), event(30))
    assert Passed(builder, tmp_path).run.last_type == RecordType.OOB


@pytest.mark.parametrize("pages", [NESTED_MAX - 2, NESTED_MAX + 3])
def test_states_inside_a_record(tmp_path, pages):
    """They come behind its group; when there are many, the record is left."""
    builder = commits(BinlogBuilder(pages=64, interval=1), 1, 30)
    place = builder.commit(numbered(2), event(pages * (SIZE - 20)))
    passed = Passed(builder, tmp_path)
    if pages > NESTED_MAX:
        assert passed.run.border == place.offset
        assert passed.groups == (1, numbered(1))
        return
    assert passed.run.border == end_of(builder)
    kinds = [isinstance(item, Stretch) for item in passed.items]
    assert kinds[:3] == [False, True, False]
    assert passed.items[1].groups == 2
    assert not any(kinds[2:])


def test_more_items_than_there_is_room_for(tmp_path):
    builder = BinlogBuilder(page_size=16384, pages=8, interval=0)
    count = 2 * ITEMS_MAX
    for seq in range(1, count + 1):
        builder.commit(Gtid(0, seq % 2, seq), event(30))
    passed = Passed(builder, tmp_path)
    assert passed.codes.count(FULL) == 2
    assert passed.run.border == end_of(builder)
    assert passed.groups == (count, Gtid(0, 0, count))
    assert [item.first for item in passed.items[1:]] == list(range(1, count + 1))


def test_numbers_that_go_back_begin_another_item(tmp_path):
    builder = BinlogBuilder(pages=32, interval=0)
    for seq in (5, 6, 6, 8, 7, 9):
        builder.commit(numbered(seq), event(30))
    items = Passed(builder, tmp_path).items[1:]
    assert [(item.first, item.last, item.groups) for item in items] == [
        (5, 6, 2),
        (6, 8, 2),
        (7, 9, 2),
    ]


def test_numbers_may_take_all_their_bits(tmp_path):
    builder = BinlogBuilder(pages=32, interval=0)
    top, id_max = (1 << 64) - 1, (1 << 32) - 1
    for seq in (1, (1 << 63) - 1, 1 << 63, top):
        builder.commit(Gtid(id_max, id_max, seq), event(30))
    (_, item) = Passed(builder, tmp_path).items
    assert item[:5] == (id_max, id_max, 1, top, 4)


def test_a_chunk_does_not_reach_into_the_checksum(tmp_path):
    builder = commits(BinlogBuilder(pages=8, interval=0), 1, 30)
    place = builder.oob(OobForest(), b"x" * (builder.room - 3 - 5))  # behind five numbers
    assert builder.position.offset == 2 * SIZE
    assert Passed(builder, tmp_path).run.border == 2 * SIZE - 4
    builder.files[0][place.offset + 1] += 1
    assert Passed(builder, tmp_path).run.border == place.offset


@pytest.mark.parametrize("record_type", [RecordType.COMMIT, RecordType.OOB])
def test_a_record_that_is_not_ended_before_the_next_begins(tmp_path, record_type):
    builder = commits(BinlogBuilder(pages=8, interval=0), 1, 30)
    is_commit = record_type == RecordType.COMMIT
    place = builder.commit(numbered(2)) if is_commit else builder.oob(OobForest(), event(30))
    builder.commit(numbered(3), event(30))
    builder.files[0][place.offset] = record_type
    assert Passed(builder, tmp_path).run.border == place.offset


def test_arguments_that_no_file_has():
    run = SoundRun()
    with pytest.raises(ValueError, match="pages of 100 bytes"):
        run.enter_file(0, 100, 0)
    run.enter_file(0, SIZE, 0)
    for page, place in ((0, 0), (1, -1), (1, SIZE - 3)):
        with pytest.raises(ValueError, match="of page"):
            run.begin(page, place)
    run.begin(3, 0)
    for size, first, end in ((SIZE, 4, 5), (SIZE, 1, 3), (SIZE - 1, 3, 4), (SIZE, 3, 5), (0, 3, 3)):
        with pytest.raises(ValueError, match="3 is wanted"):
            run.run(bytes(size), first, end)
    assert run.run(bytes(SIZE), 3, 4) == ODD


def test_a_set_bit_anywhere_in_a_page(tmp_path):
    builder = commits(BinlogBuilder(pages=8, interval=2), 12, 100)
    builder.write(tmp_path)
    sound = (tmp_path / "binlog-000000.ibb").read_bytes()[SIZE:]
    run = SoundRun()
    for at in range(SIZE):
        data = bytearray(sound)
        data[SIZE + at] ^= 1 << at % 8
        run.enter_file(0, SIZE, 2)
        run.begin(1, 0)
        assert run.run(bytes(data), 1, 8) == ODD
        assert run.page == 2
        assert SIZE < run.border < 2 * SIZE
        run.take()
