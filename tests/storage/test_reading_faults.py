"""What a disk that fails or lies costs readers: the page it fails for, and nothing else."""

import errno

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_start
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from ..faults.sim_disk import SimDisk
from .events import transaction

DIRECTORY = "/s"
PAGE = 512
FILES, GROUPS = 5, 20  # groups in each file
OPTIONS = StoreOptions(
    page_size=PAGE,
    max_binlog_size=64 * PAGE,
    state_interval=4 * PAGE,
    redo_segment_size=256 << 10,
    background=False,
)
BAD_FILE, BAD_PAGE = 2, 6


class Lies:
    """
    Turns a bit of one page of one file, the first *times* times that it is read.

    Args:
        alone: do so only where a read begins with the page.
    """

    def __init__(self, times, file_no=BAD_FILE, page_no=BAD_PAGE, *, alone=False):
        self.times, self.alone = times, alone
        self.path, self.at = f"{DIRECTORY}/{binlog_name(file_no)}", page_no * PAGE

    def __call__(self, path, offset, data):
        place = self.at + 20 - offset
        if path != self.path or not 0 <= place < len(data) or not self.times:
            return data
        if self.alone and offset != self.at:
            return data
        self.times -= 1
        return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


class BadSector(Lies):
    """Makes every read that touches one page fail."""

    def __call__(self, path, offset, data):
        if path == self.path and offset <= self.at < offset + len(data):
            raise DiskError(errno.EIO, "simulated", operation="read", path=path, offset=offset)
        return data


@pytest.fixture
def disk():
    disk = SimDisk()
    with Store.open(DIRECTORY, OPTIONS, disk=disk) as store:
        for seq in range(1, FILES * GROUPS + 1):
            with store.begin() as group:
                # every fifth is cut into pieces, which lie before its commit record
                group.write(transaction(f"insert {seq}", 1500 if seq % 5 == 0 else 0))
                group.commit(Gtid(0, 1, seq))
            if seq % GROUPS == 0 and seq < FILES * GROUPS:
                store.switch_file()
    return disk


@pytest.fixture(params=["store", "directory"])
def history(request, disk):
    if request.param == "store":
        with Store.open(DIRECTORY, OPTIONS, disk=disk) as store:
            yield store
    else:
        opened = ReadOnlyHistory(disk, DIRECTORY)
        yield opened
        opened.close()


def read(history, start=Position(0, 0)):  # noqa: B008 - immutable
    """Return the sequence numbers that can be read from *start*, and what ended it."""
    reader, seen = GroupReader(history.pages, start), []
    try:
        while (group := reader.next()) is not None:
            body = b"".join(group.pieces())
            if group.gtid is not None:
                assert b"insert %d" % group.gtid.seq in body
                seen.append(group.gtid.seq)
    except (FormatError, DiskError) as error:
        return seen, error
    return seen, None


ALL = list(range(1, FILES * GROUPS + 1))
NAME = binlog_name(BAD_FILE)


def test_a_page_that_was_read_wrongly_once_is_served_and_told(history, disk):
    told = []
    history.pages.healed.tell = told.append
    disk.lies.append(Lies(1, alone=True))
    assert read(history) == (ALL, None)
    assert history.pages.healed.count == 1
    assert [(wrong.file, wrong.page) for wrong in told] == [(NAME, BAD_PAGE)]


def test_a_page_that_stays_wrong_is_named_with_its_place(history, disk):
    disk.lies.append(Lies(99))
    seen, error = read(history)
    assert isinstance(error, FormatError)
    assert (error.file, error.page) == (NAME, BAD_PAGE)
    assert f"read twice at byte {BAD_PAGE * PAGE} of the file" in str(error)
    assert history.pages.healed.count == 0
    assert seen == ALL[: len(seen)]
    assert BAD_FILE * GROUPS <= len(seen) < (BAD_FILE + 1) * GROUPS


def test_a_sector_that_cannot_be_read_is_named_with_its_page(history, disk):
    disk.lies.append(BadSector(99))
    seen, error = read(history)
    assert isinstance(error, DiskError)
    assert (error.path, error.page, error.offset) == (
        f"{DIRECTORY}/{NAME}",
        BAD_PAGE,
        BAD_PAGE * PAGE,
    )
    assert f"{NAME} page {BAD_PAGE} at {BAD_PAGE * PAGE}: simulated" in str(error)
    assert seen == ALL[: len(seen)]
    assert BAD_FILE * GROUPS <= len(seen) < (BAD_FILE + 1) * GROUPS


@pytest.mark.parametrize("fault", [Lies, BadSector])
@pytest.mark.parametrize("page_no", [0, 1, 4, BAD_PAGE])
def test_readers_of_other_files_go_on(history, disk, fault, page_no):
    disk.lies.append(fault(10**6, page_no=page_no))
    for file_no in (BAD_FILE + 1, FILES - 1):
        assert read(history, Position(file_no, 0)) == (ALL[file_no * GROUPS :], None)
    for seq in (5, 25, 75, 85, 99):
        place = find_start(history.pages, GtidPosition([Gtid(0, 1, seq)]))
        seen, error = read(history, place.position)
        assert seen[0] <= seq + 1
        assert (error is None) == (place.position.file_no > BAD_FILE) == (seq > 60)
        assert history.formats.in_force(place.position) is not None


@pytest.mark.parametrize("fault", [Lies, BadSector])
@pytest.mark.parametrize("page_no", [0, 1, 4, BAD_PAGE])
def test_a_directory_whose_newest_file_fails_serves_the_others(disk, fault, page_no):
    disk.lies.append(fault(10**6, FILES - 1, page_no))
    history = ReadOnlyHistory(disk, DIRECTORY)
    history.refresh()
    seen, error = read(history)
    assert (FILES - 1) * GROUPS <= len(seen) < FILES * GROUPS
    assert binlog_name(FILES - 1) in str(error)
    assert history.damage is None or str(history.damage) == str(error)
    history.close()
    disk.lies.clear()
    history = ReadOnlyHistory(disk, DIRECTORY)
    assert read(history) == (ALL, None)
    assert history.state().seq(0, 1) == FILES * GROUPS
    history.close()


def test_the_middle_of_a_group_that_fails_is_told_where_it_fails(history, disk):
    """The reader has the group's commit record; its pieces lie before it, one on the bad page."""
    disk.lies.append(BadSector(1))
    reader = GroupReader(history.pages, Position(BAD_FILE, 0))
    with pytest.raises(DiskError, match=f"page {BAD_PAGE}"):
        while (group := reader.next()) is not None:
            for _ in group.pieces():
                pass
    disk.lies.clear()
    assert read(history) == (ALL, None)
