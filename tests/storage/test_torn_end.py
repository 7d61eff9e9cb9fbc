"""Files that end anywhere, without a redo log: a store goes on behind their last whole record."""

import random
from dataclasses import replace
from functools import cache

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.record import Xid
from ibb.storage.redo_segment import SEGMENT_DATA_OFFSET, SEGMENT_NAMES
from ibb.storage.verify import verify_directory

from ..faults.sim_disk import SimDisk
from ..simulation.reading import oracle_problems
from .events import transaction

PAGE = 512
OPTIONS = StoreOptions(
    page_size=PAGE,
    max_binlog_size=8 * PAGE,
    state_interval=2 * PAGE,
    oob_piece_size=700,
    redo_segment_size=256 << 10,
    format_description="upstream",
    background=False,
)
LONG_RECORDS = replace(OPTIONS, max_binlog_size=64 * PAGE, oob_piece_size=9000)
FIRST, LAST = 1, 26
NAME = Xid(1, b"prepared", b"")


def publish(store: Store, seq: int, size: int) -> None:
    with store.begin() as group:
        group.write(transaction(f"group {seq}", size))
        group.commit(Gtid(seq % 3, 1, seq))


def path_of(file_no: int) -> str:
    return f"/s/binlog-{file_no:06d}.ibb"


def without_log(disk: SimDisk) -> SimDisk:
    for name in SEGMENT_NAMES:
        disk.remove(f"/s/{name}")
    return disk


@cache
def closed_files() -> SimDisk:
    """Return files without a log: groups of one chunk, of many, in pieces, and a prepared one."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        for seq in range(FIRST, LAST + 1):
            publish(store, seq, (seq % 5) * 350)
            if seq == LAST - 5:
                with store.begin() as group:
                    group.write(transaction("prepared", 900))
                    group.prepare(NAME)
    return without_log(disk)


def used_pages(disk: SimDisk) -> list[tuple[int, int]]:
    """Return file and number of the pages that are used, in order."""
    found = []
    for name in disk.list("/s"):
        if name.endswith(".ibb"):
            data = disk.contents(f"/s/{name}")
            pages = range(0, len(data), PAGE)
            found += [(int(name[7:13]), at // PAGE) for at in pages if any(data[at : at + PAGE])]
    return found


def files_without(count: int, *, in_advance: bool) -> SimDisk:
    """Return files that lack their last pages, with the file made in advance or without it."""
    disk = closed_files().crashed(random.Random(1), 1.0)
    used = used_pages(disk)
    for file_no, page_no in used[len(used) - count :]:
        disk.damage(path_of(file_no), page_no * PAGE, bytes(PAGE))
    newest = used[len(used) - count - 1][0]
    for name in disk.list("/s"):
        if name > f"binlog-{newest + in_advance:06d}.ibb":
            disk.remove(f"/s/{name}")
    return disk


def groups(store: Store, start: str | None = None) -> dict[int, bytes]:
    return {group.gtid.seq: b"".join(group.pieces()) for group in store.reader(start) if group.gtid}


@cache
def published() -> dict[int, bytes]:
    with Store.open("/s", OPTIONS, disk=closed_files().crashed(random.Random(1), 1.0)) as store:
        return groups(store)


def check_taken_over(disk: SimDisk) -> int:
    """Open the files, publish, read from everywhere; return how many of the groups were kept."""
    before = {name: disk.contents(f"/s/{name}") for name in disk.list("/s")}
    findings = list(verify_directory(disk, "/s"))
    torn = "torn-end" in {finding.kind for finding in findings}
    assert {finding.kind for finding in findings} <= {"torn-end"}
    with Store.open("/s", OPTIONS, disk=disk) as store:
        kept = groups(store)
        count = len(kept)
        assert kept == {seq: published()[seq] for seq in range(FIRST, count + 1)}
        assert len(store.state()) == min(count, 3)
        assert not torn or store.copies_set_aside
        copies = [disk.contents(name) for name in store.copies_set_aside]
        assert all(copy in before.values() for copy in copies)
        prepared = [one.xid for one in store.prepared()]
        assert prepared in ([NAME], []) if count >= LAST - 5 else prepared == []
        for seq in (1001, 1002):
            publish(store, seq, 600)
        position = str(store.state().position())
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert store.copies_set_aside == []
        assert list(groups(store)) == [*kept, 1001, 1002]
        assert str(store.state().position()) == position
        publish(store, 1003, 10)
        for seq in range(3, count, 5):
            start = ",".join(f"{n % 3}-1-{n}" for n in range(seq - 2, seq + 1))
            behind = [*range(seq + 1, count + 1), 1001, 1002, 1003]
            assert list(groups(store, start)) == behind
    assert oracle_problems(disk, "/s", states=True) == []
    assert {finding.kind for finding in verify_directory(disk, "/s")} <= {"set-aside"}
    return count


@pytest.mark.parametrize("in_advance", [True, False])
def test_however_many_pages_are_missing_from_the_end(in_advance: bool) -> None:
    kept = [
        check_taken_over(files_without(count, in_advance=in_advance))
        for count in range(len(used_pages(closed_files())) - 3)
    ]
    assert kept[0] == LAST
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) > LAST // 2


def test_pages_can_be_missing_before_the_newest_file_if_none_was_made_behind_it() -> None:
    """A writer makes file N + 1 when file N - 1 is on the disk, not before."""
    disk = files_without(2, in_advance=False)
    newest = used_pages(disk)[-1][0]
    lost = [page for page in used_pages(disk) if page[0] == newest - 1][-2:]
    for file_no, page_no in lost:
        disk.damage(path_of(file_no), page_no * PAGE, bytes(PAGE))
    cut = disk.contents(path_of(newest))
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert cut in [disk.contents(name) for name in store.copies_set_aside]
        publish(store, 1001, 0)
        kept = list(groups(store))
    assert kept == [*range(FIRST, len(kept)), 1001]
    assert 5 < len(kept) < LAST


def test_after_a_kill_without_the_log_as_its_error_advises() -> None:
    for last in range(LAST - 8, LAST):
        disk = SimDisk()
        store = Store.open("/s", OPTIONS, disk=disk)
        for seq in range(FIRST, last + 1):
            publish(store, seq, (seq % 5) * 350)
        store._engine._work()
        disk.end_process()
        with Store.open("/s", OPTIONS, disk=without_log(disk)) as store:
            kept = groups(store)
            assert list(kept) == list(range(FIRST, len(kept) + 1))
            publish(store, 1001, 600)
            assert list(groups(store)) == [*kept, 1001]
            assert list(groups(store, "0-1-3,1-1-4,2-1-5"))[-1] == 1001


def killed_behind_a_header() -> SimDisk:
    """Return a disk with the group 1 in file 0, and only the header of file 1."""
    disk = SimDisk()
    store = Store.open("/s", OPTIONS, disk=disk)
    publish(store, 1, 0)
    store.switch_file()
    store._engine._work()
    disk.end_process()
    return disk


def test_a_file_of_which_only_the_header_was_written_gets_its_state() -> None:
    """And is whole then, though nothing else was ever in it."""
    disk = killed_behind_a_header()
    with Store.open("/s", OPTIONS, disk=without_log(disk)) as store:
        publish(store, 2, 0)
        assert store.end().file_no == 2
        assert list(groups(store)) == [1, 2]
    assert len(disk.contents(path_of(1))) == 2 * PAGE
    assert oracle_problems(disk, "/s", states=True) == []


def test_the_rest_of_a_record_whose_beginning_was_purged_is_refused() -> None:
    """A long record goes on in file 1; there it is cut."""
    disk = SimDisk()
    with Store.open("/s", LONG_RECORDS, disk=disk) as store:
        while store.end() < (0, 61 * PAGE):
            publish(store, 1, 350)
        publish(store, 2, 3000)
        assert store.end() > (1, 4 * PAGE)
    disk.remove(path_of(0))
    disk.damage(path_of(1), 3 * PAGE, bytes(61 * PAGE))
    before = disk.contents(path_of(1))
    without_log(disk)
    with pytest.raises(FormatError, match=r"only a part of a record.*binlog-000001"):
        Store.open("/s", LONG_RECORDS, disk=disk)
    assert disk.contents(path_of(1)) == before


@pytest.mark.parametrize("still_there", [False, True])
def test_a_prepared_transaction_whose_files_are_gone_was_ended_in_what_is_missing(
    still_there: bool,
) -> None:
    """Nobody purges what one needs that is prepared; the cut made it look prepared again."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        with store.begin() as group:
            group.write(transaction("prepared", 900))
            group.prepare(NAME)
        while store.end().file_no < 1:
            publish(store, 1, 350)
        pages = store.end().offset // PAGE + 1
        with store.begin() as open_group:  # the next file refers to this one
            open_group.write(transaction("open", 900))
            publish(store, 2, 900)
            store.rollback_prepared(NAME)
            store.switch_file()
            open_group.rollback()
        publish(store, 4, 0)
        if not still_there:
            assert store.purge_to(path_of(2)[3:]).removed == [path_of(0)[3:]]
    for file_no in range(1, 4):
        first = pages if file_no == 1 else 0
        size = len(disk.contents(path_of(file_no)))
        disk.damage(path_of(file_no), first * PAGE, bytes(size - first * PAGE))
    with Store.open("/s", OPTIONS, disk=without_log(disk)) as store:
        assert [one.xid for one in store.prepared()] == ([NAME] if still_there else [])
        publish(store, 3, 0)
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert [one.xid for one in store.prepared()] == ([NAME] if still_there else [])
        assert store.state().seq(0, 1) == 3


def test_a_state_that_only_the_log_had_is_missed() -> None:
    disk = killed_behind_a_header()
    disk.remove(path_of(0))
    with pytest.raises(FormatError, match=r"GTID state is not known.*binlog-000001"):
        Store.open("/s", OPTIONS, disk=without_log(disk))


def test_a_log_that_lost_its_only_group_does_not_let_half_a_record_through() -> None:
    """The files have whole pages of it: an opening goes on before it, with a copy of all."""
    disk = SimDisk()
    Store.open("/s", LONG_RECORDS, disk=disk).close()
    store = Store.open("/s", LONG_RECORDS, disk=disk)
    publish(store, 1, 2000)
    store._engine._work()
    disk.end_process()
    (log,) = {op.path for op in disk.log[-30:] if op.kind == "write" and "redo" in op.path}
    disk.damage(log, SEGMENT_DATA_OFFSET + 40, b"damage")
    written = disk.contents(path_of(0))
    for seq in (2, 3):
        with Store.open("/s", LONG_RECORDS, disk=disk) as store:
            assert [disk.contents(name) for name in store.copies_set_aside] == (
                [written] if seq == 2 else []
            )
            publish(store, seq, 0)
            assert list(groups(store)) == list(range(2, seq + 1))
    assert oracle_problems(disk, "/s", states=True) == []


@pytest.mark.parametrize("pages", [2, 3])
def test_the_rest_of_the_oldest_state_is_missed(pages: int) -> None:
    """Going on without it would forget all that was before the files."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        store.set_binlog_state(BinlogState(Gtid(domain, 1, 1 << 50) for domain in range(200)))
        publish(store, 1 << 51, 0)
    data = disk.contents(path_of(0))
    disk.damage(path_of(0), pages * PAGE, bytes(len(data) - pages * PAGE))
    with pytest.raises(FormatError, match=r"only the beginning .* GTID state is not known.*000000"):
        Store.open("/s", OPTIONS, disk=without_log(disk))
    assert disk.contents(path_of(0)) == data[: pages * PAGE].ljust(len(data), b"\0")
