"""Records become the bytes that the format's worked example prints."""

import hashlib

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage.file_header import FileHeader
from ibb.storage.file_shape import FileShape
from ibb.storage.new_record import NewRecord
from ibb.storage.oob_forest import OobForest
from ibb.storage.page import page_is_zero
from ibb.storage.page_fifo import PageFifo
from ibb.storage.page_seal import seal_page
from ibb.storage.position import Position
from ibb.storage.record import RecordType, encode_commit_prefix, encode_oob_header, parse_state
from ibb.storage.writer import Writer
from ibb.storage.writer_place import WriterPlace

TIME = 0x6553F100


class FakeRedo:
    """Hands out the LSNs that the example has: 1000 plus the file number."""

    def __init__(self) -> None:
        self.next_lsn = 1000
        self.groups: list[list] = []

    def append(self, changes: list) -> int:
        self.groups.append(changes)
        return self.next_lsn


class Files:
    """Files of *pages* pages, made as they are asked for."""

    def __init__(self, redo: FakeRedo, pages: int, page_size: int, interval: int) -> None:
        self.redo, self.shape = redo, FileShape(pages, page_size, interval)
        self.entered: list[int] = []

    def next_file(self, file_no: int) -> FileShape:
        self.redo.next_lsn = 1000 + file_no
        return self.shape

    def file_entered(self, file_no: int) -> None:
        self.entered.append(file_no)


class Rig:
    def __init__(self, pages: int, page_size: int, interval: int, file_no: int = 0) -> None:
        self.redo = FakeRedo()
        self.files = Files(self.redo, pages, page_size, interval)
        self.fifo = PageFifo(1 << 20)
        self.page_size = page_size
        header = FileHeader(
            file_no=file_no, page_size=page_size, page_count=pages, lsn=1000,
            state_interval=interval, oob_reference=file_no,
        )  # fmt: skip
        self.writer = Writer(
            WriterPlace(header, 1, None, BinlogState(), BinlogState()),
            self.fifo, self.redo, self.files,
        )  # fmt: skip
        self.writer.begin_first_file(header)

    def page(self, file_no: int, page_no: int) -> bytes:
        image = bytearray(self.fifo.copy(file_no, page_no) or bytes(self.page_size))
        if not page_is_zero(bytes(image)):
            seal_page(image)
        return bytes(image)

    def oob(self, forest: OobForest, piece: bytes) -> Position:
        data = encode_oob_header(forest.next_node()) + piece
        return self.writer.append(NewRecord(RecordType.OOB, data, on_start=forest.add))[0]

    def commit(self, gtid: Gtid, events: bytes, forest: OobForest | None = None, flags2=0x29):
        lists = [forest.reference()] if forest else []
        head = GtidEvent(gtid, TIME, flags2).encode()
        return self.writer.append(
            NewRecord(RecordType.COMMIT, encode_commit_prefix(lists) + head + events, gtid)
        )


def test_worked_example_to_the_last_byte() -> None:
    """ibb-format 15.4: an inner node over a page's end, a nested state, padding, the next file."""
    rig = Rig(pages=8, page_size=512, interval=2)
    example = bytes.fromhex(
        "00f15365020100" + "00003c000000000000000000" + "0100000000000000040000000074657374"
        "00435245415445205441424c452074312028612049" + "4e5429"
    )
    assert len(example) == 60
    rig.commit(Gtid(0, 1, 1), example)
    forest = OobForest()
    for letter, count in ((b"A", 20), (b"B", 30), (b"C", 400), (b"D", 10), (b"E", 10)):
        rig.oob(forest, letter * count)
    rig.commit(Gtid(0, 1, 2), b"", forest, flags2=0x0C)
    assert rig.writer.finish_file() == 3
    rig.writer.begin_next_file()

    file0 = b"".join(rig.page(0, page_no) for page_no in range(3))
    assert file0[0x2AE:0x2BC].hex() == "034b0110005913003914" + "43434343"
    assert file0[0x400:0x40B].hex() == "4205000800000808c34c00"
    assert file0[0x5FC:].hex() == "e4003d0f"
    assert hashlib.sha256(file0).hexdigest() == (
        "56636dbf69881bd48166d8fbd9c05785ed9fa84d775b95ad5798d86f31c3fe7c"
    )
    header1, first1 = rig.page(1, 0), rig.page(1, 1)
    assert header1[508:].hex() == "89ce7973"
    assert first1[:8].hex() == "4205000800000810"
    assert first1[508:].hex() == "c7a9c754"
    assert page_is_zero(rig.page(1, 2))
    assert rig.files.entered == [1]


def test_a_gtid_is_in_states_behind_its_first_chunk_and_in_none_before() -> None:
    """A commit record behind a state record on the same page is not in that state."""
    rig = Rig(pages=40, page_size=512, interval=2)
    rig.commit(Gtid(0, 1, 1), b"x" * 424)  # fills page 1 exactly: 5 + 3 + 1 + 38 + 424 = 471 ...
    room = 508 - rig.writer.end.offset % 512
    rig.commit(Gtid(0, 1, 2), b"y" * (room + 100))  # begins on page 1, goes on behind page 2's
    rig.commit(Gtid(0, 1, 3), b"z" * 1000)
    page2 = rig.page(0, 2)
    assert page2[0] == 0x42
    assert parse_state(page2[3 : 3 + page2[1]]).entries == [Gtid(0, 1, 2)]


def test_header_carries_the_oldest_pin() -> None:
    rig = Rig(pages=4, page_size=512, interval=2, file_no=5)
    rig.writer.pins.pin("first", rig.writer.file_no)
    rig.writer.append(NewRecord(RecordType.OOB, b"p" * 1600))
    assert rig.writer.file_no == 6
    rig.writer.pins.pin("second", rig.writer.file_no)
    rig.writer.pins.unpin("first")
    rig.writer.append(NewRecord(RecordType.OOB, b"p" * 1600))
    assert FileHeader.parse(rig.page(6, 0), 6).oob_reference == 5
    assert FileHeader.parse(rig.page(7, 0), 7).oob_reference == 6


@pytest.mark.parametrize("left", [0, 1, 2, 3, 4, 5])
def test_finishing_a_file_leaves_no_unused_byte(left: int) -> None:
    """Padding at every distance from the page's end; nothing is added to a page that is full."""
    rig = Rig(pages=8, page_size=512, interval=0)
    used = rig.writer.end.offset % 512
    rig.writer.append(NewRecord(RecordType.OOB, b"p" * (508 - used - 3 - left)))
    pages = rig.writer.finish_file()
    assert pages == 2
    body = rig.page(0, 1)[:508]
    assert body[508 - left :] == {0: b"", 4: b"\x44\x01\0\xff", 5: b"\x44\x02\0\xff\xff"}.get(
        left, b"\xff" * left
    )


def test_a_state_without_room_behind_it_is_left_out() -> None:
    rig = Rig(pages=4, page_size=512, interval=2)
    for domain in range(200):
        rig.commit(Gtid(domain, 1, 1 << 40), b"")
    last = rig.writer.file_no
    assert last > 3
    page1 = rig.page(last, 1)
    assert page1[0] & 0x3F != RecordType.GTID_STATE


def test_a_state_of_hundreds_of_pages_never_passes_the_end_of_its_file() -> None:
    """So many chunk headers take more pages than the format's estimate of the room foresees."""
    entries = [Gtid(1 << 31, server, 1 << 60) for server in range(1 << 30, (1 << 30) + 8020)]
    for pages in range(300, 306):
        rig = Rig(pages=pages, page_size=512, interval=4096)
        rig.writer._full.load(entries)
        rig.writer.finish_file()
        rig.writer.begin_next_file()
        assert rig.writer.file_no == 1
        written = rig.writer.end.offset > 2 * 512
        assert written == (pages >= 303)
