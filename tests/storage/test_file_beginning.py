"""What one read tells of a file's beginning is what the readers of pages and records tell."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ibb.protocol.checksum import crc32c
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_beginning import READ_BYTES, read_beginning
from ibb.storage.file_header import HEADER_CHECKSUM_AT, HEADER_UNIT
from ibb.storage.file_name import binlog_name
from ibb.storage.healed_reads import HealedReads
from ibb.storage.open_files import OpenFiles
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import sealed_page
from ibb.storage.position import Position
from ibb.storage.state_scan import read_state

from ..faults.sim_disk import SimDisk
from .binlog_builder import BinlogBuilder, event
from .test_file_search import PLACE, TINY
from .test_rising_note import filled

pytestmark = pytest.mark.kernel

FILES, SIZE = 6, 512
HEADER, STATE = range(64), range(SIZE, SIZE + 20)
PLACES = st.sampled_from([*HEADER, *STATE]) | st.integers(-SIZE, 2 * SIZE - 1)


def built(page_size, files=FILES, pairs=3, **layout):
    """Build some files with a group of each pair in each."""
    builder = BinlogBuilder(page_size=page_size, **layout)
    for file_no in range(files):
        for pair in range(pairs):
            builder.commit(Gtid(pair % 2, pair, 7 * file_no + 1), event(20))
        builder.fill_file()
    return builder


@pytest.mark.parametrize("major", [0, 1])
@pytest.mark.parametrize("page_size", [512, 1024, 4096, 16384])
def test_it_is_what_the_readers_tell(tmp_path, page_size, major):
    path = str(built(page_size, major=major).write(tmp_path))
    directory, files = BinlogDirectory(OsDisk(), path), OpenFiles(OsDisk(), path)
    for file_no in range(FILES):
        found = read_beginning(files, file_no)
        assert found.header == directory.header(file_no)
        assert found.entries == read_state(directory, file_no, 1).entries
        assert found.page == directory.read_page(file_no, 1).data
        assert len(found.entries) == (3 if file_no else 0)
    for file_no in (FILES + 1, FILES + 2):  # an empty one, and none
        assert read_beginning(files, file_no) is None
    files.close()


@pytest.mark.parametrize(
    "layout",
    [
        {"page_size": 512, "pairs": 200, "pages": 64},  # their states go on on the next page
        {"page_size": 512, "states": False},
        {"page_size": READ_BYTES},  # page 1 is behind what is read
    ],
)
def test_what_is_not_as_usual_is_left_to_the_readers(tmp_path, layout):
    path = str(built(**layout).write(tmp_path))
    files = OpenFiles(OsDisk(), path)
    assert [read_beginning(files, file_no) for file_no in range(2, FILES)] == [None] * (FILES - 2)
    directory = BinlogDirectory(OsDisk(), path)
    state = read_state(directory, FILES - 1, 1)
    assert (state is None) == (layout.get("states") is False)
    files.close()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Return the files of some page sizes by name, as bytes."""
    found = {}
    for page_size in (512, 1024):
        path = built(page_size, pages=4).write(tmp_path_factory.mktemp("files"))
        found[page_size] = {file.name: file.read_bytes() for file in path.iterdir()}
    return found


def stored(images):
    """Return a disk with some files."""
    disk = SimDisk()
    disk.make_dir(PLACE)
    for name, data in images.items():
        file = disk.open(f"{PLACE}/{name}", create=True)
        file.write_at(0, data)
        file.close()
    return disk


def changed(image, page_size, changes, sealed):
    """
    Return an image with changed bytes in its first two pages, sealed again where asked.

    The places are in the first part of the header, from `HEADER_UNIT` on in page 1, and below 0
    from the end of the header page back.
    """
    header, page = bytearray(image[:page_size]), bytearray(image[page_size : 2 * page_size])
    for at, byte in changes:
        if at < HEADER_UNIT:
            header[at] = byte
        else:
            page[at - HEADER_UNIT] = byte
    if sealed[0]:
        header[HEADER_CHECKSUM_AT:HEADER_UNIT] = crc32c(header[:HEADER_CHECKSUM_AT]).to_bytes(
            4, "little"
        )
        header = sealed_page(header)
    return bytes(header) + (sealed_page(page) if sealed[1] else page) + image[2 * page_size :]


SEALED = (True, True)


@given(
    st.sampled_from([512, 1024]),
    st.lists(st.tuples(PLACES, st.integers(0, 255)), max_size=4),
    st.tuples(st.booleans(), st.booleans()),
)
@example(1024, [(0, 1)], SEALED)  # the magic
@example(1024, [(4, 8)], SEALED)  # pages of 256 bytes,
@example(1024, [(4, 17)], SEALED)  # and of 131,072
@example(1024, [(4, 200)], SEALED)
@example(1024, [(8, 2)], SEALED)  # a later format
@example(1024, [(16, 9)], SEALED)  # another file
@example(512, [(SIZE + 1, 255), (SIZE + 2, 1)], SEALED)  # a chunk of 511 bytes,
@example(512, [(SIZE + 1, 249), (SIZE + 2, 1)], SEALED)  # of 505,
@example(512, [(SIZE + 1, 250), (SIZE + 2, 1)], SEALED)  # and of one more
@example(512, [(SIZE, 0x82)], SEALED)  # the rest of a state
@example(512, [(SIZE + 3, 255)], SEALED)  # more entries than there are
@example(1024, [(-100, 1)], (False, True))  # one behind the first part of the header
def test_whatever_stands_there_it_tells_what_the_readers_do_or_nothing(
    images, page_size, changes, sealed
):
    name = binlog_name(1)
    image = changed(images[page_size][name], page_size, changes, sealed)
    disk = stored({**images[page_size], name: image})
    found = read_beginning(OpenFiles(disk, PLACE), 1)
    try:
        directory = BinlogDirectory(disk, PLACE)
        header, state = directory.header(1), read_state(directory, 1, 1)
    except FormatError:
        header = state = None
    if found is not None:
        assert (found.header, found.entries) == (header, state.entries)
    else:
        assert image != images[page_size][name]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 1023, 1024, 1500, 2047, 2048])
def test_a_file_that_was_cut_tells_it_if_page_1_is_there(images, size):
    name = binlog_name(1)
    disk = stored({**images[1024], name: images[1024][name][:size]})
    assert (read_beginning(OpenFiles(disk, PLACE), 1) is None) == (size < 2048)


@pytest.mark.parametrize("at", [0, 4, 8, 16, 40, 507, 508, 511, 512, 515, 520, 1000, 1023])
@pytest.mark.parametrize("times", [1, 2])
def test_a_bit_that_flips_is_noticed_and_healed_if_it_was_only_read_wrongly(at, times):
    disk, wrong = SimDisk(), []
    filled(disk, 4)

    def flip(path, offset, data):
        if offset or path != f"{PLACE}/{binlog_name(1)}" or len(wrong) == times:
            return data
        wrong.append(at)
        return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]

    told, healed = [], HealedReads()
    healed.tell = told.append
    files = OpenFiles(disk, PLACE, healed)
    right = read_beginning(files, 1)
    assert right is not None
    disk.lies.append(flip)
    assert read_beginning(files, 1) == (right if times == 1 else None)
    assert healed.count == len(told) == (1 if times == 1 else 0)
    for error in told:
        assert (error.what, error.file) == ("wrong checksum of page 0 or 1", binlog_name(1))


def test_a_store_tells_it_of_files_that_are_all_on_disk_and_the_readers_of_the_others():
    disk = SimDisk()
    filled(disk, 6)
    with Store.open(PLACE, TINY, disk=disk) as store:
        pages = store.pages
        last = pages.last_file()
        for file_no in range(last + 1):
            entries = pages.first_state(file_no)
            assert (entries is None) == (file_no >= last - 1)
            assert entries in (None, read_state(pages, file_no, 1).entries)
        assert pages.first_state(last + 1) is None


def test_a_directory_tells_it_of_files_that_are_passed_and_below_its_limit(tmp_path):
    directory = BinlogDirectory(OsDisk(), str(built(512).write(tmp_path)))

    def told():
        return [no for no in range(FILES + 3) if directory.first_state(no) is not None]

    assert told() == [*range(FILES)]  # and not of the one that is begun, nor of those behind it
    directory.limit = Position(3, 600)
    assert told() == [0, 1, 2]


@pytest.mark.parametrize("begins_anew", [False, True])
def test_its_header_is_kept_unless_it_may_be_of_a_history_that_is_gone(begins_anew):
    disk, reads = SimDisk(), []
    filled(disk, 6)
    directory = BinlogDirectory(disk, PLACE)

    def read(path, offset, data):
        if path == f"{PLACE}/{binlog_name(2)}":
            reads.append(offset)
            directory.generation += begins_anew  # as if another process had made it just then
        return data

    disk.lies.append(read)
    assert directory.first_state(2) == [Gtid(0, 1, 2)]
    assert reads == [0]
    assert directory.header(2).file_no == 2
    assert reads == ([0, 0] if begins_anew else [0])
