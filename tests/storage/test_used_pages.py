"""How far a file is used is told right though some of its pages cannot be read."""

import os
from contextlib import closing

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.open_files import OpenFiles
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_source import NO_MORE_DATA
from ibb.storage.used_pages import UsedPages, find_used_pages

from .events import transaction

PAGE, PAGES = 512, 64
OPTIONS = StoreOptions(
    page_size=PAGE, max_binlog_size=PAGE * PAGES, state_interval=PAGE * 16,
    redo_segment_size=256 << 10, format_description="upstream",
)  # fmt: skip


class BadSectors(OsDisk):
    """Has pages that cannot be read."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.reads, self.from_read, self.to_read = 0, 0, 1 << 30

    def open(self, path, *, create=False, read_only=False):
        file = super().open(path, create=create, read_only=read_only)
        read_at = file.read_at

        def read(offset, size):
            self.reads += 1
            now = self.from_read < self.reads <= self.to_read
            if now and any(
                offset < (page + 1) * PAGE and page * PAGE < offset + size for page in self.bad
            ):
                raise DiskError(5, "bad sector", operation="read", path=path, offset=offset)
            return read_at(offset, size)

        file.read_at = read
        return file


@pytest.fixture
def used_pages(tmp_path):
    """Return a function: pages that are used, pages that are bad -> the last used page found."""

    def find(used: set[int], bad: set[int], known: int = 0) -> UsedPages:
        pages = [b"x" * PAGE if page in used else bytes(PAGE) for page in range(PAGES)]
        (tmp_path / binlog_name(0)).write_bytes(b"".join(pages))
        files = OpenFiles(BadSectors(bad), str(tmp_path))
        try:
            return find_used_pages(files, 0, PAGE, known)
        finally:
            files.close()

    return find


@pytest.mark.parametrize("end", [1, 2, 15, 16, 31, 32, 33, 47, 62, 63])
@pytest.mark.parametrize("width", [1, 3])
def test_unreadable_pages_move_the_end_only_over_themselves(
    used_pages, end: int, width: int
) -> None:
    used = set(range(end + 1))
    for first in range(1, PAGES):
        bad = set(range(first, min(first + width, PAGES)))
        found = used_pages(used, bad)
        if first == end + 1 or end in bad:
            assert found.sure <= end <= found.last <= max(bad)  # one of them might be the last
            assert found.sure == max(used - bad, default=0)
        else:
            assert (found.sure, found.last) == (end, end), f"bad {bad}"


@pytest.mark.parametrize("times", [1, 2, 3, 5])
def test_reads_that_fail_for_a_moment_do_not_move_the_end(tmp_path, times: int) -> None:
    """Which of the reads it is makes no difference for long."""
    for nth in range(20):
        disk = BadSectors(set(range(PAGES)))
        disk.from_read, disk.to_read = nth, nth + times
        (tmp_path / binlog_name(0)).write_bytes(b"x" * PAGE * 5 + bytes(PAGE * 3))
        files = OpenFiles(disk, str(tmp_path))
        found = find_used_pages(files, 0, PAGE, 0)
        assert found.sure <= 4 <= found.last
        while disk.reads < disk.to_read:
            again = find_used_pages(files, 0, PAGE, 0)
        again = find_used_pages(files, 0, PAGE, 0)
        assert again == UsedPages(4, 4, 8)
        files.close()


def test_what_lies_behind_a_hole_is_found_beside_a_page_that_cannot_be_read(used_pages) -> None:
    assert used_pages({1, 2, 3, 40}, set()).last == 40
    assert used_pages({1, 2, 3, 40}, {45}).last == 40


def test_a_file_that_cannot_be_read_at_all_counts_as_used(used_pages) -> None:
    assert used_pages({1, 2, 3}, set(range(1, PAGES))) == UsedPages(PAGES - 1, 0, PAGES)


def test_a_page_at_the_end_that_heals_is_looked_at_again(tmp_path) -> None:
    """It was taken for used, since nobody could tell; it is the end of data, and no damage."""
    with Store.open(tmp_path, OPTIONS) as store, store.begin() as group:
        group.write(transaction("x" * 2000))
        group.commit(Gtid(0, 1, 1))
    with closing(BinlogDirectory(OsDisk(), str(tmp_path))) as whole:
        end = whole.end()
    behind = end.offset // PAGE + 1
    disk = BadSectors({behind})
    with closing(BinlogDirectory(disk, str(tmp_path))) as directory:
        with pytest.raises(DiskError, match="bad sector"):
            directory.read_page(end.file_no, behind)
        disk.bad.clear()
        assert directory.read_page(end.file_no, behind) is NO_MORE_DATA
        directory.refresh()
        assert directory.end() == end


def test_who_knows_a_used_page_does_not_look_through_the_file_again(tmp_path) -> None:
    with Store.open(tmp_path, OPTIONS) as store:
        for number in (1, 2):
            with store.begin() as group:
                group.write(transaction("x" * 4000))
                group.commit(Gtid(0, 1, number))
    disk = BadSectors(set())
    with closing(BinlogDirectory(disk, str(tmp_path))) as whole:
        known, end, reads = whole.known_page, whole.end(), disk.reads
    assert known == (end.file_no, end.offset // PAGE)
    for page, is_quick in ((known[1], True), (known[1] - 3, True), (0, False)):
        disk = BadSectors(set())
        with closing(BinlogDirectory(disk, str(tmp_path), (known[0], page))) as again:
            assert (again.known_page, again.end()) == (known, end)
            assert (disk.reads < reads) == is_quick
    # Of a file that is not the newest; of one that was begun anew; that it cannot have.
    for file_no, page in ((known[0] + 1, 50), (known[0], known[1] + 9), (known[0], 1 << 40)):
        with closing(BinlogDirectory(disk, str(tmp_path), (file_no, page))) as other:
            assert (other.known_page, other.end()) == (known, end)
    (tmp_path / "none").mkdir()
    with closing(BinlogDirectory(OsDisk(), str(tmp_path / "none"))) as nothing:
        assert nothing.known_page == (0, 0)


def test_zeros_that_were_read_once_are_a_hole_again(tmp_path) -> None:
    """Reading what is reserved fills the page cache, whose pages count as data."""
    path = tmp_path / binlog_name(0)
    with path.open("wb") as file:
        file.write(b"x" * PAGE * 8)
        os.posix_fallocate(file.fileno(), 0, 64 << 20)
    path.read_bytes()
    disk = BadSectors(set())
    files = OpenFiles(disk, str(tmp_path))
    assert find_used_pages(files, 0, PAGE, 0).last == 7
    assert disk.reads < 40
    files.close()
