"""A directory is seen as it is: growing, shrinking, begun anew, partly hidden by a limit."""

import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader
from ibb.storage.open_files import OPEN_FILES_MAX, TORN_READS_MAX, OpenFiles
from ibb.storage.os_disk import OsDisk
from ibb.storage.page import page_is_zero
from ibb.storage.page_source import NO_MORE_DATA, PageStatus
from ibb.storage.position import Position

from .binlog_builder import BinlogBuilder, event

SIZE = 512


class BusyDisk(OsDisk):
    """Has something done before a file is opened for the time that is counted down to."""

    def __init__(self):
        self.opens_before, self.meanwhile = -1, None

    def open(self, path, *, create=False, read_only=False):
        self.opens_before -= 1
        if self.opens_before == -1 and self.meanwhile is not None:
            self.meanwhile()
        return super().open(path, create=create, read_only=read_only)


def open_directory(path):
    return BinlogDirectory(OsDisk(), str(path))


def sequence_numbers(reader):
    return [group.gtid.seq for group in iter(reader.next, None)]


@pytest.fixture
def growing(tmp_path):
    """A directory, and a function that adds groups to it as a writer's flushes would."""
    builder = BinlogBuilder(interval=2, pages=6)
    written = []

    def add(count, size=200):
        for _ in range(count):
            written.append(len(written) + 1)
            builder.commit(Gtid(0, 1, written[-1]), event(size))
        builder.write(tmp_path)

    builder.add, builder.path = add, tmp_path
    return builder


def test_an_empty_directory_holds_nothing(tmp_path):
    source = open_directory(tmp_path)
    assert (source.first_file(), source.last_file()) == (0, -1)
    assert source.header(0) is None
    assert source.end() == Position(0, 0)
    assert source.files() == []


def test_a_missing_directory_is_an_error(tmp_path):
    with pytest.raises(DiskError) as caught:
        open_directory(tmp_path / "none")
    assert caught.value.missing


def test_only_empty_files_hold_nothing(tmp_path):
    (tmp_path / "binlog-000004.ibb").write_bytes(bytes(5000))
    (tmp_path / "binlog-000005.ibb").write_bytes(b"")
    source = open_directory(tmp_path)
    assert (source.first_file(), source.last_file()) == (4, 3)
    assert source.end() == Position(4, 0)
    assert [(info.name, info.size) for info in source.files()] == [
        ("binlog-000004.ibb", 5000),
        ("binlog-000005.ibb", 0),
    ]


def test_growth_is_seen_after_a_refresh_page_by_page_and_over_files(growing):
    growing.add(1)
    source = open_directory(growing.path)
    reader, seen = GroupReader(source, Position(0, 0)), []
    seen += sequence_numbers(reader)
    assert seen == [1]
    for _ in range(30):
        growing.add(1)
        source.refresh()
        seen += sequence_numbers(reader)
        assert reader.position == source.end() == growing.position
    assert seen == list(range(1, 32))
    assert source.last_file() == 2
    assert source.oddities.found == []


def test_much_growth_between_two_refreshes_is_found(growing):
    growing.add(1)
    source = open_directory(growing.path)
    reader = GroupReader(source, Position(0, 0))
    assert sequence_numbers(reader) == [1]
    growing.add(40)
    source.refresh()
    assert sequence_numbers(reader) == list(range(2, 42))


def test_the_page_that_ended_the_data_is_never_kept(growing):
    growing.add(1, 100)
    source = open_directory(growing.path)
    assert source.read_page(0, 1).status is PageStatus.END_OF_DATA
    before = source.read_page(0, 1).end
    growing.add(1, 100)
    assert source.read_page(0, 1).end > before


@pytest.mark.parametrize("torn_reads", [1, TORN_READS_MAX])
def test_the_header_of_a_new_file_may_be_seen_half_written(growing, monkeypatch, torn_reads):
    growing.add(1)
    source = open_directory(growing.path)
    reader = GroupReader(source, Position(0, 0))
    assert sequence_numbers(reader) == [1]
    growing.add(10)
    assert (growing.path / "binlog-000001.ibb").exists()
    reads, read_start = [], OpenFiles.read_start

    def torn(files, file_no):
        start = read_start(files, file_no)
        if file_no == 0 or page_is_zero(start):
            return start
        reads.append(file_no)
        return start[:100] + bytes(len(start) - 100) if len(reads) <= torn_reads + 1 else start

    monkeypatch.setattr(OpenFiles, "read_start", torn)  # the first one asks whether it is empty
    source.refresh()
    assert sequence_numbers(reader) == list(range(2, 12))
    assert source.healed.count == 0
    assert source.oddities.found == []


def test_a_full_page_is_read_once(growing):
    growing.add(10)
    source = open_directory(growing.path)
    page = source.read_page(0, 1)
    assert page.status is PageStatus.PAGE
    assert source.read_page(0, 1).data is page.data


def test_what_stands_behind_the_last_page(growing):
    growing.add(15)
    source = open_directory(growing.path)
    last = source.last_file()
    assert last >= 1
    assert source.read_page(0, 6).status is PageStatus.END_OF_FILE
    assert source.read_page(last, 5).status is PageStatus.END_OF_DATA
    assert source.read_page(last + 1, 1).status is PageStatus.END_OF_DATA


def test_purged_files_are_gone_after_a_refresh(growing):
    growing.add(30)
    source = open_directory(growing.path)
    assert len(sequence_numbers(GroupReader(source, Position(0, 0)))) == 30
    (growing.path / "binlog-000000.ibb").unlink()
    source.refresh()
    assert source.first_file() == 1
    assert source.header(0) is None


def test_files_that_were_begun_anew_are_read_anew(growing):
    growing.add(30)
    source = open_directory(growing.path)
    assert len(sequence_numbers(GroupReader(source, Position(0, 0)))) == 30
    for file in growing.path.iterdir():
        file.unlink()
    again = BinlogBuilder(page_size=1024)
    again.commit(Gtid(9, 9, 77), event(50))
    again.write(growing.path)
    source.refresh()
    assert source.header(0).page_size == 1024
    assert sequence_numbers(GroupReader(source, Position(0, 0))) == [77]


def write_history(path, first, last, pages):
    builder = BinlogBuilder(pages=pages)
    for number in range(first, last + 1):
        builder.commit(Gtid(0, 1, number), event(200))
    for file in path.iterdir():
        file.unlink()
    builder.write(path)


@pytest.mark.parametrize("pages", [64, 4])
def test_a_history_begun_anew_is_read_anew_though_no_file_number_went_down(tmp_path, pages):
    """RESET MASTER of another process; in many files, too, of which few are open at a time."""
    last = 12 if pages == 64 else 400
    write_history(tmp_path, 1, last, pages)
    source = open_directory(tmp_path)
    numbers = list(range(1, last + 1))
    assert sequence_numbers(GroupReader(source, Position(0, 0))) == numbers
    assert source.generation == 0
    assert pages == 64 or source.last_file() > OPEN_FILES_MAX
    for file_no in range(min(source.last_file(), OPEN_FILES_MAX + 2)):
        source.read_page(file_no, 1)  # the newest is not among the open ones any more
    write_history(tmp_path, 50, 50 + last + 8, pages)
    source.refresh()
    assert source.generation == 1
    numbers = list(range(50, 50 + last + 9))
    assert sequence_numbers(GroupReader(source, Position(0, 0))) == numbers
    source.refresh()
    assert source.generation == 1


def test_files_that_were_begun_anew_count_once_though_nothing_is_in_them_yet(growing):
    """Who was told, and came again, would be told again."""
    growing.add(30)
    source = open_directory(growing.path)
    for file in growing.path.iterdir():
        file.unlink()
    (growing.path / "binlog-000000.ibb").write_bytes(bytes(6 * SIZE))  # as it is first made
    for _ in range(3):
        source.refresh()
        assert source.generation == 1
    again = BinlogBuilder(pages=6)
    again.commit(Gtid(9, 9, 77), event(50))
    again.write(growing.path)
    source.refresh()
    assert sequence_numbers(GroupReader(source, Position(0, 0))) == [77]
    assert source.generation == 1


def test_a_limit_hides_all_behind_it_and_reading_goes_on_when_it_moves(growing):
    growing.add(30)
    source = open_directory(growing.path)
    end = source.end()
    places = [group.position for group in iter(GroupReader(source, Position(0, 0)).next, None)]
    source.limit = Position(0, 0)
    assert source.last_file() == -1
    reader = GroupReader(source, Position(0, 0))
    assert reader.next() is None
    for index, limit in enumerate([*places[1:], end]):
        source.limit = limit
        assert source.end() == limit
        assert sequence_numbers(reader) == [index + 1]
        assert source.last_file() == limit.file_no
    source.limit = Position(1, 0)
    assert source.last_file() == 0


def test_a_limit_behind_the_data_hides_nothing(growing):
    """The files may have been begun anew since it was right."""
    growing.add(30)
    source = open_directory(growing.path)
    end, last = source.end(), source.last_file()
    source.limit = Position(last + 5, SIZE)
    assert (source.end(), source.last_file()) == (end, last)


def test_a_page_behind_the_limit_is_not_read(growing):
    """Its writer may be in the middle of it."""
    growing.add(30)
    source = open_directory(growing.path)
    source.limit = Position(1, 2 * SIZE)
    with (growing.path / "binlog-000001.ibb").open("r+b") as file:
        file.seek(2 * SIZE + 20)
        file.write(b"half of a page")
    assert source.read_page(1, 2) == NO_MORE_DATA


def test_many_threads_read_the_same_directory(growing):
    growing.add(60)
    source = open_directory(growing.path)
    found = []

    def read():
        found.append(sequence_numbers(GroupReader(source, Position(0, 0))))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [list(range(1, 61))] * 8


def test_closing_gives_the_files_back_and_reading_opens_them_again(growing):
    growing.add(3)
    source = open_directory(growing.path)
    source.close()
    assert sequence_numbers(GroupReader(source, Position(0, 0))) == [1, 2, 3]


@pytest.mark.parametrize("opens_before", range(5))
@pytest.mark.parametrize("grown", [0, 40])
def test_files_begun_anew_in_the_middle_of_a_look_are_seen_by_the_next(
    tmp_path, opens_before, grown
):
    """Wherever in it: the file that is watched for removal is not another than is read."""

    def write(first, last):
        builder = BinlogBuilder(interval=2, pages=6)
        for number in range(first, last + 1):
            builder.commit(Gtid(0, 1, number), event(200))
        for file in tmp_path.iterdir():
            file.unlink()
        builder.write(tmp_path)
        return builder

    write(1, 60)
    disk = BusyDisk()
    source = BinlogDirectory(disk, str(tmp_path))
    sequence_numbers(GroupReader(source, Position(0, 0)))
    if grown:
        grow_in_place(tmp_path, 60 + grown)
    disk.opens_before, disk.meanwhile = opens_before, lambda: write(1001, 1060 + grown)
    source.refresh()
    if disk.opens_before >= 0:
        disk.meanwhile = None
        write(1001, 1060 + grown)
    source.refresh()
    assert source.generation >= 1
    seen = sequence_numbers(GroupReader(source, Position(0, 0)))
    assert seen == list(range(1001, 1061 + grown))


def grow_in_place(path, last):
    """Write on as a store does: what is there stays the same file."""
    builder = BinlogBuilder(interval=2, pages=6)
    for number in range(1, last + 1):
        builder.commit(Gtid(0, 1, number), event(200))
    builder.write(path)
