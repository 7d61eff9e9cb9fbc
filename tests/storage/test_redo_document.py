"""The redo log's document: its example is what the code reads and writes."""

import re
from pathlib import Path

from ibb.protocol.checksum import crc32c
from ibb.storage.file_header import FileHeader
from ibb.storage.inspect.redo import ChangeLine, inspect_groups, inspect_segments
from ibb.storage.position import Position
from ibb.storage.recovery import replay
from ibb.storage.redo_record import Change, encode_group

from ..faults.sim_disk import SimDisk

DOCUMENT = Path(__file__).parents[2] / "docs" / "redo-log.md"
HEADER = FileHeader(
    file_no=0, page_size=512, page_count=8, lsn=1, state_interval=2, oob_reference=0
)
STATE = bytes.fromhex("4202000000")
NODE = bytes.fromhex("430600000000000041")
FILE_0 = "binlog-000000.ibb"


def example():
    """Return the bytes of the example by their offsets."""
    image = bytearray()
    lines = re.findall(r"^    ([0-9a-f]{8}): ([0-9a-f ]+)$", DOCUMENT.read_text(), re.MULTILINE)
    for offset, text in lines:
        at, data = int(offset, 16), bytes.fromhex(text)
        assert at >= len(image)
        image.extend(bytes(at - len(image)) + data)
    return bytes(image)


def store(image):
    disk = SimDisk()
    disk.make_dir("/s")
    disk.open("/s/ibb-redo-0.log", create=True).write_at(0, bytes(1 << 16))
    disk.open("/s/ibb-redo-1.log", create=True).write_at(0, image + bytes(1 << 16))
    return disk


def test_the_example_is_what_is_written():
    image = example()
    assert image[48:52] == crc32c(image[:48]).to_bytes(4, "little")
    first = encode_group(1, 1, [Change(0, 0, 0, HEADER.encode_fields()), Change(0, 1, 0, STATE)])
    assert len(first) == 129
    assert image[4096:] == first + encode_group(130, 130, [Change(0, 1, 5, NODE)])


def test_the_example_is_what_is_read():
    disk = store(example())
    unused, segment = inspect_segments(disk, "/s")
    assert unused.status == "unused or torn"
    assert (segment.status, segment.sequence, segment.first_lsn) == ("newest", 1, 1)
    first, second = inspect_groups(disk, "/s")
    assert (first.lsn, first.end_lsn, first.synced_lsn) == (1, 130, 1)
    assert first.changes == [
        ChangeLine(file=FILE_0, page=0, offset=0, length=64),
        ChangeLine(file=FILE_0, page=1, offset=0, length=5),
    ]
    assert (second.lsn, second.end_lsn, second.synced_lsn) == (130, 183, 130)
    assert second.changes == [ChangeLine(file=FILE_0, page=1, offset=5, length=9)]


def test_the_example_makes_a_file():
    disk = store(example())
    replayed = replay(disk, "/s")
    assert replayed.end == Position(0, 512 + 14)
    image = disk.contents(f"/s/{FILE_0}")
    assert len(image) == 8 * 512
    assert image[:512] == HEADER.encode()
    assert image[512 : 512 + 15] == STATE + NODE + b"\0"


def test_damage_before_a_synced_group_is_shown_where_it_is():
    """The second group says that the first had been synced."""
    image = bytearray(example())
    image[4096 + 40] ^= 1
    (line,) = inspect_groups(store(bytes(image)), "/s")
    assert line.lsn == 1
    assert "redo group 1 is damaged although it had been synced" in line.status


def test_a_segment_of_another_version_is_told():
    image = bytearray(example())
    image[8] = 3
    image[48:52] = crc32c(bytes(image[:48])).to_bytes(4, "little")
    _, segment = inspect_segments(store(bytes(image)), "/s")
    assert segment.status.startswith("redo log format 3 is unknown")
    (line,) = inspect_groups(store(bytes(image)), "/s")
    assert "redo log format 3 is unknown" in line.status
