"""
Rows of the corruption table, ibb-format 14, that need files of another shape than all others.

As in `test_damage.py`: the exact report, files without a finding can be read, nothing is changed.
"""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.oob_forest import OobForest
from ibb.storage.open_files import TORN_READS_MAX
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.record import OobReference
from ibb.storage.verify import verify_directory
from ibb.storage.verify.finding import NOTHING
from ibb.storage.verify.pages import READS_MAX

from ..binlog_builder import BinlogBuilder, event
from ..test_corruption import CountingDisk
from .binlog_to_damage import FILE1, GROUPS_IN, bad_page, write_binlog
from .verify_rig import SIZE, Binlog, Report, digest, groups_of, numbered, report_of, reports


@pytest.fixture(autouse=True)
def nothing_is_changed(tmp_path):
    """Each test names what it damages by `damaged`; from then on nobody may change anything."""
    before = []
    yield lambda: before.append(digest(tmp_path))
    assert before == [digest(tmp_path)]


@pytest.fixture
def damaged(nothing_is_changed):
    return nothing_is_changed


# Header pages that are larger than the header


def test_a_header_that_is_right_in_a_page_that_is_not(tmp_path, damaged):
    """The header's own checksum is at 508, that of its page at the page's end."""
    binlog = Binlog(tmp_path, page_size=1024).groups(80).write()
    inside = [seq for seq, place in binlog.places.items() if place.file_no == 1]
    binlog.raw(Position(1, 700), b"\x01")
    damaged()
    stored = int.from_bytes(binlog.file(1).read_bytes()[1020:1024], "little")
    text = "Page corruption in binlog tablespace file page number 0"
    text += f" (invalid crc32 checksum 0x{stored:08X})"
    lost = f"0-1-{inside[0] - 1}..{inside[-1]}"
    assert reports(tmp_path) == [report_of("header-page-checksum", FILE1, text, lost, page=0)]
    assert groups_of(tmp_path, 0) == list(range(1, inside[0] - 1))
    assert groups_of(tmp_path, 2) == list(range(inside[-1] + 1, 81))
    with pytest.raises(FormatError, match="page number 0"):
        groups_of(tmp_path, 1)


# Files that differ from their neighbours


@pytest.fixture
def mixed(tmp_path):
    """Files of 512, 2,048 and 1,024 bytes a page, the first one of the draft; their groups."""
    groups, seq, full = {}, 0, None
    for file_no, (page_size, major) in enumerate([(512, 0), (2048, 1), (1024, 1)]):
        builder = BinlogBuilder(page_size, major=major, first=file_no)
        builder.full = builder.full if full is None else full.copy()
        groups[file_no] = list(range(seq + 1, seq + 13))
        for seq in groups[file_no]:
            builder.commit(numbered(seq), event(200))
        full = builder.full.copy()
        if file_no < 2:
            builder.fill_file()
            builder.files.pop()
        builder.write(tmp_path, empty_next=file_no == 2)
    return groups


def test_page_sizes_and_versions_that_differ_are_accepted(tmp_path, mixed, damaged):
    damaged()
    assert reports(tmp_path) == []
    assert {file_no: groups_of(tmp_path, file_no) for file_no in mixed} == mixed


def test_damage_between_files_of_other_page_sizes(tmp_path, mixed, damaged):
    """Its page is counted in pages of its own file."""
    image = bytearray((tmp_path / FILE1).read_bytes())
    image[2048 + 1000] ^= 1
    (tmp_path / FILE1).write_bytes(image)
    damaged()
    stored = int.from_bytes(image[2 * 2048 - 4 : 2 * 2048], "little")
    text = "Page corruption in binlog tablespace file page number 1"
    text += f" (invalid crc32 checksum 0x{stored:08X})"
    assert reports(tmp_path) == [report_of("page-checksum", FILE1, text, "0-1-13..21", page=1)]
    assert groups_of(tmp_path, 0) == mixed[0]
    assert groups_of(tmp_path, 2) == mixed[2]


# The end of the newest file, where another program may be writing


@pytest.mark.parametrize(
    ("place", "lost", "reads"),
    [
        (Position(0, 3 * SIZE), "0-1-5..7", READS_MAX),
        (Position(1, 3 * SIZE), "0-1-19..21", TORN_READS_MAX),
        (Position(2, 6 * SIZE), "0-1-40 at least", TORN_READS_MAX),
    ],
)
def test_a_page_is_read_again_before_it_is_called_damaged(tmp_path, damaged, place, lost, reads):
    """The last page, and all others of the two newest files, more often than older ones."""
    binlog = write_binlog(tmp_path)
    binlog.raw(place._replace(offset=place.offset + 30), b"\x5a")
    damaged()
    disk = CountingDisk(binlog.file(place.file_no), place.offset)
    (found,) = verify_directory(disk, str(tmp_path))
    expected = bad_page(binlog, place.file_no, place.offset // SIZE, lost)
    assert (found.kind, found.lost, found.text) == (expected.kind, lost, expected.text)
    assert reads - 1 <= disk.count <= reads  # and once before, with all pages around it
    for file_no in {0, 1, 2} - {place.file_no}:
        assert groups_of(tmp_path, file_no) == list(GROUPS_IN[file_no])
    with pytest.raises(FormatError, match="Page corruption"):
        groups_of(tmp_path, place.file_no)


# Pieces in other files than the commit record


class FarPieces:
    """
    A large group with its pieces in file 1 and its commit record in file 2, between others.

    Args:
        path: of the directory.
        reference: what the header of file 2 says is the lowest file with pieces for it.

    Attributes:
        binlog: its files, 0 to 3.
        node: where the last piece is.
        place: where the commit record is.
        seq: number of the group.
    """

    def __init__(self, path, reference=1):
        self.binlog = binlog = Binlog(path)
        self._groups_until(1, 4 * SIZE)
        forest, data = OobForest(), event(200)
        for start in range(0, 200, 50):
            self.node = binlog.builder.oob(forest, data[start : start + 50])
        self._groups_until(2, 4 * SIZE)
        self.seq = len(binlog.places) + 1
        binlog.builder.oob_references[2] = reference
        self.place = binlog.builder.commit(numbered(self.seq), lists=[forest.reference()])
        binlog.places[self.seq] = self.place
        self._groups_until(3, 4 * SIZE)
        binlog.write()

    def _groups_until(self, file_no, offset):
        while self.binlog.builder.position < (file_no, offset):
            self.binlog.groups(1)

    def report(self, kind, text):
        """Return the report of what is wrong about the group."""
        page, offset = divmod(self.place.offset, SIZE)
        return Report(kind, binlog_name(self.place.file_no), page, offset, f"0-1-{self.seq}", text)

    def inside(self, file_no):
        """Return the numbers of the groups that begin in a file."""
        return [seq for seq, place in self.binlog.places.items() if place.file_no == file_no]


def test_pieces_in_a_file_that_is_missing(tmp_path, damaged):
    far = FarPieces(tmp_path)
    assert reports(tmp_path) == []
    far.binlog.file(1).unlink()
    damaged()
    inside = far.inside(1)
    text = f"oob record {far.node} of commit record {far.place}: the file is missing"
    assert reports(tmp_path) == [
        report_of(
            "missing-file", FILE1, "the file is missing", f"0-1-{inside[0] - 1}..{inside[-1]}"
        ),
        far.report("oob-tree", text),
    ]
    assert groups_of(tmp_path, 0) == far.inside(0)[:-1]
    assert groups_of(tmp_path, 3) == far.inside(3)
    with pytest.raises(FormatError, match="the file is missing"):
        groups_of(tmp_path, 2)


def test_pieces_in_a_file_that_was_purged(tmp_path, damaged):
    """A purge may leave such groups in the oldest file: readers that need them are too old."""
    far = FarPieces(tmp_path)
    for file_no in (0, 1):
        far.binlog.file(file_no).unlink()
    damaged()
    text = f"oob record {far.node} of commit record {far.place}: the file is missing"
    assert reports(tmp_path) == [far.report("oob-purged", text)]
    assert groups_of(tmp_path, 3) == far.inside(3)
    with pytest.raises(FormatError, match="the file is missing"):
        groups_of(tmp_path, 2)


def test_pieces_below_the_reference_of_the_header(tmp_path, damaged):
    """A purge goes by that reference: what lies below it may be gone tomorrow."""
    far = FarPieces(tmp_path, reference=2)
    damaged()
    text = f"oob pointer {far.node} of the commit record {far.place} leads below the oob reference"
    assert reports(tmp_path) == [far.report("oob-tree", f"{text} 2 of the file")]
    for file_no in (0, 1, 3):
        assert groups_of(tmp_path, file_no) == far.inside(file_no)
    with pytest.raises(FormatError, match="below the oob reference 2"):
        groups_of(tmp_path, 2)


def test_pieces_in_a_damaged_page_of_another_file(tmp_path, damaged):
    far = FarPieces(tmp_path)
    page = far.node.offset // SIZE
    far.binlog.raw(far.node._replace(offset=far.node.offset + 9), b"\x5a")
    damaged()
    last = max(seq for seq, place in far.binlog.places.items() if place < (1, page * SIZE))
    bad = bad_page(far.binlog, 1, page, f"0-1-{last}..{last + 1}")
    text = f"{bad.text}, read twice at byte {page * SIZE} of the file (file {FILE1}, page {page})"
    assert reports(tmp_path) == [bad, far.report("oob-unreadable", text)]
    assert groups_of(tmp_path, 0) == far.inside(0)
    assert groups_of(tmp_path, 3) == far.inside(3)


def test_a_pointer_behind_the_data_of_an_earlier_file(tmp_path, damaged):
    """File 0 was given up early, which costs nothing by itself."""
    first = Binlog(tmp_path).groups(3).write(empty_next=False)
    second = BinlogBuilder(first=1, interval=2)
    second.full = first.builder.full.copy()
    second.oob_references[1] = 0
    second.commit(numbered(4), event(200))
    nowhere = Position(0, 6 * SIZE)
    place = second.commit(numbered(5), lists=[OobReference(1, nowhere, nowhere)])
    while second.position < (2, 2 * SIZE):
        second.commit(numbered(second.full.newest(0).seq + 1), event(200))
    second.write(tmp_path)
    damaged()
    end = first.builder.position
    early = "data ends here although a later file is used"
    text = f"oob record {nowhere} of commit record {place}: Unexpected EOF, expected oob chunk"
    assert reports(tmp_path) == [
        Report("data-ends-early", binlog_name(0), *divmod(end.offset, SIZE), NOTHING, early),
        Report("oob-tree", FILE1, *divmod(place.offset, SIZE), "0-1-5", text),
    ]
    assert groups_of(tmp_path, 0) == [1, 2, 3]
    assert groups_of(tmp_path, 2)[-1] == second.full.newest(0).seq
    with pytest.raises(FormatError, match="Unexpected EOF"):
        groups_of(tmp_path, 1)


# Files that are gone at the beginning


def test_files_that_were_purged_are_no_damage_and_refuse_those_who_need_them(tmp_path, damaged):
    binlog = write_binlog(tmp_path)
    binlog.file(0).unlink()
    damaged()
    assert reports(tmp_path) == []
    source = BinlogDirectory(OsDisk(), str(tmp_path))
    with pytest.raises(TooOld, match="position '0-1-14' needs groups from before file 1"):
        find_start(source, GtidPosition.parse("0-1-14"))
    start = find_start(source, GtidPosition.parse("0-1-15")).position
    reader = GroupReader(source, start)
    assert [group.gtid.seq for group in iter(reader.next, None)][-25:] == list(range(16, 41))
    assert groups_of(tmp_path, 1) == list(GROUPS_IN[1])
    assert groups_of(tmp_path, 2) == list(GROUPS_IN[2])
