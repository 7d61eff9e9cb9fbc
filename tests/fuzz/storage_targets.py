"""What is read from a directory: single records, and whole directories with right checksums."""

from ibb.protocol.errors import FormatError
from ibb.storage.file_header import HEADER_FIELDS_SIZE, FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.inspect.files import Inspector
from ibb.storage.page_seal import seal_page
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.record import (
    parse_commit_prefix,
    parse_oob_header,
    parse_state,
    parse_xa_complete,
    parse_xa_prepare,
)
from ibb.storage.redo_record import parse_groups
from ibb.storage.verify.directory_check import verify_directory

from ..faults.sim_disk import SimDisk

PAGE_SIZE = 512
FILES_MAX = 4
PAGES_MAX = 8  # of a file, its header not counted
NEXT_FILE = b"\xfd\xfd"  # in an input
NEXT_PAGE = b"\xfe\xfe"
GROUPS_MAX = 1000  # that an input can hold by far
FOLDER = "d"


def fuzz_records(data):
    """The contents of one record, header or redo segment; the first byte says what."""
    if not data:
        return
    try:
        RECORD_PARSERS[data[0] % len(RECORD_PARSERS)](data[1:])
    except FormatError:
        return


def _redo(data):
    for group in parse_groups(data, 0, int.from_bytes(data[8:16], "little")):
        list(group.changes())


RECORD_PARSERS = (
    parse_commit_prefix,
    lambda data: parse_commit_prefix(data, 0),
    parse_state,
    lambda data: parse_state(data, 0),
    parse_oob_header,
    parse_xa_prepare,
    parse_xa_complete,
    lambda data: FileHeader.from_fields(data[:HEADER_FIELDS_SIZE], 1),
    lambda data: FileHeader.parse(data, 1),
    _redo,
)


def fuzz_directories(data):
    """
    A directory of small files: read it, check it, look at it.

    Damage is a FormatError for a reader, and a finding for `ibb verify`; anything else is a find.
    """
    if not data:
        return
    disk = make_directory(data)
    _read(disk)
    for finding in verify_directory(disk, FOLDER):
        assert finding.text
    _look(disk)


def make_directory(data):
    """
    Return a disk with the directory that *data* describes.

    The first byte holds the format version and the interval of states, the rest pages and
    files as marks separate them. Headers and checksums are right.
    """
    disk = SimDisk()
    disk.make_dir(FOLDER)
    major, interval = data[0] & 1, data[0] >> 1 & 7
    for number, contents in enumerate(data[1:].split(NEXT_FILE)[:FILES_MAX]):
        pages = contents.split(NEXT_PAGE)[:PAGES_MAX]
        header = FileHeader(
            file_no=number,
            page_size=PAGE_SIZE,
            page_count=len(pages) + 2,
            lsn=0,
            state_interval=interval,
            oob_reference=0,
            major=major,
        )
        name = f"{FOLDER}/{binlog_name(number)}"
        _put(disk, name, b"".join((header.encode(), *map(_page, pages), bytes(PAGE_SIZE))))
    return disk


def _page(contents):
    page = bytearray(contents[: PAGE_SIZE - 4].ljust(PAGE_SIZE, b"\0"))
    seal_page(page)
    return page if contents else bytes(PAGE_SIZE)


def _put(disk, path, data):
    file = disk.open(path, create=True)
    file.write_at(0, data)
    file.sync()


def _read(disk):
    history = ReadOnlyHistory(disk, FOLDER)
    position = Position(history.pages.first_file(), 0)
    try:
        str(history.state())
        reader = GroupReader(history.pages, position)
        for _ in range(GROUPS_MAX):
            if (group := reader.next()) is None:
                break
            for piece in group.pieces():
                assert piece
        else:
            raise AssertionError("groups without end")
        history.formats.in_force(history.end())
    except FormatError:
        return
    finally:
        history.close()


def _look(disk):
    inspector = Inspector(disk, FOLDER)
    try:
        for file_no, _ in enumerate(inspector.files()):
            for page in inspector.file_pages(file_no):
                list(inspector.chunks(file_no, page.page))
    except FormatError:
        return
    finally:
        inspector.close()
