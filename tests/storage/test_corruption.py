"""
Every kind of damage ends the stream where it is, with its file and page, and nowhere before.

Cases of the corruption table, ibb-format 14: files, pages, chunks. Header pages and the contents of
event groups have tests of their own.
"""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader
from ibb.storage.open_files import TORN_READS_MAX
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position

from .binlog_builder import BinlogBuilder, event, gtid_event, reseal

SIZE = 512


def numbered(seq):
    return Gtid(0, 1, seq)


@pytest.fixture
def three_files(tmp_path):
    """Groups of half a page over three files of eight pages, and their places."""
    builder, places = BinlogBuilder(interval=0), []
    while len(builder.files) < 3 or builder.place < 3 * SIZE:
        places.append(builder.commit(numbered(len(places) + 1), event(200)))
    builder.write(tmp_path)
    return tmp_path, places


def read_until_damage(path, *, disk=None):
    """Return the sequence numbers of whole groups and the error behind them."""
    source = BinlogDirectory(disk or OsDisk(), str(path))
    reader, numbers = GroupReader(source, Position(source.first_file(), 0)), []
    damage = None
    try:
        while (group := reader.next()) is not None:
            b"".join(group.pieces())
            numbers.append(group.gtid.seq)
    except FormatError as error:
        damage = error
    if damage is not None:
        with pytest.raises(FormatError) as again:
            reader.next()
        assert str(again.value) == str(damage)
    return numbers, damage


def groups_ending_before(places, position):
    """Return how many groups end before a place: each ends where the next begins."""
    return sum(following <= position for following in places[1:])


def check(path, places, damaged, text, *, page=None):
    """Check that all groups before *damaged* come, and then an error with that place."""
    numbers, error = read_until_damage(path)
    assert numbers == list(range(1, groups_ending_before(places, damaged) + 1))
    assert error is not None
    assert text in str(error)
    assert error.file == f"binlog-{damaged.file_no:06d}.ibb"
    assert error.page == (damaged.offset // SIZE if page is None else page)


def patch(path, position, data, *, sealed=True):
    file = path / f"binlog-{position.file_no:06d}.ibb"
    if sealed:
        reseal(file, position.offset, data, SIZE)
        return
    image = bytearray(file.read_bytes())
    image[position.offset : position.offset + len(data)] = data
    file.write_bytes(image)


@pytest.mark.parametrize("page", [1, 4, 7])
def test_a_flipped_bit_in_a_page(three_files, page):
    path, places = three_files
    damaged = Position(1, page * SIZE)
    patch(path, Position(1, page * SIZE + 30), b"\x5a", sealed=False)
    check(path, places, damaged, f"Page corruption in binlog tablespace file page number {page}")


def test_a_damaged_last_page_is_read_again_before_it_is_reported(three_files):
    path, places = three_files
    last = BinlogDirectory(OsDisk(), str(path)).end()
    page = last.offset // SIZE
    patch(path, Position(2, page * SIZE + 30), b"\x5a", sealed=False)
    reads = CountingDisk(path / "binlog-000002.ibb", page * SIZE)
    _, error = read_until_damage(path, disk=reads)
    assert error.page == page
    assert reads.count >= TORN_READS_MAX
    check(path, places, Position(2, page * SIZE), "Page corruption")


def test_a_last_page_caught_while_it_was_written_is_no_damage(three_files):
    path, places = three_files
    page = BinlogDirectory(OsDisk(), str(path)).end().offset // SIZE
    torn = CountingDisk(path / "binlog-000002.ibb", page * SIZE, torn=range(3, 6))
    numbers, error = read_until_damage(path, disk=torn)
    assert error is None
    assert numbers == list(range(1, len(places) + 1))
    assert torn.count > 5


class CountingDisk(OsDisk):
    """Counts the reads at an offset of a file, and tears some of them."""

    def __init__(self, path, offset, torn=()):
        self.count, self._path, self._offset, self._torn = 0, str(path), offset, torn

    def open(self, path, *, create=False, read_only=False):
        file = super().open(path, create=create, read_only=read_only)
        if path != self._path:
            return file
        read_at = file.read_at

        def counted(offset, size):
            data = read_at(offset, size)
            if offset == self._offset:
                self.count += 1
                if self.count in self._torn:
                    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
            return data

        file.read_at = counted
        return file


@pytest.mark.parametrize("offset", [30, 509])
def test_a_damaged_header_ends_the_stream_at_its_file(three_files, offset):
    path, places = three_files
    patch(path, Position(1, offset), b"\x5a", sealed=False)
    check(path, places, Position(1, 0), "Invalid or corrupt file header", page=0)


def test_a_header_of_zeros_before_used_pages_is_damage(three_files):
    path, places = three_files
    patch(path, Position(1, 0), bytes(SIZE), sealed=False)
    check(path, places, Position(1, 0), "Invalid or corrupt file header", page=0)


def test_files_of_different_page_sizes_and_versions_follow_one_another(tmp_path):
    draft = BinlogBuilder(page_size=512, major=0)
    draft.commit(numbered(1), event(700))
    draft.fill_file()
    draft.files.pop()
    draft.write(tmp_path, empty_next=False)
    final = BinlogBuilder(page_size=2048, major=1, first=1)
    final.commit(numbered(2), event(3000))
    final.write(tmp_path)
    assert read_until_damage(tmp_path) == ([1, 2], None)


def test_part_of_a_page_behind_the_newest_file_is_ignored_and_elsewhere_reported(three_files):
    path, places = three_files
    for number in (1, 2):
        with (path / f"binlog-00000{number}.ibb").open("ab") as file:
            file.write(b"half a page")
    source = BinlogDirectory(OsDisk(), str(path))
    reader = GroupReader(source, Position(0, 0))
    assert sum(1 for _ in iter(reader.next, None)) == len(places)
    assert source.oddities.found == ["binlog-000001.ibb: 11 bytes behind the last whole page"]


@pytest.mark.parametrize("length", [0, 509, 65535])
def test_a_chunk_length_that_cannot_be(three_files, length):
    path, places = three_files
    place = next(place for place in places if place.file_no == 1 and place.offset > 3 * SIZE)
    patch(path, Position(1, place.offset + 1), length.to_bytes(2, "little"))
    check(path, places, place, f"(invalid chunk length {length})")


def test_a_continuation_without_a_start(three_files):
    path, places = three_files
    place = next(place for place in places if place.file_no == 1 and place.offset % SIZE > 100)
    patch(path, place, b"\xc1")
    check(path, places, place, "Binlog record starts with continuation chunk")


@pytest.mark.parametrize("type_byte", [0x41, 0xC3, 0xC2, 0x43])
def test_a_record_that_is_not_ended(three_files, type_byte):
    path, places = three_files
    outer = next(place for place in places if place.offset // SIZE == 2 and crosses(place))
    here = Position(outer.file_no, 3 * SIZE)
    patch(path, here, bytes([type_byte]))
    check(path, places, here, "Binlog record missing end chunk")


def crosses(place):
    """Tell whether the group at a place, of 242 bytes with its header, goes on in the next page."""
    return place.offset % SIZE + 242 > SIZE - 4


@pytest.mark.parametrize("type_byte", [0x40, 0x3F, 0x7F])
def test_a_chunk_of_an_impossible_type(three_files, type_byte):
    path, places = three_files
    place = next(place for place in places if place.file_no == 1 and place.offset % SIZE > 100)
    patch(path, place, bytes([type_byte]))
    check(path, places, place, f"Invalid chunk type 0x{type_byte:02x}")


def test_records_of_unknown_type_are_skipped_and_counted(tmp_path):
    builder = BinlogBuilder()
    builder.commit(numbered(1), event(50))
    place = builder.record(7, b"?" * 900)
    builder.record(62, b"?")
    builder.commit(numbered(2), event(50))
    source = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    reader = GroupReader(source, Position(0, 0))
    assert [group.gtid.seq for group in iter(reader.next, None)] == [1, 2]
    assert reader.unknown_records == 2
    assert reader.reports[0] == f"record {place} has unknown type 7: skipped"


def test_a_zero_page_between_used_ones(three_files):
    path, places = three_files
    patch(path, Position(1, 4 * SIZE), bytes(SIZE), sealed=False)
    check(path, places, Position(1, 4 * SIZE), "all zero")


def test_a_zero_page_between_used_ones_of_the_newest_file(tmp_path):
    builder, places = BinlogBuilder(interval=0, pages=40), []
    while builder.place < 15 * SIZE:
        places.append(builder.commit(numbered(len(places) + 1), event(200)))
    builder.write(tmp_path)
    # Bisection over 40 pages looks at pages 20, 10, 15: all three lie, and one page tells.
    for page in (10, 11, 12, 13):
        patch(tmp_path, Position(0, page * SIZE), bytes(SIZE), sealed=False)
    check(tmp_path, places, Position(0, 10 * SIZE), "all zero")


def test_a_zero_type_byte_before_a_used_page(three_files):
    path, places = three_files
    place = next(place for place in places if place.file_no == 1 and place.offset % SIZE > 100)
    rest = SIZE - 4 - place.offset % SIZE
    patch(path, place, bytes(rest))
    check(path, places, place, "nothing is written here although data follows")


def test_bytes_behind_the_end_of_data_are_reported(three_files):
    path, places = three_files
    end = BinlogDirectory(OsDisk(), str(path)).end()
    patch(path, Position(2, end.offset + 9), b"x")
    source = BinlogDirectory(OsDisk(), str(path))
    reader = GroupReader(source, Position(0, 0))
    assert sum(1 for _ in iter(reader.next, None)) == len(places)
    assert "is not zero behind its end" in source.oddities.found[0]


def test_an_abandoned_file_is_reported_and_reading_goes_on_in_the_next(tmp_path, caplog):
    first = BinlogBuilder(interval=0)
    for seq in range(1, 4):
        first.commit(numbered(seq), event(200))
    first.write(tmp_path, empty_next=False)
    second = BinlogBuilder(interval=0, first=1)
    second.commit(numbered(4), event(200))
    second.write(tmp_path)
    assert read_until_damage(tmp_path) == ([1, 2, 3, 4], None)
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    assert sum(1 for _ in iter(GroupReader(source, Position(0, 0)).next, None)) == 4
    assert source.oddities.found == ["binlog-000000.ibb: data ends early, in page 2 at 226"]
    assert caplog.messages == source.oddities.found * 2


def test_groups_that_the_next_file_knows_and_none_before_has_are_missed_in_a_page(three_files):
    path, places = three_files
    place = next(p for p in places if p >= (0, 7 * SIZE) and p.offset % SIZE > 50)
    patch(path, place, bytes(SIZE - 4 - place.offset % SIZE))
    check(path, places, place, "nothing is written here although data follows")


@pytest.mark.parametrize("pages", [1, 3])
def test_groups_that_the_next_file_knows_and_none_before_has_are_missed_behind_a_page(
    three_files, pages, caplog
):
    path, places = three_files
    end = Position(0, (8 - pages) * SIZE)
    patch(path, end, bytes(pages * SIZE), sealed=False)
    newest = sum(place.file_no == 0 for place in places)  # its last one ends in file 1
    told = f"data ends early, behind page {7 - pages}: the groups up to 0-1-{newest} are missing"
    check(path, places, end, told)
    assert caplog.messages.count(f"binlog-000000.ibb: {told}") == 1


def test_a_file_that_may_still_be_written_back_is_no_abandoned_one(tmp_path):
    first = BinlogBuilder(interval=0)
    first.commit(numbered(1), event(200))
    first.write(tmp_path, empty_next=False)
    second = BinlogBuilder(interval=0, first=1)
    second.commit(numbered(9), event(200))
    second.write(tmp_path, empty_next=False)  # its successor is made only when file 0 is on disk
    assert read_until_damage(tmp_path) == ([1], None)


def test_an_abandoned_file_that_ends_inside_a_record(tmp_path):
    first = BinlogBuilder(interval=0)
    first.commit(numbered(1), event(200))
    first.prepare_page()
    first.chunk(0x01, b"\0" + gtid_event(numbered(2)) + b"x" * (first.room - 42))
    first.write(tmp_path, empty_next=False)
    second = BinlogBuilder(interval=0, first=1)
    second.commit(numbered(3), event(200))
    second.write(tmp_path)
    numbers, error = read_until_damage(tmp_path)
    assert numbers == [1]
    assert "binlog tablespace truncated in the middle of record" in str(error)
    assert (error.file, error.page) == ("binlog-000000.ibb", 2)


def test_a_missing_file_between_others(three_files):
    path, places = three_files
    (path / "binlog-000001.ibb").unlink()
    numbers, error = read_until_damage(path)
    assert numbers == list(range(1, groups_ending_before(places, Position(1, 0)) + 1))
    assert error.file == "binlog-000001.ibb"
    assert "missing" in str(error)


def test_names_in_another_spelling_are_warned_of(three_files):
    path, _ = three_files
    (path / "binlog-7.ibb").write_bytes(b"?")
    (path / "notes.txt").write_bytes(b"?")
    source = BinlogDirectory(OsDisk(), str(path))
    assert source.last_file() == 2
    assert len(source.oddities.found) == 1
    assert "binlog-7.ibb" in source.oddities.found[0]
