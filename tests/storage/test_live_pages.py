"""Pages of a live store end where the durable data does."""

import errno

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.chunk import chunk_area_end
from ibb.storage.errors import DiskError
from ibb.storage.holds import HoldKind
from ibb.storage.page_source import NO_MORE_DATA, NO_MORE_PAGES, PageStatus

from ..faults.sim_disk import Fault, SimDisk
from .events import transaction

SIZE = 512


def _options() -> StoreOptions:
    return StoreOptions(
        page_size=SIZE, max_binlog_size=SIZE * 16, redo_segment_size=256 << 10,
        flush_log_at_commit=0, format_description="upstream", background=False,
    )  # fmt: skip


def _publish(store: Store, seq: int) -> None:
    with store.begin() as group:
        group.write(transaction("x" * 700))
        group.commit(Gtid(0, 1, seq))


def _fill_to(store: Store, file_no: int) -> None:
    seq = 0
    while store.end().file_no < file_no:
        _publish(store, seq := seq + 1)
    store.sync()


def test_each_page_ends_at_its_area_and_the_last_at_the_durable_end():
    with Store.open("/s", _options(), disk=SimDisk()) as store:
        for seq in range(1, 12):
            _publish(store, seq)
            if seq % 2:
                store.sync()
            end, pages = store.end(), store.pages
            assert pages.last_file() == end.file_no
            assert pages.header(end.file_no + 1) is None
            for page_no in range(1, 16):
                read, start = pages.read_page(end.file_no, page_no), page_no * SIZE
                if start >= end.offset:
                    assert read == NO_MORE_DATA
                else:
                    visible = min(chunk_area_end(SIZE), end.offset - start)
                    assert (read.end, read.status) == (visible, PageStatus.PAGE)
        assert end.file_no > 0
        assert pages.read_page(0, 15).end == chunk_area_end(SIZE)
        assert pages.read_page(0, 16) == NO_MORE_PAGES


def test_the_first_file_is_known_anew_when_a_removal_ended_badly():
    disk = SimDisk()
    with Store.open("/s", _options(), disk=disk) as store:
        _fill_to(store, 3)
        assert store.pages.first_file() == 0
        disk.faults.append(Fault(lambda op: op.kind == "sync_dir", errno.EIO))
        with pytest.raises(DiskError):
            store.purge_to("binlog-000002.ibb")
        assert next(iter(store.files())).file_no == 1
        assert store.pages.first_file() == 1
        with store.hold(HoldKind.READER, "a reader") as hold:
            assert hold.file_no == 1
        assert next(store.reader()).gtid.seq > 1


def test_the_first_file_that_goes_while_it_is_looked_for_is_not_kept_in_mind():
    class Disk(SimDisk):
        def list(self, path: str) -> list[str]:
            found = super().list(path)
            if removed:
                self.unlink(f"{path}/{removed.pop()}")
                pages.forget(0)
            return found

    disk, removed = Disk(), []
    with Store.open("/s", _options(), disk=disk) as store:
        _fill_to(store, 3)
        pages = store.pages
        removed.append("binlog-000000.ibb")
        pages.forget(-1)  # so that it is looked for
        assert pages.first_file() == 0  # as it was when the files were listed
        assert pages.first_file() == 1
