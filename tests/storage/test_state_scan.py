"""The state at the end, from the newest states that can be used, and as the data grows."""

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.os_disk import OsDisk
from ibb.storage.record import encode_state
from ibb.storage.state_scan import StateFollower, find_state, last_page, read_state

from .binlog_builder import BinlogBuilder, event

SIZE = 512


def open_directory(path):
    return BinlogDirectory(OsDisk(), str(path))


@pytest.mark.parametrize("interval", [0, 1, 2, 3, 2097152])
@pytest.mark.parametrize("groups", [0, 1, 5, 40, 41])
def test_the_state_at_the_end_whatever_the_interval(tmp_path, interval, groups):
    builder = BinlogBuilder(interval=interval)
    builder.prepare_page()
    state = BinlogState()
    for seq in range(1, groups + 1):
        state.update(Gtid(seq % 3, seq % 2, seq))
        builder.commit(Gtid(seq % 3, seq % 2, seq), event(130))
    source = open_directory(builder.write(tmp_path))
    found = find_state(source)
    assert found.state == state
    assert found.base == BinlogState(read_state(source, source.last_file(), 1).entries)


def test_the_last_differential_state_saves_the_scan(tmp_path):
    """Damage between the full state and the last differential one is never looked at."""
    builder = BinlogBuilder(pages=32, interval=2)
    for seq in range(1, 31):
        builder.commit(Gtid(0, 1, seq), event(200))
    builder.write(tmp_path)
    file = tmp_path / "binlog-000000.ibb"
    image = bytearray(file.read_bytes())
    image[3 * SIZE + 50] ^= 1
    file.write_bytes(image)
    assert find_state(open_directory(tmp_path)).state == BinlogState([Gtid(0, 1, 30)])


def test_without_a_full_state_in_the_last_file_an_earlier_file_is_the_base(tmp_path):
    builder = BinlogBuilder(interval=2)
    builder.commit(Gtid(0, 1, 1), event(50))
    builder.fill_file()
    builder.states = False
    builder.commit(Gtid(0, 2, 2), event(50))
    builder.fill_file()
    builder.commit(Gtid(0, 1, 3), event(600))
    while builder.place < 4 * SIZE:
        builder.chunk(0x44, b"\xff" * (builder.room - 3))
    builder.state([Gtid(9, 9, 9)])  # no base for it on page 1: not to be used
    source = open_directory(builder.write(tmp_path))
    found = find_state(source)
    assert found.state == BinlogState([Gtid(0, 2, 2), Gtid(0, 1, 3)])
    assert found.base is None


def test_no_state_at_all_means_a_scan_from_the_first_file(tmp_path):
    builder = BinlogBuilder(states=False, first=2)
    for seq in range(1, 30):
        builder.commit(Gtid(0, 1, seq), event(200))
    found = find_state(open_directory(builder.write(tmp_path)))
    assert found == (BinlogState([Gtid(0, 1, 29)]), None)


def test_an_empty_directory_has_an_empty_state(tmp_path):
    assert find_state(open_directory(tmp_path)) == (BinlogState(), None)


def test_a_growing_directory_is_followed_over_files(tmp_path):
    builder, state = BinlogBuilder(interval=2), BinlogState()
    builder.commit(Gtid(0, 1, 1), event(10))
    state.update(Gtid(0, 1, 1))
    source = open_directory(builder.write(tmp_path))
    follower = StateFollower(source)
    for seq in range(2, 60):
        builder.commit(Gtid(seq % 2, 1, seq), event(150))
        state.update(Gtid(seq % 2, 1, seq))
        builder.write(tmp_path)
        source.refresh()
        follower.advance()
        assert follower.state == state
    assert source.last_file() > 2


def test_a_domain_that_was_deleted_is_forgotten_with_the_next_file(tmp_path):
    builder = BinlogBuilder()
    builder.commit(Gtid(0, 1, 1), event(10))
    builder.commit(Gtid(5, 1, 1), event(10))
    source = open_directory(builder.write(tmp_path))
    follower = StateFollower(source)
    follower.advance()
    assert follower.state.domains() == [0, 5]
    builder.fill_file()
    builder.full = BinlogState([Gtid(0, 1, 1)])
    builder.prepare_page()
    builder.write(tmp_path)
    source.refresh()
    follower.advance()
    assert follower.state == follower.base == BinlogState([Gtid(0, 1, 1)])


def test_damage_ends_the_state_where_it_is_each_time(tmp_path):
    builder = BinlogBuilder(interval=0)
    places = [builder.commit(Gtid(0, 1, seq), event(200)) for seq in range(1, 9)]
    builder.write(tmp_path)
    file = tmp_path / "binlog-000000.ibb"
    image = bytearray(file.read_bytes())
    image[2 * SIZE + 50] ^= 1
    file.write_bytes(image)
    follower = StateFollower(open_directory(tmp_path))
    whole = sum(place.offset < 2 * SIZE for place in places) - 1
    for _ in range(2):
        with pytest.raises(FormatError, match="Page corruption"):
            follower.advance()
        assert follower.state in (
            BinlogState([Gtid(0, 1, whole)]), BinlogState([Gtid(0, 1, whole + 1)]),
        )  # fmt: skip


@pytest.mark.parametrize(
    "contents", [b"\x10\x00\x00\x08\x08", encode_state([Gtid(2**32, 1, 1)]), b"\xff" * 9]
)
def test_a_state_that_cannot_be_names_its_place(tmp_path, contents):
    builder = BinlogBuilder(states=False)
    builder.record(2, contents)
    with pytest.raises(FormatError) as caught:
        read_state(open_directory(builder.write(tmp_path)), 0, 1)
    assert (caught.value.file, caught.value.page, caught.value.offset) == (
        "binlog-000000.ibb", 1, 0,
    )  # fmt: skip


def test_the_last_page_is_found(tmp_path):
    builder = BinlogBuilder(pages=200, interval=0)
    assert last_page(open_directory(builder.write(tmp_path)), 0) == 0
    for wanted in (1, 2, 3, 64, 100, 199):
        while (builder.place - 1) // SIZE < wanted:
            builder.record(3, b"x" * 100)
        assert last_page(open_directory(builder.write(tmp_path)), 0) == wanted
    assert builder.file_no == 0
