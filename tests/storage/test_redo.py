"""The redo log gives back whole groups up to the last sync, and tells a torn end from damage."""

import errno
import random
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibb.protocol.errors import FormatError
from ibb.storage.disk import Buffer
from ibb.storage.errors import DiskError, StoreFailed
from ibb.storage.position import Position
from ibb.storage.redo import RedoLog
from ibb.storage.redo_record import (
    GROUP_HEADER_SIZE,
    Change,
    encode_group,
    group_size,
    parse_group,
)
from ibb.storage.redo_segment import (
    FIRST_LSN,
    SEGMENT_DATA_OFFSET,
    SEGMENT_NAMES,
    damaged_headers,
    encode_segment_header,
    find_newest_segment,
    read_groups,
)

from ..faults.sim_disk import Fault, SimDisk, SimFile

SEGMENT_SIZE = 4 << 20
PATH = f"/s/{SEGMENT_NAMES[1]}"

changes = st.lists(
    st.builds(
        Change,
        st.integers(0, 2**64 - 1),
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**16 - 1),
        st.binary(max_size=300),
    ),
    max_size=5,
)


@given(changes, st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_group_reads_back_as_it_was_written(group: list[Change], lsn: int, synced: int) -> None:
    raw = encode_group(lsn, synced, group)
    assert len(raw) == group_size(group)
    found = parse_group(bytes(raw), 0, lsn)
    assert found is not None
    assert (found.lsn, found.end_lsn, found.synced_lsn) == (lsn, lsn + len(raw), synced)
    assert list(found.changes()) == group


@given(changes, st.data())
def test_no_flipped_bit_passes(group: list[Change], data: st.DataObject) -> None:
    raw = bytearray(encode_group(77, 70, group))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    assert parse_group(bytes(raw), 0, 77) is None


def log_on(disk: SimDisk) -> SimDisk:
    log(disk)
    return disk


def log(disk: SimDisk) -> RedoLog:
    redo = RedoLog(disk, "/s", SEGMENT_SIZE, lambda _: None)
    redo.prepare()
    redo.begin_segment(1, FIRST_LSN, Position(0, 0))
    return redo


def change(number: int, size: int = 100) -> Change:
    return Change(0, number, 0, bytes([number % 251]) * size)


def read(disk: SimDisk) -> list[Change]:
    segment = find_newest_segment(disk, "/s")
    assert segment is not None
    return [item for group in read_groups(disk, "/s", segment) for item in group.changes()]


def test_what_was_synced_comes_back_and_nothing_else_needs_to() -> None:
    for seed in range(30):
        disk = SimDisk()
        redo = log(disk)
        for number in range(10):
            redo.append([change(number)])
        redo.sync_to(redo.next_lsn)
        for number in range(10, 15):
            redo.append([change(number)])
        disk.faults.append(Fault(lambda op: op.kind == "sync"))
        with pytest.raises(StoreFailed):
            redo.sync_to(redo.next_lsn)
        found = read(disk.crashed(random.Random(seed), keep=0.5))
        assert found[:10] == [change(number) for number in range(10)]
        assert found[10:] == [change(number) for number in range(10, 10 + len(found) - 10)]


def test_a_failed_sync_is_final() -> None:
    disk = SimDisk()
    redo = log(disk)
    lsn = redo.append([change(1)])
    disk.faults.append(Fault(lambda op: op.kind == "sync"))
    for _ in range(2):
        with pytest.raises(StoreFailed, match="stopped writing"):
            redo.sync_to(lsn)
    with pytest.raises(StoreFailed):
        redo.append([change(2)])
    assert redo.synced_lsn == FIRST_LSN


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_an_interrupted_write_is_final(kind: str) -> None:
    """What was taken from the buffer may be nowhere: later groups would follow a hole."""

    class InterruptedDisk(SimDisk):
        armed = False

        def step(self, operation: str, path: str) -> None:
            super().step(operation, path)
            if self.armed and operation == kind:
                self.armed = False
                raise KeyboardInterrupt

    disk = InterruptedDisk()
    redo = log(disk)
    redo.sync_to(redo.append([change(1)]))
    disk.armed = True
    with pytest.raises(KeyboardInterrupt):
        redo.sync_to(redo.append([change(2)]))
    with pytest.raises(StoreFailed, match="stopped writing: KeyboardInterrupt"):
        redo.append([change(3)])
    with pytest.raises(StoreFailed):
        redo.sync_to(redo.next_lsn)
    assert read(disk)[:1] == [change(1)]


def test_damage_before_a_synced_group_is_not_a_torn_end() -> None:
    disk = SimDisk()
    redo = log(disk)
    for number in range(5):
        redo.sync_to(redo.append([change(number)]))
    size = group_size([change(0)])
    disk.damage(PATH, SEGMENT_DATA_OFFSET + 2 * size + GROUP_HEADER_SIZE + 20, b"\xee")
    with pytest.raises(FormatError, match="damaged although it had been synced"):
        read(disk)


def test_the_last_group_may_be_torn() -> None:
    disk = SimDisk()
    redo = log(disk)
    for number in range(5):
        redo.sync_to(redo.append([change(number)]))
    size = group_size([change(0)])
    disk.damage(PATH, SEGMENT_DATA_OFFSET + 5 * size - 1, b"\xee")
    assert read(disk) == [change(number) for number in range(4)]


def test_a_group_in_user_data_proves_nothing() -> None:
    """The last group was never synced; somebody's data in it looks like a later group."""
    disk = SimDisk()
    redo = log(disk)
    redo.sync_to(redo.append([change(1)]))
    torn = redo.next_lsn
    alien = encode_group(1 << 50, 1 << 49, [change(3)])
    redo.write_to(redo.append([Change(0, 2, 0, bytes(100) + alien + bytes(100))]))
    disk.damage(PATH, SEGMENT_DATA_OFFSET + torn - FIRST_LSN, bytes(GROUP_HEADER_SIZE))
    assert read(disk) == [change(1)]


def test_segments_take_turns_and_the_newest_rules() -> None:
    disk = SimDisk()
    redo = log(disk)
    redo.sync_to(redo.append([change(1)]))
    first_end = redo.next_lsn
    redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(2)]))
    assert read(disk) == [change(2)]
    redo.begin_next_segment(Position(0, 0))
    assert read(disk) == []  # the old groups of the file that is used again are not taken for new
    segment = find_newest_segment(disk, "/s")
    assert segment is not None
    assert (segment.sequence, segment.slot) == (3, 1)
    assert segment.first_lsn > first_end


@pytest.mark.parametrize("slot", [0, 1])
def test_the_length_of_a_segment_outlives_a_failed_sync(slot: int) -> None:
    """It was in the cache alone, and the next life's sync had nothing to write."""
    for seed in range(20):
        disk = SimDisk()
        path = f"/s/{SEGMENT_NAMES[slot]}"
        disk.operations += seed  # what is lost is drawn by their number
        disk.faults = [Fault(lambda op: op.kind == "sync" and op.path == path)]  # noqa: B023
        with pytest.raises(DiskError):
            log(disk)
        disk.faults = []
        log(disk)
        after = disk.crashed(random.Random(seed), keep=0)
        assert after.size(path) == SEGMENT_SIZE
        assert find_newest_segment(after, "/s") is not None


def test_a_segment_is_begun_without_a_descriptor_more() -> None:
    disk = SimDisk()
    redo = log(disk)
    disk.faults = [Fault(lambda op: op.kind == "open", errno.EMFILE, times=100)]
    for number in range(4):
        redo.sync_to(redo.append([change(number)]))
        redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(9)]))
    redo.close()
    disk.faults = []
    assert read(disk) == [change(9)]


def test_no_group_is_written_before_the_header_of_its_segment_is_certain() -> None:
    """Else its groups could outlive the header, and the next use begin at the same LSN."""
    disk = SimDisk()
    redo = log(disk)
    redo.begin_next_segment(Position(3, 77))
    segment = find_newest_segment(disk.crashed(random.Random(1), keep=0), "/s")
    assert segment is not None
    assert (segment.sequence, segment.begun_at) == (2, Position(3, 77))


@pytest.mark.parametrize("first_is_used", [True, False])
def test_a_lost_header_is_told_where_groups_of_its_use_stand_behind_it(
    first_is_used: bool,
) -> None:
    disk = SimDisk()
    redo = log(disk)
    if first_is_used:
        redo.sync_to(redo.append([change(1)]))
    redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(2)]))
    newest = f"/s/{SEGMENT_NAMES[0]}"
    disk.damage(newest, 0, b"torn")
    with pytest.raises(FormatError, match="header of a redo segment is damaged"):
        find_newest_segment(disk, "/s")


def test_a_header_that_was_torn_when_a_segment_was_used_again_is_no_loss() -> None:
    disk = SimDisk()
    redo = log(disk)
    redo.sync_to(redo.append([change(1)]))
    redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(2)]))
    disk.damage(PATH, 0, b"torn")
    assert read(disk) == [change(2)]
    assert damaged_headers(disk, "/s") == [PATH]


def test_headers_that_are_whole_or_were_never_written_are_not_damaged() -> None:
    disk = SimDisk()
    log(disk)
    assert damaged_headers(disk, "/s") == []
    assert disk.exists(f"/s/{SEGMENT_NAMES[1]}")


@pytest.mark.parametrize("sequence", [1, 2])
@pytest.mark.parametrize("left", [0, 40, SEGMENT_DATA_OFFSET, SEGMENT_SIZE - 1])
def test_a_segment_in_use_that_was_cut_is_refused(sequence: int, left: int) -> None:
    """Its groups may have stood behind the cut, and the end of the log looks the same."""
    disk = SimDisk()
    redo = log(disk)
    for _ in range(1, sequence):
        redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(1)]))
    name = SEGMENT_NAMES[sequence % 2]
    disk.open(f"/s/{name}").truncate(left)
    due = SEGMENT_SIZE
    said = f"was cut: it has {left} bytes, it was made with {due}.*truncate -s {due} .*{name}"
    with pytest.raises(FormatError, match=said):
        find_newest_segment(disk, "/s")
    disk.open(f"/s/{name}").truncate(SEGMENT_SIZE)
    find_newest_segment(disk, "/s")


def test_a_cut_of_the_segment_that_nobody_reads_does_no_harm() -> None:
    disk = SimDisk()
    redo = log(disk)
    redo.begin_next_segment(Position(0, 0))
    redo.sync_to(redo.append([change(2)]))
    disk.open(PATH).truncate(SEGMENT_DATA_OFFSET)
    assert read(disk) == [change(2)]


def test_a_header_of_an_older_log_says_no_size() -> None:
    disk = SimDisk()
    log(disk)
    disk.damage(PATH, 0, encode_segment_header(1, FIRST_LSN, Position(0, 0), 0))
    disk.open(PATH).truncate(SEGMENT_SIZE // 2)
    assert read(disk) == []


def test_a_first_opening_that_found_no_room_can_be_made_again() -> None:
    disk = SimDisk()
    disk.make_dir("/s")
    disk.open(PATH, create=True).allocate(SEGMENT_SIZE)
    for size in (None, 0, SEGMENT_SIZE // 2):
        if size is not None:
            disk.open(f"/s/{SEGMENT_NAMES[0]}", create=True).truncate(size)
        assert find_newest_segment(disk, "/s") is None
    assert read(log_on(disk)) == []


def test_an_unknown_version_is_refused() -> None:
    disk = SimDisk()
    log(disk)
    raw = bytearray(disk.contents(PATH)[:48])
    raw[8] = 3
    from ibb.protocol.checksum import crc32c

    disk.damage(PATH, 0, bytes(raw) + crc32c(bytes(raw)).to_bytes(4, "little"))
    with pytest.raises(FormatError, match="redo log format 3 is unknown"):
        find_newest_segment(disk, "/s")


def test_one_sync_serves_all_who_wait() -> None:
    """Group commit: while one sync runs, others gather and share the next."""
    entered, go_on = threading.Event(), threading.Event()

    class SlowDisk(SimDisk):
        def step(self, kind: str, path: str) -> None:
            super().step(kind, path)
            if kind == "sync" and armed:
                entered.set()
                assert go_on.wait(20)

    armed: list[bool] = []
    disk = SlowDisk()
    redo = log(disk)
    armed.append(True)
    lsns = [redo.append([change(0)])]
    threads = [threading.Thread(target=redo.sync_to, args=(lsns[0],))]
    threads[0].start()
    assert entered.wait(20)
    before = sum(op.kind == "sync" for op in disk.log)
    for number in range(1, 9):
        lsn = redo.append([change(number)])
        threads.append(threading.Thread(target=redo.sync_to, args=(lsn,)))
        threads[-1].start()
    go_on.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert redo.synced_lsn == redo.next_lsn
    assert sum(op.kind == "sync" for op in disk.log) - before <= 2


def test_what_an_earlier_use_left_is_not_read_group_by_group() -> None:
    """A segment of small old groups behind the end is scanned once."""
    disk = SimDisk()
    old = b"".join(encode_group(lsn, 1, []) for lsn in range(5000, 8000))
    redo = log(disk)
    end = redo.append([change(1)])
    redo.sync_to(end)
    disk.damage(PATH, SEGMENT_DATA_OFFSET + end - FIRST_LSN, old)
    disk.log.clear()
    segment = find_newest_segment(disk, "/s")
    assert segment is not None
    assert [group.lsn for group in read_groups(disk, "/s", segment)] == [FIRST_LSN]
    assert sum(op.kind == "read" for op in disk.log) < 20


def test_small_writes_go_where_zeros_were_written_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """One write of zeros serves many commits; large writes bring none, and none passes the end."""
    disk, sizes = SimDisk(), []
    redo = log(disk)
    write_at = SimFile.write_at

    def noted(self: SimFile, offset: int, data: Buffer | Sequence[Buffer]) -> None:
        write_at(self, offset, data)
        sizes.append(len(data) if isinstance(data, (bytes, bytearray)) else sum(map(len, data)))

    monkeypatch.setattr(SimFile, "write_at", noted)
    for number in range(40):
        redo.sync_to(redo.append([change(number)]))
    assert sizes[0] > 1 << 20
    assert max(sizes[1:]) < 200
    redo.sync_to(redo.append([change(number, 60_000) for number in range(20)]))
    assert 1_200_000 < sizes[-1] < 1_300_000
    while redo.fits(200):
        redo.sync_to(redo.append([change(len(sizes), 60_000 if redo.fits(61_000) else 100)]))
    assert len(disk.contents(PATH)) == SEGMENT_SIZE
    assert len(read(disk)) == len(sizes) + 19
