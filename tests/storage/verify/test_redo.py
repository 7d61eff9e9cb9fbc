"""The check of a redo log: against the files, and where it is damaged."""

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.checksum import crc32c
from ibb.storage import Store
from ibb.storage.page_seal import seal_page
from ibb.storage.redo_segment import SEGMENT_DATA_OFFSET, SEGMENT_NAMES
from ibb.storage.reset_marker import ResetMarker
from ibb.storage.verify import verify_directory
from ibb.storage.verify.finding import Severity

from ...faults.sim_disk import SimDisk
from .test_directory_check import SMALL, check, publish


def written_store():
    """Return a disk with a store that was killed when its files had all; and its only segment."""
    disk = SimDisk()
    store = Store.open("/s", SMALL, disk=disk)
    for number in range(1, 20):
        publish(store, number, 100)
    store._engine.checkpoint()
    disk.end_process()
    segment = max(
        SEGMENT_NAMES,
        key=lambda name: int.from_bytes(disk.contents(f"/s/{name}")[16:24], "little"),
    )
    assert check(disk)[0] == []
    return disk, f"/s/{segment}"


def group_offsets(disk, segment):
    """Return where the groups of a redo segment begin."""
    data, at, offsets = disk.contents(segment), SEGMENT_DATA_OFFSET, []
    while data[at : at + 4] == b"RdG1":
        offsets.append(at)
        at += 28 + int.from_bytes(data[at + 4 : at + 8], "little")
    return offsets


def test_damage_in_the_middle_of_the_redo_log():
    disk, segment = written_store()
    place = group_offsets(disk, segment)[5]
    disk.damage(segment, place + 40, b"\xff\x00\xff")
    found = list(verify_directory(disk, "/s"))
    assert [(str(finding.kind), finding.offset) for finding in found] == [("redo-damaged", place)]
    assert segment.endswith(found[0].file)


def test_a_redo_log_that_ends_before_the_files_do():
    """Opening such a store would take the last groups for what had not become durable."""
    disk, segment = written_store()
    offsets = group_offsets(disk, segment)
    disk.damage(segment, offsets[-1], b"\0\0\0\0")
    assert [kind for kind, _ in check(disk)[0]] == ["redo-behind"]
    assert check(disk)[1].groups == 19


def test_a_redo_log_of_an_unknown_version():
    disk, segment = written_store()
    head = bytearray(disk.contents(segment)[:48])
    head[8] = 9
    disk.damage(segment, 0, bytes(head) + crc32c(head).to_bytes(4, "little"))
    found = list(verify_directory(disk, "/s"))
    assert [str(finding.kind) for finding in found] == ["redo-damaged"]
    assert "redo log format 9 is unknown" in found[0].text


def test_a_segment_that_was_torn_when_it_was_begun():
    disk, segment = written_store()
    other = next(f"/s/{name}" for name in SEGMENT_NAMES if not segment.endswith(name))
    disk.damage(other, 0, b"ibbRedo1")
    disk.damage(other, 30, b"\x77")
    assert check(disk)[0] == [("redo-segment", Severity.NOTE)]


def test_a_page_that_is_not_what_the_redo_log_says():
    disk, _ = written_store()
    image = bytearray(disk.contents("/s/binlog-000000.ibb"))
    page = image[512:1024]
    page[300] ^= 1
    seal_page(page)
    disk.damage("/s/binlog-000000.ibb", 512, bytes(page))
    assert check(disk)[0] == [("redo-differs", Severity.DAMAGE)]


@pytest.mark.parametrize("room", range(1, 5))
def test_a_page_that_was_written_when_its_end_was_near(room):
    """What is left is too little for a chunk; the log has the page with its filler."""
    disk = SimDisk()
    store = Store.open("/s", SMALL, disk=disk)
    number = 0
    while store.end().offset % 512 != 508 - room:
        number += 1
        publish(store, number, 100 + number % 97)
    store._engine.checkpoint()
    publish(store, number + 1, 100)
    disk.end_process()
    found, totals = check(disk)
    assert set(found) <= {("not-closed", Severity.NOTE)}
    assert totals.groups == number + 1


def test_a_damaged_page_that_the_redo_log_has():
    disk, _ = written_store()
    disk.damage("/s/binlog-000000.ibb", 600, b"\xff\xff")
    found = list(verify_directory(disk, "/s"))
    assert [(str(f.kind), f.file, f.page, f.lost) for f in found] == [
        ("page-checksum", "binlog-000000.ibb", 1, "nothing")
    ]
    assert check(disk)[1].groups == 19


def test_a_reset_that_has_begun():
    disk, _ = written_store()
    ResetMarker(disk, "/s").write(BinlogState(), pytest.fail)
    assert check(disk)[0] == [("reset-unfinished", Severity.NOTE)]
    disk.damage("/s/ibb-reset", 0, b"\xff\xff\xff\xff")
    assert check(disk)[0] == [("reset-marker", Severity.WARNING)]


def test_more_empty_files_than_a_store_makes_are_no_damage_where_its_redo_log_is():
    """A crash may leave any number of them; opening the store removes them."""
    disk, _ = written_store()
    newest = max(name for name in disk.list("/s") if name.endswith(".ibb"))
    for number in (1, 2, 3):
        name = f"/s/binlog-{int(newest[7:13]) + number:06d}.ibb"
        disk.open(name, create=True).truncate(SMALL.max_binlog_size)
    assert check(disk)[0] == []


def test_a_redo_log_that_changes_at_first_is_judged_when_it_rests():
    disk, segment = written_store()
    disk.damage(segment, group_offsets(disk, segment)[5] + 40, b"\xff\x00\xff")
    reads = 0
    step = disk.step

    def change_once(kind, path):
        nonlocal reads
        step(kind, path)
        if kind == "read" and path == segment:
            reads += 1
            if reads == 1:
                disk.open(segment).write_at(SEGMENT_DATA_OFFSET - 8, b"changed")

    disk.step = change_once
    assert [kind for kind, _ in check(disk)[0]] == ["redo-damaged"]
