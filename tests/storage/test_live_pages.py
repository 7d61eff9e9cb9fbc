"""Pages of a live store end where the durable data does."""

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.chunk import chunk_area_end
from ibb.storage.page_source import NO_MORE_DATA, NO_MORE_PAGES, PageStatus

from ..faults.sim_disk import SimDisk
from .events import transaction

SIZE = 512


def test_each_page_ends_at_its_area_and_the_last_at_the_durable_end():
    options = StoreOptions(
        page_size=SIZE, max_binlog_size=SIZE * 16, redo_segment_size=256 << 10,
        flush_log_at_commit=0, format_description="upstream", background=False,
    )  # fmt: skip
    with Store.open("/s", options, disk=SimDisk()) as store:
        for seq in range(1, 12):
            with store.begin() as group:
                group.write(transaction("x" * 700))
                group.commit(Gtid(0, 1, seq))
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
